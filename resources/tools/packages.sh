#!/bin/sh
# Installs the Debian packages of a purpose, if something of it is missing:
# packages.sh venv [PYTHON] | bench | local | vm | emulate | integration | checks (both) | characterization | spark
# Packages of drivers are those that their declarations name. Without root it says what to install and ends with 1.
set -eu
PATH=$PATH:/usr/sbin:/sbin
say() { printf 'csit: %s\n' "$*" >&2; }

missing=
need() { # PACKAGE CHECK...: the package is missing when the check fails
    package=$1 && shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
services=
need_service() { # PACKAGE CHECK...: one with a service of the same name, which must not run
    before=$missing && need "$@"
    [ "$missing" = "$before" ] || services="$services $1"
}
need_network() {
    need iproute2 command -v ip
    need ethtool command -v ethtool
    need netsniff-ng command -v trafgen
    need procps command -v sysctl
}
need_lab() { # nodes in network namespaces, each with an SSH server
    need openssh-server command -v sshd
    need sudo command -v sudo
}
need_vm() { # the guests' own kernel and busybox are fetched when the first one boots, and not installed
    need qemu-system-x86 command -v qemu-system-x86_64
    if grep -qs '^ID=ubuntu' /etc/os-release; then # whose kernel modules are packed with it
        need zstd command -v zstd
    fi
}
need_emulate() { # what the emulated machines themselves have is put on their disk, and not installed
    need qemu-system-x86 command -v qemu-system-x86_64
    need mmdebstrap command -v mmdebstrap
    need e2fsprogs command -v mkfs.ext4
    need debian-archive-keyring test -e /usr/share/keyrings/debian-archive-keyring.gpg # on Ubuntu
}

need_perf() { # samples call stacks; without it -v STACKS is refused
    if ! perf --version >/dev/null 2>&1 && grep -qs '^ID=ubuntu' /etc/os-release; then # perf is there by kernel
        optional="$optional linux-tools-$(uname -r)"
    else
        need linux-perf perf --version
    fi
}
need_containers() {
    need_service podman command -v podman
    need runc command -v runc # the other runtime, crun, refuses control groups of both versions side by side
}
need_services() { # those of tests/characterization
    need_service kamailio command -v kamailio
    need kamailio-redis-modules sh -c 'ls /usr/lib/*/kamailio/modules/ndb_redis.so'
    need_service redis-server command -v redis-server
    need sip-tester command -v sipp
    need_service haproxy command -v haproxy
    need_service nginx command -v nginx
    need httperf command -v httperf
}
need_drivers() { # ROLE...: programs that drivers of these roles declare; some packages have a service, which must not run
    while read -r program packages; do
        case $packages in
        suricata) ;; # see want_ids
        *)
            for package in $packages; do
                need_service "$package" command -v "$program"
            done
            ;;
        esac
    done <<END
$(python3 "$(dirname "$0")/driver_packages.py" "$@")
END
}
need_functions() { # generators and network functions, with what their tests compare them to
    need_drivers generators functions
    need conntrack command -v conntrack
    need libnginx-mod-stream test -e /usr/lib/nginx/modules/ngx_stream_module.so
    need wireguard-go command -v wireguard-go
}
optional=
backports=
want_ids() { # an intrusion detection system; what needs it is skipped without
    command -v suricata >/dev/null && return
    optional=suricata services="$services suricata"
    if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then # there it is in the backports only
        optional='suricata/bookworm-backports libhtp2/bookworm-backports' backports=bookworm-backports
    fi
}
need_noise() { # peers of the observer of the noise floor
    need rt-tests command -v oslat
}
need_power() { # reads BMCs; a simulated one
    need ipmitool command -v ipmitool
    need_service openipmi command -v ipmi_sim
}
need_browser() {
    if grep -qs '^ID=debian' /etc/os-release; then # Ubuntu's chromium is a snap: bring a browser of your own there
        need chromium sh -c 'command -v chromium || command -v google-chrome || command -v chrome'
    fi
}

need_bench() {
    need_network
    need xdp-tools command -v xdp-trafficgen
    need_lab
}
need_integration() {
    need_network
    need_services
    need_functions
    want_ids
    need_vm
    need_emulate
    need_drivers vswitches
    need_lab
    need faketime command -v faketime # a wall clock that tests step
    need openvswitch-switch-dpdk test -e /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk
    need 'librte-net-af-packet[0-9]*' sh -c 'ls /usr/lib/*/dpdk/pmds-*/librte_net_af_packet.so*' # numbered by DPDK version
    need gcc command -v gcc # builds the revisions of a forwarder that is bisected
    need libc6-dev test -e /usr/include/stdio.h
    need_containers
    need_noise
    need_power
    need_perf
    need_browser
}

purpose=${1:?the purpose: venv, bench, local, vm, emulate, integration, checks, characterization or spark}
if [ "$purpose" != venv ] && command -v flock >/dev/null; then # one at a time: the second then finds what it needs
    exec 9<"$0" && flock 9
fi
case $purpose in
venv)
    python=${2:-python3}
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    need "python$version-venv" "$python" -c 'import ensurepip, venv'
    ;;
bench) need_bench ;;
local)
    need_vm
    need nftables command -v nft
    ;;
vm) need_vm ;;
emulate) need_emulate ;;
integration) need_integration ;;
checks)
    need_bench
    need_integration
    ;;
spark) # a runtime that is too old is as good as none
    need default-jre-headless sh -c 'java -version 2>&1 | grep -Eq "version \"(1[7-9]|[2-9][0-9])"'
    ;;
characterization)
    need_services
    need_functions
    ;;
*) say "no packages are known for '$purpose'" && exit 2 ;;
esac
[ -n "$missing$optional" ] || exit 0

if ! command -v apt-get >/dev/null; then
    [ -n "$missing" ] || exit 0
    say "missing for $purpose:$missing (the names of Debian's packages; install what they hold)" && exit 1
elif [ "$(id -u)" -ne 0 ]; then
    [ -n "$missing" ] || exit 0
    say "missing for $purpose; install it with: sudo apt-get install$missing" && exit 1
fi

work=$(mktemp -d)
log=$work/log
policy=/usr/sbin/policy-rc.d
own=
trap 'rm -rf "$work" $own' EXIT
if [ -n "$services" ] && [ ! -e "$policy" ]; then # Debian starts services when they are installed, unless this says no
    own=$policy
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
update() { # once for these sources, unless an installation has failed since
    # shellcheck disable=SC2086 # lists of words
    [ "$lists" = "of $parts" ] || { apt-get -q $parts -o Acquire::Retries=3 update >>"$log" 2>&1 && lists="of $parts"; }
}
install() { # PACKAGE...: from the machine's own sources, and from those of $parts
    say "installing with apt-get, for $purpose: $*"
    # shellcheck disable=SC2086 # lists of words
    for pause in $pauses; do # apt waits for dpkg's lock by itself, not for that of the lists
        : >"$log"
        if update &&
            apt-get -qy $parts -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@" >>"$log" 2>&1; then
            return
        fi
        lists=
        [ "$pause" -eq 0 ] || { say "apt-get did not succeed; again in $pause s" && sleep "$pause"; }
    done
    cat "$log" >&2
    say "apt-get could not install $*; its messages are above"
    return 1
}

parts= lists= pauses='5 20 0'
# shellcheck disable=SC2086 # a list of words
if [ -n "$missing" ]; then install $missing || exit 1; fi
if [ -n "$backports" ]; then # for this time only: the machine's sources stay as they are
    mkdir "$work/sources"
    cp -r /etc/apt/sources.list.d/. "$work/sources" 2>/dev/null || :
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key] http://deb.debian.org/debian $backports main" >"$work/sources/backports.list"
    parts="-o Dir::Etc::sourceparts=$work/sources"
fi
pauses=0
# shellcheck disable=SC2086 # a list of words
if [ -n "$optional" ]; then install $optional || say "what needs it is skipped"; fi
if [ -n "$services" ]; then
    for service in $services; do
        [ -e "/etc/init.d/$service" ] || [ -e "/lib/systemd/system/$service.service" ] || continue
        if command -v systemctl >/dev/null; then systemctl --quiet disable "$service" >/dev/null 2>&1 || :; fi
        say "not started, and not enabled at boot; tests start their own: $service"
    done
fi

#!/bin/sh
# Makes the process a machine of its own, as far as a node of a lab goes, and then holds its namespaces open:
#   unshare --net=… --uts=… --mount --propagation private sh lab_node.sh STATE NAME [PATH...]
# STATE is a folder with etc/ (files that replace those of the machine) and ssh/ (what the SSH server needs). PATHs stay
# visible wherever they are. Processes and kernel threads are those of the machine: no PID namespace.
set -eu
state=$1 name=$2
shift 2
hostname "$name"

fresh() { # TARGET MODE: an empty, small file system, with the kept paths below it
    aside=$state/aside
    mkdir -p "$aside"
    mount -n -t tmpfs -o "mode=$2,size=256m" csit-lab "$aside"
    for kept in "$@"; do
        case $kept in "$1"/*) mkdir -p "$aside${kept#"$1"}" && mount -n --bind "$kept" "$aside${kept#"$1"}" ;; esac
    done
}
place() { # TARGET: the file system aside gets its place
    mount -n --move "$state/aside" "$1"
}

for file in "$state"/etc/*; do
    target=/etc/${file##*/}
    [ ! -e "$target" ] || mount -n --bind "$file" "$target"
done
mount -n --bind "$state/boot_id" /proc/sys/kernel/random/boot_id
ip link set lo up

mkdir -p "$state/aside" # sysfs shows the links of the network namespace it was mounted in
mount -n -t sysfs csit-lab "$state/aside"
covered=
awk '$2 ~ "^/sys/" { print $2 }' /proc/self/mounts | sort | while read -r below; do
    case $below in "${covered:-none}"/*) continue ;; esac
    covered=$below
    [ ! -d "$state/aside${below#/sys}" ] || mount -n --rbind "$below" "$state/aside${below#/sys}"
done
place /sys

for target in /tmp /var/tmp /dev/shm; do
    fresh "$target" 1777 "$@" && place "$target"
done
disk=/var/lib/csit-density # survives a reset
mkdir -p "$disk"
fresh "$disk" 0755 "$@" && place "$disk"
fresh /run 0755 "$@"
mkdir -p "$state/aside/sshd" "$state/aside/lock" "$state/aside/home"
cp -a "$state/ssh" "$state/aside/lab"
for user in root tester guest; do
    install -d -m 0700 -o "$user" "$state/aside/home/$user"
done
place /run
echo ready
exec sleep infinity

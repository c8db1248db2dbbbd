#!/bin/sh
# Brings up one intrusion detection system: Suricata or Snort that watches what comes to the instance, or Suricata inline,
# which forwards to an interface behind it what no rule drops. The option `engine` says which.
set -eu
here=$(dirname "$0")
outside=$(ip -o -4 addr show to "$CSIT_ADDRESS" | awk '{ print $2; exit }')

rules() { # ACTION: the shipped rule, and others whose patterns no packet has, so that every payload is searched for all
    sed "s/^alert/$1/" "$here/malicious.rules"
    awk -v count="$CSIT_OPTION_RULES" -v action="$1" 'BEGIN {
        for (n = 2; n <= count; n++)
            printf "%s udp any any -> any any (msg:\"pattern %d\"; content:\"pattern-%05d\"; sid:%d; rev:1;)\n", action, n, n, 1000000 + n
    }'
}

make_inside() { # A cable behind the inline IDS; the instance's address moves to its far end, which is all that is there
    ip link add inside type veth peer name protected
    address=$(ip -o -4 addr show dev "$outside" | awk '{ print $4; exit }')
    ip addr flush dev "$outside"
    ip addr add "$address" dev protected
    # Only the far end answers for the address, so that everything has to pass the IDS.
    for name in "$outside" inside; do echo 1 >"/proc/sys/net/ipv4/conf/$name/arp_ignore"; done
    # What is copied from interface to interface needs its checksum, and is one frame of the wire's size.
    for name in "$outside" inside protected; do
        ethtool -K "$name" tx off tso off gso off gro off >/dev/null 2>&1 || true
        ip link set "$name" up
    done
}

capture() { # INTERFACE CLUSTER [PEER]: an entry of af-packet
    cat <<YAML
  - interface: $1
    threads: $CSIT_OPTION_WORKERS
    cluster-id: $2
    cluster-type: cluster_flow
    use-mmap: yes
    tpacket-v3: no
    ring-size: 4096
    checksum-checks: no
YAML
    [ $# -lt 3 ] || printf '    copy-mode: ips\n    copy-iface: %s\n' "$3"
}

configuration() { # MODE
    cat <<YAML
%YAML 1.1
---
default-rule-path: $CSIT_FOLDER
rule-files: [used.rules]
classification-file: /dev/null
reference-config-file: /dev/null
threshold-file: /dev/null
runmode: workers
capture: {disable-offloading: no, checksum-validation: none}
stream: {checksum-validation: no, memcap: 16mb}
flow: {memcap: 16mb, hash-size: 4096, prealloc: 1024}
# Counters come from here, each second. Alerts are put in words as for a log, and not kept.
stats: {enabled: yes, interval: 1}
outputs:
  - fast: {enabled: yes, filename: /dev/null}
  - eve-log: {enabled: yes, filetype: regular, filename: eve.json, types: [{stats: {totals: yes, threads: no}}]}
logging: {default-log-level: notice, outputs: [{file: {enabled: yes, filename: $CSIT_FOLDER/suricata.log}}]}
unix-command: {enabled: no}
af-packet:
YAML
    if [ "$1" = ips ]; then
        capture "$outside" 98 inside
        capture inside 99 "$outside"
    else
        capture "$outside" 99
    fi
}

suricata_in() { # MODE ACTION
    rules "$2" >"$CSIT_FOLDER/used.rules"
    configuration "$1" >"$CSIT_FOLDER/suricata.yaml"
    suricata -c "$CSIT_FOLDER/suricata.yaml" -l "$CSIT_FOLDER" --af-packet \
        >"$CSIT_FOLDER/ids.log" 2>&1 &
    ids=$!
    echo "fact ids $(suricata -V | grep -o 'version.*'), $1 mode, workers: $CSIT_OPTION_WORKERS, rules: $CSIT_OPTION_RULES"
}

snort_ids() {
    rules alert >"$CSIT_FOLDER/used.rules"
    printf 'config daq: afpacket\nconfig checksum_mode: none\ninclude %s/used.rules\n' "$CSIT_FOLDER" >"$CSIT_FOLDER/snort.conf"
    snort -c "$CSIT_FOLDER/snort.conf" -i "$outside" -l "$CSIT_FOLDER" -A none -k none >"$CSIT_FOLDER/ids.log" 2>&1 &
    ids=$!
    echo "$ids" >"$CSIT_FOLDER/ids.pid"
    echo "fact ids $(snort -V 2>&1 | grep -o 'Version [^ ]*'), rules: $CSIT_OPTION_RULES"
}

works() { # Whether it looks at packets
    case $CSIT_OPTION_ENGINE in
    snort) grep -qs 'Commencing packet processing' "$CSIT_FOLDER/ids.log" ;;
    *) grep -qs '"event_type":"stats"' "$CSIT_FOLDER/eve.json" ;; # a second after it has begun
    esac
}

case $CSIT_OPTION_ENGINE in
suricata-ids) suricata_in ids alert ;;
suricata-ips)
    make_inside
    suricata_in ips drop
    ;;
snort) snort_ids ;;
esac
python3 "$here/counters.py" "$CSIT_OPTION_ENGINE" "$CSIT_FOLDER" "$CSIT_ADDRESS" >"$CSIT_FOLDER/counters.log" 2>&1 &
for _ in $(seq 1000); do
    works && exit 0
    kill -0 "$ids" 2>/dev/null || break
    sleep 0.1
done
tail -n 5 "$CSIT_FOLDER"/*.log >&2
exit 1

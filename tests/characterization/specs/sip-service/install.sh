#!/bin/sh
# Brings up one instance of a SIP service: a subscriber database, a registrar that asks it at every registration, or an
# edge proxy through which subscribers reach the registrars. The instance ends with its processes.
set -eu
here=$(dirname "$0")

subscribers() { # every subscriber's password as a command to the database
    awk 'BEGIN { for (n = 0; n < 1000; n++) printf "SET password:user%d password%d\r\n", n, n }'
}

answers() { # PROGRAM ARGUMENT...: until it succeeds, for 20 s
    for _ in $(seq 200); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "no answer: $*" >&2
    return 1
}

kamailio_of() { # FILE: a SIP server with a configuration of this folder, after the lines on standard input
    cat - "$here/$1" >"$CSIT_FOLDER/kamailio.cfg"
    echo "fact $CSIT_COMPONENT $(kamailio -v | head -n 1)"
    # It goes into the background when all of its processes have been started.
    kamailio -f "$CSIT_FOLDER/kamailio.cfg" -P "$CSIT_FOLDER/kamailio.pid" -Y "$CSIT_FOLDER" -w "$CSIT_FOLDER" -m $((CSIT_MEMORY_MB / 2)) -M 4
}

case $CSIT_COMPONENT in
database)
    redis-server --bind "$CSIT_ADDRESS" --protected-mode no --save '' --appendonly no --dir "$CSIT_FOLDER" \
        --logfile "$CSIT_FOLDER/redis.log" --daemonize yes
    answers redis-cli -h "$CSIT_ADDRESS" ping
    echo "fact database $(redis-server --version)"
    # All at once, with one answer.
    subscribers | redis-cli -h "$CSIT_ADDRESS" --pipe
    ;;
registrar)
    # Several databases hold the same subscribers: every registrar asks one of them.
    # shellcheck disable=SC2086 # a list of words
    set -- $CSIT_ADDRESSES_DATABASE
    shift $(((CSIT_INSTANCE - 1) % $#))
    answers redis-cli -h "$1" ping
    kamailio_of registrar.cfg <<CFG
#!define LISTEN udp:$CSIT_ADDRESS:5060
#!define DATABASE "name=subscribers;addr=$1;port=6379"
CFG
    ;;
edge)
    for address in $CSIT_ADDRESSES_REGISTRAR; do echo "1 sip:$address:5060"; done >"$CSIT_FOLDER/registrars.list"
    kamailio_of edge.cfg <<CFG
#!define LISTEN udp:$CSIT_ADDRESS:5060
#!define REGISTRARS "$CSIT_FOLDER/registrars.list"
CFG
    ;;
*)
    echo "there is no component $CSIT_COMPONENT in the SIP service" >&2
    exit 1
    ;;
esac

#!/bin/sh
# Brings up one instance of an HTTP service: an origin with a page of 4 kB, or a proxy that hands requests to all origins
# in turn. The instance ends with its processes.
set -eu

origin() {
    mkdir "$CSIT_FOLDER/pages"
    head -c 4096 /dev/zero | tr '\0' x >"$CSIT_FOLDER/pages/index.html"
    cat >"$CSIT_FOLDER/nginx.conf" <<CONF
user root;
worker_processes 1;
pid $CSIT_FOLDER/nginx.pid;
error_log $CSIT_FOLDER/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path $CSIT_FOLDER/client;
    proxy_temp_path $CSIT_FOLDER/proxy;
    fastcgi_temp_path $CSIT_FOLDER/fastcgi;
    uwsgi_temp_path $CSIT_FOLDER/uwsgi;
    scgi_temp_path $CSIT_FOLDER/scgi;
    server { listen $CSIT_ADDRESS:80; root $CSIT_FOLDER/pages; }
}
CONF
    echo "fact origin $(nginx -v 2>&1)"
    nginx -c "$CSIT_FOLDER/nginx.conf" -e "$CSIT_FOLDER/error.log" # into the background, when it listens
}

proxy() {
    cat >"$CSIT_FOLDER/haproxy.cfg" <<CONF
global
    daemon
    maxconn 2000
    nbthread 1
    pidfile $CSIT_FOLDER/haproxy.pid
defaults
    mode http
    timeout connect 2s
    timeout client 5s
    timeout server 5s
listen service
    bind $CSIT_ADDRESS:80
    balance roundrobin
CONF
    number=0
    for address in $CSIT_ADDRESSES_ORIGIN; do
        number=$((number + 1))
        echo "    server origin$number $address:80" >>"$CSIT_FOLDER/haproxy.cfg"
    done
    echo "fact proxy $(haproxy -v | head -n 1)"
    haproxy -f "$CSIT_FOLDER/haproxy.cfg"
}

case $CSIT_COMPONENT in
origin) origin ;;
proxy) proxy ;;
*)
    echo "there is no component $CSIT_COMPONENT in the HTTP service" >&2
    exit 1
    ;;
esac

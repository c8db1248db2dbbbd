"""Taking UDP datagrams that a namespace would route into sockets of its own, whatever their addresses."""

from collections.abc import Iterable, Iterator
from socket import AF_INET, IPPROTO_UDP

from pyroute2.netlink.rtnl import RTM_NEWROUTE, RTM_NEWRULE, rt_proto, rt_scope, rt_type
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded, set_up

_TABLE = 100
_LOOPBACK = 1
_TO_TABLE = 1
"""FR_ACT_TO_TBL."""


def divert(interfaces: Iterable[str], ports: Iterable[int]) -> Iterator[Request]:
    """Requests that take in what arrives at interfaces for UDP ports; what the namespace sends itself is routed.

    Args:
        interfaces: Of the namespace.
        ports: UDP destination ports.
    """
    yield set_up("lo", _LOOPBACK)
    everything = {
        "family": AF_INET,
        "dst_len": 0,
        "table": _TABLE,
        "proto": rt_proto["static"],
        "type": rt_type["local"],
        "scope": rt_scope["host"],
    }
    body = encoded(rtmsg, everything, [("RTA_OIF", _LOOPBACK)])
    yield Request(RTM_NEWROUTE, CREATE_NEW, body, "take in all that comes here")
    rule = {"family": AF_INET, "table": _TABLE, "action": _TO_TABLE}
    for interface in interfaces:
        for port in ports:
            attrs = [
                ("FRA_IIFNAME", interface),
                ("FRA_IP_PROTO", IPPROTO_UDP),
                ("FRA_DPORT_RANGE", f"{port}:{port}"),
            ]
            body = encoded(fibmsg, rule, attrs)
            yield Request(RTM_NEWRULE, CREATE_NEW, body, f"take in UDP port {port} of {interface}")

"""How packets of an NF get into its tunnel: a table of routes for each of its ports."""

from collections.abc import Iterator
from socket import AF_INET

from pyroute2.netlink.rtnl import RTM_NEWROUTE, RTM_NEWRULE, RTM_SETLINK, rt_proto, rt_scope, rt_type
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.functions.openvpn.configuration import End
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded, set_up

_LOOPBACK = 1
_LAST_RESORT = 4096
"""A metric: of two routes the one with the lower is taken."""
_TO_TABLE = 1
"""FR_ACT_TO_TBL."""


def loopback_up() -> Request:
    """What the ends of a tunnel reach each other by."""
    return set_up("lo", _LOOPBACK)


def device_up(end: End, index: int, mtu: int) -> Iterator[Request]:
    """Let the device of an end take packets.

    Args:
        end: Of the tunnel.
        index: Of its device.
        mtu: Bytes of the largest packet.
    """
    body = encoded(ifinfmsg, {"index": index}, [("IFLA_MTU", mtu)])
    yield Request(RTM_SETLINK, 0, body, f"give {end.device} an MTU of {mtu}")
    yield set_up(end.device, index)


def into(end: End, index: int, port: str) -> Iterator[Request]:
    """Route all that arrives at a port into an end's device, and nowhere else: not past it when it is gone.

    What comes out of a device did not arrive at a port, and so is routed as usual.

    Args:
        end: Of the tunnel, on the side of the port.
        index: Of the end's device.
        port: The interface where packets arrive.
    """
    every = {"family": AF_INET, "dst_len": 0, "table": end.table, "proto": rt_proto["static"]}
    way = {**every, "type": rt_type["unicast"], "scope": rt_scope["link"]}
    body = encoded(rtmsg, way, [("RTA_OIF", index)])
    yield Request(RTM_NEWROUTE, CREATE_NEW, body, f"route into {end.device}")
    body = encoded(rtmsg, {**every, "type": rt_type["blackhole"]}, [("RTA_PRIORITY", _LAST_RESORT)])
    yield Request(RTM_NEWROUTE, CREATE_NEW, body, f"route nowhere without {end.device}")
    rule = {"family": AF_INET, "table": end.table, "action": _TO_TABLE}
    body = encoded(fibmsg, rule, [("FRA_IIFNAME", port)])
    yield Request(RTM_NEWRULE, CREATE_NEW, body, f"route what arrives at {port} by table {end.table}")

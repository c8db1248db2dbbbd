"""How packets between two sockets of one namespace get out of one port and in at the other.

The generator's namespace has both addresses. The kernel would take a packet from one to the other over the loopback;
rules for packets that are made here come before that, and what arrives at a port is taken in as ever.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from socket import AF_INET

from pyroute2.netlink.rtnl import RTM_DELRULE, RTM_NEWROUTE, RTM_NEWRULE, rt_proto, rt_scope, rt_type
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import (
    add_address,
    add_neighbour,
    encoded,
    set_mac,
    set_up,
)
from resources.libraries.python.model.plan import Flow, Plan, Port
from resources.libraries.python.planning.names import GENERATOR

_TABLE, _LOCAL = 100, 255
_LOOPBACK = 1
_TO_TABLE = 1
"""FR_ACT_TO_TBL."""
_NETWORKS = ("0.0.0.0/0",)
"""All: a NAT writes addresses of other networks than those that flows have. The table has hosts only."""
_SYSCTLS = {"ipv4/conf/all/accept_local": "1"}
"""Packets arrive whose source is an address of this namespace."""


def give(plan: Plan, fabric: Fabric) -> None:
    """Make the generator's ports usable by sockets, which then have the addresses of the plan's flows.

    Raises:
        CommandFailed: The kernel refused something.
    """
    ports = {port.interface: port for port in plan.ports(GENERATOR)}
    fabric.run_inside(GENERATOR, _set_sysctls)
    fabric.change(GENERATOR, _rules())
    for flow in plan.flows:
        port = ports[flow.tx_interface]
        mac = port.mac if port.nic is None else None
        fabric.change(GENERATOR, _requests(flow, port, fabric.index(port.interface), mac))


def _set_sysctls() -> None:
    for key, value in _SYSCTLS.items():
        Path("/proc/sys/net", key).write_text(value, encoding="ascii")


def _requests(flow: Flow, tx: Port, index: int, interface_mac: str | None) -> Iterator[Request]:
    """Make the sending end of a flow one that sockets can use.

    Args:
        flow: In either direction.
        tx: The port that it leaves by.
        index: Of that port's interface.
        interface_mac: To give the interface, where it has another than packets are sent to; None to leave it.
    """
    name = tx.interface
    if interface_mac is not None:
        yield set_mac(name, index, interface_mac)
    yield add_address(name, index, f"{flow.source_ip}/32")
    for address in filter(None, (flow.destination_ip, flow.answers_to)):
        yield add_neighbour(name, index, address, flow.destination_mac)
        yield _route(name, index, address, flow.source_ip)


def _rules() -> Iterator[Request]:
    """Send what is made here by the flows' own routes, before anything is taken for local."""
    yield set_up("lo", _LOOPBACK)
    for number, network in enumerate(_NETWORKS, 10):
        parsed = IPv4Network(network)
        fields = {"family": AF_INET, "dst_len": parsed.prefixlen, "table": _TABLE, "action": _TO_TABLE}
        attrs = [("FRA_DST", str(parsed.network_address)), ("FRA_IIFNAME", "lo"), ("FRA_PRIORITY", number)]
        yield Request(RTM_NEWRULE, CREATE_NEW, encoded(fibmsg, fields, attrs), f"route own packets to {network}")
    local = {"family": AF_INET, "table": _LOCAL, "action": _TO_TABLE}
    yield Request(
        RTM_NEWRULE, CREATE_NEW, encoded(fibmsg, local, [("FRA_PRIORITY", 20)]), "take in what is for this namespace"
    )
    yield Request(RTM_DELRULE, 0, encoded(fibmsg, local, [("FRA_PRIORITY", 0)]), "put that after the flows' routes")


def _route(name: str, index: int, address: str, source_ip: str) -> Request:
    fields = {
        "family": AF_INET,
        "dst_len": 32,
        "table": _TABLE,
        "proto": rt_proto["static"],
        "type": rt_type["unicast"],
        "scope": rt_scope["link"],
    }
    attrs = [("RTA_DST", address), ("RTA_OIF", index), ("RTA_PREFSRC", source_ip)]
    body = encoded(rtmsg, fields, attrs)
    return Request(RTM_NEWROUTE, CREATE_NEW, body, f"route {address} by {name}")

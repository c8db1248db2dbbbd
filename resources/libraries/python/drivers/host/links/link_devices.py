"""Devices of ports: settings of their namespaces, MACs, VLANs (802.1Q), queues, and what ports pass on on arrival."""

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from socket import AF_UNSPEC, htons

from pyroute2.netlink.rtnl import RTM_NEWLINK, RTM_NEWQDISC, RTM_NEWTFILTER
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespaces import Settings
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Netlink, Request
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.names import GENERATOR, is_vswitch

_QUIET: Settings = {
    # Neighbour discovery and MLD packets would be counted as test traffic.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
}
_ROUTER: Settings = {"ipv4/ip_forward": "1", **_QUIET}
# With these on every bridged packet walks through the IP tables too, and one with a wrong checksum is dropped there.
_BRIDGE: Settings = {
    **_QUIET,
    "bridge/bridge-nf-call-iptables": "0",
    "bridge/bridge-nf-call-ip6tables": "0",
    "bridge/bridge-nf-call-arptables": "0",
}


def settings(owner: str, kind: NfKind | None) -> Settings:
    """Settings of an owner's namespace, which routes for some kinds of NFs only."""
    return _BRIDGE if is_vswitch(owner) else _ROUTER if kind is not None and kind.is_routed else _QUIET


def device_mac(port: Port) -> str:
    """The MAC of the port's device.

    The generator's devices do not have the MAC that frames are sent to: the kernel then takes arriving frames for
    another host's (PACKET_OTHERHOST) and drops them as the first thing IPv4 does, after the interface has counted
    them. That is the cheapest sink there is, and needs no filter.
    """
    if port.owner != GENERATOR:
        return port.mac
    return f"{int(port.mac[:2], 16) ^ 0x04:02x}{port.mac[2:]}"


def foreign_macs(ports: Iterable[tuple[str, str]], index: Callable[[str], int]) -> list[Request]:
    """Give ports whose frames a program takes MACs that no frame is sent to; the program keeps the planned ones.

    The kernel gets every frame too. For a host it would look for a route and count an error; one for another host
    (PACKET_OTHERHOST) it drops as the first thing that IPv4 does.

    `ports`: Name and planned MAC of each.
    """
    return [
        rtnetlink_messages.set_mac(name, index(name), f"{int(mac[:2], 16) | 0x06:02x}{mac[2:]}") for name, mac in ports
    ]


_ROOT, _FIFO_FRAMES = 0xFFFFFFFF, 1000


def make(netlink: Netlink, trunk: int, ports: Sequence[Port], mtu: int) -> None:
    """Make a VLAN device for each port of a plan; they are down.

    `netlink`: opened in the namespace of the trunk.
    `mtu`: in bytes; the trunk has the same.

    Raises:
        CommandFailed: The kernel refused.
    """
    rows = [(port, port.vlan) for port in ports if port.vlan is not None]
    netlink.do(
        rtnetlink_messages.vlan_device(port.interface, trunk, vlan, device_mac(port), mtu) for port, vlan in rows
    )


def drop_tail(name: str, index: int) -> Request:
    """Give a port a plain queue that refuses frames when it is full.

    A VLAN device hands its frames to the queueing discipline of the port under it. The usual one (fq_codel) accepts
    frames and drops some later, after the VLAN device has counted them as sent: they would look lost on the way.
    """
    head = {"family": AF_UNSPEC, "index": index, "parent": _ROOT}
    options = [("TCA_KIND", "pfifo"), ("TCA_OPTIONS", {"limit": _FIFO_FRAMES})]
    body = rtnetlink_messages.encoded(tcmsg, head, options)
    return Request(RTM_NEWQDISC, CREATE_NEW, body, f"give {name} a queue of {_FIFO_FRAMES} frames")


_AT_ARRIVAL, _INGRESS = 0xFFFFFFF1, 0xFFFF0000
_ALL_PROTOCOLS = htons(3)  # ETH_P_ALL
_REDIRECT, _MIRROR = (4, 1), (3, 2)
"""What becomes of the packet afterwards (TC_ACT_STOLEN, TC_ACT_PIPE), and the action of mirred."""
_TERMINAL = 1
"""TC_U32_TERMINAL: a packet that matches all keys goes to the actions. There are none, so every packet does."""


def at_arrival(name: str, index: int, others: Sequence[tuple[str, int]], *, copies: bool) -> list[Request]:
    """Requests that make what a port receives go out of other ports of its namespace.

    `others`: Names and indexes of these.
    `copies`: Whether the port forwards its frames as well. A copy that finds no room is lost and counted at the port
      that it should leave; else there is one other port, which gets the frames themselves.
    """
    verdict, action = _MIRROR if copies else _REDIRECT
    parms = ({"action": verdict, "eaction": action, "ifindex": other} for _, other in others)
    actions = [
        (f"TCA_ACT_PRIO_{number}", {"attrs": [("TCA_ACT_KIND", "mirred"), ("TCA_ACT_OPTIONS", {"attrs": [row]})]})
        for number, row in enumerate((("TCA_MIRRED_PARMS", each) for each in parms), 1)
    ]
    rules = {"attrs": [("TCA_U32_SEL", {"flags": _TERMINAL, "keys": []}), ("TCA_U32_ACT", {"attrs": actions})]}
    # Of the classifiers that could match all, u32 is in more kernels than matchall.
    filters = {"index": index, "parent": _INGRESS, "info": 1 << 16 | _ALL_PROTOCOLS}
    head = {"index": index, "handle": _INGRESS, "parent": _AT_ARRIVAL}
    encoded, to = rtnetlink_messages.encoded, ", ".join(other for other, _ in others)
    what = f"{'copy' if copies else 'redirect'} what {name} receives to {to}"
    return [
        Request(RTM_NEWQDISC, CREATE_NEW, encoded(tcmsg, head, [("TCA_KIND", "ingress")]), what),
        Request(
            RTM_NEWTFILTER, CREATE_NEW, encoded(tcmsg, filters, [("TCA_KIND", "u32"), ("TCA_OPTIONS", rules)]), what
        ),
    ]


def missing() -> Iterator[PreflightProblem]:
    """Return a problem if the kernel has no VLAN devices; create nothing."""
    nowhere = rtnetlink_messages.encoded(ifinfmsg, {}, [("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", "vlan")]})])
    with closing(Netlink()) as netlink:
        try:
            netlink.do([Request(RTM_NEWLINK, CREATE_NEW, nowhere, "ask for VLAN devices")])
        except CommandFailed as error:
            # Without a port to stand on it refuses in any case (EINVAL), where it knows the kind at all.
            if error.status == errno.EOPNOTSUPP:
                what = "this kernel has no VLAN devices (module 8021q), which discriminator: vlan needs"
                yield PreflightProblem(what, "load the module, or say discriminator: link")

"""Devices that link ports: veth pairs of one machine, what a namespace of their owners is sent, and VLANs (802.1Q)."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from socket import AF_UNSPEC

from pyroute2.netlink.rtnl import RTM_NEWLINK, RTM_NEWQDISC
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespaces import Namespace, Settings
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Netlink, Request
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.plan import Link, Port
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


def pairs(
    links: Sequence[Link], index: Mapping[str, int], namespaces: Mapping[str, Namespace], mtu: int
) -> dict[str, list[Request]]:
    """Requests that make links, by the owner in whose namespace they are made; the vSwitch where it has an end."""
    requests: dict[str, list[Request]] = {}
    for link in links:
        near, far = _ends(link)
        requests.setdefault(near.owner, []).append(
            rtnetlink_messages.veth_pair(
                (near.interface, index[near.interface], device_mac(near)),
                (far.interface, index[far.interface], device_mac(far)),
                namespaces[far.owner].descriptor,
                mtu,
            )
        )
    return requests


def _ends(link: Link) -> tuple[Port, Port]:
    """A link's ends, first the one in whose namespace it is made and removed: the vSwitch's where it has one."""
    return (link.b, link.a) if is_vswitch(link.b.owner) else (link.a, link.b)


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

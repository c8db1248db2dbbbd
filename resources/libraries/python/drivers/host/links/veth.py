"""Links between ports of one machine: veth pairs, and what a namespace of their owners is set to."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespaces import Namespace, Settings
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.plan import Link, Port
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

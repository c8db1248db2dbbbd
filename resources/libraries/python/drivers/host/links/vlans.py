"""VLAN devices of the kernel (802.1Q): one for each VLAN of a trunk, a physical port that service instances share."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import closing
from socket import AF_UNSPEC

from pyroute2.netlink.rtnl import RTM_NEWLINK, RTM_NEWQDISC
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Netlink, Request
from resources.libraries.python.drivers.host.links.veth import device_mac
from resources.libraries.python.drivers.host.ownership.preflight import PreflightProblem
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.plan import Port

_ROOT, _FIFO_FRAMES = 0xFFFFFFFF, 1000


def make(netlink: Netlink, trunk: int, ports: Sequence[Port], mtu: int) -> None:
    """Make a VLAN device for each port of a plan; they are down.

    Args:
        netlink: Opened in the namespace of the trunk.
        trunk: Interface index of the physical port.
        ports: Its VLANs.
        mtu: In bytes; the trunk has the same.

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

"""A tap device behind each port of a guest: what arrives at the port is the guest's, and the other way round."""

import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from pyroute2.netlink.rtnl import RTM_NEWLINK
from pyroute2.netlink.rtnl.ifinfmsg import IFF_UP, ifinfmsg

from resources.libraries.python.drivers.host.links.link_devices import at_arrival
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded
from resources.libraries.python.errors import Unsupported

_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR, _IFF_MULTI_QUEUE = 0x0002, 0x1000, 0x4000, 0x0100


@dataclass(frozen=True, slots=True)
class TapDevice:
    """A tap device. It exists for as long as one of its descriptors is open."""

    name: str
    index: int
    descriptors: tuple[int, ...]
    """One for each of its queues."""


def open_taps(names: Sequence[str], queues: int = 1, *, offloads: bool = True) -> list[TapDevice]:
    """Make tap devices in the network namespace of the calling thread.

    `offloads`: Whether guests may use checksum and segmentation offload.

    Raises:
        Unsupported: This system has none.
    """
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR * offloads | _IFF_MULTI_QUEUE * (queues > 1)
    opened: list[int] = []
    taps: list[TapDevice] = []
    try:
        for name in names:
            first = len(opened)
            for _ in range(queues):
                opened.append(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
                fcntl.ioctl(opened[-1], _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
            taps.append(TapDevice(name, socket.if_nametoindex(name), tuple(opened[first:])))
    except OSError as error:
        for descriptor in opened:
            os.close(descriptor)
        raise Unsupported(f"tap devices cannot be made here ({_TUN}: {error.strerror})") from error
    return taps


def close_taps(taps: Iterable[TapDevice]) -> None:
    """Close tap devices; those that no guest has open vanish."""
    for descriptor in chain.from_iterable(tap.descriptors for tap in taps):
        os.close(descriptor)


def join(tap: TapDevice, port: tuple[str, int], mtu: int) -> list[Request]:
    """Requests that make a tap device and a port one: what either receives leaves through the other.

    `mtu`: in bytes.
    """
    device = (tap.name, tap.index)
    return [
        bring_up(tap, mtu),
        *at_arrival(*device, [port], copies=False),
        *at_arrival(*port, [device], copies=False),
    ]


def bring_up(tap: TapDevice, mtu: int) -> Request:
    """A request that sets a tap device up."""
    flags = {"index": tap.index, "flags": IFF_UP, "change": IFF_UP}
    return Request(RTM_NEWLINK, 0, encoded(ifinfmsg, flags, [("IFLA_MTU", mtu)]), f"bring {tap.name} up")

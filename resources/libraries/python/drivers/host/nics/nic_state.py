"""What a physical port was like before it was taken into use."""

from contextlib import suppress

from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.base import Frozen

HERE = "/proc/thread-self/ns/net"


class Adopted(Frozen):
    """A physical port as it was before it was taken into use, and where it is then."""

    interface: str
    """What it is called in use."""
    inside: str
    """Name of the namespace that it is used in."""
    device: str
    """What it is called at home."""
    home: int
    """Inode of the network namespace that it is at home in."""
    bus: str
    """Where it is plugged in, such as its PCI address; empty for a virtual one."""
    mac: str
    mtu: int
    up: bool
    promiscuous: bool
    gro: bool
    tso: bool
    lro: bool
    threaded: str | None
    rx_queues: int | None
    """None where its driver does not tell; so are the others."""
    tx_queues: int | None
    combined_queues: int | None

    def __str__(self) -> str:
        return f"port {self.device}{f' ({self.bus})' if self.bus else ''}"


def bus_of(netlink: Netlink, name: str) -> str:
    """Where a port is plugged in; empty for a virtual one, or where its driver does not tell."""
    with suppress(CommandFailed):
        return ethtool.driver_info(netlink.socket, name).bus
    return ""

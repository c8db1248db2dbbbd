"""The interfaces of one VPP, from the links of a plan. Pure.

Each is renamed to what the plan calls its port as soon as it is made, so all that VPP shows is in the plan's names.
Only VLAN sub-interfaces cannot be renamed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from resources.libraries.python.drivers.host.sockets import socket_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Link, Medium, Nic, Plan, Port

_DPDK_DRIVERS = {"vfio-pci", "igb_uio", "uio_pci_generic"}


class Kind(StrEnum):
    """How VPP has an interface."""

    HOST = "host"
    """A port of the kernel, by an AF_PACKET socket."""
    MEMIF = "memif"
    VHOST = "vhost"
    VIRTIO = "virtio"
    """A virtual machine's network card, seen from inside of it."""
    DPDK = "dpdk"


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface, and what runs over it."""

    kind: Kind
    name: str
    """What it is called once it is renamed."""
    made_as: str
    """What VPP calls it when it is made."""
    mac: str
    data_thread: int
    """The planned data thread that receives from it."""
    ports: tuple[tuple[str, int | None], ...]
    """Planned ports that it carries, each with its VLAN; one without a VLAN is the interface itself."""
    socket: Path | None = None
    socket_id: int = 0
    master: bool = False
    """The end of a memif that makes its memory and listens."""
    pci_address: str | None = None

    def name_of(self, vlan: int | None) -> str:
        """What VPP calls the port of a VLAN."""
        return self.name if vlan is None else f"{self.name}.{vlan}"


def interfaces_of(plan: Plan, owner: str, folder: Path) -> tuple[Interface, ...]:
    """The interfaces of an owner, in order of its ports.

    Args:
        plan: Has the links.
        owner: The vSwitch or an NF.
        folder: Has a folder for each owner; the sockets of shared memory are in that of end `a` of the link.

    Raises:
        Unsupported: There is a port that VPP cannot have.
    """
    made: list[Interface] = []
    count = dict.fromkeys(Kind, 0)
    for ends in _by_device(plan, owner):
        link, port = ends[0]
        kind = _kind(link, port)
        count[kind] += 1
        made.append(
            Interface(
                kind=kind,
                name=port.interface,
                made_as={
                    Kind.HOST: f"host-{port.interface}",
                    Kind.MEMIF: f"memif{count[kind]}/0",
                    Kind.VHOST: f"VirtualEthernet0/0/{count[kind] - 1}",
                    Kind.VIRTIO: port.interface,
                    Kind.DPDK: port.interface,
                }[kind],
                mac=port.mac,
                data_thread=port.data_thread,
                ports=tuple((each.interface, each.vlan) for _, each in ends),
                socket=socket_of(folder, link) if kind in (Kind.MEMIF, Kind.VHOST) else None,
                socket_id=count[kind] if kind is Kind.MEMIF else 0,
                master=port == link.a,
                pci_address=port.nic.pci_address if kind is Kind.DPDK and port.nic else None,
            )
        )
    return tuple(made)


def _by_device(plan: Plan, owner: str) -> Iterator[list[tuple[Link, Port]]]:
    """Ports of an owner; those that share a cable by VLANs together."""
    groups: dict[str, list[tuple[Link, Port]]] = {}
    for link in plan.links:
        for port in (link.a, link.b):
            if port.owner == owner:
                key = port.interface if port.vlan is None or port.nic is None else f"nic {port.nic.port}"
                groups.setdefault(key, []).append((link, port))
    yield from groups.values()


def _kind(link: Link, port: Port) -> Kind:
    match link.medium:
        case Medium.VETH:
            return Kind.HOST
        case Medium.MEMIF:
            return Kind.MEMIF
        case Medium.VHOST_USER:
            if port != link.a:
                raise Unsupported(f"{port.interface}: VPP is the vSwitch's end of vhost-user, not the guest's")
            return Kind.VHOST
        case Medium.CABLE:
            return Kind.DPDK if port.nic is not None and drives_by_dpdk(port.nic) else Kind.HOST


def drives_by_dpdk(nic: Nic) -> bool:
    """Whether VPP takes a NIC by itself: the file says a driver that leaves it to user space."""
    return nic.pci_address is not None and nic.driver in _DPDK_DRIVERS


def ring(largest_frame_bytes: int) -> tuple[int, int]:
    """Frame size and frames of the rings of an AF_PACKET socket.

    VPP's own sizes are for packets of 64 KB that the kernel has merged: 74 MB of locked memory for each port. Here
    nothing is merged, and a ring is 4 MB.
    """
    return (2048, 2048) if largest_frame_bytes <= 1900 else (16384, 256)

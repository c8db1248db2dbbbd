"""The interfaces of one VPP, from the links of a plan. Pure.

Each is renamed to what the plan calls its port as soon as it is made, so all that VPP shows is in the plan's names.
Only VLAN sub-interfaces cannot be renamed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from resources.libraries.python.drivers.host.sockets.socket_paths import socket_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Link, Nic, Plan, Port


class InterfaceKind(StrEnum):
    """Kind of an interface in VPP."""

    HOST = "host"
    """A port of the kernel, by an AF_PACKET socket."""
    MEMIF = "memif"
    VHOST = "vhost"
    VIRTIO = "virtio"
    """A virtual machine's network card, seen from inside of it."""
    DPDK = "dpdk"
    """A physical port, by the DPDK plugin."""
    VIRTIO_PCI = "virtio_pci"
    """A physical port, by VPP's own virtio driver."""
    VMXNET3 = "vmxnet3"
    AVF = "avf"
    """A virtual function of an Intel NIC, by VPP's own driver."""
    RDMA = "rdma"
    """A physical port beside the kernel's mlx5 driver."""
    AF_XDP = "af_xdp"

    @property
    def is_of_kernel(self) -> bool:
        """Whether packets pass the kernel's counters on their way."""
        return self in (InterfaceKind.HOST, InterfaceKind.AF_XDP)

    @property
    def is_of_nic(self) -> bool:
        """Whether a driver of VPP or DPDK has a physical port, and knows its link."""
        return self in (
            InterfaceKind.DPDK,
            InterfaceKind.VIRTIO_PCI,
            InterfaceKind.VMXNET3,
            InterfaceKind.AVF,
            InterfaceKind.RDMA,
        )


PLUGINS = {
    InterfaceKind.HOST: "af_packet",
    InterfaceKind.MEMIF: "memif",
    InterfaceKind.VHOST: "vhost",
    InterfaceKind.DPDK: "dpdk",
    InterfaceKind.VMXNET3: "vmxnet3",
    InterfaceKind.AVF: "avf",
    InterfaceKind.RDMA: "rdma",
    InterfaceKind.AF_XDP: "af_xdp",
}
"""Which plugin an interface needs; VPP itself has the others."""


@dataclass(frozen=True, slots=True)
class VppInterface:
    """An interface of VPP."""

    kind: InterfaceKind
    name: str
    """Name after it is renamed."""
    made_as: str
    """VPP's name of it when it is created."""
    mac: str
    data_threads: tuple[int, ...]
    """The planned data thread that polls each of its receive queues."""
    ports: tuple[tuple[str, int | None], ...]
    """Planned ports that it carries, each with its VLAN; one without a VLAN is the interface itself."""
    socket: Path | None = None
    socket_id: int = 0
    master: bool = False
    """The end of a memif that makes its memory and listens."""
    pci_address: str | None = None
    uio_driver: str | None = None
    """Driver that a physical port is bound to, where the topology names it."""

    @property
    def queues(self) -> int:
        """Receive queues."""
        return len(self.data_threads)

    def name_of(self, vlan: int | None) -> str:
        """VPP's name of the port of a VLAN."""
        return self.name if vlan is None else f"{self.name}.{vlan}"


def interfaces_of(
    plan: Plan, owner: str, folder: Path, kind_of_nic: Callable[[Nic], InterfaceKind] = lambda _: InterfaceKind.HOST
) -> tuple[VppInterface, ...]:
    """The interfaces of an owner, in order of its ports.

    `folder`: has a folder for each owner; the sockets of shared memory are in that of end `a` of the link.

    Raises:
        Unsupported: There is a port that VPP cannot have.
    """
    made: list[VppInterface] = []
    count = dict.fromkeys(InterfaceKind, 0)
    for ends in _by_device(plan, owner):
        link, port = ends[0]
        kind = _kind(link, port, kind_of_nic)
        count[kind] += 1
        address = port.nic.pci_address if port.nic else None
        made.append(
            VppInterface(
                kind=kind,
                name=port.interface,
                made_as={
                    InterfaceKind.HOST: f"host-{port.interface}",
                    InterfaceKind.MEMIF: f"memif{count[kind]}/0",
                    InterfaceKind.VHOST: f"VirtualEthernet0/0/{count[kind] - 1}",
                    InterfaceKind.VIRTIO_PCI: after_address("virtio", address),
                    InterfaceKind.VMXNET3: after_address("vmxnet3", address),
                }.get(kind, port.interface),
                mac=port.mac,
                data_threads=port.queues,
                ports=tuple((each.interface, each.vlan) for _, each in ends),
                socket=socket_of(folder, link) if kind in (InterfaceKind.MEMIF, InterfaceKind.VHOST) else None,
                socket_id=count[kind] if kind is InterfaceKind.MEMIF else 0,
                master=port == link.a,
                pci_address=address,
                uio_driver=port.nic.uio_driver if port.nic else None,
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


def after_address(word: str, address: str | None) -> str:
    """A name that VPP makes of a PCI address: `virtio-0/3b/0/1` for 0000:3b:00.1."""
    numbers = (address or "0:0:0.0").replace(".", ":").split(":")
    return word + "-" + "/".join(f"{int(number, 16):x}" for number in numbers)


def _kind(link: Link, port: Port, kind_of_nic: Callable[[Nic], InterfaceKind]) -> InterfaceKind:
    match link.medium:
        case Medium.VETH:
            return InterfaceKind.HOST
        case Medium.MEMIF:
            return InterfaceKind.MEMIF
        case Medium.VHOST_USER:
            if port != link.a:
                raise Unsupported(f"{port.interface}: VPP is the vSwitch's end of vhost-user, not the guest's")
            return InterfaceKind.VHOST
        case Medium.CABLE:
            return InterfaceKind.HOST if port.nic is None else kind_of_nic(port.nic)


def ring(largest_frame_bytes: int) -> tuple[int, int]:
    """Frame size and frames of the rings of an AF_PACKET socket.

    VPP's own sizes are for packets of 64 KB that the kernel has merged: 74 MB of locked memory for each port. Here
    nothing is merged, and a ring is 4 MB.
    """
    return (2048, 2048) if largest_frame_bytes <= 1900 else (16384, 256)

"""Drivers of physical ports: by DPDK, the vSwitch's own driver, or the kernel. Decided from the topology alone.

DPDK is the default wherever the program that uses a port has DPDK and the NIC is one that DPDK knows. Sockets of the
kernel carry a fraction of what such a NIC does, so they are used on a physical NIC only where the topology asks for
them. A NIC that nothing is known of is refused: neither choice can be made for it.
"""

from dataclasses import dataclass
from enum import StrEnum

from resources.libraries.python import driver_registry
from resources.libraries.python.model.base import Inconsistency
from resources.libraries.python.model.driver import PortOption
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, TgNode

VFIO = "vfio-pci"
"""The driver for user space that ports are bound to where the file says none."""
UIO_DRIVERS = frozenset({VFIO, "igb_uio", "uio_pci_generic"})
"""Drivers of the kernel that hand a PCI device to a program of user space."""
_MELLANOX = ("mlx4", "mlx5")
_BIFURCATED = frozenset({"mlx4_core", "mlx4_en", "mlx5_core", "mana"})
"""Drivers of the kernel that let DPDK in beside them: their ports are never unbound."""
_KNOWN_DRIVERS = _BIFURCATED | {
    *("e1000", "e1000e", "igb", "igbvf", "igc", "ixgbe", "ixgbevf", "i40e", "iavf", "ice", "idpf", "fm10k"),
    *("virtio_net", "virtio-pci", "vmxnet3", "ena", "gve", "hv_netvsc", "hns3", "bnxt_en", "bnx2x", "qede"),
    *("enic", "nfp", "cxgb4", "sfc", "atlantic", "ionic", "axgbe", "thunder-nicvf", "rvu_nicpf", "rvu_nicvf"),
}
"""Drivers of the kernel for NICs that DPDK has a driver for (DPDK, "Network Interface Controller Drivers")."""
_DRIVER_OF_MODEL = (
    ("Intel-E8", "ice"),
    ("Intel-X7", "i40e"),
    ("Intel-XL7", "i40e"),
    ("Intel-XXV7", "i40e"),
    ("Intel-X5", "ixgbe"),
    ("Intel-82599", "ixgbe"),
    ("Intel-82576", "igb"),
    ("Intel-8257", "e1000e"),
    ("Intel-I35", "igb"),
    ("Intel-I22", "igc"),
    ("Mellanox-CX3", "mlx4_core"),
    ("Mellanox-", "mlx5_core"),
    ("azure-mlx", "mlx5_core"),
    ("Cavium-A063", "rvu_nicpf"),
    ("Amazon-Nitro", "ena"),
    ("virtual", "e1000"),
    ("RedHat-Virtio", "virtio-pci"),
)
"""By the beginning of FD.io CSIT's name of a NIC model."""
_VIRTUAL_DRIVERS = frozenset({"veth", "tun", "dummy", "bridge", "macvlan", "ipvlan", "netdevsim"})
"""Drivers of ports that are no hardware: nothing but the kernel drives them."""


class Attachment(StrEnum):
    """How packets of a physical port reach the program that uses it."""

    DPDK = "dpdk"
    """DPDK; the port is bound to vfio-pci, igb_uio or uio_pci_generic."""
    BIFURCATED = "bifurcated"
    """DPDK beside the kernel's driver, which keeps the port (mlx4, mlx5, mana)."""
    NATIVE = "native"
    """A driver of VPP's own (virtio, vmxnet3, iavf); the port is bound as for DPDK."""
    RDMA = "rdma"
    """VPP's rdma driver beside the kernel's, which keeps the port (mlx5)."""
    AF_XDP = "af_xdp"
    """AF_XDP sockets on a port of the kernel."""
    KERNEL = "kernel"
    """The kernel itself, or AF_PACKET sockets on its port."""

    @property
    def unbinds(self) -> bool:
        """Whether the kernel's driver loses the port for the run."""
        return self in (Attachment.DPDK, Attachment.NATIVE)

    @property
    def is_dpdk(self) -> bool:
        """Whether a driver of DPDK takes the packets."""
        return self in (Attachment.DPDK, Attachment.BIFURCATED)

    @property
    def is_beside_kernel(self) -> bool:
        """Whether the kernel's driver keeps the port, and packets pass neither its queues nor its counters."""
        return self in (Attachment.BIFURCATED, Attachment.RDMA)

    def __str__(self) -> str:
        return self.value


_OF_KERNEL = ("af_packet", "system", "kernel")
_BESIDE_KERNEL = {"af_xdp": Attachment.AF_XDP, "rdma": Attachment.RDMA}
"""Settings that decide by themselves."""


def kernel_driver(interface: Interface) -> str | None:
    """The kernel's driver of a port, as the file says or as its model has it; None where neither is known."""
    if interface.driver is not None and interface.driver not in UIO_DRIVERS:
        return interface.driver
    model = interface.model or ""
    return next((driver for prefix, driver in _DRIVER_OF_MODEL if model.startswith(prefix)), None)


def uio_driver(interface: Interface, node: TgNode | DutNode) -> str | None:
    """The driver that a port is bound to for user space, as the file says it; None where it does not."""
    driver = interface.driver if interface.driver in UIO_DRIVERS else None
    return interface.uio_driver or driver or node.uio_driver


def attachment_of(interface: Interface, node: TgNode | DutNode, place: tuple[str, ...] = ()) -> Attachment:
    """Decide how a port is driven.

    Raises:
        Inconsistency: DPDK or a driver of VPP is asked for, and the port has no PCI address or its NIC is unknown.
    """
    found = port_option(node)
    user, asked, sockets = None, "", ""
    if found is not None:
        user, option = found
        asked = option.asked(node)
        sockets = f"`{driver_registry.key_of(option.options)}: {{ports: {option.sockets}}}` for the kernel's sockets"
    if interface.nic_vfs:
        return _of_function(interface, user, asked, place)
    driver = kernel_driver(interface)
    if user is None or asked in _OF_KERNEL or (driver in _VIRTUAL_DRIVERS and asked != "af_xdp"):
        return Attachment.KERNEL
    if asked == "rdma" and (driver is None or not driver.startswith(_MELLANOX)):
        raise Inconsistency(
            place, f"{user}'s rdma driver is for mlx5 ports, this one is {driver or 'of an unknown NIC'}"
        )
    if asked in _BESIDE_KERNEL:
        return _BESIDE_KERNEL[asked]
    known = driver in _KNOWN_DRIVERS or uio_driver(interface, node) is not None
    if asked == "auto" and not known:
        what = (
            "neither its model nor its driver is known" if driver is None else f"DPDK has no driver known for {driver}"
        )
        raise Inconsistency(
            place,
            f"{what}, so it is not known whether {user} can use DPDK: say the kernel's driver (ethtool -i) or "
            f"`uio_driver: vfio-pci` for DPDK, or {sockets}",
        )
    if interface.pci_address is None:
        raise Inconsistency(place, f"{user} on DPDK needs a pci_address; add it, or say {sockets}")
    if driver in _BIFURCATED:
        return Attachment.BIFURCATED
    return Attachment.NATIVE if asked == "native" else Attachment.DPDK


def _of_function(interface: Interface, user: str | None, asked: str, place: tuple[str, ...]) -> Attachment:
    """Driver of the virtual function of a port: by DPDK or VPP's own driver, never by the kernel."""
    if user is None or asked not in ("auto", "dpdk", "native"):
        raise Inconsistency(place, f"nic_vfs is for {_users_of_ports()} on DPDK, and for an own driver (ports: native)")
    if interface.pci_address is None:
        raise Inconsistency(place, "nic_vfs needs the pci_address of the port")
    if kernel_driver(interface) in _BIFURCATED:
        raise Inconsistency(place, "nic_vfs is not for ports that the kernel's driver keeps (mlx4, mlx5, mana)")
    return Attachment.NATIVE if asked == "native" else Attachment.DPDK


def _users_of_ports() -> str:
    vswitches = [each.label for each in driver_registry.vswitches().values() if each.ports is not None]
    generators = [each.label for each in driver_registry.generators().values() if each.ports is not None]
    *first, last = (*vswitches, *generators)
    return f"{', '.join(first)} and {last}"


def port_option(node: TgNode | DutNode) -> tuple[str, PortOption] | None:
    """The program that could take a node's ports from the kernel, and its setting; None where the kernel keeps them."""
    if isinstance(node, TgNode):
        generator = driver_registry.generators()[node.generator.driver]
        return None if generator.ports is None else (generator.label, generator.ports)
    vswitch = driver_registry.vswitches()[node.vswitch]
    return None if vswitch.ports is None else (vswitch.label, vswitch.ports)


@dataclass(frozen=True, slots=True)
class NicModel:
    """One port, one direction."""

    rate_bps: int
    """Nominal line rate, L1."""
    most_pps: int | None = None
    """Maximum packet rate, if it is below the line rate at 64 B; otherwise None."""


NICS = {
    "Intel-X710": NicModel(10_000_000_000),
    "Intel-XL710": NicModel(40_000_000_000, 18_750_000),
    "Intel-XXV710": NicModel(25_000_000_000, 18_750_000),
    "Intel-E810XXV": NicModel(25_000_000_000, 29_000_000),
    "Intel-E822CQ": NicModel(25_000_000_000, 29_000_000),
    "Intel-E823C": NicModel(25_000_000_000, 29_000_000),
    "Intel-E810CQ": NicModel(100_000_000_000, 58_500_000),
    "Mellanox-CX556A": NicModel(100_000_000_000),
    "Mellanox-CX6DX": NicModel(100_000_000_000),
    "Mellanox-CX7VEAT": NicModel(200_000_000_000),
    "Cavium-A063-50G": NicModel(50_000_000_000),
    "Cavium-A063-100G": NicModel(100_000_000_000),
    "Amazon-Nitro-50G": NicModel(10_000_000_000, 1_500_000),
    "Amazon-Nitro-100G": NicModel(10_000_000_000, 3_000_000),
    "Amazon-Nitro-200G": NicModel(16_000_000_000, 6_000_000),
    "azure-mlx-40g": NicModel(40_000_000_000),
    "virtual": NicModel(100_000_000),
}
"""Packet rates are the limits that CSIT's own tests keep to (its constants for NICs, one direction). Ports of a cloud
have the rate that the provider allows, which is below the one in the name."""


def nominal_rate_bps(rate_bps: int | None, model: str | None) -> int | None:
    """Return the line rate of a port: that of the topology, or else of its model; None where neither is known."""
    known = NICS.get(model or "")
    return rate_bps or (known.rate_bps if known else None)


@dataclass(frozen=True, slots=True)
class NicKind:
    """Properties of a port that figures of a generator depend on."""

    model: str | None
    driver: str | None
    """The kernel's."""
    rate_bps: int | None
    """As the file says or as its model has it."""
    attachment: Attachment
    uio_driver: str | None
    """Where the kernel's driver loses the port for the run; None elsewhere."""


def nic_kind(interface: Interface, node: TgNode | DutNode) -> NicKind | None:
    """Return the kind of a port; None where neither model nor driver is known.

    Raises:
        Inconsistency: See `attachment_of`.
    """
    driver = kernel_driver(interface)
    if interface.model is None and driver is None:
        return None
    attachment = attachment_of(interface, node)
    uio = uio_driver(interface, node) or VFIO if attachment.unbinds else None
    return NicKind(interface.model, driver, nominal_rate_bps(interface.rate_bps, interface.model), attachment, uio)


_MAX_RX_QUEUES = 64
"""Receive queues of a port for RSS: what DPDK's drivers of the models above offer at least."""
_RX_QUEUES = {"virtio": 1, "e1000": 1, "igb": 2, "ixgbe": 16, "vmxnet3": 8, "ena": 8}
"""By how a driver's name begins: the least that a NIC of that driver has. A virtio port has as many as its host gives
it, which only the topology can say."""


_RX_QUEUES_OF_FUNCTION = {"ice": 16, "i40e": 4}
"""Receive queues of a virtual function, by the driver of its physical function: `ICE_MAX_RSS_QS_PER_VF` and
`I40E_DEFAULT_QUEUES_PER_VF` of Linux. Of others only the topology can say it."""


def most_rx_queues(model: str | None, driver: str | None) -> int:
    """Receive queues that a polled port can have.

    `model`: CSIT's name of the NIC; None where it is not known.
    """
    if model not in NICS:
        name = (driver or "").removeprefix("net_")
        for begin in sorted(_RX_QUEUES, key=len, reverse=True):
            if name.startswith(begin):
                return _RX_QUEUES[begin]
    return _MAX_RX_QUEUES


def polled_queues(node: TgNode | DutNode, interface: Interface) -> int | None:
    """Receive queues that a physical port can have; None where sockets of the kernel take its packets, with one."""
    if interface.pci_address is None or attachment_of(interface, node) in (Attachment.KERNEL, Attachment.AF_XDP):
        return None
    driver = kernel_driver(interface)
    if interface.nic_vfs:
        return interface.rx_queues or _RX_QUEUES_OF_FUNCTION.get(driver or "", 1)
    return interface.rx_queues or most_rx_queues(interface.model, driver)

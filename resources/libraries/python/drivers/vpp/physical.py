"""How VPP drives a physical port: by its DPDK plugin, by a driver of its own, or by sockets of the kernel. Pure.

The plan says how a port is attached; which of VPP's drivers does it depends on the installation: one that was built
without DPDK drives a virtio, vmxnet3 or iavf port by itself, and an mlx5 port by its rdma driver.
"""

from collections.abc import Collection

from resources.libraries.python.drivers.vpp.interfaces import PLUGINS, InterfaceKind
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.attachment import Attachment
from resources.libraries.python.model.plan import Nic

_NATIVE_OF_DRIVER = {
    "virtio_net": InterfaceKind.VIRTIO_PCI,
    "virtio-pci": InterfaceKind.VIRTIO_PCI,
    "vmxnet3": InterfaceKind.VMXNET3,
    "iavf": InterfaceKind.AVF,
}
_NATIVE_OF_VENDOR = {"0x1af4": InterfaceKind.VIRTIO_PCI}
_NATIVE_OF_DEVICE = {
    ("0x15ad", "0x07b0"): InterfaceKind.VMXNET3,
    ("0x8086", "0x154c"): InterfaceKind.AVF,
    ("0x8086", "0x1889"): InterfaceKind.AVF,
    ("0x8086", "0x37cd"): InterfaceKind.AVF,
}
"""By PCI ids, as sysfs writes them."""


def native_kind(nic: Nic, ids: tuple[str | None, str | None] = (None, None)) -> InterfaceKind | None:
    """VPP's own driver for a PCI device; None where it has none.

    Args:
        nic: Its kernel driver, where the topology says it.
        ids: Its PCI vendor and device, where the machine says them.
    """
    vendor, device = ids
    by_id = _NATIVE_OF_DEVICE.get((vendor or "", device or "")) or _NATIVE_OF_VENDOR.get(vendor or "")
    return by_id or _NATIVE_OF_DRIVER.get(nic.driver or "")


def kind_of(
    nic: Nic, plugins: Collection[str], ids: tuple[str | None, str | None] = (None, None), *, only_dpdk: bool = False
) -> InterfaceKind:
    """Choose VPP's driver for a physical port.

    Args:
        nic: The port, with its attachment.
        plugins: That the installation has.
        ids: As for `native_kind`.
        only_dpdk: Whether the topology asks for DPDK in so many words.

    Raises:
        Unsupported: The installation has no driver for it.
    """
    native = native_kind(nic, ids)
    match nic.attachment:
        case Attachment.KERNEL:
            kinds: tuple[InterfaceKind | None, ...] = (InterfaceKind.HOST,)
        case Attachment.AF_XDP:
            kinds = (InterfaceKind.AF_XDP,)
        case Attachment.RDMA:
            kinds = (InterfaceKind.RDMA,)
        case Attachment.NATIVE:
            kinds = (native,)
        case Attachment.BIFURCATED:
            kinds = (InterfaceKind.DPDK,) if only_dpdk else (InterfaceKind.DPDK, InterfaceKind.RDMA)
        case Attachment.DPDK:
            kinds = (InterfaceKind.DPDK,) if only_dpdk else (InterfaceKind.DPDK, native)
    there = [kind for kind in kinds if kind is not None and PLUGINS.get(kind, "") in {"", *plugins}]
    if there:
        return there[0]
    wanted = sorted({PLUGINS[kind] for kind in kinds if kind is not None and kind in PLUGINS})
    lacks = f"lacks the plugin {' or '.join(wanted)}" if wanted else "has no driver of its own"
    raise Unsupported(
        f"{nic.port} ({nic.pci_address or nic.device}): this VPP {lacks} for a port attached by {nic.attachment}; "
        "install vpp-plugin-dpdk, or say `vpp: {ports: af_packet}` for the kernel's sockets"
    )

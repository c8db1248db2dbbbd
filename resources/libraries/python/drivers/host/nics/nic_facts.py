"""Facts about physical ports: which port of the kernel is at a PCI address, ids, drivers, NUMA nodes."""

import re
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.links.sysfs import ROOT

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def device_at(pci_address: str, root: Path = ROOT) -> str | None:
    """The kernel's name of the port at a PCI address; None where there is none in the sysfs's network namespace.

    Args:
        pci_address: With its domain, such as `0000:3b:00.0`.
        root: Where sysfs is mounted.
    """
    device = root / "bus/pci/devices" / pci_address
    # The port of a virtio device is one level further down.
    for folder in (device / "net", *sorted(device.glob("virtio*/net"))):
        with suppress(OSError):
            if names := sorted(entry.name for entry in folder.iterdir()):
                return names[0]
    return None


def numa_node_of(pci_address: str | None, interface: str | None, root: Path = ROOT) -> int | None:
    """The NUMA node of a port; None where the kernel does not know it (-1), or where it is no PCI device.

    Args:
        pci_address: Where it is; decides where it is given.
        interface: The kernel's name of the port, in the network namespace whose sysfs is at `root`.
        root: Where sysfs is mounted.
    """
    if pci_address is not None:
        pci: Path | None = root / "bus/pci/devices" / pci_address
    else:
        pci = _pci_folder(root / "class/net" / interface) if interface is not None else None
    found = _integer(pci / "numa_node") if pci is not None else None
    return found if found is not None and found >= 0 else None


def pci_ids(pci_address: str, root: Path = ROOT) -> tuple[str | None, str | None]:
    """Vendor and device of a PCI device, in hexadecimal; None where there is none.

    Args:
        pci_address: With its domain, such as `0000:3b:00.0`.
        root: Where sysfs is mounted.
    """
    pci = root / "bus/pci/devices" / pci_address
    return _text(pci / "vendor"), _text(pci / "device")


def driver_of(pci: Path) -> str | None:
    """The driver that has a PCI device; None when none has.

    Args:
        pci: Its folder in sysfs.
    """
    link = pci / "driver"
    return link.resolve().name if link.is_symlink() else None


def group_of(pci: Path) -> int | None:
    """The IOMMU group of a PCI device: what can only be handed to user space together. None without an IOMMU."""
    link = pci / "iommu_group"
    return int(link.resolve().name) if link.is_symlink() else None


def _pci_folder(port: Path) -> Path | None:
    """The PCI device that a port stands on, for virtio one level further up; None for a virtual port."""
    device = port / "device"
    if not device.exists():
        return None
    found = device.resolve()
    return next((folder for folder in (found, *found.parents) if _PCI_ADDRESS.fullmatch(folder.name)), None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip() or None
    except OSError:
        return None


def _integer(path: Path) -> int | None:
    text = _text(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None

"""Facts about physical ports: which port of the kernel is at a PCI address, drivers, NUMA nodes, speeds of links."""

import re
import socket
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.links.sysfs import ROOT
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.base import Frozen

_MEGA = 1_000_000
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class NicFacts(Frozen):
    """What is known of a port of this machine. Unknown is None."""

    device: str | None
    """The kernel's name of the port; None where a driver of user space has it."""
    pci_address: str | None
    driver: str | None
    """The kernel's driver, or the one that hands it to user space, such as vfio-pci."""
    driver_version: str | None = None
    firmware: str | None = None
    vendor: str | None = None
    """PCI ids in hexadecimal."""
    model: str | None = None
    numa_node: int | None = None
    iommu_group: int | None = None
    mac_address: str | None = None
    """The permanent one, where there is one."""
    carrier: bool | None = None
    """None for a port that is down: it has no link to speak of."""
    link_bps: int | None = None
    """Negotiated line rate in L1 bits per second, one direction."""
    mtu: int | None = None


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


def facts_of_device(interface: str, root: Path = ROOT) -> NicFacts:
    """What is known of a port of the kernel.

    Args:
        interface: In the network namespace of the calling thread, whose sysfs is at `root`.
        root: Where sysfs is mounted.
    """
    port = root / "class/net" / interface
    pci = _pci_folder(port)
    return _facts(interface, port, pci)


def facts_of_pci(pci_address: str, root: Path = ROOT) -> NicFacts | None:
    """What is known of the device at a PCI address, whichever driver has it; None where there is no device."""
    pci = root / "bus/pci/devices" / pci_address
    if not pci.exists():
        return None
    interface = device_at(pci_address, root)
    return _facts(interface, root / "class/net" / interface if interface else None, pci)


def link_bps(interface: str, root: Path = ROOT) -> int | None:
    """Line rate of a port's link in L1 bits per second, one direction; None where there is none, or it is not known."""
    # The kernel says -1 for unknown, and refuses to read it of a port that is down.
    speed_mbps = _integer(root / "class/net" / interface / "speed")
    return speed_mbps * _MEGA if speed_mbps is not None and speed_mbps > 0 else None


def _facts(interface: str | None, port: Path | None, pci: Path | None) -> NicFacts:
    info = _driver_info(interface) if interface else None
    numa = _integer(pci / "numa_node") if pci else None
    carrier = _integer(port / "carrier") if port else None
    return NicFacts(
        device=interface,
        pci_address=pci.resolve().name if pci else None,
        driver=driver_of(pci) if pci else info.driver if info else None,
        driver_version=(info.version or None) if info else None,
        firmware=(info.firmware or None) if info else None,
        vendor=_text(pci / "vendor") if pci else None,
        model=_text(pci / "device") if pci else None,
        numa_node=numa if numa is not None and numa >= 0 else None,
        iommu_group=group_of(pci) if pci else None,
        mac_address=_mac(interface, port),
        carrier=None if carrier is None else bool(carrier),
        link_bps=link_bps(interface, port.parents[2]) if interface and port else None,
        mtu=_integer(port / "mtu") if port else None,
    )


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


def _driver_info(interface: str) -> ethtool.DriverInfo | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as where, suppress(CommandFailed):
        return ethtool.driver_info(where, interface)
    return None


def _mac(interface: str | None, port: Path | None) -> str | None:
    if interface is None or port is None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as where:
        permanent = ethtool.permanent_mac(where, interface)
    return permanent or _text(port / "address")


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

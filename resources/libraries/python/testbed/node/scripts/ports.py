"""The ports of this machine that a topology names, and what can drive them from user space. Sent to nodes."""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import re
import socket
import struct
from pathlib import Path
from typing import Any

_SIOCETHTOOL, _GDRVINFO, _GPAUSEPARAM = 0x8946, 3, 0x12
_PAUSE = struct.Struct("=4I")
_LANES = (1, 2, 4, 8, 12, 16, 32)
_SIOCGIFADDR = 0x8915
_IFF_UP = 1


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look at ports.

    `arguments`: `ports`, by name `device` and `pci_address`, either of which may be None; `root` for tests.
    """
    root = Path(arguments.get("root", "/"))
    return {
        "ports": {name: _port(root, each) for name, each in arguments.get("ports", {}).items()},
        "vfio_pci": _module(root, "vfio-pci"),
        "uio_pci_generic": _module(root, "uio_pci_generic"),
        "igb_uio": _module(root, "igb_uio"),
        "iommu_groups": len(list((root / "sys/kernel/iommu_groups").glob("*"))),
        "vfio_without_iommu": _text(root / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode") in ("Y", "1"),
        "interfaces": sorted(path.name for path in (root / "sys/class/net").glob("*") if path.is_dir()),
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # also of a file that can be read only while the port is up
        return None


def _number(path: Path) -> int | None:
    try:
        return int(_text(path) or "", 0)
    except ValueError:
        return None


def _port(root: Path, named: dict[str, Any]) -> dict[str, Any] | None:
    """All of one port; None where it is not there."""
    device, address = named.get("device"), named.get("pci_address")
    if address is None and device is not None:
        link = root / "sys/class/net" / device / "device"
        # The port of a virtio device is one level below its PCI device.
        found = link.resolve() if link.exists() else None
        if found is not None:
            address = (found.parent if found.name.startswith("virtio") else found).name
    pci = root / "sys/bus/pci/devices" / address if address else None
    if pci is not None and not pci.is_dir():
        pci = None
    if device is None and pci is not None:
        names = [*sorted((pci / "net").glob("*")), *sorted(pci.glob("virtio*/net/*"))]
        device = next((path.name for path in names), None)
    net = root / "sys/class/net" / device if device else None
    if net is not None and not net.is_dir():
        net = None
    if net is None and pci is None:
        return None
    numa_node = _number(pci / "numa_node") if pci else None
    driver = (pci / "driver").resolve().name if pci and (pci / "driver").exists() else None
    port: dict[str, Any] = {
        "device": device if net else None,
        "pci_address": address if pci else None,
        "driver": driver,
        "numa_node": None if numa_node is None or numa_node < 0 else numa_node,
        "vendor": _text(pci / "vendor") if pci else None,
        "model": _text(pci / "device") if pci else None,
        "iommu_group": (pci / "iommu_group").resolve().name if pci and (pci / "iommu_group").exists() else None,
        "virtual_functions": (_number(pci / "sriov_numvfs") if pci else None) or 0,
        "most_virtual_functions": (_number(pci / "sriov_totalvfs") or 0) if pci else None,
        "pcie": _pcie(pci) if pci else None,
        "pause": None,
        "mac_address": None,
        "up": None,
        "carrier": None,
        "speed_mbps": None,
        "mtu": None,
        "addresses": [],
        "default_route": False,
        "master": None,
    }
    return _of_kernel(root, net, port) if net else port


def _of_kernel(root: Path, net: Path, port: dict[str, Any]) -> dict[str, Any]:
    """Facts of a port from the kernel's own driver."""
    carrier, speed = _number(net / "carrier"), _number(net / "speed")
    port.update(
        driver=port["driver"] or _ethtool_driver(net.name),
        mac_address=_text(net / "address"),
        up=bool((_number(net / "flags") or 0) & _IFF_UP),
        carrier=None if carrier is None else carrier == 1,
        speed_mbps=speed if speed is not None and speed > 0 else None,
        mtu=_number(net / "mtu"),
        pause=_pause(net.name),
        addresses=_addresses(root, net.name),
        default_route=_has_default_route(root, net.name),
        master=(net / "master").resolve().name if (net / "master").exists() else None,
    )
    return port


def _pcie(pci: Path) -> dict[str, Any] | None:
    """Link of a PCIe device and the most that it can do; None where any of that is unknown, as of virtual functions."""
    words = [(_text(pci / f"{which}_link_speed") or "").split(" ") for which in ("current", "max")]
    lanes, most_lanes = (_number(pci / f"{which}_link_width") for which in ("current", "max"))
    try:
        speed, most_speed = (float(row[0]) for row in words)  # "8.0 GT/s PCIe", or "Unknown"
    except ValueError:
        return None
    if lanes not in _LANES or most_lanes not in _LANES:  # 0 and 255 where it is unknown
        return None
    return {"gt_per_s": speed, "lanes": lanes, "most_gt_per_s": most_speed, "most_lanes": most_lanes}


def _pause(device: str) -> dict[str, bool] | None:
    """Whether a port obeys pause frames and sends them: struct ethtool_pauseparam; None where it has none."""
    answer = _ethtool(device, _GPAUSEPARAM)
    if answer is None:
        return None
    _, _, rx, tx = _PAUSE.unpack_from(answer)
    return {"rx": bool(rx), "tx": bool(tx)}


def _ethtool_driver(device: str) -> str | None:
    """The driver of a port that is no PCI device, such as a virtual one: struct ethtool_drvinfo."""
    answer = _ethtool(device, _GDRVINFO)
    return None if answer is None else answer[4:36].split(b"\0")[0].decode(errors="replace") or None


def _ethtool(device: str, command: int) -> bytes | None:
    """The kernel's answer to a command of ethtool; None where the port's driver does not know it."""
    buffer = array.array("B", struct.pack("=I", command).ljust(256, b"\0"))
    request = struct.pack("16sP", device.encode(), buffer.buffer_info()[0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            fcntl.ioctl(handle, _SIOCETHTOOL, request)
    except OSError:
        return None
    return buffer.tobytes()


def _addresses(root: Path, device: str) -> list[str]:
    """The first IPv4 address, and all of IPv6 that are more than link-local."""
    found = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        reply = fcntl.ioctl(handle, _SIOCGIFADDR, struct.pack("256s", device.encode()))
        found.append(socket.inet_ntoa(reply[20:24]))
    for row in (_text(root / "proc/net/if_inet6") or "").splitlines():
        words = row.split()
        if words[-1] == device and not words[0].startswith("fe80"):
            found.append(str(ipaddress.IPv6Address(int(words[0], 16))))
    return found


def _has_default_route(root: Path, device: str) -> bool:
    rows = (_text(root / "proc/net/route") or "").splitlines()[1:]
    return any(row.split()[:2] == [device, "00000000"] for row in rows)


def _module(root: Path, name: str) -> str | None:
    """`loaded`, or `available` where it can be; None where this kernel does not have it."""
    pattern = re.sub("[-_]", "[-_]", name)
    if (root / "sys/bus/pci/drivers" / name).is_dir() or (root / "sys/module" / name.replace("-", "_")).is_dir():
        return "loaded"
    folder = root / "lib/modules" / (_text(root / "proc/sys/kernel/osrelease") or "unknown")
    for listing in ("modules.builtin", "modules.dep"):
        if re.search(rf"/{pattern}\.ko", _text(folder / listing) or ""):
            return "available"
    return None

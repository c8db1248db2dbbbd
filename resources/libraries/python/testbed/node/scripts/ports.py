"""The ports of this machine that a topology names, and what can drive them from user space. Sent to nodes."""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import re
import socket
import struct
import sys
from pathlib import Path
from typing import Any

_SIOCETHTOOL = 0x8946
_GDRVINFO, _GCOALESCE, _GRINGPARAM, _GPAUSEPARAM = 0x03, 0x0E, 0x10, 0x12
_GMODULEINFO, _GMODULEEEPROM, _GLINKSETTINGS, _GFECPARAM = 0x42, 0x43, 0x4C, 0x50
_PAUSE = struct.Struct("=4I")
_DRIVER = struct.Struct("=I32s32s32s")
_RINGS = struct.Struct("=9I")
_COALESCING = struct.Struct("=12I")
_FEC = struct.Struct("=3I")
_FEC_NAMES = {4: "off", 8: "RS", 16: "BaseR", 32: "LLRS"}
"""Codes that may be active (enum ethtool_fec_config_bits)."""
_MODULE = struct.Struct("=3I")
_VENDOR_AT = {2: (20, 40), 3: (148, 168), 4: (148, 168)}
"""Where the EEPROM of a module has the names of its vendor and of the part, by its layout: SFF-8472, 8636 and 8436."""
_NAME_BYTES = 16
_MASK_WORDS_AT, _LINK_MASKS_AT = 15, 48
"""Of struct ethtool_link_settings: offset of the number of words of each mask, and of the masks: supported, advertised,
advertised by the partner."""
_MODES_MBPS = (
    (10, (0, 1, 92)),
    (100, (2, 3, 67, 90, 91)),
    (1_000, (4, 5, 17, 41, 68)),
    (2_500, (15, 47)),
    (5_000, (48,)),
    (10_000, (12, 18, 19, 20, *range(42, 47))),
    (20_000, (21, 22)),
    (25_000, (31, 32, 33)),
    (40_000, (23, 24, 25, 26)),
    (50_000, (34, 35, 40, *range(52, 57))),
    (56_000, (27, 28, 29, 30)),
    (100_000, (*range(36, 40), *range(57, 62), *range(75, 80))),
    (200_000, (*range(62, 67), *range(80, 85))),
    (400_000, (*range(69, 74), *range(85, 90))),
    (800_000, tuple(range(93, 99))),
)
"""Bits of modes of a link by their speed (enum ethtool_link_mode_bit_indices)."""
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
        "driver_version": None,
        "firmware": None,
        "fec": None,
        "rings": None,
        "coalescing": None,
        "module": None,
        "partner_mbps": None,
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
    carrier, speed, names = _number(net / "carrier"), _number(net / "speed"), _names(net.name)
    port.update(
        driver=port["driver"] or names.get("driver"),
        mac_address=_text(net / "address"),
        up=bool((_number(net / "flags") or 0) & _IFF_UP),
        carrier=None if carrier is None else carrier == 1,
        speed_mbps=speed if speed is not None and speed > 0 else None,
        mtu=_number(net / "mtu"),
        pause=_pause(net.name),
        driver_version=names.get("version"),
        firmware=names.get("firmware"),
        fec=_fec(net.name),
        rings=_rings(net.name),
        coalescing=_coalescing(net.name),
        module=_module_names(net.name),
        partner_mbps=_partner_mbps(net.name),
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


def _names(device: str) -> dict[str, str]:
    """Driver, version and firmware of a port, those that are known: struct ethtool_drvinfo."""
    answer = _ethtool(device, _GDRVINFO)
    if answer is None:
        return {}
    rows = dict(zip(("driver", "version", "firmware"), _DRIVER.unpack_from(answer)[1:]))  # noqa: B905 - old Pythons
    texts = {key: row.split(b"\0")[0].decode(errors="replace").strip() for key, row in rows.items()}
    return {key: text for key, text in texts.items() if text not in ("", "N/A")}


def _fec(device: str) -> str | None:
    """Forward error correction in use: struct ethtool_fecparam; None where the port has none, or no link."""
    answer = _ethtool(device, _GFECPARAM)
    active = _FEC.unpack_from(answer)[1] if answer is not None else 0
    return " ".join(name for bit, name in _FEC_NAMES.items() if active & bit) or None


def _rings(device: str) -> dict[str, int] | None:
    """Descriptors of each queue: struct ethtool_ringparam; None where the driver does not tell."""
    answer = _ethtool(device, _GRINGPARAM)
    if answer is None:
        return None
    _, most_rx, _, _, most_tx, rx, _, _, tx = _RINGS.unpack_from(answer)
    return {"rx": rx, "tx": tx, "most_rx": most_rx, "most_tx": most_tx}


def _coalescing(device: str) -> str | None:
    """When packets cause an interrupt: struct ethtool_coalesce; None where the driver does not tell."""
    answer = _ethtool(device, _GCOALESCE)
    if answer is None:
        return None
    _, rx_us, rx_frames, _, _, tx_us, tx_frames, _, _, _, rx_adapts, tx_adapts = _COALESCING.unpack_from(answer)
    rx = "adaptive" if rx_adapts else f"{rx_us} us, {rx_frames} frames"
    tx = "adaptive" if tx_adapts else f"{tx_us} us, {tx_frames} frames"
    return f"rx {rx}; tx {tx}"


def _module_names(device: str) -> str | None:
    """Vendor and part number of a port's transceiver or cable, from its EEPROM; None where there is none."""
    answer = _ethtool(device, _GMODULEINFO)
    layout = _MODULE.unpack_from(answer)[1] if answer is not None else 0
    if layout not in _VENDOR_AT:
        return None
    names = []
    for offset in _VENDOR_AT[layout]:
        read = _ethtool(device, _GMODULEEEPROM, struct.pack("=3I", 0, offset, _NAME_BYTES))
        names.append("" if read is None else read[16 : 16 + _NAME_BYTES].decode("ascii", "replace").strip(" \0"))
    return " ".join(filter(None, names)) or None


def _partner_mbps(device: str) -> int | None:
    """The highest speed that the link partner advertises: struct ethtool_link_settings; None without negotiation."""
    asked = _ethtool(device, _GLINKSETTINGS)
    if asked is None:
        return None
    # The kernel answers the first request by the number of words that it wants room for, negated.
    words = -struct.unpack_from("=b", asked, _MASK_WORDS_AT)[0]
    if not 0 < words <= 16:
        return None
    room = bytearray(_MASK_WORDS_AT - 4 + 1)
    room[_MASK_WORDS_AT - 4] = words
    answer = _ethtool(device, _GLINKSETTINGS, bytes(room))
    if answer is None or answer[_MASK_WORDS_AT] != words:
        return None
    start = _LINK_MASKS_AT + 2 * 4 * words
    mask = int.from_bytes(answer[start : start + 4 * words], sys.byteorder)
    found = [mbps for mbps, bits in _MODES_MBPS if any(mask >> bit & 1 for bit in bits)]
    return max(found, default=None)


def _ethtool(device: str, command: int, body: bytes = b"") -> bytes | None:
    """The kernel's answer to a command of ethtool; None where the port's driver does not know it."""
    buffer = array.array("B", (struct.pack("=I", command) + body).ljust(256, b"\0"))
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

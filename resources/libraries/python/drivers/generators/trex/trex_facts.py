"""TRex of this machine, and the NICs that it is to take by DPDK. Sent to nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

_HAS_CAPABILITIES, _FIRST_CAPABILITY, _PCI_EXPRESS = 0x10, 0x34, 0x10
_HEADER_BYTES, _MAX_CAPABILITIES = 64, 48
_CONTROL = 9
"""Upper byte of the Device Control register in the PCI Express capability, with the size of read requests."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for an installation.

    `arguments`: `directory`, where it is; `ports`, PCI addresses of its ports; `root` for tests.
    """
    directory = Path(arguments["directory"])
    client = directory / "automation/trex_control_plane/interactive/trex"
    found: dict[str, Any] = {
        "directory": str(directory),
        "there": os.access(directory / "t-rex-64", os.X_OK),
        "client": (client / "stl").is_dir(),
        "version": None,
        "problem": None,
        **_nics(Path(arguments.get("root", "/")) / "sys/bus/pci/devices", arguments.get("ports", [])),
    }
    # A release has its version in a file, and in its folder's name.
    for text in (_text(directory / "VERSION"), directory.resolve().name):
        match = re.search(r"v?\d+\.\d+", text or "")
        if found["there"] and match:
            found["version"] = match.group(0)
            break
    return found


def _nics(devices: Path, ports: list[str]) -> dict[str, Any]:
    """Ports that are there, and the other ports of their cards with the drivers that have them."""
    cards = dict.fromkeys(address.rpartition(".")[0] for address in ports)
    others = [path for card in cards for path in sorted(devices.glob(f"{card}.*")) if path.name not in ports]
    return {
        "ports": {
            address: {
                "driver": _driver(devices / address),
                "read_request_bytes": _read_request_bytes(devices / address),
            }
            for address in ports
            if (devices / address).is_dir()
        },
        "neighbours": {path.name: _driver(path) for path in others},
    }


def _driver(device: Path) -> str | None:
    return (device / "driver").resolve().name if (device / "driver").exists() else None


def _read_request_bytes(device: Path) -> int | None:
    """The most that a PCIe device asks for by one read request (MaxReadReq); None where it cannot be read."""
    try:
        config = (device / "config").read_bytes()
    except OSError:
        return None
    if len(config) < _HEADER_BYTES or not config[6] & _HAS_CAPABILITIES:
        return None
    at = config[_FIRST_CAPABILITY] & 0xFC
    for _ in range(_MAX_CAPABILITIES):  # without end where a broken device names one twice
        if not _HEADER_BYTES <= at < len(config) - _CONTROL:
            return None
        if config[at] == _PCI_EXPRESS:
            return 128 << (config[at + _CONTROL] >> 4 & 7)
        at = config[at + 1] & 0xFC
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None

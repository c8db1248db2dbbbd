"""Programs of user space that have PCI devices open. Also sent to nodes, so it needs the standard library alone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

END_IT = "end it first; if it is a system service: systemctl disable --now NAME"
"""What to do about them."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for the users of PCI devices.

    `arguments`: `devices`, with PCI addresses as its keys; `root` for tests.
    """
    root = Path(arguments.get("root", "/"))
    folder = root / "sys/bus/pci/devices"
    return {
        "users": {
            address: [{"pid": pid, "command": command} for pid, command in users(folder / address, root / "proc")]
            for address in arguments.get("devices", {})
        }
    }


def users(device: Path, proc: Path) -> list[tuple[int, str]]:
    """Process ids and commands of the programs that have a device open."""
    nodes = _nodes(device)
    found = []
    processes = (path.name for path in proc.iterdir() if path.name.isdigit()) if nodes else ()
    for pid in sorted(map(int, processes)):
        if _has_open(proc / str(pid) / "fd", nodes):
            with contextlib.suppress(OSError):  # it has ended in between
                words = (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                found.append((pid, " ".join(words).strip()))
    return found


def _nodes(device: Path) -> frozenset[str]:
    """Files below /dev by which a program can have a device, by vfio (group or device) and by uio."""
    nodes = [f"/dev/vfio/devices/{path.name}" for path in device.glob("vfio-dev/vfio*")]
    nodes += [f"/dev/{path.name}" for path in device.glob("uio/uio*")]
    group = device / "iommu_group"
    if group.is_symlink():
        # A group can be opened once, for all of its devices.
        nodes += [f"/dev/vfio/{prefix}{group.resolve().name}" for prefix in ("", "noiommu-")]
    return frozenset(nodes)


def _has_open(folder: Path, nodes: frozenset[str]) -> bool:
    entries: list[Path] = []
    with contextlib.suppress(OSError):  # it has ended
        entries += folder.iterdir()
    for entry in entries:
        with contextlib.suppress(OSError):  # it has closed it in between
            if os.readlink(str(entry)) in nodes:  # noqa: PTH115 - not known to Python 3.7
                return True
    return False

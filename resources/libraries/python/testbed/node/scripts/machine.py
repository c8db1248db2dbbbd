"""Facts of the machine: system, processors, memory, clock, load, disks. Sent to nodes.

Unknown is None. Everything is read from /proc and /sys, or asked of the kernel; nothing is changed.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

_STA_UNSYNC = 0x40
_MAX_TABLES = 2**20
_MEMORY_DEVICE = 17
_MEMORY_TYPES = {0x07: "RAM", 0x18: "DDR3", 0x1A: "DDR4", 0x22: "DDR5", 0x23: "LPDDR5"}


class _Timex(ctypes.Structure):
    """struct timex, as far as it is read; the kernel fills 208 bytes of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look at the machine.

    `arguments`: `disks`, paths whose file systems are of interest; `root`, another tree than the machine's for
      tests.
    """
    root = Path(arguments.get("root", "/"))
    status = _text(root / "proc/self/status") or ""
    return {
        "hostname": socket.gethostname(),
        "python": list(sys.version_info[:3]),
        "uid": os.geteuid(),
        "distribution": _distribution(root),
        "kernel": _text(root / "proc/sys/kernel/osrelease"),
        "command_line": _text(root / "proc/cmdline"),
        "boot_id": _text(root / "proc/sys/kernel/random/boot_id"),
        "up_s": _number((_text(root / "proc/uptime") or "").split(" ")[0]),
        "firmware": _firmware(root),
        "cpu": _cpu(root, status),
        "memory": _memory(root),
        "clock": _clock(),
        "load": [float(word) for word in (_text(root / "proc/loadavg") or "").split()[:3]] or None,
        "irqbalance": "irqbalance" in _commands(root),
        "disks": {path: _disk(path) for path in arguments.get("disks", ())},
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _whole(path: Path) -> int | None:
    number = _number(_text(path))
    return None if number is None else int(number)


def _distribution(root: Path) -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', _text(root / "etc/os-release") or "", re.MULTILINE)
    return match.group(1) if match else None


def _cpu(root: Path, status: str) -> dict[str, Any]:
    system = root / "sys/devices/system/cpu"
    rows = re.findall(r"^([\w ]+?)\s*:\s*(.*)$", (_text(root / "proc/cpuinfo") or "").split("\n\n")[0], re.MULTILINE)
    first = dict(rows)
    governors: dict[str, list[int]] = {}
    for path in sorted(system.glob("cpu[0-9]*/cpufreq/scaling_governor")):
        governors.setdefault(_text(path) or "unknown", []).append(int(path.parts[-3][3:]))
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    weak = {path.name: _text(path) or "" for path in sorted((system / "vulnerabilities").glob("*"))}
    return {
        "model": first.get("model name"),
        "microcode": first.get("microcode"),
        "hypervisor": "hypervisor" in first.get("flags", "").split(),
        "online": _text(system / "online"),
        "allowed": allowed.group(1) if allowed else None,
        "isolated": _text(system / "isolated"),
        "nohz_full": _text(system / "nohz_full"),
        "governors": governors,
        "smt": _text(system / "smt/control"),
        "boost": _boost(system),
        "vulnerabilities": weak,
        "idle_states": _idle_states(system / "cpu0/cpuidle"),
        "rows": _rows(system),
    }


def _firmware(root: Path) -> dict[str, str | None]:
    """As SMBIOS has it; None of machines that have none, such as small virtual ones."""
    dmi = root / "sys/class/dmi/id"
    names = {"vendor": "bios_vendor", "version": "bios_version", "date": "bios_date", "product": "product_name"}
    return {key: _text(dmi / name) or None for key, name in names.items()}


def _idle_states(states: Path) -> list[str]:
    rows = sorted(states.glob("state[0-9]*"), key=lambda path: int(path.name[5:]))
    return [_text(path / "name") or path.name for path in rows if _text(path / "disable") != "1"]


def _boost(system: Path) -> bool | None:
    """Whether cores may go above their nominal frequency."""
    no_turbo, boost = _text(system / "intel_pstate/no_turbo"), _text(system / "cpufreq/boost")
    return no_turbo == "0" if no_turbo is not None else boost == "1" if boost is not None else None


def _rows(system: Path) -> list[list[int]]:
    """CPU, core, socket and NUMA node; cores are numbered over the machine, each for its set of siblings."""
    rows: list[list[int]] = []
    cores: dict[str, int] = {}
    for directory in sorted(system.glob("cpu[0-9]*"), key=lambda path: int(path.name[3:])):
        siblings = _text(directory / "topology/thread_siblings_list")
        if siblings is not None:  # else it is off
            socket_id = _whole(directory / "topology/physical_package_id") or 0
            node = next((int(path.name[4:]) for path in directory.glob("node[0-9]*")), 0)
            rows.append([int(directory.name[3:]), cores.setdefault(siblings, len(cores)), max(0, socket_id), node])
    return rows


def _meminfo(text: str | None) -> dict[str, int]:
    """Rows such as `MemTotal: 24684084 kB` or `Node 0 MemTotal: 24684084 kB`; in kB, huge pages counted."""
    rows = re.findall(r"^(?:Node \d+ )?([\w()]+):\s+(\d+)", text or "", re.MULTILINE)
    return {name: int(value) for name, value in rows}


def _memory(root: Path) -> dict[str, Any]:
    whole = _meminfo(_text(root / "proc/meminfo"))
    paths = sorted((root / "sys/devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    # Without NUMA the kernel lists huge pages for the whole machine.
    places = [(int(path.name[4:]), path, _meminfo(_text(path / "meminfo"))) for path in paths]
    places = places or [(0, root / "sys/kernel/mm", whole)]
    return {
        "total_mb": whole["MemTotal"] // 1024 if "MemTotal" in whole else None,
        "available_mb": whole["MemAvailable"] // 1024 if "MemAvailable" in whole else None,
        "swap_total_mb": whole.get("SwapTotal", 0) // 1024,
        "swap_used_mb": (whole.get("SwapTotal", 0) - whole.get("SwapFree", 0)) // 1024,
        "nodes": [
            {
                "node": number,
                "total_mb": rows.get("MemTotal", 0) // 1024,
                "free_mb": rows.get("MemFree", 0) // 1024,
                "hugepages": [
                    {
                        "size_kb": int(pages.name[10:-2]),
                        "total": _whole(pages / "nr_hugepages") or 0,
                        "free": _whole(pages / "free_hugepages") or 0,
                    }
                    for pages in sorted((path / "hugepages").glob("hugepages-*kB"))
                ],
            }
            for number, path, rows in places
        ],
        "modules": _memory_modules(_bytes(root / "sys/firmware/dmi/tables/DMI")),
        "numa_balancing": {"0": False, "1": True, "2": True}.get(_text(root / "proc/sys/kernel/numa_balancing") or ""),
        "transparent_hugepages": _chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
    }


def _chosen(text: str | None) -> str | None:
    """Of choices such as `always [madvise] never` the one in brackets."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found.group(1) if found else None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_MAX_TABLES)
    except OSError:  # only root may read it
        return b""


def _memory_modules(tables: bytes) -> dict[str, int]:
    """Number of memory modules alike: structures of type 17 of SMBIOS (DMTF DSP0134, 7.18)."""
    found: dict[str, int] = {}
    at = 0
    while at + 4 <= len(tables):
        kind, length = tables[at], tables[at + 1]
        end = tables.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            break
        row = tables[at : at + length]
        if kind == _MEMORY_DEVICE and length >= 0x15:
            megabytes, speed = _megabytes(row), _word(row, 0x20) or _word(row, 0x15)
            words = (f"{megabytes / 1024:g} GiB", _MEMORY_TYPES.get(row[0x12], ""), f"{speed} MT/s" if speed else "")
            label = " ".join(filter(None, words)) if megabytes else "empty slot"
            found[label] = found.get(label, 0) + 1
        at = end + 2
    return found


def _word(row: bytes, offset: int) -> int:
    """A number of two bytes; 0 beyond the end of a structure, as versions of SMBIOS differ in length."""
    return int.from_bytes(row[offset : offset + 2], "little") if offset + 2 <= len(row) else 0


def _megabytes(row: bytes) -> int:
    """Size of a memory module; 0 of an empty slot or an unknown size."""
    size = _word(row, 0x0C)
    if size == 0x7FFF and len(row) >= 0x20:
        return int.from_bytes(row[0x1C:0x20], "little")
    return 0 if size == 0xFFFF else (size & 0x7FFF) // 1024 if size & 0x8000 else size


def _clock() -> dict[str, Any]:
    synchronised = error_s = None
    timex = _Timex()
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) >= 0:
            synchronised, error_s = not timex.status & _STA_UNSYNC, timex.maxerror / 1e6
    except (OSError, AttributeError):
        pass
    return {"synchronised": synchronised, "error_s": error_s}


def _commands(root: Path) -> set[str]:
    return {_text(path) or "" for path in (root / "proc").glob("[0-9]*/comm")}


def _disk(path: str) -> dict[str, Any] | None:
    """Return facts of the file system that a path is on, or would be."""
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        found = os.statvfs(place)
    except OSError:
        return None
    return {
        "free_mb": found.f_bavail * found.f_frsize // 2**20,
        "total_mb": found.f_blocks * found.f_frsize // 2**20,
        "free_files": found.f_favail if found.f_files else None,
        "read_only": bool(found.f_flag & os.ST_RDONLY),
    }

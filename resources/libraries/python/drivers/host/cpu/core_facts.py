"""Kinds of cores and last-level caches of this machine, as the kernel has them. Sent to nodes. Nothing is changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DEVICES = "/sys/devices"
_UNITS = ("cpu_core", "cpu_atom", "cpu_lowpower")
"""Performance monitoring units of kinds of cores, the fastest first."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for them.

    `arguments`: `devices`, another folder than the kernel's for tests.

    Returns:
        `units`, the lists of CPUs of each kind where there are several; `khz`, the maximum frequency by CPU; and
        `last_caches`, the first CPU of those with the same last-level cache by CPU.
    """
    devices = Path(arguments.get("devices", DEVICES))
    khz: dict[str, int] = {}
    caches: dict[str, int] = {}
    for folder in sorted((devices / "system/cpu").glob("cpu[0-9]*")):
        cpu = folder.name[len("cpu") :]
        for speed in ("cpufreq/cpuinfo_max_freq", "cpu_capacity"):
            number = _first_number(folder / speed)
            if number and cpu not in khz:
                khz[cpu] = number
        levels = {_first_number(index / "level") or 0: index for index in folder.glob("cache/index[0-9]*")}
        first = _first_number(levels[max(levels)] / "shared_cpu_list") if levels else None
        if first is not None:
            caches[cpu] = first
    units = {name: _text(devices / name / "cpus") for name in _UNITS}
    return {"units": {name: text for name, text in units.items() if text}, "khz": khz, "last_caches": caches}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _first_number(path: Path) -> int | None:
    found = re.match(r"\d{1,15}", _text(path))
    return int(found[0]) if found else None

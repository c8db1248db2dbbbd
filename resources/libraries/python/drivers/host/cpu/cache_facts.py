"""What this machine can divide of its last-level cache by resctrl. Sent to nodes. Nothing is changed.

See Documentation/filesystems/resctrl.rst of the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = "/sys/fs/resctrl"
FILESYSTEMS = "/proc/filesystems"
CPUS = "/sys/devices/system/cpu"
_LEVEL = "3"


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for it.

    `arguments`: `root`, where resctrl is mounted, `filesystems`, those of the kernel, and `cpus`, their folders; other
      ones for tests.

    Returns:
        `ways`, `least`, `groups`, `reserved`, and `domains`, the id of the cache by CPU; or `why` with a sentence part,
        and `fix`.
    """
    root = Path(arguments.get("root", ROOT))
    cache = root / "info" / "L3"
    try:
        mask = int(_read(cache / "cbm_mask"), 16)
        return {
            "ways": mask.bit_length(),
            "least": int(_read(cache / "min_cbm_bits")),
            "groups": int(_read(cache / "num_closids")),
            "reserved": int(_read(cache / "shareable_bits"), 16),
            "domains": _domains(Path(arguments.get("cpus", CPUS))),
        }
    except FileNotFoundError:
        return _why_not(root, Path(arguments.get("filesystems", FILESYSTEMS)))
    except (OSError, ValueError) as error:
        return {"why": f"{cache} cannot be read: {error}", "fix": ""}


def _why_not(root: Path, filesystems: Path) -> dict[str, str]:
    try:
        known = "resctrl" in filesystems.read_text(encoding="ascii").split()
    except OSError:
        known = False
    if not known:
        return {"why": "the kernel has no resctrl for this processor", "fix": ""}
    if not (root / "info").is_dir():
        return {"why": f"resctrl is not mounted at {root}", "fix": f"mount -t resctrl resctrl {root}"}
    if (root / "info" / "L3CODE").is_dir():
        return {
            "why": f"resctrl at {root} divides code and data apart",
            "fix": f"umount {root}, and mount -t resctrl resctrl {root} without cdp",
        }
    return {"why": "the last-level cache of this processor cannot be divided", "fix": ""}


def _domains(cpus: Path) -> dict[str, int]:
    """Id of the last-level cache by CPU."""
    found = {}
    for folder in sorted(cpus.glob("cpu[0-9]*")):
        for index in folder.glob("cache/index[0-9]*"):
            try:
                if _read(index / "level") == _LEVEL:
                    found[folder.name[len("cpu") :]] = int(_read(index / "id"))
            except (OSError, ValueError):
                continue
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()

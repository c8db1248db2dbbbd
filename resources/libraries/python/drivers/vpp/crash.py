"""Core files of programs that crashed: found by what the kernel says where it puts them, and kept."""

import re
import shutil
from pathlib import Path

KEPT = Path("/var/tmp/csit-density")  # noqa: S108 - of root alone, and it outlives a reboot, as a core file should
"""Where core files are kept that would end with the folder of their program."""
_MOST = 3
_KERNEL = Path("/proc/sys/kernel")


def core_of(pid: int, started: float, folder: Path, kernel: Path = _KERNEL, kept: Path = KEPT) -> str:
    """Say where the core file of an ended process is; empty where there is none.

    One that lies where the program ran is moved to where it is kept; of those there are at most three, the newest ones.

    Args:
        pid: Of the process.
        started: When it was started, in seconds since the epoch: an older file is of another process.
        folder: Where it ran.
        kernel: Has `core_pattern` and `core_uses_pid`; another one for tests.
        kept: Where core files are kept.
    """
    pattern = _text(kernel / "core_pattern")
    if pattern.startswith("|"):
        return f"its core file, if any, went to {pattern[1:].split()[0]} (kernel.core_pattern)"
    if not pattern:
        return ""
    found = _newest(folder, pattern, pid, started, _text(kernel / "core_uses_pid"))
    if found is None:
        moved = kept / f"{folder.name}.{pid}.core"
        return _sentence(moved) if moved.exists() else ""
    if found.parent != folder:
        return _sentence(found)
    return _sentence(_keep(found, kept / f"{folder.name}.{pid}.core"))


def _newest(folder: Path, pattern: str, pid: int, started: float, uses_pid: str) -> Path | None:
    if "%p" not in pattern and uses_pid not in ("", "0"):
        pattern += ".%p"
    # What else there may be in the name (program, signal, time) is not needed: pid and time identify it.
    where = folder / re.sub(r"%[^p%]", "*", pattern).replace("%p", str(pid)).replace("%%", "%")
    found = [path for path in where.parent.glob(where.name) if path.stat().st_mtime >= started]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _keep(core: Path, place: Path) -> Path:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    earlier = sorted(place.parent.glob("*.core"), key=lambda path: path.stat().st_mtime)
    for old in earlier[: max(0, len(earlier) + 1 - _MOST)]:
        old.unlink()
    shutil.move(core, place)
    return place


def _sentence(core: Path) -> str:
    return f"core file {core}, {core.stat().st_blocks * 512 // 2**20} MB"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""

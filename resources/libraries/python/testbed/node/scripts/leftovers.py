"""Leftovers of this program on this machine, or what it has there now. Sent to nodes. Nothing is changed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

RECORD = "/run/csit-density"
"""Where the lock of the machine is, and the record of what a run has made."""
RUNTIMES = "/var/tmp/csit-density"  # noqa: S108 - only looked at
NAMESPACES = "/run/netns"
_SEPARATE = frozenset(
    {
        *("owner", "user", "since", "namespaces", "workers", "groups", "containers", "folders", "settings"),
        *("ports", "bindings"),
    }
)
"""Keys of the record that have one in the answer."""
PREPARED = "/var/lib/csit-density/prepared.json"
"""Settings of the machine before it was prepared, from `tunables`."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for what is there.

    `arguments`: `record`, `runtimes` and `namespaces`, folders, and `prepared`, a file, for tests.
    """
    folder = Path(arguments.get("record", RECORD))
    record, problem = _record(folder / "owner.json")
    namespaces = Path(arguments.get("namespaces", NAMESPACES))
    named = {path.name for path in namespaces.glob("*")} if namespaces.is_dir() else set()
    claimed = record.get("namespaces", {})
    owner = record.get("owner")
    return {
        "in_use": _is_locked(folder / "lock"),
        "problem": problem,
        "owner": {**owner, "alive": _alive(owner), "user": record["user"], "since": record["since"]} if owner else None,
        "namespaces": sorted(name for name in claimed if name in named),
        "processes": [
            {"pid": each["pid"], "command": _command_now(each)} for each in record.get("workers", ()) if _alive(each)
        ],
        "groups": [each for each in record.get("groups", ()) if Path(each).exists()],
        "containers": [f"{each['engine']['name']} container {each['name']}" for each in record.get("containers", ())],
        "folders": [each for each in record.get("folders", ()) if Path(each).exists()],
        "settings": record.get("settings", {}),
        "ports": [_words(each) for each in record.get("ports", ())],
        "bindings": [_words(each) for each in record.get("bindings", ())],
        # Such as virtual functions of ports, and what packages of drivers declare.
        "others": {
            key: [_words(each) for each in entries]
            for key, entries in record.items()
            if key not in _SEPARATE and isinstance(entries, list)
        },
        "unclaimed": sorted(name for name in named - set(claimed) if name.startswith("csit-")),
        "runtimes": _runtimes(Path(arguments.get("runtimes", RUNTIMES))),
        "prepared": _prepared(Path(arguments.get("prepared", PREPARED))),
    }


def _prepared(path: Path) -> dict[str, Any] | None:
    """User who prepared the machine, and number of settings to restore."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {"by": record["by"], "since": record["since"], "settings": len(record["settings"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _record(path: Path) -> tuple[dict[str, Any], str | None]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, None
    except (OSError, ValueError) as error:
        return {}, f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    if not isinstance(record, dict) or not isinstance(record.get("owner"), dict):
        return {}, f"{path} is no record of this program"
    return record, None


def _words(each: object) -> str:
    """Format an entry of the record; its content depends on the version that wrote it."""
    if isinstance(each, dict):
        # Nested values, such as the parameters of a port, are left out.
        plain = ((key, value) for key, value in each.items() if value is not None and not isinstance(value, dict))
        return ", ".join(f"{key} {value}" for key, value in plain)
    return str(each)


def _is_locked(path: Path) -> bool:
    """Whether a file is locked, without trying to lock it: a run that begins now must not be refused."""
    try:
        found = path.stat()
        rows = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any(wanted in row.split() for row in rows)


def _alive(process: dict[str, Any]) -> bool:
    """Whether it is still the same process, by its start time."""
    try:
        stat = Path(f"/proc/{process['pid']}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    state, *fields = stat.rpartition(")")[2].split()
    return state not in "ZX" and int(fields[18]) == process["start_ticks"]


def _command_now(process: dict[str, Any]) -> str:
    """Return its command line; the recorded one is empty or of another program if it was read during exec."""
    try:
        words = Path(f"/proc/{process['pid']}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = []
    return " ".join(words).strip() or str(process["command"])


def _runtimes(folder: Path) -> list[dict[str, Any]]:
    """Runtimes of agents, with the days since each was used."""
    found = []
    ours = folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()
    for path in sorted(each for each in folder.glob("*") if each.is_dir()) if ours else ():
        size = sum(entry.lstat().st_size for entry in path.rglob("*") if entry.is_file() and not entry.is_symlink())
        days = max(0.0, (time.time() - path.stat().st_mtime) / 86400)
        found.append({"name": path.name, "mb": size // 2**20, "unused_days": days})
    return found

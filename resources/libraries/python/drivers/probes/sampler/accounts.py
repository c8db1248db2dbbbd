"""Accounts that the kernel keeps, read again and again from files that stay open. See proc(5), cgroups(7).

Each reading gives counters and levels by the name of their feature. What cannot be read is left out.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from resources.libraries.python.drivers.host.cpu.thread_scheduling import is_held_back
from resources.libraries.python.drivers.probes.sampler.tasks import PROC, Tasks

Amounts = dict[str, float]
"""By feature. Counters are in the unit of the feature times seconds, so that what they gain in a second is the
feature's value; levels are in its unit."""

_OF_PROCESSES = ("user_percent", "system_percent", "memory_bytes")
"""Unknown of an owner that has no process; 0 of one whose processes have ended."""
LEVELS = frozenset(
    {
        "threads",
        "memory_bytes",
        "guest_memory_bytes",
        "memory_used_bytes",
        "queued_packets",
        "queued_kib",
        "backlog_packets",
    }
)
"""Features that are read as they are; all others are counted."""

PERCENT_OF_NS = 100 / 1e9
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PERCENT_OF_TICK = 100 / os.sysconf("SC_CLK_TCK")
_CHUNK = 1 << 16
_SWITCHES = re.compile(r"^(non)?voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


class Account(Protocol):
    """Something that is read each second."""

    def read(self) -> Amounts:
        """As it is now."""

    def close(self) -> None:
        """Let go of files."""


class Kept:
    """A file that stays open: opening costs more than reading."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            OSError: It cannot be opened.
        """
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def text(self) -> str:
        """All of it as it is now.

        Raises:
            OSError: Its subject is gone.
        """
        parts: list[bytes] = []
        while part := os.pread(self._descriptor, _CHUNK, sum(map(len, parts))):
            parts.append(part)
        return b"".join(parts).decode(errors="replace")

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)


class OpenFiles:
    """Files by a key; what cannot be opened is not there."""

    def __init__(self, paths: Iterable[tuple[str, Path]]) -> None:
        self._kept: list[tuple[str, Kept]] = []
        for key, path in paths:
            with suppress(OSError):
                self._kept.append((key, Kept(path)))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Key and text of each that can be read now."""
        for key, kept in self._kept:
            with suppress(OSError):
                yield key, kept.text()

    def close(self) -> None:
        """Let go of all."""
        for _, kept in self._kept:
            kept.close()


class TaskAccount:
    """Processes of an owner, and threads of the kernel that work for it.

    Times of the kernel's threads are exact to the nanosecond, those of processes in user space and in the kernel to a
    clock tick.
    """

    def __init__(self, tasks: Tasks, root: Path = PROC) -> None:
        """Open what there is; threads are those of now."""
        self._tasks = tasks
        self._held = frozenset(thread for thread in tasks.helpers if is_held_back(thread))
        rows: list[tuple[str, Path]] = []
        for process in tasks.processes:
            place = root / str(process)
            rows += [("process", place / "stat"), ("io", place / "io")]
        for thread in tasks.threads(root):
            times = "helping" if thread in tasks.helpers else "waiting"
            times = "held" if thread in self._held else times
            rows += [("status", root / str(thread) / "status"), (times, root / str(thread) / "schedstat")]
        self._files = OpenFiles(rows)

    def read(self) -> Amounts:
        """See Account. Nothing of an owner that has no task: what it does is unknown."""
        if not self._tasks.processes and not self._tasks.helpers:
            return {}
        found: Amounts = {"helper_percent": 0.0, "threads": float(len(self._tasks.helpers))}
        found |= dict.fromkeys(_OF_PROCESSES if self._tasks.processes else (), 0.0)
        for key, text in self._files.texts():
            with suppress(ValueError, IndexError, KeyError):  # of a task that is just ending
                for name, amount in _PARSERS[key](text):
                    found[name] = found.get(name, 0.0) + amount
        if self._held:
            found["throttled_percent"] = found.get("throttled_percent", 0.0) / len(self._held)
        # A process's ticks are coarse, but include its threads that have ended.
        parts = ("helper_percent", "user_percent", "system_percent")
        found["cpu_percent"] = sum(found.get(name, 0.0) for name in parts)
        return found

    def close(self) -> None:
        self._files.close()


def _stat(text: str) -> Iterator[tuple[str, float]]:
    fields = text.rpartition(")")[2].split()
    yield "user_percent", int(fields[11]) * PERCENT_OF_TICK
    yield "system_percent", int(fields[12]) * PERCENT_OF_TICK
    yield "threads", int(fields[17])
    yield "memory_bytes", int(fields[21]) * _PAGE_BYTES


def _status(text: str) -> Iterator[tuple[str, float]]:
    for forced, count in _SWITCHES.findall(text):
        yield "involuntary_switches" if forced else "voluntary_switches", int(count)


def _io(text: str) -> Iterator[tuple[str, float]]:
    rows = dict(line.split(": ") for line in text.splitlines())
    yield "read_bytes_per_s", int(rows["read_bytes"])
    yield "written_bytes_per_s", int(rows["write_bytes"])


def _waiting(text: str) -> Iterator[tuple[str, float]]:
    yield "waiting_percent", int(text.split()[1]) * PERCENT_OF_NS


def _helping(text: str) -> Iterator[tuple[str, float]]:
    yield from _waiting(text)
    yield "helper_percent", int(text.split(maxsplit=1)[0]) * PERCENT_OF_NS


def _held(text: str) -> Iterator[tuple[str, float]]:
    """Of a deadline thread: nothing but the end of its runtime makes it wait, as it goes before all others."""
    running, waiting, *_ = text.split()
    yield "helper_percent", int(running) * PERCENT_OF_NS
    yield "throttled_percent", int(waiting) * PERCENT_OF_NS


_PARSERS: Mapping[str, Callable[[str], Iterator[tuple[str, float]]]] = {
    "process": _stat,
    "status": _status,
    "io": _io,
    "waiting": _waiting,
    "helping": _helping,
    "held": _held,
}

"""Accounts of the kernel, read repeatedly from files that stay open: of tasks, guests, ports and the machine.

Each reading returns counters and levels by feature. What cannot be read is left out. See proc(5), cgroups(7).
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from pyroute2.netlink.rtnl import RTM_GETSTATS

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup
from resources.libraries.python.drivers.host.cpu.thread_scheduling import is_held_back
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.probes.sampler.tasks import PROC, Tasks
from resources.libraries.python.errors import CsitError

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
        """Close its files."""


Parser = Callable[[str], Iterable[tuple[str, float]]]
"""Yields features and amounts from the text of a file."""


class OpenFiles:
    """Files with what reads them. They stay open, as opening costs more than reading; some cannot be opened."""

    def __init__(self, paths: Iterable[tuple[Path, Parser]]) -> None:
        self._kept: list[tuple[int, Parser]] = []
        for path, parse in paths:
            with suppress(OSError):
                self._kept.append((os.open(path, os.O_RDONLY | os.O_CLOEXEC), parse))

    def add_to(self, found: Amounts) -> Amounts:
        """Add what is in all of them now to some amounts, and return these."""
        for descriptor, parse in self._kept:
            with suppress(OSError, ValueError, IndexError, KeyError):  # of a task that is just ending
                parts: list[bytes] = []
                while part := os.pread(descriptor, _CHUNK, sum(map(len, parts))):
                    parts.append(part)
                for name, amount in parse(b"".join(parts).decode(errors="replace")):
                    found[name] = found.get(name, 0.0) + amount
        return found

    def close(self) -> None:
        for descriptor, _ in self._kept:
            os.close(descriptor)


class TaskAccount:
    """Processes of an owner, and threads of the kernel that work for it.

    Times of the kernel's threads are exact to the nanosecond, those of processes in user space and in the kernel to a
    clock tick.
    """

    def __init__(self, tasks: Tasks, root: Path = PROC) -> None:
        """Open what there is; threads are those of now."""
        self._tasks = tasks
        self._held = frozenset(thread for thread in tasks.helpers if is_held_back(thread))
        rows: list[tuple[Path, Parser]] = []
        for process in tasks.processes:
            place = root / str(process)
            rows += [(place / "stat", _stat), (place / "io", _io)]
        for thread in tasks.threads(root):
            times = _held if thread in self._held else _helping if thread in tasks.helpers else _waiting
            rows += [(root / str(thread) / "status", _status), (root / str(thread) / "schedstat", times)]
        self._files = OpenFiles(rows)
        self.close = self._files.close

    def read(self) -> Amounts:
        """See Account. Nothing of an owner that has no task: what it does is unknown."""
        if not self._tasks.processes and not self._tasks.helpers:
            return {}
        found: Amounts = {"helper_percent": 0.0, "threads": float(len(self._tasks.helpers))}
        found |= dict.fromkeys(_OF_PROCESSES if self._tasks.processes else (), 0.0)
        self._files.add_to(found)
        if self._held:
            found["throttled_percent"] = found.get("throttled_percent", 0.0) / len(self._held)
        # A process's ticks are coarse, but include its threads that have ended.
        parts = ("helper_percent", "user_percent", "system_percent")
        found["cpu_percent"] = sum(found.get(name, 0.0) for name in parts)
        return found


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


def _guest(text: str) -> Iterator[tuple[str, float]]:
    yield "guest_cpu_percent", int(text.split(maxsplit=1)[0]) * PERCENT_OF_NS


class VcpuAccount:
    """The vCPUs of a virtual machine: what the guest has had of its CPUs."""

    def __init__(self, threads: Iterable[int], root: Path = PROC) -> None:
        self._files = OpenFiles((root / str(thread) / "schedstat", _guest) for thread in threads)
        self.close = self._files.close

    def read(self) -> Amounts:
        return self._files.add_to({"guest_cpu_percent": 0.0})


class GroupAccount:
    """The control group of an owner."""

    def __init__(self, group: ControlGroup) -> None:
        self._group = group

    def read(self) -> Amounts:
        used, memory, stood = self._group.cpu_s(), self._group.memory_bytes(), self._group.throttling()
        rows = {
            "guest_cpu_percent": None if used is None else 100 * used,
            "guest_memory_bytes": memory,
            "throttled_percent": None if stood is None else 100 * stood.still_s,
        }
        return {name: float(amount) for name, amount in rows.items() if amount is not None}

    def close(self) -> None:
        """Nothing is open."""


class NeverThrottled:
    """An owner without a quota: nothing makes it stand still."""

    def read(self) -> Amounts:
        return {"throttled_percent": 0.0}

    def close(self) -> None:
        """Nothing is open."""


class PortAccount:
    """The ports of an owner, all together, as the kernel counts them.

    `netlink`: opened in the owner's namespace, and used only here: it is queried from another thread.
    """

    def __init__(self, netlink: Netlink, indexes: Iterable[int]) -> None:
        self._netlink = netlink
        self._indexes = frozenset(indexes)

    def read(self) -> Amounts:
        sums = [0, 0, 0, 0]
        try:
            for body in self._netlink.dump(RTM_GETSTATS, rtnetlink_messages.GET_COUNTERS, "read counters"):
                index, found = rtnetlink_messages.read_counters(body)
                if index in self._indexes:
                    row = (found.rx_packets, found.tx_packets, found.rx_dropped, found.tx_dropped)
                    sums = [before + more for before, more in zip(sums, row, strict=True)]
        except (CsitError, OSError):
            return {}
        return dict(zip(("rx_pps", "tx_pps", "rx_dropped_pps", "tx_dropped_pps"), map(float, sums), strict=True))

    def close(self) -> None:
        self._netlink.close()


_STATES = ("user", "user", "system", "idle", "idle", "interrupt", "softirq", "stolen")
"""Of the columns of /proc/stat, the first eight: user, nice, system, idle, iowait, irq, softirq, steal."""
_SOFTIRQS = {"NET_RX": "all_net_rx_softirqs", "NET_TX": "all_net_tx_softirqs"}
_DROPPED, _SQUEEZED, _QUEUED = 1, 2, 11
"""Columns of a CPU in /proc/net/softnet_stat, hexadecimal; the last is there from Linux 5.10."""


class MachineAccount:
    """The machine."""

    def __init__(self, root: Path = PROC) -> None:
        self._files = OpenFiles((root / name, parse) for name, parse in _FILES)
        self.close = self._files.close

    def read(self) -> Amounts:
        return self._files.add_to({})


def _cpu_times(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name == "cpu":
            for state, ticks in zip(_STATES, rest.split(), strict=False):
                yield f"all_{state}_percent", int(ticks) * PERCENT_OF_TICK
        elif name == "intr":
            yield "all_interrupts", int(rest.split(" ", 1)[0])
        elif name == "ctxt":
            yield "all_switches", int(rest)


def _softirqs(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, _, rest = line.strip().partition(":")
        if name in _SOFTIRQS:
            yield _SOFTIRQS[name], sum(map(int, rest.split()))


def _queues(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        row = line.split()
        yield "backlog_drops", int(row[_DROPPED], 16)
        yield "time_squeezes", int(row[_SQUEEZED], 16)
        if len(row) > _QUEUED:
            yield "backlog_packets", int(row[_QUEUED], 16)


def _memory(text: str) -> Iterator[tuple[str, float]]:
    rows = dict(line.split(":", 1) for line in text.splitlines())
    total, available = (int(rows[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    yield "memory_used_bytes", 1024 * (total - available)


_FILES = (("stat", _cpu_times), ("softirqs", _softirqs), ("net/softnet_stat", _queues), ("meminfo", _memory))

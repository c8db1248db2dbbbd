"""CPU time, memory and cache misses of network functions. Virtual machines often have no hardware counters."""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import NamedTuple

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.probes.sampler.accounts import Amounts, TaskAccount
from resources.libraries.python.drivers.probes.sampler.tasks import tasks_on
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import Cost
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import is_vswitch

_PERCENT = 100


_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTE_BYTES = 128
_ATTRIBUTE = struct.Struct("=IIQQQQQ")
"""type, size, config, sample period, sample type, read format, flags; what follows is zero."""
_ANY_CPU = -1
_ANY_THREAD = -1
_NO_GROUP = -1
_CLOSE_ON_EXEC = 8


class PerfEvent(NamedTuple):
    """A counted event; type and number are those of perf_event_open(2)."""

    name: str
    type: int
    number: int


CYCLES = PerfEvent("cycles", 0, 0)
CACHE_MISSES = PerfEvent("misses of the last level of cache", 0, 3)
CPU_CLOCK = PerfEvent("nanoseconds of a CPU", 1, 0)


class PerfCounters:
    """One event, counted for the threads of several owners from now on.

    `threads`: thread ids by owner; those that have ended are left out.

    Raises:
        Unsupported: The machine cannot count it, or this process may not.
    """

    def __init__(self, threads: Mapping[str, Iterable[int]], event: PerfEvent = CACHE_MISSES) -> None:
        self._files: dict[str, list[int]] = {}
        try:
            for owner, ids in threads.items():
                opened = self._files[owner] = []
                for thread in ids:
                    with suppress(ProcessLookupError):
                        opened.append(_open(event, thread))
        except OSError as error:
            self.close()
            raise Unsupported(f"this machine does not count {event.name}: {error.strerror}") from error

    def read(self) -> dict[str, int]:
        """Events so far, by owner; all its threads together."""
        return {owner: sum(_count(file) for file in files) for owner, files in self._files.items()}

    def close(self) -> None:
        """End counting. Safe to call more than once."""
        for files in self._files.values():
            while files:
                os.close(files.pop())


def why_not_on(cpu: int, event: PerfEvent) -> str:
    """Return why an event of all threads on a CPU cannot be counted here; empty where it can."""
    try:
        os.close(_open(event, _ANY_THREAD, cpu))
    except OSError as error:
        return error.strerror or "unknown error"
    return ""


def _open(event: PerfEvent, thread: int, cpu: int = _ANY_CPU) -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(0, f"no perf events on {platform.machine()}")
    attribute = _ATTRIBUTE.pack(event.type, _ATTRIBUTE_BYTES, event.number, 0, 0, 0, 0).ljust(_ATTRIBUTE_BYTES, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.syscall(number, attribute, thread, cpu, _NO_GROUP, _CLOSE_ON_EXEC)
    if file < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(file)


def _count(file: int) -> int:
    return int(struct.unpack("=Q", os.read(file, 8))[0])


class LinuxCostMeter:
    """Fulfils `roles.watching.CostMeter` on this machine.

    `fabric`: Has the ports and their data threads; started before `start`.
    `event`: What stands for misses of the cache.
    """

    def __init__(self, plan: Plan, fabric: Fabric, event: PerfEvent = CACHE_MISSES) -> None:
        self._plan = plan
        self._fabric = fabric
        self._event = event
        self._accounts: dict[str, TaskAccount] = {}
        self._before: dict[str, Amounts] = {}
        self._misses: PerfCounters | None = None
        self._missing = ""
        self._open = ExitStack()

    def start(self) -> None:
        self.stop()
        tasks = {name: row for name, row in tasks_on(self._plan, self._fabric).items() if not is_vswitch(name)}
        try:
            self._misses = PerfCounters({name: row.threads() for name, row in tasks.items()}, self._event)
            self._open.callback(self._misses.close)
        except Unsupported as error:
            self._missing = str(error)
        for name, row in tasks.items():
            account = self._accounts[name] = TaskAccount(row)
            self._open.callback(account.close)
        self._before = {name: account.read() for name, account in self._accounts.items()}

    def stop(self) -> Mapping[str, Cost]:
        misses = self._misses.read() if self._misses is not None else {}
        found = {
            name: _cost(self._before[name], account.read(), misses.get(name))
            for name, account in self._accounts.items()
            if name in self._before
        }
        self._open.close()
        self._accounts, self._before, self._misses = {}, {}, None
        return found

    def facts(self) -> Mapping[str, str]:
        return {"cache misses": self._missing} if self._missing else {}


def _cost(before: Amounts, after: Amounts, misses: int | None) -> Cost:
    """Of an NF without tasks nothing is known, and of one without processes no memory."""
    known = "cpu_percent" in before and "cpu_percent" in after
    memory = after.get("memory_bytes")
    return Cost(
        cpu_s=(after["cpu_percent"] - before["cpu_percent"]) / _PERCENT if known else None,
        memory_bytes=None if memory is None else round(memory),
        cache_misses=misses if known else None,
    )

"""Hardware counters of threads, by the kernel's perf events. Virtual machines often have none."""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from resources.libraries.python.errors import Unsupported

_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTE_BYTES = 128
_ATTRIBUTE = struct.Struct("=IIQQQQQ")
"""type, size, config, sample period, sample type, read format, flags; what follows is zero."""
_ANY_CPU = -1
_NO_GROUP = -1
_CLOSE_ON_EXEC = 8


class PerfEvent(NamedTuple):
    """A counted event; type and number are those of perf_event_open(2)."""

    name: str
    type: int
    number: int


CACHE_MISSES = PerfEvent("misses of the last level of cache", 0, 3)
TASK_CLOCK = PerfEvent("nanoseconds on a CPU", 1, 1)
"""A software event, which every machine can count."""


class PerfCounters:
    """One event, counted for the threads of several owners from now on.

    Args:
        threads: Thread ids by owner; those that have ended are left out.
        event: What is counted.

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


def _open(event: PerfEvent, thread: int) -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(0, f"no perf events on {platform.machine()}")
    attribute = _ATTRIBUTE.pack(event.type, _ATTRIBUTE_BYTES, event.number, 0, 0, 0, 0).ljust(_ATTRIBUTE_BYTES, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.syscall(number, attribute, thread, _ANY_CPU, _NO_GROUP, _CLOSE_ON_EXEC)
    if file < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(file)


def _count(file: int) -> int:
    return int(struct.unpack("=Q", os.read(file, 8))[0])

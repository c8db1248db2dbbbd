"""Scheduling of polling threads of user space, and CPU limits of kernel threads by SCHED_DEADLINE (see sched(7)).

The quota of a control group does not throttle a kernel thread: since 6.18 the kernel throttles a thread when it
returns to user space, which kernel threads never do, and before that it throttled ordinary threads only. A deadline
thread that has used its runtime is throttled until its next period, whatever it is doing. Until then it precedes every
other thread.
"""

import ctypes
import os
import re
import struct
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.data_threads import name
from resources.libraries.python.errors import Unsupported

SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
_MAX_FAVOURED = -20
_SLICE_NS = 100_000
_libc = ctypes.CDLL(None, use_errno=True)


def favour(thread: int) -> None:
    """Let a polling thread have nearly all of what real-time threads leave of its CPU, in turns of 0.1 ms.

    In real time it would stop all others on its CPU for good, the receiving kernel threads of its own ports among them.
    As an ordinary thread it waits for others; so it gets the highest weight. Where a plan is
    oversubscribed several of them share a CPU: with the turns of 3 ms that are usual, rings would overflow. The kernel
    takes the length of a turn from 6.12 on (EEVDF) and ignores it before.

    Raises:
        Unsupported: The kernel refuses.
    """
    number = SYS_SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        os.setpriority(os.PRIO_PROCESS, thread, _MAX_FAVOURED)
    elif reason := _set(number, thread, os.SCHED_OTHER, 0, _MAX_FAVOURED, 0, _SLICE_NS, 0, 0):
        raise Unsupported(f"polling thread {thread} cannot be favoured by the scheduler: {reason}")


def _set(number: int, thread: int, *attributes: int) -> str:
    """Set the fields of `struct sched_attr` by the system call of that number; return why not, empty where they are."""
    packed = _ATTRIBUTES.pack(_ATTRIBUTES.size, *attributes)
    return os.strerror(ctypes.get_errno()) if _libc.syscall(number, thread, packed, 0) else ""


def go_first(priority: int = 1) -> None:
    """Let the calling thread and those that it starts go before all others (SCHED_FIFO), where that is permitted.

    An ordinary thread is delayed by up to a second where polling threads share all CPUs, and has a part of a CPU where
    many are busy.

    `priority`: Of real-time threads; data threads have 1.
    """
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def threads_of(pid: int, pattern: re.Pattern[str], root: Path = Path("/proc")) -> dict[int, int]:
    """Threads of a process by the number in their names.

    `pattern`: Matches a name; its first group is the number.
    `root`: Where processes are; another one for tests.

    Returns:
        Number to thread id; empty when the process is gone.
    """
    found = {}
    try:
        for task in (root / str(pid) / "task").iterdir():
            name = (task / "comm").read_text(encoding="utf-8", errors="replace").strip()
            if match := pattern.search(name):
                found[int(match[1])] = int(task.name)
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return found


SCHED_DEADLINE = 6
_PERIOD_NS = 100_000_000
"""As that of control groups."""
_MIN_NS = 1024
"""The kernel's smallest runtime."""


def hold_back(thread: int, cpus: float) -> None:
    """Give a thread no more than a share of a CPU's time from now on. It keeps the CPUs that it may run on.

    Threads that may not run on all CPUs get deadlines only where the kernel reserves no time for ordinary ones
    (`kernel.sched_rt_runtime_us` -1, as it is during a run).

    `cpus`: below 1; 0.5 for half of one.

    Raises:
        Unsupported: The kernel refuses.
    """
    runtime_ns = max(_MIN_NS, round(cpus * _PERIOD_NS))
    number = SYS_SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        raise Unsupported(f"data thread {name(thread)} cannot be limited on a machine of type {os.uname().machine}")
    if reason := _set(number, thread, SCHED_DEADLINE, 0, 0, 0, runtime_ns, _PERIOD_NS, _PERIOD_NS):
        raise Unsupported(f"data thread {name(thread)} cannot be limited to {cpus:g} CPUs: {reason}")


def is_held_back(thread: int) -> bool:
    """Whether a thread has such a limit; false for one that is gone."""
    try:
        return os.sched_getscheduler(thread) == SCHED_DEADLINE
    except OSError:
        return False

"""Threads of the kernel with a limit of CPU time: see sched(7), SCHED_DEADLINE.

A control group's quota does not hold them back: since 6.18 the kernel throttles a thread when it returns to user space,
which they never do, and before that it throttled ordinary threads only. A deadline thread that has used its runtime
stands still until its next period, whatever it is in the middle of. Until then it goes before every other thread, so
that nothing else makes it wait.
"""

import ctypes
import os
import struct

from resources.libraries.python.drivers.host.cpu.data_threads import name
from resources.libraries.python.drivers.host.cpu.polling_threads import SYS_SCHED_SETATTR
from resources.libraries.python.errors import Unsupported

SCHED_DEADLINE = 6
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
_PERIOD_NS = 100_000_000
"""As that of control groups."""
_LEAST_NS = 1024
"""The kernel's smallest runtime."""
_libc = ctypes.CDLL(None, use_errno=True)


def hold_back(thread: int, cpus: float) -> None:
    """Give a thread no more than a share of a CPU's time from now on. It keeps the CPUs that it may run on.

    Threads that may not run on all CPUs get deadlines only where the kernel reserves no time for ordinary ones
    (`kernel.sched_rt_runtime_us` -1, as it is during a run).

    Args:
        thread: Its id.
        cpus: Below 1; 0.5 for half of one.

    Raises:
        Unsupported: The kernel refuses.
    """
    runtime_ns = max(_LEAST_NS, round(cpus * _PERIOD_NS))
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, SCHED_DEADLINE, 0, 0, 0, runtime_ns, _PERIOD_NS, _PERIOD_NS)
    number = SYS_SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        raise Unsupported(f"data thread {name(thread)} cannot be limited on a machine of type {os.uname().machine}")
    if _libc.syscall(number, thread, attributes, 0):
        reason = os.strerror(ctypes.get_errno())
        raise Unsupported(f"data thread {name(thread)} cannot be limited to {cpus:g} CPUs: {reason}")


def is_held_back(thread: int) -> bool:
    """Whether a thread has such a limit; false for one that is gone."""
    try:
        return os.sched_getscheduler(thread) == SCHED_DEADLINE
    except OSError:
        return False

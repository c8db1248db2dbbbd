"""Interruptions of known length and number on a CPU."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.user_space import victim

CPU = max(os.sched_getaffinity(0))
PULSE_MS, PAUSE_MS = 3, 47
_PULSES = """\
import os, sys, time
cpu, pulse_ms, pause_ms = map(int, sys.argv[1:])
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
while True:
    end = time.monotonic() + pulse_ms / 1000
    while time.monotonic() < end:
        pass
    time.sleep(pause_ms / 1000)
"""


@contextmanager
def pulses(pulse_ms: int = PULSE_MS, pause_ms: int = PAUSE_MS) -> Iterator[None]:
    """Take the CPU for some milliseconds from everybody, again and again; pauses are between."""
    with victim(_PULSES, *map(str, (CPU, pulse_ms, pause_ms)), says="ready"):
        yield

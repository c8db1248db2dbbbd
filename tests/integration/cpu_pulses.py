"""Interruptions of known length and number on a CPU."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CPU = max(os.sched_getaffinity(0))
PULSE_MS, PAUSE_MS = 3, 47
_PULSES = f"""\
import os, time
os.sched_setaffinity(0, {{{CPU}}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
while True:
    end = time.monotonic() + {PULSE_MS / 1000}
    while time.monotonic() < end:
        pass
    time.sleep({PAUSE_MS / 1000})
"""


@contextmanager
def pulses() -> Iterator[None]:
    """Take the CPU for 3 ms of every 50 ms, from everybody."""
    with subprocess.Popen([sys.executable, "-c", _PULSES], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.kill()

"""Idle states of CPUs: none that a CPU has to wake up from while a system is measured."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUESTS = Path("/dev/cpu_dma_latency")


@contextmanager
def kept_awake(requests: Path = REQUESTS) -> Iterator[None]:
    """Have the idle CPUs of this machine poll for work, by the kernel's PM QoS: nothing else wakes up in time.

    The kernel ends the request with the process that made it, also where that is killed. Where it takes none, CPUs
    sleep as they do otherwise; the environment of each result tells which it was.

    Args:
        requests: The device; another file in tests.
    """
    try:
        asked = os.open(requests, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        os.write(asked, struct.pack("i", 0))  # microseconds to wake up in
        yield
    finally:
        os.close(asked)

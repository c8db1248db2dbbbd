"""Idle states of CPUs: none that a CPU has to wake up from while a system is measured."""

import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

REQUESTS = Path("/dev/cpu_dma_latency")


@contextmanager
def kept_awake(requests: Path = REQUESTS) -> Iterator[None]:
    """Have the idle CPUs of this machine poll for work, by the kernel's PM QoS: nothing else wakes up in time.

    The kernel ends the request with the process that made it, also where that is killed. Where it takes none, CPUs
    sleep as they do otherwise; the environment of each result has it.

    Args:
        requests: The device; another file in tests.
    """
    with ExitStack() as held:
        with suppress(OSError):
            asked = held.enter_context(requests.open("r+b", buffering=0))
            asked.write(struct.pack("i", 0))  # microseconds to wake up in
        yield

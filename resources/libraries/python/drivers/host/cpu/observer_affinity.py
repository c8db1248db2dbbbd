"""CPU pinning and CPU use of the samplers, so that no data thread waits for them."""

import os

from resources.libraries.python.quantities import grouped


def stay_on(cpu: int | None) -> bool:
    """Pin the calling thread to a CPU; return whether that succeeded. None leaves it unpinned."""
    if cpu is None:
        return False
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:  # another control group's CPU, or offline: then wherever there is room
        return False
    return True


def where(cpu: int | None) -> str:
    """Format a CPU for a message."""
    return "on any CPU" if cpu is None else f"on CPU {cpu}"


def took(cpu_s: float, lasted_s: float) -> str:
    """Format CPU time as a share of one CPU."""
    return f"{grouped(100 * cpu_s / lasted_s, 2)} % of a CPU's time"

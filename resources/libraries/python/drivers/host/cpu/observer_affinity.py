"""Where those stay who watch a system, and what they take of it: nobody's data thread should wait for them."""

import os


def stay_on(cpu: int | None) -> bool:
    """Keep the calling thread on a CPU from now on; return whether it may be there. None: it stays free."""
    if cpu is None:
        return False
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:  # another control group's CPU, or offline: then wherever there is room
        return False
    return True


def where(cpu: int | None) -> str:
    """A CPU in words."""
    return "on any CPU" if cpu is None else f"on CPU {cpu}"


def took(cpu_s: float, lasted_s: float) -> str:
    """Processor time in words, as a share of one CPU."""
    return f"{100 * cpu_s / lasted_s:.2g} % of a CPU's time"

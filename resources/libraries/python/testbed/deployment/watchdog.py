"""Deadlines of last resort: whatever a driver waits for, the run gets control back."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from resources.libraries.python.errors import NotReady

_AGAIN_S = 5.0
"""What is interrupted may wait again while it cleans up, so the alarm rings on."""


@contextmanager
def within(what: str, seconds: float) -> Iterator[None]:
    """Interrupt what takes longer.

    Every driver has deadlines of its own and tells better what it waited for; this one is for the wait that somebody
    forgot. It is kept by the real-time timer of the process, hence only in the main thread; a timer that is running
    already (a timeout of Robot) rings in its time, unless that comes to pass inside.

    Args:
        what: For a person: `the trial`.
        seconds: The deadline.

    Raises:
        NotReady: The time is over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise NotReady(what, seconds, "it did not return")

    begin = time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    left_s, again_s = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    outer = 0.0 < left_s < seconds
    if outer:  # somebody else's time ends first
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left_s, again_s)
    try:
        yield
    finally:
        if not outer:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
            if left_s:
                signal.setitimer(signal.ITIMER_REAL, max(0.001, left_s - (time.monotonic() - begin)), again_s)

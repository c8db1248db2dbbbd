"""Wait for a condition with a deadline, and for other threads such that signals are handled meanwhile."""

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from resources.libraries.python.errors import NotReady

_Item = TypeVar("_Item")
_SIGNAL_S = 0.5
"""How long a signal may wait for its handler."""
CABLES_WITHIN_S = 30.0
"""Deadline for the links of cables: their ends negotiate, and the other machine may be slower."""


def wait_until(what: str, missing: Callable[[], str], within_s: float, pause_s: float = 0.002) -> None:
    """Poll until nothing is missing.

    `what`: The condition, for error messages.
    `missing`: Returns what is still missing; empty when the condition holds.

    Raises:
        NotReady: The deadline passed.
    """
    begin = time.monotonic()
    while last_seen := missing():
        if time.monotonic() - begin > within_s:
            raise NotReady(what, within_s, last_seen)
        time.sleep(pause_s)


def next_item(items: "queue.Queue[_Item] | queue.SimpleQueue[_Item]") -> _Item:
    """Wait for the next item of a queue; handlers of signals run within half a second.

    A signal that arrives after Python looked for one, and before the thread sleeps, does not wake it: a wait without
    end would lose it. Workers with realtime priority on the CPU of the thread make that moment last for up to 1 s.
    """
    while True:
        try:
            return items.get(timeout=_SIGNAL_S)
        except queue.Empty:
            continue


def wait_for_event(event: threading.Event, within_s: float) -> bool:
    """Wait for an event; return whether it came in time. Signals are handled within half a second, see `next_item`."""
    end = time.monotonic() + within_s
    while not event.wait(max(0.0, min(_SIGNAL_S, end - time.monotonic()))):
        if time.monotonic() >= end:
            return event.is_set()
    return True

"""Doing slow system calls at the same time, or aside.

Making and closing a packet socket with a ring waits for the kernel's RCU grace period, about 10 ms each, whatever the
number of sockets: one after the other, twenty flows would take a second for each change of frame size.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Closable(Protocol):
    """Has something to give back."""

    def close(self) -> None:
        """Give it back."""


def together(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Make calls at the same time, each in a thread of its own; results in the order of the calls.

    Raises:
        CsitError: the first one that a call raised; all calls have ended by then.
    """
    if not calls:
        return []
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]


class BackgroundCloser:
    """Closes things in the background: closing takes 20 ms."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []

    def close(self, things: Iterable[Closable]) -> None:
        """Close them, each in a thread of its own."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for thing in things:
            self._threads.append(Thread(target=thing.close))
            self._threads[-1].start()

    def wait(self) -> None:
        """Wait until all are closed."""
        for thread in self._threads:
            thread.join()

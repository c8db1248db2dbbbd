"""Doing slow system calls at the same time.

Making and closing a packet socket with a ring waits for the kernel's RCU grace period, about 10 ms each, whatever the
number of sockets: one after the other, twenty flows would take a second for each change of frame size.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


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

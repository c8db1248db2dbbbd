"""Waiting for facts."""

import time
from collections.abc import Callable

from resources.libraries.python.errors import NotReady


def wait_until(what: str, missing: Callable[[], str], within_s: float, pause_s: float = 0.002) -> None:
    """Wait until nothing is missing.

    Args:
        what: The fact, for a person.
        missing: Says what is still missing; an empty text when nothing is.
        within_s: The deadline in seconds.
        pause_s: Seconds between two looks.

    Raises:
        NotReady: The deadline passed.
    """
    begin = time.monotonic()
    while last_seen := missing():
        if time.monotonic() - begin > within_s:
            raise NotReady(what, within_s, last_seen)
        time.sleep(pause_s)

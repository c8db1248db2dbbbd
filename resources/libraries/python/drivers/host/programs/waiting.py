"""Wait for a condition with a deadline."""

import time
from collections.abc import Callable

from resources.libraries.python.errors import NotReady


def wait_until(what: str, missing: Callable[[], str], within_s: float, pause_s: float = 0.002) -> None:
    """Poll until nothing is missing.

    Args:
        what: The condition, for error messages.
        missing: Returns what is still missing; empty when the condition holds.
        within_s: The deadline in seconds.
        pause_s: Seconds between polls.

    Raises:
        NotReady: The deadline passed.
    """
    begin = time.monotonic()
    while last_seen := missing():
        if time.monotonic() - begin > within_s:
            raise NotReady(what, within_s, last_seen)
        time.sleep(pause_s)

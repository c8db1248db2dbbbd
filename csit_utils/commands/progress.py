"""How far something long has come, for people who watch."""

import sys
import time
from types import TracebackType
from typing import Self

_QUIET_S = 3.0
"""What is over sooner says nothing."""
_BETWEEN_S = 0.5


class Progress:
    """A line on a terminal's stderr that is written over; files and pipes get none of it.

    Call it with what is done and how much there is.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._told: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._told is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: int, total: int) -> None:
        """Tell it, now and then."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._begun < _QUIET_S or now - (self._told or 0.0) < _BETWEEN_S:
            return
        self._told = now
        left_s = (now - self._begun) / done * (total - done)
        sys.stderr.write(f"\r\x1b[K{done} of {total} {self._what}, about {left_s:.0f} s left")
        sys.stderr.flush()

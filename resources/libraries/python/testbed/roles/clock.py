"""How time passes while something is watched: that of the machine, or a virtual one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Passing(Protocol):
    """A clock that also tells when a while has passed."""

    def now(self) -> float:
        """Seconds; only differences mean something."""

    def every(self, seconds: float, tick: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `tick` again and again, each time after so many seconds, until the context ends.

        It may be called in another thread, never after the context has ended. What it raises is raised at the end.
        """

"""The clock of a client with a stand-in for TRex's library; `StandIn` copies it to where the package `trex` would be.

Seconds pass only while the client sleeps: what it reports does not depend on when it gets a CPU.
"""

import time

_STEP_S = 1e-6
"""A sleep to a given moment ends after it, whatever the rounding."""


class _Clock:
    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + _STEP_S


_CLOCK = _Clock()
time.monotonic, time.sleep = _CLOCK.monotonic, _CLOCK.sleep  # type: ignore[misc] # of this process, for its whole life

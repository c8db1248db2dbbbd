"""Live progress on the console: one line that is rewritten on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import TextIO

_SECONDS_BETWEEN_LINES = 10.0
"""Where lines cannot be rewritten, such as in a Jenkins log."""


class Console:
    """Writes to Robot's real output, which its own listeners and loggers do not capture."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.__stdout__ or sys.stdout
        self._rewrites = self._stream.isatty()
        self._width = 0
        self._last = time.monotonic()

    def status(self, text: str) -> None:
        """Show the state of something that goes on."""
        now = time.monotonic()
        if self._rewrites:
            self._stream.write("\r" + text[:150].ljust(self._width))
            self._width = len(text[:150])
            self._stream.flush()
        elif now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            self.line(text)

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self.clear()
        self._stream.write(text + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the line that is being rewritten."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0


def human_rate(rate_pps: float | None) -> str:
    """A rate with three significant digits."""
    if rate_pps is None:
        return "?"
    for factor, unit in ((1e6, "Mpps"), (1e3, "kpps")):
        if rate_pps >= factor:
            return f"{rate_pps / factor:.3g} {unit}"
    return f"{rate_pps:.3g} pps"


def human_time(seconds: float) -> str:
    """A duration as people say it."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"

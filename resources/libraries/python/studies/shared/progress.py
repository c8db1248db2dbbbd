"""Progress of a run on the console, with the time left: one rewritten line on a terminal, few lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

from resources.libraries.python.planning.cost import TimeLeft, readable_s
from resources.libraries.python.quantities import rates
from resources.libraries.python.redaction import outgoing
from resources.libraries.python.terminal import dropping_output, shortened, terminal_width, wrapped

_SECONDS_BETWEEN_LINES = 60.0
"""Where lines cannot be rewritten, such as in a Jenkins log."""
RUN = TimeLeft()
"""Of the run of this process: its studies share it."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of a study has ended: measured now, carried over from the journal, or failed."""

    number: int
    """From 1."""
    of: int
    name: str
    """Such as `chain nat > gateway`."""
    found: str
    """Its result, or why there is none."""
    left: float | None = None
    """Work left after it, such as seconds of load; None for the steps left."""
    work: float = 1.0
    """Its own work in the same unit; 0 when it was carried over."""
    failed: bool = False


class StudyProgress:
    """Step k of n of the present study, its result, and the time left of the run.

    `stream`: None for Robot's real output, which its own listeners and loggers do not capture.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, stream: TextIO | None = None, run: TimeLeft = RUN
    ) -> None:
        self._clock = clock
        self._run = run
        self._console = _ConsoleProgress(clock, stream)
        self._name = ""
        self._is_timed = False
        self._each_s = 0.0
        self._began_s = self._last_s = self._measured = self._left = 0.0

    def begin(
        self, name: str, lines: Iterable[str] = (), *, simulated: bool, each_s: float = 0.0, left: float = 0.0
    ) -> None:
        """A study begins.

        `name`: put before all its lines.
        `simulated`: whether its time is simulated: then no time left is shown.
        `each_s`: expected seconds of a unit of work, used until one was measured.
        `left`: work of the whole study.
        """
        self._name, self._is_timed, self._each_s = name, not simulated, each_s
        self._began_s = self._last_s = self._clock()
        self._measured, self._left = 0.0, left
        for line in lines:
            self.line(line)

    def prepared(self, *, each_s: float, left: float) -> None:
        """The search for the load of all steps is done: its time says nothing about that of a step.

        `each_s`: expected seconds of a step, as far as it is known now.
        """
        self._each_s, self._left = each_s, left
        self._began_s = self._last_s = self._clock()

    def open(self) -> None:
        """Begin a line of its own: Robot's line of the test may still be open."""
        self._console.line("")

    def advance(self, left: float, work: float = 1.0) -> None:
        """Work was done, or turned out to be unnecessary.

        `work`: amount that was measured now.
        """
        self._left, self._measured, self._last_s = left, self._measured + work, self._clock()

    def begin_test(self, name: str) -> None:
        """A test of the run begins."""
        self._run.begin(name, self._clock())

    def end_test(self) -> None:
        """The present test has measured what was planned."""
        self._run.end(self._clock())

    def left_s(self) -> float | None:
        """Seconds left of the study by the work measured so far, before that as expected.

        None where it has no steps, or its time is simulated.
        """
        if not self._is_timed or not (self._each_s or self._measured):
            return None
        each_s = (self._last_s - self._began_s) / self._measured if self._measured else self._each_s
        return max(0.0, self._left * each_s - (self._clock() - self._last_s))

    def step(self, step: StepEnded) -> None:
        """Show a step; a failed one stays on the console."""
        self.advance(step.of - step.number if step.left is None else step.left, step.work)
        text = f"{step.name} ({step.number} of {step.of}): {step.found}"
        if step.failed:
            self.line(text + self._time_left())
        else:
            self.status(text)

    def status(self, sentence: str, running_s: float | None = None) -> None:
        """Show the present state with the time left of the run.

        `running_s`: least time left of the present test, where it knows that.
        """
        self._console.status(f"{self._name}: {sentence}{self._time_left(running_s)}")

    def line(self, sentence: str) -> None:
        """Show a line that stays."""
        self._console.line(f"{self._name}: {sentence}")

    def end(self, passed: bool, message: str, lines: Iterable[str]) -> None:
        """Show the result of the study, or why it failed, and the lines of its result."""
        if not passed:
            self.line(message)
        for line in lines:
            self._console.line(line)

    def _time_left(self, running_s: float | None = None) -> str:
        if not self._is_timed:
            return ""
        left_s = self._run.left_s(self._clock(), self.left_s(), running_s)
        return "" if left_s is None else f"; about {human_time(left_s)} left"


class _ConsoleProgress:
    def __init__(self, clock: Callable[[], float], stream: TextIO | None) -> None:
        self._clock = clock
        self._stream = stream or sys.__stdout__  # None where it is closed; sys.stdout is captured by Robot
        self._rewrites = self._stream is not None and self._stream.isatty()
        self._width = 0
        self._last_s = clock()

    def status(self, text: str) -> None:
        """Write a line that the next one replaces."""
        text = " ".join(outgoing(text).split("\n"))
        if self._rewrites:
            shown = shortened(text, terminal_width(self._stream) - 1)  # a full line may move the cursor to the next one
            self._write("\r" + shown.ljust(self._width))
            self._width = len(shown)
        elif self._clock() - self._last_s >= _SECONDS_BETWEEN_LINES:
            self.line(text)

    def line(self, text: str) -> None:
        """Write a line that stays, in the place of one that was to be replaced."""
        self._last_s = self._clock()
        text = outgoing(text)
        if self._rewrites:
            text = wrapped(text, terminal_width(self._stream))
        erased = "\r" + " " * self._width + "\r" if self._width else ""
        self._width = 0
        self._write(f"{erased}{text}\n")

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        with dropping_output(self._stream):
            self._stream.write(text)
            self._stream.flush()


def human_range(low_pps: float | None, high_pps: float | None) -> str:
    """Format two rates with one unit where they share it, such as `5.95 .. 5.98 Mpps`."""
    known = iter(rates(*(each for each in (low_pps, high_pps) if each is not None)))
    low, high = ("?" if each is None else next(known) for each in (low_pps, high_pps))
    number, _, unit = low.partition(" ")
    return f"{number if unit == high.partition(' ')[2] else low} .. {high}"


def human_time(seconds: float) -> str:
    """Format a duration: `90 s`, `12 min`, `3 h 05 min`."""
    whole = readable_s(seconds)
    if whole < 100:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"

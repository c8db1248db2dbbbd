"""What a sizing shows on the console while it goes on."""

import time
from collections.abc import Callable

from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.studies.shared.console import Console, human_time
from resources.libraries.python.studies.sizing.planning.cost import Cost


def cost_in_words(cost: Cost) -> str:
    """Sizes, loads and time of a sizing."""
    most, loads = ("at most " if cost.sizes_at_most else ""), ("at most " if cost.loads_at_most else "")
    repeated = f", each {cost.repetitions} times" if cost.repetitions > 1 else ""
    time_text = f"{'at most' if cost.at_most else 'about'} {human_time(cost.seconds)}"
    return f"{most}{_sizes(cost.sizes)}, {loads}{cost.loads} loads on each{repeated}: {time_text}"


class SizingProgress:
    """Sentences of the search, and the time that is left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console()
        self._clock = clock
        self._name = ""
        self._cost: Cost | None = None
        self._begin = 0.0
        self._measured = self._left = 0

    def begins(self, name: str, cost: Cost, *, simulated: bool) -> None:
        """A sizing begins; in a simulated world its time is not a person's."""
        self._name = name
        self._cost = None if simulated else cost
        self._begin = self._clock()
        self._measured, self._left = 0, cost.sizes * cost.loads
        self._console.line("")  # Robot's own line of the test may still be open
        self._console.line(f"{name}: {cost_in_words(cost)}{' of simulated time' if simulated else ''}")

    def reached(self, sizes: int, loads: int) -> None:
        """So many sizes are done, and so many loads of the present one: what the stop rule left out is not to come."""
        if self._cost is None:
            return
        self._measured += loads > 0
        self._left = max(0, (self._cost.sizes - sizes) * self._cost.loads - loads)

    def left_s(self) -> float | None:
        """At most, as long as the loads until now; before the first one by the plan. None where it is simulated."""
        if self._cost is None:
            return None
        each_s = self._cost.seconds / (self._cost.sizes * self._cost.loads)
        if self._measured:
            each_s = (self._clock() - self._begin) / self._measured
        return self._left * each_s

    def says(self, sentence: str) -> None:
        """Something has happened."""
        left_s = self.left_s()
        left = "" if left_s is None else f"; at most {human_time(left_s)} left"
        self._console.status(f"{self._name}: {sentence}{left}")

    def done(self, record: Characterization) -> None:
        """A test has ended."""
        sizing = record.sizing
        if sizing is None or not record.passed:
            self._console.line(f"{self._name}: {record.message}")
            return
        note = " (simulated)" if record.simulated else ""
        best = sizing.named().get(sizing.best or "")
        found = "no size carries the lowest load"
        if best is not None and best.capacity is not None:
            found = f"best {best.name}, {best.capacity:g} {sizing.workload.unit}"
        self._console.line(f"{self._name}: {_sizes(len(sizing.sizes))}, {found}{note} [{sizing.stopped}]")


def _sizes(count: int) -> str:
    return f"{count} size{'s' if count != 1 else ''}"

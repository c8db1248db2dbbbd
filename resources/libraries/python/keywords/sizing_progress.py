"""What a sizing shows on the console while it goes on."""

import time

from resources.libraries.python.keywords.console import Console, human_time
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.planning.sizing_cost import Cost


def cost_in_words(cost: Cost) -> str:
    """Sizes, loads and time of a sizing."""
    most, loads = ("at most " if cost.sizes_at_most else ""), ("at most " if cost.loads_at_most else "")
    repeated = f", each {cost.repetitions} times" if cost.repetitions > 1 else ""
    time_text = f"{'at most' if cost.at_most else 'about'} {human_time(cost.seconds)}"
    return f"{most}{cost.sizes} sizes, {loads}{cost.loads} loads on each{repeated}: {time_text}"


class SizingProgress:
    """Sentences of the search, and the time that is left."""

    def __init__(self) -> None:
        self._console = Console()
        self._name = ""
        self._seconds: float | None = None
        self._begin = 0.0

    def begins(self, name: str, cost: Cost, *, simulated: bool) -> None:
        """A sizing begins; in a simulated world its time is not a person's."""
        self._name = name
        self._seconds = None if simulated else cost.seconds
        self._begin = time.monotonic()
        self._console.line("")  # Robot's own line of the test may still be open
        self._console.line(f"{name}: {cost_in_words(cost)}{' of simulated time' if simulated else ''}")

    def says(self, sentence: str) -> None:
        """Something has happened."""
        left = ""
        if self._seconds is not None:
            left = f"; at most {human_time(max(0.0, self._seconds - (time.monotonic() - self._begin)))} left"
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
        self._console.line(f"{self._name}: {len(sizing.sizes)} sizes, {found}{note} [{sizing.stopped}]")

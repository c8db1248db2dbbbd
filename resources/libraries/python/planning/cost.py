"""Work and time of a study, known before it begins; time of the tests of a run, and what is left of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from resources.libraries.python.model.bounds import refuse_endless

_SHORTEST_S = 1e-3
"""What is expected to take less says nothing about other tests."""
_MAX_GROWTH = 1.1
"""Largest ratio of the time left to the least that was shown before; beyond it the least is shown again."""


@dataclass(frozen=True, slots=True)
class StudyCost:
    """Cost of a whole study.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """

    name: str
    """Name of the study."""
    steps: int
    """Measured one after the other, each in the journal; what the progress counts."""
    runs: int
    """Measurements of all steps together."""
    unit: str
    """Unit of `runs`, in the plural."""
    seconds: float
    counted: Mapping[str, float]
    """Steps, runs and what else is counted, by the names that previews give them in JSON."""

    def __post_init__(self) -> None:
        refuse_endless(self.name, self.runs, self.unit, self.seconds)

    @property
    def step_s(self) -> float:
        """Seconds of one step on average."""
        return self.seconds / max(1, self.steps)

    def counts(self) -> dict[str, float]:
        """Counts and seconds by the names that previews give them in JSON."""
        return {**self.counted, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class TimedTest:
    """A test of a run."""

    name: str
    """Robot's full name."""
    seconds: float
    """Expected duration; 0 where it has ended before the run was resumed."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All tests of a run, in their order."""

    tests: Sequence[TimedTest]

    @property
    def seconds(self) -> float:
        """Expected duration of all tests."""
        return sum(test.seconds for test in self.tests)


class TimeLeft:
    """Time left of a run by its plan, corrected by what its tests have taken so far.

    A test that is not in the plan is a run of its own.
    """

    def __init__(self) -> None:
        self._plan = RunPlan(())
        self._places: dict[str, int] = {}
        self._place: int | None = None
        self._began_s = self._expected_s = self._took_s = 0.0
        self._least_s = inf

    def plan(self, plan: RunPlan) -> None:
        """A run begins."""
        self._plan, self._places = plan, {test.name: place for place, test in enumerate(plan.tests)}
        self._place, self._least_s = None, inf
        # As if one average test had taken as long as expected: a single test may take twice its time.
        self._expected_s = self._took_s = plan.seconds / max(1, sum(test.seconds >= _SHORTEST_S for test in plan.tests))

    def knows(self, test: str) -> bool:
        """Whether a test is in the plan."""
        return test in self._places

    def begin(self, test: str, now_s: float) -> None:
        """A test begins; those planned before it are over."""
        if not self.knows(test):
            self.plan(RunPlan(()))
        self._place, self._began_s = self._places.get(test), now_s

    def end(self, now_s: float) -> None:
        """The present test has measured what was planned; one that was skipped or failed says nothing about others."""
        if self._place is not None and (expected_s := self._plan.tests[self._place].seconds) >= _SHORTEST_S:
            self._expected_s += expected_s
            self._took_s += now_s - self._began_s

    def left_s(self, now_s: float, present_s: float | None = None, least_s: float | None = None) -> float | None:
        """Return the time left to show, as `readable_s`; None where it is not known.

        `present_s`: Time left of the present test by its own steps; None where it has none.
        `least_s`: Time that the present test will take at least, where that is known.
        """
        if self._place is not None:
            scale = self._took_s / self._expected_s if self._expected_s >= _SHORTEST_S else 1.0
            planned_s, *later_s = (test.seconds * scale for test in self._plan.tests[self._place :])
            if present_s is None:
                present_s = max(planned_s - (now_s - self._began_s), least_s or 0.0)
            present_s += sum(later_s)
        elif present_s is None:
            present_s = least_s
        if present_s is None:
            return None
        shown_s = readable_s(present_s)
        self._least_s = min(self._least_s, shown_s)
        return shown_s if shown_s <= _MAX_GROWTH * self._least_s else self._least_s


def readable_s(seconds: float) -> int:
    """Round a duration to seconds below 100 s, otherwise to minutes."""
    whole = round(seconds)
    return whole if whole < 100 else 60 * round(whole / 60)

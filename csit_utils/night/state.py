"""State of a night on disk: its choices and runs, and a journal of the tests that have ended."""

import time
from collections.abc import Callable
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, FiniteFloat, TypeAdapter

from csit_utils.analysis.night import NightLine, NightPlan
from resources.libraries.python.errors import without_middle
from resources.libraries.python.model.base import Frozen, of_form
from resources.libraries.python.model.bounds import LONGEST_RUN_S, MOST_FILES, MOST_RUNS
from resources.libraries.python.recording.step_journal import StepJournal

PLAN_FILE = "night.plan"
"""JSON, but no result record: what reads a folder of results takes each .json file for one."""
MOST_HOURS = 168.0
NOT_BEGUN = "NOT BEGUN"
"""Status of a test that would not have fitted into the time that was left."""


SEARCH = "SEARCH"
"""Variable that every night has: the search profile."""


def _with_search(variables: dict[str, str]) -> dict[str, str]:
    if SEARCH not in variables:
        raise ValueError(f"{SEARCH} is missing")
    return variables


class NightChoices(Frozen):
    """Choices of the user."""

    topology: str
    simulated: bool = False
    hours: Annotated[float, Field(gt=0, le=MOST_HOURS)]
    types: str
    tests: str
    variables: Annotated[dict[str, str], AfterValidator(_with_search)]
    """Of the suites."""
    studies: str = ""
    """Pattern of tags."""
    data: Annotated[tuple[str, ...], Field(max_length=MOST_FILES)]
    """Stored results, absolute paths."""
    within: float
    unseen_days: float
    began: str
    """UTC, ISO 8601."""

    @property
    def budget_s(self) -> float:
        """Time limit."""
        return self.hours * 3600


class PlannedTest(Frozen):
    """A test of a run."""

    name: str
    """Robot's full name."""
    title: str
    why: str
    seconds: Annotated[FiniteFloat, Field(ge=0, le=LONGEST_RUN_S)]


class PlannedRun(Frozen):
    """One Robot run, in a folder of its own."""

    folder: Annotated[str, of_form(r"\d{2,6}-[a-z]{1,20}", "the folder of a run, such as 01-ndr")]
    study: bool
    tests: Annotated[tuple[PlannedTest, ...], Field(min_length=1)]
    """In the order in which they are measured."""


class NightState(Frozen):
    """The plan of a night, as it was announced."""

    choices: NightChoices
    summary: str
    opening_s: Annotated[FiniteFloat, Field(ge=0, le=LONGEST_RUN_S)]
    """For each run."""
    runs: tuple[PlannedRun, ...]
    left_out: tuple[tuple[str, str], ...]
    """Test and reason."""


def runs_of(plan: NightPlan, why: Callable[[NightLine], str], before: int = 0) -> tuple[PlannedRun, ...]:
    """Return the Robot runs of a plan.

    Args:
        plan: The plan.
        why: Says why a line is measured.
        before: Number of runs of the night before it.
    """
    return tuple(
        PlannedRun(
            folder=f"{number:02d}-{lines[0].reason}",
            study=lines[0].test.study,
            tests=tuple(
                PlannedTest(name=line.test.name, title=line.test.title, why=why(line), seconds=line.seconds)
                for line in lines
            ),
        )
        for number, lines in enumerate(plan.runs.values(), before + 1)
    )


class TestOfNight(Frozen):
    """A test has ended, or was not begun."""

    __test__: ClassVar[bool] = False  # no pytest class

    run: str
    """Folder of its run."""
    test: str
    status: str
    """Robot's, or `NOT_BEGUN`."""
    message: str = ""
    session: Annotated[int, Field(ge=0, le=MOST_RUNS)]
    """Number of the process, from 0: one more after each resumption."""
    elapsed_s: Annotated[FiniteFloat, Field(ge=0, le=LONGEST_RUN_S)]
    """Time since the begin of the session."""


class NightJournal(StepJournal[TestOfNight]):
    """Journal of a night."""

    FILE = "night.jsonl"
    KIND = "night"
    ROWS: ClassVar[TypeAdapter[TestOfNight]] = TypeAdapter(TestOfNight)


class NightClock:
    """Time left of a night. What passes while nothing runs, as after a kill, is not spent.

    Args:
        budget_s: Time limit.
        journal: Open.
        clock: Seconds, monotonic.
    """

    def __init__(self, budget_s: float, journal: NightJournal, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begin_s = clock, clock()
        self.ended = list(journal.rows)
        """All tests so far, in order."""
        self._journal = journal
        spent: dict[int, float] = {}
        for row in self.ended:
            spent[row.session] = max(spent.get(row.session, 0.0), row.elapsed_s)
        self._budget_s = budget_s - sum(spent.values())
        self._session = max(spent, default=-1) + 1

    @property
    def left_s(self) -> float:
        """Time left."""
        return self._budget_s - (self._clock() - self._begin_s)

    def keep(self, run: str, test: str, status: str, message: str = "") -> None:
        """Note a test on disk."""
        elapsed_s = self._clock() - self._begin_s
        row = TestOfNight(
            run=run,
            test=test,
            status=status,
            message=without_middle(message, 300),
            session=self._session,
            elapsed_s=elapsed_s,
        )
        self._journal.keep(row)
        self.ended.append(row)

    def measured(self, run: str) -> set[str]:
        """Tests of a run that have ended."""
        return {row.test for row in self.ended if row.run == run and row.status != NOT_BEGUN}

    @property
    def statuses(self) -> dict[str, set[str]]:
        """Statuses of all tests that were begun in the night, by full name."""
        found: dict[str, set[str]] = {}
        for row in self.ended:
            if row.status != NOT_BEGUN:
                found.setdefault(row.test, set()).add(row.status)
        return found

    def status_of(self, run: str, test: str) -> TestOfNight | None:
        """Last state of a test; None before it."""
        return next((row for row in reversed(self.ended) if (row.run, row.test) == (run, test)), None)

"""The loop of a bisection: install, measure, keep, look, until there is an answer.

Every step is in the journal before the next one begins. Which revision is installed is not: after a kill or a reboot
the next step installs again, so that an interrupted installation is repeated.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log, log2
from statistics import fmean
from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from csit_utils.analysis.bisection import Beliefs, BisectionQuestion, look
from csit_utils.bisection.spec import Revision
from resources.libraries.python.errors import (
    CommandFailed,
    ConfigError,
    CsitError,
    NoTraffic,
    NotReady,
    RunStopped,
    SystemBroken,
)
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import HIGHEST_PPS, LONGEST_RUN_S, quoted
from resources.libraries.python.recording.step_journal import StepJournal

_ATTEMPTS = 2
"""An installation or measurement that fails is repeated once."""
FAILURES = (CommandFailed, NotReady, NoTraffic, SystemBroken)
"""Errors that a revision may cause; others end the bisection."""


class ObservedRevision(Frozen):
    """One deployment of a revision was measured."""

    step: Literal["observed"] = "observed"
    revision: str
    values: Annotated[tuple[Annotated[float, Field(gt=0, le=HIGHEST_PPS)], ...], Field(min_length=1)]
    """Metric of each trial."""
    seconds: Annotated[float, Field(ge=0, le=LONGEST_RUN_S)]


class SkippedRevision(Frozen):
    """A revision cannot be installed or measured."""

    step: Literal["skipped"] = "skipped"
    revision: str
    reason: str


BisectionStep = Annotated[ObservedRevision | SkippedRevision, Field(discriminator="step")]


class BisectionJournal(StepJournal[ObservedRevision | SkippedRevision]):
    """Journal of a bisection."""

    FILE = "bisection.jsonl"
    KIND = "bisection"
    ROWS: ClassVar[TypeAdapter[ObservedRevision | SkippedRevision]] = TypeAdapter(BisectionStep)


@dataclass(frozen=True)
class BisectionProgress:
    """State of a running bisection."""

    observations: int
    revision: int
    value: float | None
    """Mean of the last observation; None before it."""
    beliefs: Beliefs
    left_s: float
    """Estimated remaining time."""


@dataclass(frozen=True)
class BisectionResult:
    """The end of a bisection."""

    beliefs: Beliefs
    observed: Mapping[int, Sequence[float]]
    """Means of deployments by number of the revision."""
    skipped: Mapping[int, str]
    """Reason by number of the revision."""
    trials: int
    seconds: float


class BisectionRun:
    """A bisection.

    `journal`: Open; rows of an earlier run are continued.
    `install`: Installs a revision; raises one of `FAILURES` where it cannot.
    `measure`: Deploys and measures once; returns the metric of each trial.

    Raises:
        ConfigError: The journal has a step of another revision.
    """

    def __init__(
        self,
        revisions: Sequence[Revision],
        question: BisectionQuestion,
        journal: BisectionJournal,
        install: Callable[[Revision], None],
        measure: Callable[[], Sequence[float]],
        *,
        report: Callable[[BisectionProgress], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._revisions, self._question, self._journal = revisions, question, journal
        self._install, self._measure, self._report, self._clock = install, measure, report, clock
        self._numbers = {revision.name: number for number, revision in enumerate(revisions)}
        self._installed: int | None = None
        self._steps = list(journal.rows)
        if unknown := [step.revision for step in self._steps if step.revision not in self._numbers]:
            raise ConfigError(
                f"{journal.path}: a step of revision '{quoted(unknown[0])}', which is not in this bisection"
            )

    def run(self) -> BisectionResult:
        """Measure until there is an answer.

        Raises:
            CsitError: The good or the bad revision cannot be measured.
        """
        found = self._look()
        while found.next is not None:
            number = found.next
            step = self._observe(number)
            self._journal.keep(step)
            self._steps.append(step)
            if isinstance(step, SkippedRevision) and number in (0, len(self._revisions) - 1):
                raise CsitError(f"{self._revisions[number].label}: {step.reason}; it is an end of the bisection")
            found = self._look()
            value = fmean(step.values) if isinstance(step, ObservedRevision) else None
            self._report(BisectionProgress(self._count, number, value, found, self._left_s()))
        observed = [step for step in self._steps if isinstance(step, ObservedRevision)]
        trials, seconds = sum(len(step.values) for step in observed), sum(step.seconds for step in observed)
        return BisectionResult(found, self._values(), self._skipped(), trials, seconds)

    @property
    def _count(self) -> int:
        return sum(isinstance(step, ObservedRevision) for step in self._steps)

    def _look(self) -> Beliefs:
        logs = {number: [log(value) for value in seen] for number, seen in self._values().items()}
        return look(logs, self._skipped().keys(), self._question)

    def _values(self) -> dict[int, list[float]]:
        found: dict[int, list[float]] = {}
        for step in self._steps:
            if isinstance(step, ObservedRevision):
                found.setdefault(self._numbers[step.revision], []).append(fmean(step.values))
        return found

    def _skipped(self) -> dict[int, str]:
        ends = (0, len(self._revisions) - 1)
        rows = [
            (self._numbers[step.revision], step.reason) for step in self._steps if isinstance(step, SkippedRevision)
        ]
        return {number: reason for number, reason in rows if number not in ends}

    def _observe(self, number: int) -> ObservedRevision | SkippedRevision:
        revision, begin_s = self._revisions[number], self._clock()
        for left in reversed(range(_ATTEMPTS)):
            try:
                if self._installed != number:
                    self._installed = None
                    self._install(revision)
                    self._installed = number
                values = tuple(self._measure())
                if min(values) <= 0:
                    raise NoTraffic("nothing was received")
                return ObservedRevision(revision=revision.name, values=values, seconds=self._clock() - begin_s)
            except RunStopped:
                raise
            except FAILURES as error:
                self._installed = None
                if not left:
                    return SkippedRevision(revision=revision.name, reason=str(error))
        raise AssertionError

    def _left_s(self) -> float:
        """Observations that a bisection with little noise takes, and the mean duration of those so far."""
        usual = 8 + 3 * ceil(log2(len(self._revisions)))
        observed = [step.seconds for step in self._steps if isinstance(step, ObservedRevision)]
        return fmean(observed) * max(usual - len(observed), 2) if observed else 0.0

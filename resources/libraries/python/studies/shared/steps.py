"""Steps of a study, each with a deployment of its own: a chain, a set of co-located NFs."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from resources.libraries.python.errors import CsitError, RunStopped, SystemBroken
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import Cell, Frame, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.recording.draft import Draft
from resources.libraries.python.recording.run_journal import MOST_ATTEMPTS, digest_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of
from resources.libraries.python.testbed.deployment.parts import Testbed

MOST_FAILED = 3
"""Consecutive failed steps that end a study."""
_Row = TypeVar("_Row")
_Spec = TypeVar("_Spec", bound=Frozen)
_Journal = TypeVar("_Journal", bound=StepJournal[Any])
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepOutcome(Generic[_Row]):
    """Outcome of a step that was deployed, measured and removed."""

    row: _Row | None
    """Its result; None where it failed."""
    reason: str
    """Reason of its failure."""
    notes: tuple[str, ...]
    """Why it was measured once more, and errors of removals; each begins with its name."""


def measure_step(name: str, measure: Callable[[], _Row], remove: Callable[[], str | None]) -> StepOutcome[_Row]:
    """Measure a step and remove what it deployed; where that breaks the system under test, once more.

    Args:
        name: Name of the step, for notes.
        measure: Deploys and measures it.
        remove: Removes it; returns the error, None without one.

    Raises:
        RunStopped: The machine cannot be used any more.
    """
    notes: list[str] = []
    row, reason, again = None, "", False
    for _ in range(MOST_ATTEMPTS):
        if again:
            notes.append(_again(reason))
        again = False
        try:
            row, reason = measure(), ""
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            reason, again = reason_of(error), is_breakage(error)
        finally:
            notes += filter(None, [remove()])
        if not again:
            break
    return StepOutcome(row, reason, tuple(f"{name}: {note}" for note in notes))


def measure_again(name: str, measure: Callable[[], _Row], notes: list[str]) -> _Row:
    """Do what deploys, measures and removes; where that breaks the system under test, once more, with a note.

    Args:
        name: Name of what is measured, for the note.
        measure: Does it; its error goes through where it breaks nothing, and the second time.
        notes: Gets the reason.
    """
    try:
        return measure()
    except (CsitError, OSError) as error:
        if not is_breakage(error):
            raise
        notes.append(f"{name}: {_again(reason_of(error))}")
    _log.warning(notes[-1])
    return measure()


def _again(reason: str) -> str:
    return f"measured once more: {reason}"


class SteppedTest(ABC, Generic[_Spec, _Journal]):
    """Test that deploys, measures and removes one step after the other, and keeps the draft of its record.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        spec: What to measure. Where it has a `cell`, the record's drivers are those of the cell.
        environment: Fingerprint of the machine.
        on_step: Called after each step.
    """

    RECORD: ClassVar[type[Record]]
    MEASURED: ClassVar[str]
    """What happens to steps, in messages: `cells were measured`."""
    cost: StudyCost
    """Cost of the steps that fit."""

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        spec: _Spec,
        environment: Environment,
        on_step: Callable[[StepEnded], None] = lambda _: None,
    ) -> None:
        self._topology = topology
        self._world = world
        self.spec = spec
        self._on_step = on_step
        self._journal: _Journal | None = None
        self._known: Mapping[Any, Any] = {}
        """Rows of the journal that count, by what identifies a step."""
        self._deployed: CellUnderTest | None = None
        self._failures: list[str] = []
        """Reasons for missing steps, one each."""
        self._failed_in_a_row = 0
        cell = getattr(spec, "cell", None)
        drivers = dict(world.drivers) if cell is None else drivers_of(topology, cell, world.drivers)
        self.draft = Draft(self.RECORD, topology, environment, simulation=world.simulation, drivers=drivers)

    def digest(self) -> str:
        """Digest of what is measured and of the system: steps of the same digest are parts of one study."""
        return digest_of(self.spec.model_dump_json(exclude={"least_measured"}), *self._system())

    def _system(self) -> tuple[str, ...]:
        """Texts that identify the system."""
        return (self._topology.model_dump_json(),)

    @abstractmethod
    def resume(self, journal: _Journal) -> None:
        """Keep every step in an open journal, and measure none again that it has."""

    @property
    def remark(self) -> str | None:
        """Progress of the run before it was resumed; None for a new one."""
        return f"{len(self._known)} {self.MEASURED} before the run was resumed" if self._known else None

    @abstractmethod
    def result(self) -> Any:  # noqa: ANN401 - the payload of a study, with its `spec` and `coverage`
        """Result of the study.

        Raises:
            CsitError: Nothing was measured.
        """

    def enough(self) -> None:
        """Check coverage against `least_measured`.

        Raises:
            CsitError: Too little was measured.
        """
        found = self.result()
        found.coverage.check(self.MEASURED, found.spec.least_measured, self._failures)

    def remove(self) -> str | None:
        """Remove what is deployed, if anything is; return what went wrong, None when nothing did."""
        deployed, self._deployed = self._deployed, None
        return deployed.remove() if deployed else None

    def _under_test(
        self, cell: Cell, frame: Frame, profile: SearchProfile = QUICK, repetition: int = 0
    ) -> CellUnderTest:
        """A cell that is not deployed yet."""
        asked = MeasurementRequest(
            test_type=TestType.MRR, cell=cell, frame=frame, profile=profile, repetition=repetition
        )
        return CellUnderTest(self._topology, self._world, asked)

    def _keep(self, row: Frozen) -> None:
        """Write a row of the journal, if there is one."""
        if self._journal is not None:
            self._journal.keep(row)

    def _ended(self, step: StepEnded, reason: str | None) -> None:
        """Report a step.

        Args:
            step: It has ended.
            reason: Why it failed; None where it did not, or was not possible.

        Raises:
            SystemBroken: Several in a row failed.
        """
        self._on_step(step)
        self._failed_in_a_row = 0 if reason is None else self._failed_in_a_row + 1
        if self._failed_in_a_row == MOST_FAILED:
            steps = self.MEASURED.partition(" ")[0]
            raise SystemBroken(f"{MOST_FAILED} {steps} in a row failed, the last one: {reason}")


class SpecifiedTest(SteppedTest[_Spec, _Journal]):
    """Test of steps that are planned before any of them."""

    @abstractmethod
    def plan(self) -> object:
        """Derive all plans.

        Raises:
            PlanError: Nothing fits.
            Unsupported: The testbed cannot do it.
        """

    @abstractmethod
    def measure(self) -> None:
        """Measure all steps; what was measured is in the draft, also when it ends early.

        Raises:
            SystemBroken: Several in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
        """

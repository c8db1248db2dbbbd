"""Base of studies that measure one step after the other, each with a deployment of its own.

A study gives its steps, measures one of them, and analyses what was measured. Journal, resumption, second attempts,
removal, failures in a row and progress are here.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field, TypeAdapter

from resources.libraries.python.errors import CsitError, RunStopped, SystemBroken
from resources.libraries.python.model.base import ON_FIRST_USE, Frozen
from resources.libraries.python.model.findings.coverage import Coverage
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import Cell, Frame, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.planning.plan import digest, drivers_of
from resources.libraries.python.recording.draft import Draft, utc_now
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.shared.progress import StepEnded, human_time
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of
from resources.libraries.python.testbed.deployment.parts import Testbed

_Spec = TypeVar("_Spec")
_Step = TypeVar("_Step")
_Row = TypeVar("_Row", bound=Frozen)
_Payload = TypeVar("_Payload")
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class StepLine(Frozen, Generic[_Row]):
    """Line of the journal for a step that is complete; what was deployed for it is removed."""

    line: Literal["step"] = "step"
    at: str
    """UTC, ISO 8601."""
    step: str
    """See `StepStudy.key`."""
    plan: str = ""
    """Digest of the plan by which it was deployed; empty without one."""
    row: _Row
    facts: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Facts of the parts of the deployment."""
    notes: tuple[str, ...] = ()


class LoadLine(Frozen, Generic[_Row]):
    """Line of the journal for what all steps need and was found before them, such as their load."""

    line: Literal["load"] = "load"
    at: str
    load: _Row
    notes: tuple[str, ...] = ()


class StepStudy(ABC, Generic[_Spec, _Step, _Row, _Payload]):
    """A study of several steps, and the draft of its record.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        spec: What to measure. Where it has a `cell`, the record's drivers are those of the cell.
        environment: Fingerprint of the machine.
        on_step: Called after each step.
    """

    RECORD: ClassVar[type[Record]]
    PAYLOAD: ClassVar[str] = ""
    """Field of the record for the result; empty for one with the name of the study."""
    ROW: ClassVar[type[Frozen]]
    """Class of what is measured in a step."""
    LOAD: ClassVar[type[Frozen] | None] = None
    """Class of what `find_load` finds; None where steps need nothing of the kind."""
    MEASURED: ClassVar[str]
    """What happens to steps, in messages: `cells were measured`."""
    MAX_FAILED: ClassVar[int | None] = 3
    """Consecutive failed steps that end a study; None for any number."""
    FATAL: ClassVar[tuple[type[Exception], ...]] = (RunStopped,)
    """Errors of a step that end the study."""
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
        self._digest = digest_of(self.identity(), topology.digest)
        self._journal: StepJournal[Any] | None = None
        self._known: dict[str, StepLine[_Row]] = {}
        """Lines of the journal, by step."""
        self.load: Any = None
        """What was found before all steps; of the class `LOAD`."""
        self._deployed: CellUnderTest | None = None
        self.rows: list[_Row] = []
        """Of all steps so far, those that failed included where `failed_row` makes one."""
        self._ended = self._measured = 0
        """Steps so far, and those of them that did not fail."""
        self.failures: list[str] = []
        """Reasons for missing steps, one each."""
        self._failed_in_a_row = 0
        self.notes: list[str] = []
        """For the result: of steps and searches, and why steps were not measured."""
        self._noted: list[str] = []
        """Notes of the present step or search."""
        cell = getattr(spec, "cell", None)
        drivers = dict(world.drivers) if cell is None else drivers_of(topology, cell, world.drivers)
        self.draft = Draft(self.RECORD, topology, environment, simulation=world.simulation, drivers=drivers)
        self.set_up()

    @classmethod
    @cache
    def journal(cls) -> type[StepJournal[Any]]:
        """Class of its journal."""
        study = _study_of(cls.RECORD)
        lines = _line_of(StepLine, cls.ROW)
        adapter: TypeAdapter[Any] = TypeAdapter(lines)
        if cls.LOAD is not None:
            either: Any = Annotated[lines | _line_of(LoadLine, cls.LOAD), Field(discriminator="line")]
            adapter = TypeAdapter(either, config=ON_FIRST_USE)
        names = {"FILE": f"{study}.jsonl", "KIND": f"{study} study", "ROWS": adapter}
        return type(f"{study.title()}Journal", (StepJournal,), names)

    # What a study has of its own.

    @abstractmethod
    def set_up(self) -> None:
        """Set `cost`, and attributes of its own.

        Raises:
            ConfigError: The specification makes no sense, or exceeds a bound of `model.bounds`.
        """

    @abstractmethod
    def steps(self) -> Iterator[Sequence[_Step]]:
        """Yield the steps, all at once or in groups where later ones depend on the rows of earlier ones."""

    @abstractmethod
    def key(self, step: _Step) -> str:
        """Name of a step that no other step of the study has: `kill nf-1-1, repetition 1`."""

    def cell_of(self, step: _Step) -> CellUnderTest | None:  # noqa: ARG002 - for others
        """Return what a step deploys by `deploy`, not deployed yet; None where it deploys no cell."""
        return None

    @abstractmethod
    def measure(self, step: _Step) -> _Row:
        """Deploy and measure a step; it is removed afterwards.

        Raises:
            CsitError: It could not be measured.
        """

    @abstractmethod
    def analyse(self, rows: Sequence[_Row]) -> _Payload | None:
        """Return the payload of the record; None where there is none without rows."""

    def identity(self) -> str:
        """Text of what is measured: another text is another study."""
        spec: Any = self.spec
        return str(spec.model_dump_json(exclude={"least_measured"}))

    def preview(self) -> Sequence[str]:
        """Lines on what is to be measured, and how long that takes."""
        return [f"{self.cost.runs} {self.cost.unit}{self.about}"]

    @property
    def about(self) -> str:
        """Expected duration, for the preview; empty where time is simulated."""
        return "" if self._topology.world is World.SIM else f", about {human_time(self.cost.seconds)}"

    def label(self, step: _Step) -> str:
        """Name of a step for the console."""
        return self.key(step)

    def in_words(self, row: _Row) -> str:  # noqa: ARG002 - for others
        """Result of a step for the console."""
        return "measured"

    def find_load(self) -> Any:  # noqa: ANN401 - of the class LOAD
        """Find what all steps need, before the first one; see `careful`.

        Raises:
            CsitError: It cannot be found.
        """
        return None

    def load_in_words(self) -> Iterable[str]:
        """What was found before all steps, for the log and the console."""
        return ()

    def plan_of(self, step: _Step) -> Plan | None:
        """Plan by which a step is deployed, None without a cell; a step in the journal counts only by the same plan.

        Raises:
            PlanError: It does not fit.
        """
        cell = self.cell_of(step)
        return None if cell is None else cell.plan()

    def plan(self) -> object:
        """See that the study fits, before anything is deployed: its first step does.

        Raises:
            PlanError: It does not fit.
            Unsupported: The testbed cannot do it.
        """
        self.draft.plan = plan = self.plan_of(next(iter(next(self.steps()))))
        if plan is not None:
            self.draft.warnings += plan.warnings
        return plan

    def breaks(self, error: Exception) -> bool:
        """Whether an error comes from a broken system under test, so that a step is measured once more."""
        return is_breakage(error)

    def facts(self) -> dict[str, dict[str, str]]:
        """Facts of the parts of the deployment."""
        return self._deployed.deployment.facts() if self._deployed is not None else {}

    def refusal(self, step: _Step) -> str | None:  # noqa: ARG002 - for others
        """Return why a step is not possible, which is no failure; None where it is."""
        return None

    def coverage(self) -> Coverage:
        """Steps measured, of those asked for."""
        return Coverage(self._measured, self._ended)

    def carried_over(self, row: _Row) -> _Row:
        """Row of a step that was measured before the run was resumed."""
        return row

    def leaves_out(self) -> bool:
        """Whether the other steps of the present group are left out, by what was measured."""
        return False

    def failed_row(self, step: _Step, reason: str) -> _Row | None:  # noqa: ARG002 - for others
        """Row of a step that failed; None for none."""
        return None

    # What all studies have.

    def digest(self) -> str:
        """Digest of what is measured and of the testbed: steps of the same digest are parts of one study."""
        return self._digest

    def resume(self, journal: StepJournal[Any]) -> None:
        """Keep every step in an open journal, and measure none again that it has."""
        self._journal = journal
        for line in journal.rows:
            if isinstance(line, LoadLine):
                self.load = line.load
                self._note(line.notes)
            elif self.LOAD is None or self.load is not None:
                self._known[line.step] = line

    @property
    def remark(self) -> str | None:
        """Progress of the run before it was resumed; None for a new one."""
        return f"{len(self._known)} {self.MEASURED} before the run was resumed" if self._known else None

    def prepare(self) -> None:
        """Find what all steps need, where an earlier run has not.

        Raises:
            RunStopped: Something cannot be removed, or the journal cannot be written.
        """
        if self.LOAD is None or self.load is not None:
            return
        self.load = self.find_load()
        self._note(self._noted)
        self._keep(_line_of(LoadLine, self.LOAD)(at=utc_now(), load=self.load, notes=tuple(self._noted)))

    def run(self) -> _Payload:
        """Measure all steps and return the result; what was measured is in the draft, also when it ends early.

        Raises:
            SystemBroken: Several steps in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
            CsitError: Nothing was measured.
        """
        self.prepare()
        self.measure_all(self.steps())
        return self.result()

    def measure_all(self, groups: Iterable[Sequence[_Step]]) -> None:
        """Measure groups of steps, each of which may depend on the result so far.

        Raises:
            SystemBroken: Several steps in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
        """
        try:
            for steps in groups:
                of = self._ended + len(steps)
                for step in steps:
                    self._step(step, of)
                    if self.leaves_out():
                        break
        finally:
            self.conclude()

    def conclude(self) -> _Payload | None:
        """Analyse what was measured so far, for the draft of the record; return it."""
        found = self.analyse(self.rows)
        setattr(self.draft, self._payload, found)
        return found

    def result(self) -> _Payload:
        """Result of the study.

        Raises:
            CsitError: Nothing was measured.
        """
        found: _Payload | None = getattr(self.draft, self._payload)
        if found is None or not self._measured:
            raise CsitError(f"nothing was measured: {'; '.join(dict.fromkeys(self.failures)) or 'no step has ended'}")
        return found

    def enough(self) -> None:
        """Check coverage against `least_measured`.

        Raises:
            CsitError: Too little was measured.
        """
        self.result()
        self.coverage().check(self.MEASURED, getattr(self.spec, "least_measured", 1.0), self.failures)

    def note(self, text: str) -> None:
        """Note something about the present step, or about the search before all steps."""
        self._noted.append(text)

    def deploy(self, step: _Step) -> CellUnderTest:
        """Deploy a step, which is removed when it has been measured.

        Raises:
            CsitError: It does not fit, or a part does not start.
        """
        plan, cell = self.plan_of(step), self.cell_of(step)
        assert plan is not None and cell is not None  # noqa: S101 - what is deployed so has both
        return self.bring_up(cell, plan)

    def bring_up(self, cell: CellUnderTest, plan: Plan) -> CellUnderTest:
        """Deploy a cell, which is removed by `careful`, or by `remove`.

        Raises:
            CsitError: A part does not start.
        """
        self._deployed = cell
        cell.deploy(plan)
        return cell

    def remove(self) -> str | None:
        """Remove what is deployed, if anything is; return what went wrong, None when nothing did.

        Raises:
            RunStopped: Something is left and cannot be removed by force either.
        """
        deployed, self._deployed = self._deployed, None
        return deployed.remove() if deployed else None

    def careful(self, name: str, measure: Callable[[], _Result]) -> _Result:
        """Deploy and measure by a function, and remove; where that breaks the system under test, once more.

        Args:
            name: For the notes on that, and on errors of removals.
            measure: Its error goes through where it breaks nothing, and the last time.
        """
        try:
            return self._removed(name, measure)
        except (CsitError, OSError) as error:
            if not self.breaks(error):
                raise
            self.note(f"{name}: measured once more: {reason_of(error)}")
        _log.warning(self._noted[-1])
        return self._removed(name, measure)

    def under_test(
        self, cell: Cell, frame: Frame, profile: SearchProfile = QUICK, repetition: int = 0
    ) -> CellUnderTest:
        """A cell that is not deployed yet."""
        asked = MeasurementRequest(
            test_type=TestType.MRR, cell=cell, frame=frame, profile=profile, repetition=repetition
        )
        return CellUnderTest(self._topology, self._world, asked)

    def _step(self, step: _Step, of: int) -> None:
        line, reason = self._measured_before(step), self.refusal(step)
        work = float(line is None)
        if line is None and reason is None:
            line, reason = self._measure(step)
        self._ended += 1
        found = f"failed: {reason}" if line is None else self.in_words(line.row)
        self._on_step(StepEnded(self._ended, of, self.label(step), found, work=work, failed=line is None))
        if line is None and self.refusal(step) is not None:
            return
        self._failed_in_a_row = self._failed_in_a_row + 1 if line is None else 0
        if self._failed_in_a_row == self.MAX_FAILED:
            steps = self.MEASURED.partition(" ")[0]
            raise SystemBroken(f"{self.MAX_FAILED} {steps} in a row failed, the last one: {reason}")

    def _removed(self, name: str, measure: Callable[[], _Result]) -> _Result:
        try:
            return measure()
        finally:
            if removal := self.remove():
                self.note(f"{name}: {removal}")

    def _measured_before(self, step: _Step) -> StepLine[_Row] | None:
        """Line of a step in the journal, which is taken; None where there is none, or of another plan."""
        if (line := self._known.get(self.key(step))) is None:
            return None
        try:
            plan = self.plan_of(step)
        except CsitError:
            return None  # the same error again when it is deployed
        if plan is not None and digest(plan) != line.plan:
            _log.warning("%s is measured again: its plan has changed since it was measured", line.step)
            return None
        line = line.model_copy(update={"row": self.carried_over(line.row)})
        self._take(line)
        return line

    def _measure(self, step: _Step) -> tuple[StepLine[_Row] | None, str]:
        """Measure a step; return its line, or why there is none."""
        key, self._noted = self.key(step), []
        try:
            line = self.careful(key, lambda: self._line(key, step))
        except self.FATAL:
            raise
        except (CsitError, OSError) as error:
            reason = reason_of(error)
            row = self.failed_row(step, reason)
            if self.refusal(step) is None:
                self.failures.append(reason)
                self._note([f"{key} was not measured: {reason}"] if row is None else [])
            self._note(self._noted)
            self.rows += [] if row is None else [row]
            return None, reason
        line = line.model_copy(update={"notes": tuple(self._noted)})
        self._keep(line)
        self._take(line)
        return line, ""

    def _line(self, key: str, step: _Step) -> StepLine[_Row]:
        row = self.measure(step)
        plan = digest(self._deployed.deployment.plan) if self._deployed is not None else ""
        made = _line_of(StepLine, self.ROW)(at=utc_now(), step=key, plan=plan, row=row, facts=self.facts())
        line: StepLine[_Row] = made
        return line

    def _take(self, line: StepLine[_Row]) -> None:
        """Add a step to the result."""
        self.rows.append(line.row)
        self._measured += 1
        self._note(line.notes)
        for role, facts in line.facts.items():
            self.draft.facts[role] = {**self.draft.facts.get(role, {}), **facts}

    def _note(self, texts: Iterable[str]) -> None:
        self.notes += [text for text in dict.fromkeys(texts) if text not in self.notes]

    def _keep(self, line: Frozen) -> None:
        """Write a line of the journal, if there is one."""
        if self._journal is not None:
            self._journal.keep(line)

    @property
    def _payload(self) -> str:
        return self.PAYLOAD or _study_of(self.RECORD)


def _line_of(line: Any, row: type[Frozen]) -> Any:  # noqa: ANN401 - a class that is made here
    """Return the class of lines of a journal that have rows of a class."""
    return line[row]


def _study_of(record: type[Record]) -> str:
    return str(record.model_fields["study"].default)

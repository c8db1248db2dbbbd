"""Base of studies that measure one step after the other, each with a deployment of its own.

A study gives its steps, measures one of them, and analyses what was measured. Journal, resumption, second attempts,
removal, failures in a row and progress are here.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from resources.libraries.python.csv_tables import Table
from resources.libraries.python.errors import CsitError, RunStopped, SystemBroken
from resources.libraries.python.model.base import Frozen, digest_of_model
from resources.libraries.python.model.findings import Coverage
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.variables import Lookup
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import specification_file
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.step_journal import (
    LoadLine,
    StepJournal,
    StepLine,
    journal_of,
    load_line,
    step_line,
)
from resources.libraries.python.recording.writer import utc_now
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.shared.progress import StepEnded, human_time
from resources.libraries.python.studies.shared.study import StudyTest
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import reason_of
from resources.libraries.python.testbed.deployment.parts import Testbed

_Spec = TypeVar("_Spec")
_Step = TypeVar("_Step")
_Row = TypeVar("_Row", bound=Frozen)
_Payload = TypeVar("_Payload")
_log = logging.getLogger(__name__)


class StepStudy(StudyTest[_Spec], Generic[_Spec, _Step, _Row, _Payload]):
    """A study of several steps.

    `earlier`: Records of tests of this run that have passed, by digest.
    """

    PAYLOAD: ClassVar[str] = ""
    """Field of the record for the result; empty for one with the name of the study."""
    SPECIFICATION: ClassVar[type[Frozen]]
    """Class of a specification whose file has just its fields; others are read by `read`."""
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
        *,
        choices: Lookup = lambda _: None,
        earlier: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(topology, world, spec, environment)
        self._on_step, self._choices, self._earlier = on_step, choices, earlier
        self._digest = digest_of(self.identity(), topology.digest)
        self._journal: StepJournal[Any] | None = None
        self._known: dict[str, StepLine[_Row]] = {}
        """Lines of the journal, by step."""
        self.load: Any = None
        """What was found before all steps; of the class `LOAD`."""
        self.rows: list[_Row] = []
        """Of all steps so far, those that failed included where `failed_row` makes one."""
        self._ended = self._measured = 0
        """Steps so far, and those of them that did not fail."""
        self.failures: list[str] = []
        """Reasons for missing steps, one each."""
        self._failed_in_a_row = 0
        self.set_up()

    @classmethod
    def asked(cls, name: str, keys: Mapping[str, str], choices: Lookup, topology: Topology) -> Any:  # noqa: ANN401, ARG003
        """Load the specification of a test, some of its keys set otherwise.

        `name`: of its file, see `specification_file`.

        Raises:
            ConfigError: There is none, or it does not fit.
        """
        found = cls.read(specification_file(name), keys)
        if search := getattr(found, "search", ""):
            profile(search)  # a wrong name is an error now, and not in the first step
        return found

    @classmethod
    def read(cls, file: Path, settings: Mapping[str, str], /) -> Any:  # noqa: ANN401 - a specification
        """Read the file of a specification, some of its keys set otherwise.

        Raises:
            ConfigError: It does not fit.
        """
        return load_yaml(file, cls.SPECIFICATION, settings)

    @classmethod
    def refuse(cls, choices: Lookup, topology: Topology) -> None:
        """Refuse wrong variables before a run, beside those that are refused by their own parsers.

        Raises:
            ConfigError: One is wrong.
        """

    @classmethod
    def tables(cls, record: Any) -> Iterable[Table]:  # noqa: ANN401, ARG003 - of its class
        """Tables of a record, which become CSV files."""
        return ()

    @classmethod
    def content(cls, record: Any) -> Any:  # noqa: ANN401 - of its class
        """What title, headline and sentences are made of; None where nothing was measured."""
        return getattr(record, cls.payload())

    @classmethod
    def title(cls, found: Any, /) -> str:  # noqa: ANN401 - its content
        """Name of what was measured, on the console."""
        return str(found.spec.name)

    @classmethod
    def headline(cls, found: Any, /) -> str | None:  # noqa: ANN401, ARG003 - its content
        """Result in one sentence, for console, log, pages and `show`; None where nothing was measured after all."""
        return "measured"

    @classmethod
    def sentences(cls, found: Any, /) -> Iterable[str]:  # noqa: ANN401, ARG003 - its content
        """Its details, for console, log and `show --why`."""
        return ()

    @classmethod
    def lines(cls, record: Any) -> Iterable[str]:  # noqa: ANN401 - of its class
        """Result of a test for the console and the log; nothing where nothing was measured."""
        if (found := cls.content(record)) is not None:
            simulated = " (simulated)" * record.simulated
            yield f"{cls.title(found)}{simulated}: {cls.headline(found) or 'nothing was measured'}"
            yield from cls.sentences(found)

    @classmethod
    def name(cls) -> str:
        """Name of the study."""
        return str(cls.RECORD.model_fields["study"].default)

    @classmethod
    def payload(cls) -> str:
        """Field of the record for the result."""
        return cls.PAYLOAD or cls.name()

    @classmethod
    def journal(cls) -> type[StepJournal[Any]]:
        """Class of its journal."""
        return journal_of(cls.name(), cls.ROW, cls.LOAD)

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

    def refusal(self, step: _Step) -> str | None:  # noqa: ARG002 - for others
        """Return why a step is not possible, which is no failure; None where it is."""
        return None

    def coverage(self) -> Coverage:
        """What was measured, of what was asked for: as the result counts it, if it does, else steps."""
        found: Coverage | None = getattr(self.result(), "coverage", None)
        return Coverage(self._measured, self._ended) if found is None else found

    def carried_over(self, row: _Row) -> _Row:
        """Row of a step that was measured before the run was resumed."""
        return row

    def leaves_out(self) -> bool:
        """Whether the other steps of the present group are left out, by what was measured."""
        return False

    def failed_row(self, step: _Step, reason: str) -> _Row | None:  # noqa: ARG002 - for others
        """Row of a step that failed; None for none."""
        return None

    def faults_first(self) -> None:
        """See that planted faults were found.

        Raises:
            CsitError: They were not, or nothing was planted.
        """
        raise CsitError(f"{self.name()}: this study plants no faults")

    def ended(self, step: StepEnded) -> None:
        """Report a step that has ended."""
        self._on_step(step)

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
        self._keep(load_line(self.LOAD)(at=utc_now(), load=self.load, notes=tuple(self._noted)))

    def run(self) -> _Payload:
        """Measure all steps and return the result; what was measured is in the draft, also when it ends early.

        Raises:
            SystemBroken: Several steps in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
            CsitError: Nothing was measured.
        """
        self.prepare()
        try:
            for steps in self.steps():
                of = self._ended + len(steps)
                for step in steps:
                    self._step(step, of)
                    if self.leaves_out():
                        break
        finally:
            self.conclude()
        return self.result()

    def conclude(self) -> _Payload | None:
        """Analyse what was measured so far, for the draft of the record; return it."""
        found = self.analyse(self.rows)
        setattr(self.draft, self.payload(), found)
        return found

    def result(self) -> _Payload:
        """Result of the study.

        Raises:
            CsitError: Nothing was measured.
        """
        found: _Payload | None = getattr(self.draft, self.payload())
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

    def deploy(self, step: _Step) -> CellUnderTest:
        """Deploy a step, which is removed when it has been measured.

        Raises:
            CsitError: It does not fit, or a part does not start.
        """
        plan, cell = self.plan_of(step), self.cell_of(step)
        assert plan is not None and cell is not None  # noqa: S101 - what is deployed so has both
        return self.bring_up(cell, plan)

    def _step(self, step: _Step, of: int) -> None:
        line, reason = self._measured_before(step), self.refusal(step)
        work = float(line is None)
        if line is None and reason is None:
            line, reason = self._measure(step)
        self._ended += 1
        found = f"failed: {reason}" if line is None else self.in_words(line.row)
        self.ended(StepEnded(self._ended, of, self.label(step), found, work=work, failed=line is None))
        if line is None and self.refusal(step) is not None:
            return
        self._failed_in_a_row = self._failed_in_a_row + 1 if line is None else 0
        if self._failed_in_a_row == self.MAX_FAILED:
            steps = self.MEASURED.partition(" ")[0]
            raise SystemBroken(f"{self.MAX_FAILED} {steps} in a row failed, the last one: {reason}")

    def _measured_before(self, step: _Step) -> StepLine[_Row] | None:
        """Line of a step in the journal, which is taken; None where there is none, or of another plan."""
        if (line := self._known.get(self.key(step))) is None:
            return None
        try:
            plan = self.plan_of(step)
        except CsitError:
            return None  # the same error again when it is deployed
        if plan is not None and digest_of_model(plan) != line.plan:
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
        plan = digest_of_model(self._deployed.deployment.plan) if self._deployed is not None else ""
        line: StepLine[_Row] = step_line(self.ROW)(at=utc_now(), step=key, plan=plan, row=row, facts=self.facts())
        return line

    def _take(self, line: StepLine[_Row]) -> None:
        self.rows.append(line.row)
        self._measured += 1
        self._note(line.notes)
        for role, facts in line.facts.items():
            self.draft.facts[role] = {**self.draft.facts.get(role, {}), **facts}

    def _note(self, texts: Iterable[str]) -> None:
        self.notes += [text for text in dict.fromkeys(texts) if text not in self.notes]

    def _keep(self, line: Frozen) -> None:
        if self._journal is not None:
            self._journal.keep(line)

"""A study of chains from plan to record: the phases of its keywords, without Robot."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import get_args

from pydantic import Field, TypeAdapter

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.record import is_none
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import digest, drivers_of
from resources.libraries.python.recording.draft import utc_now
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.chains.analysis.prediction import to_repeat
from resources.libraries.python.studies.chains.analysis.study import analyse
from resources.libraries.python.studies.chains.chain_trial import ChainUnderLoad
from resources.libraries.python.studies.chains.model.record import (
    ChainRun,
    ChainsRecord,
    ChainStacks,
    ChainStudy,
    Step,
    StepCost,
)
from resources.libraries.python.studies.chains.model.spec import ANY_GENERATOR, PATH, Chain, ChainStudySpec, Workload
from resources.libraries.python.studies.chains.planning.chain_cell import cell_of, owners, planted
from resources.libraries.python.studies.chains.planning.chain_generation import Chains, cost, generate
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.shared.steps import SteppedTest, measure_step
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.generator_limits import protocol_of
from resources.libraries.python.testbed.deployment.parts import Testbed

MOST_REPEATED = 24
"""Chains that are measured again because they deviate, those that deviate most; others are judged by one run."""
MOST_SAMPLED = 5
"""Suspects whose call stacks are sampled, the first ones."""
_log = logging.getLogger(__name__)


class ChainMeasured(Frozen):
    """A chain that was measured under all workloads of one number of sessions, and removed."""

    at: str
    """UTC, ISO 8601."""
    chain: Chain
    sessions: int
    plan: str
    """Digest of the plan by which it was deployed."""
    runs: tuple[ChainRun, ...]
    """One for each workload; none in a deployment for call stacks."""
    facts: dict[str, dict[str, str]]
    """Facts of the parts of the deployment."""
    sources: dict[str, str]
    """Traced events, or the reason for none."""
    notes: tuple[str, ...] = ()
    """Features not sampled, moved threads and leftovers."""
    costs: tuple[StepCost, ...] = ()
    """Costs of deploying, watching and removing it."""
    repetition: int = Field(default=0, exclude_if=lambda repetition: not repetition)
    """0 for the first time, 1 and more where it was repeated."""
    stacks: ChainStacks | None = Field(default=None, exclude_if=is_none)
    """Its call stacks, or why there are none."""


_Step = tuple[Chain, int, int]
"""Chain, number of sessions, repetition."""


class ChainJournal(StepJournal[ChainMeasured]):
    """The journal of a study of chains: a line for each chain that was measured, on disk before the next is deployed.

    A line is one deployment: a chain with the workloads of one number of sessions, so a chain that was cut short is
    measured again as a whole, and all its runs are of one deployment; or a chain whose call stacks were sampled.
    """

    FILE = "chains.jsonl"
    KIND = "study of chains"
    ROWS = TypeAdapter(ChainMeasured)

    @property
    def chains(self) -> Mapping[_Step, ChainMeasured]:
        """Measured before; of a step that is there twice the last one."""
        return {(row.chain, row.sessions, row.repetition): row for row in self.rows if row.stacks is None}

    def sampled(self, chain: Chain, workload: Workload, trial_s: float) -> ChainMeasured | None:
        """Return the deployment in which call stacks were sampled before, in a trial of this length."""
        wanted = (chain, workload, trial_s)
        for row in self.rows:
            if (found := row.stacks) is None or found.stacks is None:
                continue
            if (found.chain, found.workload, found.stacks.trial_s) == wanted:
                return row
        return None


class ChainStudyTest(SteppedTest[ChainStudySpec, ChainJournal]):
    """Deploys one chain at a time, and keeps the draft of the record.

    Args:
        topology, world, spec, environment, on_step: See `SteppedTest`.
        stacks_s: Length of the trial in which call stacks of a suspect or of its reference are sampled; None for none.
        on_sampling: Called with a sentence before each of these trials.

    Raises:
        ConfigError: A policy is wrong, no chain is left, it exceeds a bound of `model.bounds`, or the generator does
            not send what is asked.
    """

    RECORD = ChainsRecord
    MEASURED = "chains and workloads were measured"

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        spec: ChainStudySpec,
        environment: Environment,
        on_step: Callable[[StepEnded], None] = lambda _: None,
        *,
        stacks_s: float | None = None,
        on_sampling: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(topology, world, spec, environment, on_step)
        self._on_sampling = on_sampling
        self.stacks_s = stacks_s
        self._generator = topology.tg.generator.driver
        _check_generator(spec, self._generator)
        self.chains: Chains = generate(spec)
        self.cost = cost(self.chains)
        self._runs: list[ChainRun] = []
        self._path: list[ChainRun] = []
        self._repeated: list[ChainRun] = []
        self._notes: list[str] = []
        self._sources: dict[str, str] = {}
        self._costs: list[StepCost] = []
        self.draft.warnings += [f"planted fault: {text}" for text in self.planted()]

    def planted(self) -> tuple[str, ...]:
        """Every planted fault, a sentence each."""
        found = ((chain, planted(chain, self.spec)) for chain in self.chains if self.spec.faults)
        return tuple(f"in {chain.name} {text}" for chain, text in found if text)

    def resume(self, journal: ChainJournal) -> None:
        self._journal, self._known = journal, journal.chains

    @property
    def remark(self) -> str | None:
        count = len({row.chain for row in self._known.values()})
        return f"{count} of {self.chains.count} chains were measured before the run was resumed" if count else None

    def run(self) -> ChainStudy:
        """Measure all chains and compare them; what was measured is in the draft, also when it ends early.

        A chain that cannot be measured is in the result with the reason, and the study continues.

        Raises:
            RunStopped: Something cannot be removed, or the journal cannot be written.
            CsitError: No chain could be measured.
        """
        try:
            for number, chain in enumerate(self.chains, 1):
                self._ended_step(number, self.cost.steps, chain)
            if self.chains.with_path and not all(run.failed for run in self._runs):
                self._ended_step(self.cost.steps, self.cost.steps, PATH)
            self._repeat(self.cost.steps)
        finally:
            study = self._kept()
        if all(run.failed for run in study.runs):
            reasons = dict.fromkeys(run.failed for run in study.runs if run.failed)
            raise CsitError(f"no chain could be measured: {'; '.join(reasons)}")
        return self._sampled(study) if self.stacks_s is not None else study

    def _ended_step(self, number: int, steps: int, chain: Chain, repetition: int = 0) -> None:
        """Measure a chain, or take it from the journal, and report it."""
        kept = self._kept_in(chain, repetition)
        before = len(kept)
        measured = self._chain(chain, repetition)
        runs = kept[before:]
        found = ", ".join(dict.fromkeys(map(found_in_words, runs)))
        again = f", repetition {repetition}" if repetition else ""
        name = chain.name if chain == PATH else f"chain {chain.name}"
        failed = any(run.failed for run in runs)
        self._on_step(StepEnded(number, steps, f"{name}{again}", found, work=float(measured), failed=failed))

    def _repeat(self, steps: int) -> None:
        """Measure again what deviates from its VNFs alone, and these: only repeated runs decide whether it does."""
        chains = to_repeat((*self._runs, *self._path), MOST_REPEATED) if self.spec.repetitions else ()
        total = steps + self.spec.repetitions * len(chains)
        for repetition in range(1, self.spec.repetitions + 1):
            for chain in chains:
                steps += 1
                self._ended_step(steps, total, chain, repetition)

    def _sampled(self, study: ChainStudy) -> ChainStudy:
        """Sample the call stacks of the first suspects and their references, each in a deployment of its own."""
        wanted = dict.fromkeys(
            (chain, suspect.reference.workload)
            for suspect in study.suspects[:MOST_SAMPLED]
            if suspect.reference is not None
            for chain in (suspect.reference.chain, suspect.chain)
        )
        found: list[ChainStacks] = []
        for number, (chain, workload) in enumerate(wanted, 1):
            self._on_sampling(f"sampling call stacks of {chain.name} ({number} of {len(wanted)})")
            found.append(self._stacks(chain, workload))
            notes = tuple(dict.fromkeys((*study.notes, *self._notes)))
            study = self.draft.chain_study = study.model_copy(update={"stacks": tuple(found), "notes": notes})
        return study

    def _stacks(self, chain: Chain, workload: Workload) -> ChainStacks:
        """Call stacks of a chain, of this or an earlier run; with the reason where they could not be sampled."""
        trial_s = self.stacks_s or 0.0
        known = None if self._journal is None else self._journal.sampled(chain, workload, trial_s)
        workloads = self._groups()[workload.sessions]
        if known is not None and (kept := self._by_this_plan(known, chain, workloads)) and kept.stacks is not None:
            return kept.stacks
        found: list[ChainStacks] = []

        def measure() -> ChainMeasured:
            row = self._measured(chain, workloads, lambda loaded: found.append(loaded.stacks(workload, trial_s)))
            return row.model_copy(update={"stacks": found[-1]})

        outcome = measure_step(chain.name, measure, self.remove)
        self.draft.warnings += outcome.notes
        if outcome.row is None:
            return ChainStacks(chain=chain, workload=workload, failed=outcome.reason)
        self._keep(outcome.row)
        return found[-1]

    def result(self) -> ChainStudy:
        found: ChainStudy | None = self.draft.chain_study
        if found is None:
            raise CsitError("no chain was measured")
        return found

    def faults_first(self) -> None:
        """See that the chains with planted faults are the first suspects.

        Raises:
            CsitError: They are not, or nothing was planted.
        """
        study = self.draft.chain_study
        if study is None or not self.spec.faults:
            raise CsitError("no planted fault to find: nothing was measured, or no fault is specified")
        wanted = {chain: text for chain in self.chains if (text := planted(chain, self.spec))}
        failed = {run.chain: run.failed for run in study.runs if run.failed}
        first = [suspect.chain for suspect in study.suspects[: len(wanted)]]
        if missing := [chain for chain in wanted if chain not in first]:
            there = (
                f"the first suspects are {', '.join(chain.name for chain in first)}"
                if first
                else "no chain is a suspect"
            )
            why = f"; it was not measured: {failed[missing[0]]}" if missing[0] in failed else ""
            names = "; ".join(chain.name for chain in missing)
            raise CsitError(f"a fault was planted in {names}, and {there}{why}")

    def _groups(self) -> dict[int, list[Workload]]:
        """Workloads by their sessions, which the plan has the addresses of: one deployment for each."""
        groups: dict[int, list[Workload]] = {}
        for workload in self.spec.workloads:
            groups.setdefault(workload.sessions, []).append(workload)
        return groups

    def _chain(self, chain: Chain, repetition: int) -> bool:
        """Take the runs of a chain; return whether any of them had to be measured."""
        deployed = False
        for workloads in self._groups().values():
            if kept := self._measured_before(chain, workloads, repetition):
                self._take(kept)
            else:
                deployed = True
                self._measure(chain, workloads, repetition)
        return deployed

    def _measured_before(self, chain: Chain, workloads: Sequence[Workload], repetition: int) -> ChainMeasured | None:
        """Result of a chain in the journal; None where there is none, or of another plan."""
        kept = self._known.get((chain, workloads[0].sessions, repetition))
        return self._by_this_plan(kept, chain, workloads) if kept is not None else None

    def _by_this_plan(self, kept: ChainMeasured, chain: Chain, workloads: Sequence[Workload]) -> ChainMeasured | None:
        try:
            plan = self._cell(chain, workloads).plan(kept.sessions)
        except CsitError:
            return None  # the same error again when it is deployed
        if digest(plan) == kept.plan:
            return kept
        _log.warning("%s is measured again: its plan has changed since it was measured", chain.name)
        return None

    def _measure(self, chain: Chain, workloads: Sequence[Workload], repetition: int) -> None:
        """Measure a chain and keep its runs, those that failed with the reason."""
        runs: list[ChainRun] = []
        costs: list[StepCost] = []

        def measure() -> ChainMeasured:
            runs.clear()
            costs.clear()
            found = self._measured(
                chain,
                workloads,
                lambda loaded: runs.extend(loaded.measure(workloads, self.spec.duration_s)),
                repetition,
            )
            return found.model_copy(update={"runs": tuple(runs), "repetition": repetition})

        def remove() -> str | None:
            with _costing("deploy and remove", costs):
                return self.remove()

        outcome = measure_step(chain.name, measure, remove)
        if outcome.row is None:
            self._note(*outcome.notes)
            failed = [self._failed(chain, workload, outcome.reason) for workload in workloads[len(runs) :]]
            self._kept_in(chain, repetition).extend((*runs, *failed))
            return
        found = outcome.row
        found = found.model_copy(update={"notes": (*found.notes, *outcome.notes), "costs": (*found.costs, *costs)})
        self._keep(found)
        self._take(found)

    def _measured(
        self,
        chain: Chain,
        workloads: Sequence[Workload],
        measure: Callable[[ChainUnderLoad], None],
        repetition: int = 0,
    ) -> ChainMeasured:
        """Deploy a chain for workloads of one number of sessions, and let it be measured."""
        under_test, sessions = self._cell(chain, workloads, repetition), workloads[0].sessions
        plan = under_test.plan(sessions)
        self._deployed = under_test
        self._note(*plan.warnings)
        costs: list[StepCost] = []
        with _costing("deploy and remove", costs):
            deployment = under_test.deploy(plan)
        names = owners(chain, self.spec)
        loaded = ChainUnderLoad(under_test, chain, names, self._generator, planted(chain, self.spec))
        try:
            measure(loaded)
        finally:
            self._note(*loaded.notes)
        parts = deployment.parts
        features = {} if parts.features is None else {"features": dict(parts.features.facts())}
        return ChainMeasured(
            at=utc_now(),
            chain=chain,
            sessions=sessions,
            plan=digest(plan),
            runs=(),
            facts={**deployment.facts(), **features},
            sources=dict(parts.tracer.facts()) if parts.tracer is not None else {},
            notes=(*plan.warnings, *loaded.notes, *under_test.moved()),
            costs=(*costs, *loaded.costs),
        )

    def _cell(self, chain: Chain, workloads: Sequence[Workload], repetition: int = 0) -> CellUnderTest:
        largest = max((workload.frame for workload in workloads), key=lambda frame: frame.largest_bytes)
        cell = cell_of(chain, self.spec)
        self.draft.drivers |= drivers_of(self._topology, cell, self._world.drivers)
        return self._under_test(cell, largest, repetition=repetition)

    def _take(self, found: ChainMeasured) -> None:
        """Add measured runs of this or an earlier run to the record."""
        self._kept_in(found.chain, found.repetition).extend(found.runs)
        self._note(*found.notes)
        self._sources |= found.sources
        self._costs += found.costs
        for role, row in found.facts.items():
            self.draft.facts[role] = {**self.draft.facts.get(role, {}), **row}

    def _kept_in(self, chain: Chain, repetition: int) -> list[ChainRun]:
        return self._repeated if repetition else self._path if chain == PATH else self._runs

    def _failed(self, chain: Chain, workload: Workload, reason: str) -> ChainRun:
        return ChainRun(
            chain=chain,
            workload=workload,
            offered_bps=None,
            throughput_bps=None,
            loss_ratio=None,
            latency_s=None,
            idle_latency_s=None,
            series=(),
            planted=planted(chain, self.spec),
            failed=reason or "it was not measured",
        )

    def _note(self, *texts: str) -> None:
        self._notes += [text for text in dict.fromkeys(texts) if text not in self._notes]

    def _kept(self) -> ChainStudy:
        measured = [run for run in self._runs if run.failed is None]
        self._failures = [run.failed for run in self._runs if run.failed]
        sources = "; ".join(f"{name}: {text}" for name, text in self._sources.items())
        if measured and sources and not any(run.graphs for run in measured):
            self._note(f"no graphs of state transitions; {sources}")
            _log.warning(self._notes[-1])
        costs = list(self._costs)
        with _costing("analyse", costs):
            if failed := next((run.failed for run in self._path if run.failed), None):
                self._note(f"the path without VNFs was not measured: {failed}")
            found = analyse(self.spec, measured, [*self._path, *self._repeated])
        self.draft.chain_study = study = ChainStudy(
            spec=self.spec,
            chains=self.chains.count,
            dropped=self.chains.dropped,
            runs=tuple(self._runs),
            statistics=found.statistics,
            suspects=found.suspects,
            causes=found.causes,
            judged=found.judged,
            changed=found.changed,
            bounds=found.bounds,
            path=tuple(self._path),
            repeated=tuple(self._repeated),
            trace_source=sources,
            notes=(*self._notes, *found.notes),
            costs=() if self.draft.simulation is not None else tuple(_totals(costs)),
        )
        return study


def found_in_words(run: ChainRun) -> str:
    """Throughput and loss of a run, or why there are none."""
    if run.throughput_bps is None or run.offered_bps is None:
        return f"not measured: {run.failed}"
    loss = "" if run.loss_ratio is None else f", loss {100 * run.loss_ratio:.2f} %"
    return f"{run.throughput_bps / 1e6:.3g} of {run.offered_bps / 1e6:.3g} Mbit/s{loss}"


@contextmanager
def _costing(step: Step, costs: list[StepCost]) -> Iterator[None]:
    """Add what happens inside to the costs: time on the clock, and processor time of all threads of this process."""
    began_s, before_s = time.monotonic(), time.process_time()
    try:
        yield
    finally:
        cpu_s, lasted_s = time.process_time() - before_s, time.monotonic() - began_s
        costs.append(StepCost(step=step, cpu_s=cpu_s, lasted_s=lasted_s))


def _totals(costs: Sequence[StepCost]) -> Iterator[StepCost]:
    """One for each step, in the order of a study."""
    for step in get_args(Step):
        if rows := [row for row in costs if row.step == step]:
            cpu_s, lasted_s = sum(row.cpu_s for row in rows), sum(row.lasted_s for row in rows)
            yield StepCost(step=step, cpu_s=cpu_s, lasted_s=lasted_s)


def _check_generator(spec: ChainStudySpec, driver: str) -> None:
    """See that the testbed's generator sends what is asked.

    Raises:
        ConfigError: It does not.
    """
    for number, workload in enumerate(spec.workloads):
        where = f"{spec.name}: workloads.{number}"
        wanted, simulated = workload.generator, driver_registry.generators()[driver].is_simulated
        if wanted not in {ANY_GENERATOR, driver} and not simulated:
            raise ConfigError(f"{where}: needs the generator {wanted} instead of {driver}; choose GENERATOR:{wanted}")
        try:
            protocol_of(driver, workload.protocol)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error

"""A study of chains from plan to record: the phases of its keywords, without Robot."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TypeVar, get_args

from pydantic import Field, ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError, CsitError, PlanError
from resources.libraries.python.model.base import Frozen, first_error, is_empty, is_none
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType, Tap
from resources.libraries.python.model.request.kinds import Limits, are_vms
from resources.libraries.python.model.request.variables import STACKS
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.names import nf_name, tap_name
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.planning.traffic import protocol_of
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.chains.analysis.prediction import to_repeat
from resources.libraries.python.studies.chains.analysis.sentences import headline, sentences
from resources.libraries.python.studies.chains.analysis.study import analyse
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.chains.chain_trial import ChainUnderLoad
from resources.libraries.python.studies.chains.model import (
    ChainRun,
    ChainsRecord,
    ChainStacks,
    ChainStudy,
    Step,
    StepCost,
)
from resources.libraries.python.studies.chains.model.spec import (
    ANY_GENERATOR,
    PATH,
    Chain,
    ChainStudySpec,
    Fault,
    Member,
    Mode,
    Workload,
    load_chains,
)
from resources.libraries.python.studies.chains.planning import Chains, cost, generate, sampling_s
from resources.libraries.python.studies.shared.progress import human_time
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.testbed.deployment.call_stacks import refuse_unsampled
from resources.libraries.python.testbed.deployment.cell import CellUnderTest

MAX_REPEATED = 24
"""Chains that are measured again because they deviate, those that deviate most; others are judged by one run."""
MAX_SAMPLED = 5
"""Suspects whose call stacks are sampled, the first ones."""
_log = logging.getLogger(__name__)
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One deployment of a chain."""

    chain: Chain
    workloads: tuple[Workload, ...]
    """Of one number of sessions, which the plan has the addresses of."""
    repetition: int = 0
    """0 for the first time, 1 and more where it is repeated."""
    sampled: Workload | None = None
    """Workload under which call stacks are sampled, in the place of all others; None for none."""


class ChainMeasured(Frozen):
    """What was measured of a chain in one deployment, so that its runs are cut short as a whole."""

    chain: Chain
    repetition: int = Field(default=0, exclude_if=is_empty)
    runs: tuple[ChainRun, ...] = ()
    """One for each workload; none in a deployment for call stacks."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Traced events, or the reason for none."""
    costs: tuple[StepCost, ...] = ()
    """Costs of deploying and watching it, and of removing what was deployed before."""
    stacks: ChainStacks | None = Field(default=None, exclude_if=is_none)
    """Its call stacks, or why there are none."""


class ChainStudyTest(StepStudy[ChainStudySpec, ChainStep, ChainMeasured, ChainStudy]):
    """Deploys one chain at a time, and compares them.

    Raises:
        ConfigError: A policy is wrong, no chain is left, it exceeds a bound of `model.bounds`, or the generator does
            not send what is asked.
    """

    RECORD = ChainsRecord
    PAYLOAD = "chain_study"
    ROW = ChainMeasured
    MEASURED = "chains and workloads were measured"
    MAX_FAILED = None
    read = staticmethod(load_chains)
    tables = staticmethod(chain_tables)
    headline = staticmethod(headline)
    sentences = staticmethod(sentences)
    stacks_s: float | None
    """Length of the trial in which call stacks of a suspect or of its reference are sampled; None for none."""

    def set_up(self) -> None:
        self._generator = self._topology.tg.generator.driver
        _check_generator(self.spec, self._generator)
        self.stacks_s = STACKS.of(self._choices)
        self.chains: Chains = generate(self.spec)
        self.cost = cost(self.chains)
        self._costs: list[StepCost] = []
        """Costs since the last row."""
        self._runs_so_far: list[ChainRun] = []
        """Of the present step."""
        self.draft.warnings += [f"planted fault: {text}" for text in self.planted()]

    def planted(self) -> tuple[str, ...]:
        """Every planted fault, a sentence each."""
        found = ((chain, planted(chain, self.spec)) for chain in self.chains if self.spec.faults)
        return tuple(f"in {chain.name} {text}" for chain, text in found if text)

    def preview(self) -> list[str]:
        """Preview of chains, time, chains that policies forbid, planted faults."""
        chains, spec = self.chains, self.spec
        by_length = ", ".join(f"{count} of {length}" for length, count in chains.orders.items())
        workloads = counted(len(spec.workloads), "workload")
        lines = [f"{chains.count} chains ({by_length} VNFs) under {workloads} of {spec.duration_s} s{self.about}"]
        for row in chains.dropped:
            examples = "; ".join(" > ".join(order) for order in row.examples)
            lines.append(
                f"policy '{row.policy}' forbids {counted(row.count, 'chain')}"
                + (f", such as {examples}" if examples else "")
            )
        if self.stacks_s is not None:
            most_s = 2 * MAX_SAMPLED * sampling_s(self.stacks_s)
            most = "" if self._topology.world is World.SIM else f": at most {human_time(most_s)} more"
            lines.append(f"then call stacks of the first {MAX_SAMPLED} suspects and their references{most}")
        if spec.repetitions and chains.with_path:
            lines.append(
                f"chains that deviate from their VNFs alone are measured again, {spec.repetitions} times, with those "
                "VNFs"
            )
        return lines + [f"planted fault: {text}" for text in self.planted()]

    def plan(self) -> None:
        """See that call stacks can be sampled; a chain that does not fit is in the result, and the study continues.

        Raises:
            Unsupported: A node cannot sample them.
        """
        if self.stacks_s:
            refuse_unsampled(self._world)

    def steps(self) -> Iterator[Sequence[ChainStep]]:
        yield [step for chain in (*self.chains, *([PATH] if self.chains.with_path else [])) for step in self._of(chain)]
        runs, path, _ = _sorted(self.rows)
        # Only repeated runs decide whether what deviates from its VNFs alone does.
        chains = to_repeat((*runs, *path), MAX_REPEATED) if self.spec.repetitions else ()
        repetitions = range(1, self.spec.repetitions + 1)
        yield [step for repetition in repetitions for chain in chains for step in self._of(chain, repetition)]
        if self.stacks_s is not None:
            self.conclude()
            yield self._suspects(self.draft.chain_study)

    def _of(self, chain: Chain, repetition: int = 0) -> Iterator[ChainStep]:
        for sessions in dict.fromkeys(workload.sessions for workload in self.spec.workloads):
            yield ChainStep(chain, self._group(sessions), repetition)

    def _group(self, sessions: int) -> tuple[Workload, ...]:
        return tuple(workload for workload in self.spec.workloads if workload.sessions == sessions)

    def _suspects(self, study: ChainStudy) -> list[ChainStep]:
        """The first suspects and their references, each in a deployment of its own for call stacks."""
        wanted = dict.fromkeys(
            (chain, suspect.reference.workload)
            for suspect in study.suspects[:MAX_SAMPLED]
            if suspect.reference is not None
            for chain in (suspect.reference.chain, suspect.chain)
        )
        return [ChainStep(chain, self._group(at.sessions), sampled=at) for chain, at in wanted]

    def key(self, step: ChainStep) -> str:
        members = (
            f"{each.name} {each.size}" + (f" {each.memory_mib} MiB" if each.memory_mib else "")
            for each in step.chain.members
        )
        name = f"{' > '.join(members) or step.chain.name}, {step.workloads[0].sessions} sessions"
        if (at := step.sampled) is not None:
            traffic = f"{at.volume_bps:g} bit/s of {at.frame.name} {at.protocol}"
            return f"call stacks of {name} at {traffic} for {self.stacks_s or 0:g} s"
        return f"{name}, repetition {step.repetition}" if step.repetition else name

    def label(self, step: ChainStep) -> str:
        name = step.chain.name if step.chain == PATH else f"chain {step.chain.name}"
        again = f", repetition {step.repetition}" if step.repetition else ""
        return f"call stacks of {step.chain.name}" if step.sampled else f"{name}{again}"

    def in_words(self, row: ChainMeasured) -> str:
        return row.stacks.sampled if row.stacks else ", ".join(dict.fromkeys(map(found_in_words, row.runs)))

    def cell_of(self, step: ChainStep) -> CellUnderTest:
        largest = max((workload.frame for workload in step.workloads), key=lambda frame: frame.largest_bytes)
        cell = cell_of(step.chain, self.spec)
        self.draft.drivers |= drivers_of(self._topology, cell, self._world.drivers)
        return self.under_test(cell, largest, repetition=step.repetition)

    def plan_of(self, step: ChainStep) -> Plan:
        return self.cell_of(step).plan(step.workloads[0].sessions)

    def deploy(self, step: ChainStep) -> CellUnderTest:
        with _costing("deploy and remove", self._costs):
            return super().deploy(step)

    def remove(self) -> str | None:
        with _costing("deploy and remove", self._costs):
            return super().remove()

    def facts(self) -> dict[str, dict[str, str]]:
        features = None if self._deployed is None else self._deployed.deployment.parts.features
        return super().facts() | ({} if features is None else {"features": dict(features.facts())})

    def measure(self, step: ChainStep) -> ChainMeasured:
        self._runs_so_far = []
        cell = self.deploy(step)
        parts, plan = cell.deployment.parts, cell.deployment.plan
        for warning in plan.warnings:
            self.note(warning)
        fault = planted(step.chain, self.spec)
        loaded = ChainUnderLoad(cell, step.chain, owners(step.chain, self.spec), self._generator, fault)
        stacks = None
        try:
            if step.sampled is not None:
                stacks = loaded.stacks(step.sampled, self.stacks_s or 0.0)
            else:
                self._runs_so_far.extend(loaded.measure(step.workloads, self.spec.duration_s))
        finally:
            for text in loaded.notes:
                self.note(text)
        for text in cell.moved():
            self.note(text)
        costs, self._costs = (*self._costs, *loaded.costs), []
        return ChainMeasured(
            chain=step.chain,
            repetition=step.repetition,
            runs=tuple(self._runs_so_far),
            sources=dict(parts.tracer.facts()) if parts.tracer is not None else {},
            costs=costs,
            stacks=stacks,
        )

    def failed_row(self, step: ChainStep, reason: str) -> ChainMeasured:
        chain = step.chain
        if step.sampled is not None:
            return ChainMeasured(chain=chain, stacks=ChainStacks(chain=chain, workload=step.sampled, failed=reason))
        missing = step.workloads[len(self._runs_so_far) :]
        failed = [
            ChainRun(
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
            for workload in missing
        ]
        return ChainMeasured(chain=chain, repetition=step.repetition, runs=(*self._runs_so_far, *failed))

    def analyse(self, rows: Sequence[ChainMeasured]) -> ChainStudy:
        runs, path, repeated = _sorted(rows)
        measured = [run for run in runs if run.failed is None]
        self.failures = [run.failed for run in runs if run.failed]
        notes = list(self.notes)
        named = {name: text for row in rows for name, text in row.sources.items()}
        sources = "; ".join(f"{name}: {text}" for name, text in named.items())
        if measured and sources and not any(run.graphs for run in measured):
            notes.append(f"no graphs of state transitions; {sources}")
            _log.warning(notes[-1])
        costs = [each for row in rows for each in row.costs] + self._costs
        with _costing("analyse", costs):
            if failed := next((run.failed for run in path if run.failed), None):
                notes.append(f"the path without VNFs was not measured: {failed}")
            found = analyse(self.spec, measured, [*path, *repeated])
        return ChainStudy(
            spec=self.spec,
            chains=self.chains.count,
            dropped=self.chains.dropped,
            runs=tuple(runs),
            path=tuple(path),
            repeated=tuple(repeated),
            trace_source=sources,
            costs=() if self.draft.simulation is not None else tuple(_totals(costs)),
            stacks=tuple(row.stacks for row in rows if row.stacks),
            **found._asdict() | {"notes": (*notes, *found.notes)},
        )

    def result(self) -> ChainStudy:
        study: ChainStudy | None = self.draft.chain_study
        if study is None or all(run.failed for run in study.runs):
            reasons = dict.fromkeys(run.failed for run in study.runs if run.failed) if study else {}
            raise CsitError(f"no chain could be measured: {'; '.join(reasons) or 'none was tried'}")
        return study

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


def _sorted(rows: Sequence[ChainMeasured]) -> tuple[list[ChainRun], list[ChainRun], list[ChainRun]]:
    """Runs of chains, of the path without VNFs, and of what was repeated."""
    runs, path, repeated = list[ChainRun](), list[ChainRun](), list[ChainRun]()
    for row in rows:
        (repeated if row.repetition else path if row.chain == PATH else runs).extend(row.runs)
    return runs, path, repeated


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


def cell_of(chain: Chain, spec: ChainStudySpec) -> Cell:
    """A chain as one service instance of a snake: every hop crosses the vSwitch.

    A planted fault is in the limits of its VNF.

    Raises:
        PlanError: A VNF cannot be what the specification says, such as passive.
    """
    inline = [member for member in chain.members if spec.vnf(member.name).mode is Mode.INLINE]
    kinds = tuple(spec.vnf(member.name).kind for member in inline)
    programs = tuple(spec.vnf(member.name).program for member in inline)
    try:
        limits = tuple(_limits(member, chain, spec) for member in inline)
        return Cell(
            service_type=ServiceType.VSC if are_vms(kinds) else ServiceType.CSC,
            **Dimensions(1, len(inline)).columns,
            nf_kinds=kinds,
            **({"nf_sizes": tuple(member.size for member in inline)} if inline else {}),
            taps=_taps(chain, spec),
            limits=limits if any(each != Limits() for each in limits) else (),
            programs=programs if any(programs) else (),
        )
    except ValidationError as error:
        raise PlanError(f"{chain.name}: {first_error(error)[1]}") from error


def owners(chain: Chain, spec: ChainStudySpec) -> Mapping[str, str]:
    """VNF by the name that its network function has in the plan, in the order of the chain."""
    found: dict[str, str] = {}
    nodes, taps = count(1), count(1)
    for member in chain.members:
        is_inline = spec.vnf(member.name).mode is Mode.INLINE
        found[nf_name(1, next(nodes)) if is_inline else tap_name(1, next(taps))] = member.name
    return found


def _faults_in(chain: Chain, spec: ChainStudySpec) -> tuple[Fault, ...]:
    """Faults that are planted in a chain, whatever resources it has."""
    return tuple(fault for fault in spec.faults if fault.is_in(chain.order))


def planted(chain: Chain, spec: ChainStudySpec) -> str | None:
    """Faults planted in a chain, as text; None where none is."""
    parts = [f"{fault.vnf} is limited to {_limits_in_words(fault.limits)}" for fault in _faults_in(chain, spec)]
    return "; ".join(parts) or None


def _limits_in_words(limits: Limits) -> str:
    """`0.1 CPUs and 64 MiB`; empty for none."""
    words = []
    if limits.cpu is not None:
        words.append(f"{limits.cpu:g} CPUs")
    if limits.memory_mib is not None:
        words.append(f"{limits.memory_mib} MiB")
    return " and ".join(words)


def _taps(chain: Chain, spec: ChainStudySpec) -> tuple[Tap, ...]:
    taps, node = [], 1
    for member in chain.members:
        vnf = spec.vnf(member.name)
        if vnf.mode is Mode.INLINE:
            node += 1
        else:
            limits = _limits(member, chain, spec)
            taps.append(Tap(position=node, kind=vnf.kind, size=member.size, limits=limits, program=vnf.program))
    return tuple(taps)


def _limits(member: Member, chain: Chain, spec: ChainStudySpec) -> Limits:
    """Of its memory range, and of a fault that is planted in it, whichever is less."""
    limits = Limits(memory_mib=member.memory_mib)
    for fault in _faults_in(chain, spec):
        if fault.vnf == member.name:
            limits = Limits(
                cpu=_least(limits.cpu, fault.limits.cpu),
                memory_mib=_least(limits.memory_mib, fault.limits.memory_mib),
            )
    return limits


def _least(first: _Number | None, second: _Number | None) -> _Number | None:
    return min((each for each in (first, second) if each is not None), default=None)

"""The chains of a specification, one after the other, from plan to record: what the keywords name, without Robot."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from resources.libraries.python.behaviour.study import analyse
from resources.libraries.python.deployment.cell import CellUnderTest
from resources.libraries.python.deployment.chain_run import ChainUnderLoad
from resources.libraries.python.deployment.health import is_breakage, reason_of
from resources.libraries.python.deployment.parts import World
from resources.libraries.python.deployment.sending import protocol_of
from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.model.behaviour import ChainRun, ChainStudy
from resources.libraries.python.model.cell import TestType
from resources.libraries.python.model.chains import Chain, ChainStudySpec, Workload
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.chain_cell import cell_of, owners, planted
from resources.libraries.python.planning.chain_cost import estimate_s
from resources.libraries.python.planning.chains import Chains, generate
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.recording.characterization import CharacterizationDraft
from resources.libraries.python.search.profiles import QUICK

_log = logging.getLogger(__name__)
_ATTEMPTS = 2
"""Of a chain that breaks the system under test."""


@dataclass(frozen=True, slots=True)
class Done:
    """A chain that was measured, and how far that brought the study."""

    runs: tuple[ChainRun, ...]
    number: int
    """Of the chain, from 1."""
    of: int
    remaining_s: float
    """By the time that the chains before took."""


class StudyOfChains:
    """Deploys one chain at a time, and keeps the draft of the record.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        spec: What is asked.
        environment: Fingerprint of the machine.
        on_progress: Called after each chain.

    Raises:
        ConfigError: A policy is wrong, no chain is left, or the generator does not send what is asked.
    """

    def __init__(
        self,
        topology: Topology,
        world: World,
        spec: ChainStudySpec,
        environment: Environment,
        on_progress: Callable[[Done], None] = lambda _: None,
    ) -> None:
        self._topology = topology
        self._world = world
        self.spec = spec
        self._on_progress = on_progress
        self._generator = topology.tg.generator.driver
        _check_generator(spec, self._generator)
        self.chains: Chains = generate(spec)
        self._runs: list[ChainRun] = []
        self._notes: list[str] = []
        self._sources: dict[str, str] = {}
        self._deployed: tuple[CellUnderTest, Plan | None] | None = None
        self.draft = CharacterizationDraft(topology, environment, "chain_study")
        self.draft.simulation = dict(world.simulation) if world.simulation is not None else None
        self.draft.drivers = dict(world.drivers)
        self.draft.warnings += [f"planted fault: {text}" for text in self.planted()]

    def planted(self) -> tuple[str, ...]:
        """Every planted fault, a sentence each."""
        found = ((chain, planted(chain, self.spec)) for chain in self.chains if self.spec.faults)
        return tuple(f"in {chain.name} {text}" for chain, text in found if text)

    def estimate_s(self) -> float:
        """About how long it takes, before anything was measured."""
        return estimate_s(self.chains)

    def run(self) -> ChainStudy:
        """Measure all chains and compare them; what was measured is in the draft, also when it ends early.

        A chain that cannot be measured is in the result with the reason, and the study goes on.

        Raises:
            RunStopped: Something cannot be removed.
            CsitError: No chain could be measured.
        """
        begin_s = time.monotonic()
        try:
            for number, chain in enumerate(self.chains, 1):
                runs = tuple(self._chain(chain))
                self._runs += runs
                left_s = (time.monotonic() - begin_s) / number * (self.chains.count - number)
                self._on_progress(Done(runs, number, self.chains.count, left_s))
        finally:
            study = self._kept()
        if all(run.failed for run in study.runs):
            reasons = dict.fromkeys(run.failed for run in study.runs if run.failed)
            raise CsitError(f"no chain could be measured: {'; '.join(reasons)}")
        return study

    def faults_first(self) -> None:
        """See that the chains with planted faults are the first suspects.

        Raises:
            CsitError: They are not, or nothing was planted.
        """
        study = self.draft.chain_study
        if study is None or not self.spec.faults:
            raise CsitError("there is no planted fault to be found: nothing was measured, or none is specified")
        wanted = {chain: text for chain in self.chains if (text := planted(chain, self.spec))}
        failed = {run.chain: run.failed for run in study.runs if run.failed}
        first = [suspect.chain for suspect in study.suspects[: len(wanted)]]
        if missing := [chain for chain in wanted if chain not in first]:
            there = ", ".join(chain.name for chain in first) or "nobody"
            why = f"; it was not measured: {failed[missing[0]]}" if missing[0] in failed else ""
            names = "; ".join(chain.name for chain in missing)
            raise CsitError(f"a fault was planted in {names}, and the first suspects are {there}{why}")

    def remove(self) -> str | None:
        """Remove what is deployed, if anything is; return what went wrong, None when nothing did."""
        deployed, self._deployed = self._deployed, None
        return deployed[0].remove(deployed[1]) if deployed else None

    def _groups(self) -> dict[int, list[Workload]]:
        """Workloads by their sessions, which the plan has the addresses of: one deployment for each."""
        groups: dict[int, list[Workload]] = {}
        for workload in self.spec.workloads:
            groups.setdefault(workload.sessions, []).append(workload)
        return groups

    def _chain(self, chain: Chain) -> Iterator[ChainRun]:
        for sessions, workloads in self._groups().items():
            yield from self._with_care(chain, sessions, workloads)

    def _with_care(self, chain: Chain, sessions: int, workloads: Sequence[Workload]) -> list[ChainRun]:
        """Measure; where that breaks the system under test, once more. What is missing then says why."""
        reason = ""
        for _ in range(_ATTEMPTS):
            runs: list[ChainRun] = []
            again = False
            try:
                for run in self._measured(chain, sessions, workloads):
                    runs.append(run)
            except RunStopped:
                raise
            except (CsitError, OSError) as error:
                reason, again = reason_of(error), is_breakage(error)
            else:
                reason = ""
            if failure := self.remove():
                self._note(f"{chain.name}: {failure}")
            if not again:
                break
        left = workloads[len(runs) :]
        return [*runs, *(self._failed(chain, workload, reason) for workload in left)]

    def _measured(self, chain: Chain, sessions: int, workloads: Sequence[Workload]) -> Iterator[ChainRun]:
        largest = max((workload.frame for workload in workloads), key=lambda frame: frame.largest_bytes)
        cell = cell_of(chain, self.spec)
        asked = Asked(test_type=TestType.MRR, cell=cell, frame=largest, profile=QUICK)
        under_test = CellUnderTest(self._topology, self._world, asked)
        self._deployed = under_test, None
        plan = under_test.plan(sessions)
        self._deployed = under_test, plan
        self.draft.drivers |= drivers_of(self._topology, cell, self._world.drivers)
        for text in plan.warnings:
            self._note(text)
        deployment = under_test.deploy(plan)
        names = owners(chain, self.spec)
        loaded = ChainUnderLoad(under_test, chain, names, self._generator, planted(chain, self.spec))
        try:
            yield from loaded.measure(workloads, self.spec.duration_s)
        finally:
            for text in loaded.notes:
                self._note(text)
        for text in under_test.moved():
            self._note(text)
        self._remember(deployment.facts())
        parts = deployment.parts
        self._sources |= dict(parts.tracer.facts()) if parts.tracer is not None else {}
        if parts.features is not None:
            self.draft.facts["features"] = dict(parts.features.facts())

    def _remember(self, facts: dict[str, dict[str, str]]) -> None:
        for role, row in facts.items():
            self.draft.facts[role] = {**self.draft.facts.get(role, {}), **row}

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

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _kept(self) -> ChainStudy:
        measured = [run for run in self._runs if run.failed is None]
        sources = "; ".join(f"{name}: {text}" for name, text in self._sources.items())
        if measured and sources and not any(run.graphs for run in measured):
            self._note(f"no graphs of state transitions; {sources}")
            _log.warning(self._notes[-1])
        found = analyse(self.spec, measured)
        self.draft.chain_study = ChainStudy(
            spec=self.spec,
            chains=self.chains.count,
            dropped=self.chains.dropped,
            runs=tuple(self._runs),
            statistics=found.statistics,
            suspects=found.suspects,
            trace_source=sources,
            notes=(*self._notes, *found.notes),
        )
        return self.draft.chain_study


def _check_generator(spec: ChainStudySpec, driver: str) -> None:
    """See that the testbed's generator sends what is asked.

    Raises:
        ConfigError: It does not.
    """
    for number, workload in enumerate(spec.workloads):
        where = f"{spec.name}: workloads.{number}"
        if workload.generator == "iperf3" and driver not in {"iperf3", "sim"}:
            raise ConfigError(f"{where}: iperf3 sends it, and the generator is {driver}; choose GENERATOR:iperf3")
        try:
            protocol_of(driver, workload.protocol)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error

"""A study of stateful density from plan to record: the phases of its keywords, without Robot.

The method is that of RFC 9693: one packet for each new connection, from the initiator's side only; a rate counts when
every packet arrives and every table has an entry for it. Tables are emptied before each trial.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Literal

from pydantic import TypeAdapter

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import ConfigError, CsitError, NoTraffic, PlanError, SystemBroken, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import MOST_FLOWS, Cell, TestType
from resources.libraries.python.model.connections import ConnectionTable
from resources.libraries.python.model.frames import with_flows
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Direction, Protocol, Trial, TrialResult
from resources.libraries.python.planning.plan import digest, drivers_of
from resources.libraries.python.recording.draft import Draft
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.search.profiles import NDR, profile
from resources.libraries.python.search.session import judged
from resources.libraries.python.search.throughput import search_throughput
from resources.libraries.python.studies.shared.steps import measure_step
from resources.libraries.python.studies.stateful.analysis.validity import checks
from resources.libraries.python.studies.stateful.model.record import (
    CellConnections,
    ConnectionTrial,
    EstablishmentRate,
    InstanceConnections,
    Phase,
    StatefulDensity,
    StatefulRecord,
    TableCapacity,
    TearDown,
)
from resources.libraries.python.studies.stateful.model.spec import StatefulSpec
from resources.libraries.python.studies.stateful.planning.cost import cost
from resources.libraries.python.studies.stateful.search.capacity import search_capacity
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.roles.connections import Stateful

_log = logging.getLogger(__name__)
_LEAST_CPS = 500.0
"""Of each instance: the lowest rate that is tried."""
_FEW = 50
"""Connections of each instance that are opened at that rate before anything else."""
_ATTEMPTS = 5
_FIRST_ENTRIES = 1024
"""Where a search of the capacity begins if a table does not say its limit."""
_IN_TIME = 0.8
"""Share of the timeout of entries that filling the tables may take."""
_MOST_FAILED = 3
"""Consecutive failed cells that end the study."""


class CellMeasured(Frozen):
    """A cell that is complete; what was deployed for it is removed."""

    line: Literal["cell"] = "cell"
    cell: CellConnections


class StatefulJournal(StepJournal[CellMeasured]):
    """A journal of cells; a context manager."""

    FILE = "stateful.jsonl"
    KIND = "study of stateful density"
    ROWS = TypeAdapter(CellMeasured)


@dataclass(frozen=True, slots=True)
class CellEnded:
    """A cell was measured, carried over, or failed."""

    number: int
    of: int
    name: str
    cell: CellConnections | None
    failed: str | None
    measured: bool
    """Whether it was measured now."""


class ConnectionCell:
    """A deployed cell whose tables are emptied before, and counted after, every trial.

    Args:
        cell: Deployed.
        spec: The study.

    Raises:
        Unsupported: No network function of it has a table that can be read.
    """

    def __init__(self, cell: CellUnderTest, spec: StatefulSpec) -> None:
        functions = cell.deployment.parts.functions
        if not isinstance(functions, Stateful) or not (tables := functions.hold_connections(spec.timeout_s)):
            raise Unsupported(f"tables of {spec.kind} cannot be read on this testbed")
        self._cell = cell
        self._spec = spec
        self._functions = functions
        self.tables: Mapping[str, ConnectionTable] = dict(sorted(tables.items()))
        """As configured, by name of the network function."""
        self._of_instance = [
            [function.name for function in cell.deployment.plan.functions if function.instance == instance]
            for instance in range(1, cell.deployment.plan.cell.nf_chains + 1)
        ]
        self.trials: list[ConnectionTrial] = []

    @property
    def instances(self) -> int:
        """Service instances."""
        return len(self._of_instance)

    @property
    def limit(self) -> int | None:
        """Configured limit of the smallest table; None where one says none."""
        limits = [table.limit for table in self.tables.values()]
        known = [limit for limit in limits if limit is not None]
        return min(known) if len(known) == len(limits) else None

    def tear_down(self) -> TearDown:
        """Delete all entries of all tables at the same time, and verify that none is left.

        Raises:
            SystemBroken: Entries are left.
        """
        found = self._functions.delete_connections()
        if left := {name: each.left for name, each in found.items() if each.left}:
            rest = ", ".join(starmap("{} of {}".format, ((count, name) for name, count in left.items())))
            raise SystemBroken(f"entries are left after the deletion of all: {rest}")
        rows = [found[name] for name in self.tables]
        return TearDown(
            entries=tuple(row.entries for row in rows),
            seconds=tuple(row.seconds for row in rows),
            total_s=(max(row.ended_ns for row in rows) - min(row.began_ns for row in rows)) / 1e9,
        )

    def open(self, trial: Trial, phase: Phase) -> TrialResult:
        """Empty the tables, open a connection with each packet of a trial, and count the entries.

        Returns:
            The result; a packet counts as received where its connection is established.

        Raises:
            SystemBroken: The tables cannot be emptied, or a part is not well.
        """
        self.tear_down()
        before = self._functions.connection_tables()
        asked = trial.model_copy(
            update={
                "frame": with_flows(self._spec.frame, MOST_FLOWS),
                "only": Direction.FORWARD,
                "protocol": Protocol.UDP,
                "purpose": "connections",
            }
        )
        result = judged(self._cell.measure(asked))
        after = self._functions.connection_tables()
        opened = tuple(
            InstanceConnections(
                sent=flow.sent,
                arrived=flow.received,
                entries=min(after[name].entries for name in self._of_instance[flow.instance - 1]),
            )
            for flow in sorted(result.flows, key=lambda flow: flow.instance)
        )
        self.trials.append(
            ConnectionTrial(
                phase=phase,
                load_cps=trial.load_pps,
                duration_s=trial.duration_s,
                instances=opened,
                **{
                    name: _grown(
                        [getattr(before[table], name) for table in after],
                        [getattr(each, name) for each in after.values()],
                    )
                    for name in ("failed", "dropped", "evicted")
                },
                counts=result.is_evidence,
            )
        )
        flows = tuple(
            flow.model_copy(update={"received": opened[flow.instance - 1].established}) for flow in result.flows
        )
        return result.model_copy(update={"flows": flows, "trial": trial})

    def check(self) -> None:
        """Open a few connections of each instance at a low rate.

        Raises:
            NoTraffic: Some are not established.
        """
        few = self._whole(_FEW, _LEAST_CPS * self.instances, Phase.FIRST)
        if not few.complete:
            rows = (f"{each.established} of {each.sent} of instance {n}" for n, each in enumerate(few.instances, 1))
            raise NoTraffic(f"connections are not established at {few.load_cps:g} per second: {', '.join(rows)}")

    def fill_whole(self, entries: int, load_cps: float) -> None:
        """Open so many connections of each instance for a tear-down."""
        self._whole(entries, load_cps, Phase.TEAR_DOWN)

    def _whole(self, entries: int, load_cps: float, phase: Phase) -> ConnectionTrial:
        """Open connections; again, where a pause of the host has lost some."""
        for _ in range(_ATTEMPTS):
            made = self.fill(entries, load_cps, phase)
            if made.complete:
                break
        return made

    def fill(self, entries: int, load_cps: float, phase: Phase) -> ConnectionTrial:
        """Open so many connections of each instance."""
        trial = Trial(load_pps=load_cps, duration_s=entries * self.instances / load_cps, frame=self._spec.frame)
        self.open(trial, phase)
        return self.trials[-1]


def _grown(before: list[int | None], after: list[int | None]) -> int | None:
    """Growth of a counter, of all tables; None where one does not have it."""
    pairs = list(zip(before, after, strict=True))
    return (
        sum(late - early for early, late in pairs if early is not None and late is not None)
        if all(early is not None and late is not None for early, late in pairs)
        else None
    )


class StatefulTest:
    """Deploys each cell, measures it and keeps the draft of the record.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        spec: What to measure.
        environment: Fingerprint of the machine.
        on_progress: Called after each cell.

    Raises:
        ConfigError: More trials, or more time, than `model.bounds` allows, or a search without a goal of no loss.
    """

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        spec: StatefulSpec,
        environment: Environment,
        on_progress: Callable[[CellEnded], None] = lambda _: None,
    ) -> None:
        self._topology = topology
        self._world = world
        self.spec = spec
        self.cost = cost(spec)
        self._profile = _profile_of(spec)
        self._on_progress = on_progress
        self._journal: StatefulJournal | None = None
        self._known: dict[str, CellConnections] = {}
        self._deployed: CellUnderTest | None = None
        self._plans: dict[Cell, Plan] = {}
        self._skipped: dict[str, str] = {}
        self._failures: list[str] = []
        self.draft = Draft(StatefulRecord, topology, environment)
        self.draft.drivers = drivers_of(topology, spec.cells[0], world.drivers)
        self.draft.simulation = dict(world.simulation) if world.simulation is not None else None

    def plan(self) -> Plan:
        """Derive the plans of all cells; return the first one.

        Raises:
            PlanError: No cell fits.
            Unsupported: The generator cannot open connections.
        """
        generator = generators()[self._topology.tg.generator.driver]
        if not generator.opens_connections:
            raise Unsupported(f"the generator {generator.name} does not send each packet with another 5-tuple")
        self._plans, self._skipped = {}, {}
        for cell in self.spec.cells:
            try:
                self._plans[cell] = self._cell(cell).plan()
            except PlanError as error:
                self._skipped[_name(cell)] = str(error)
        if not self._plans:
            raise PlanError("; ".join(self._skipped.values()))
        self.cost = cost(self.spec, len(self._plans))
        self.draft.plan = first = next(iter(self._plans.values()))
        self.draft.warnings = list(first.warnings)
        return first

    def digest(self) -> str:
        """Digest of what is measured and of all plans: cells of the same digest are parts of one study."""
        self.plan()
        return digest_of(
            self.spec.model_dump_json(exclude={"least_measured"}), *(digest(plan) for plan in self._plans.values())
        )

    def resume(self, journal: StatefulJournal) -> None:
        """Keep every cell in an open journal, and measure none again that it has."""
        self._journal = journal
        self._known = {row.cell.name: row.cell for row in journal.rows}

    @property
    def remark(self) -> str | None:
        """Progress of the run before it was resumed; None for a new one."""
        return f"{len(self._known)} cells were measured before the run was resumed" if self._known else None

    def measure(self) -> None:
        """Measure all cells; what was measured is in the draft, also when it ends early.

        Raises:
            SystemBroken: Several in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
        """
        done, failed = list[CellConnections](), 0
        for number, (cell, plan) in enumerate(self._plans.items(), 1):
            name = _name(cell)
            found, reason = self._known.get(name), ""
            if found is None:
                found, reason = self._step(cell, plan)
            if found is not None:
                done.append(found)
            failed = 0 if found is not None else failed + 1
            self.draft.stateful = StatefulDensity(spec=self.spec, cells=tuple(done), skipped=self._skipped)
            self._on_progress(CellEnded(number, len(self._plans), name, found, reason or None, name not in self._known))
            if failed == _MOST_FAILED:
                raise SystemBroken(f"{failed} cells in a row failed, the last one: {reason}")

    def result(self) -> StatefulDensity:
        """Result of the study.

        Raises:
            CsitError: Nothing was measured.
        """
        found: StatefulDensity | None = self.draft.stateful
        if found is None or not found.cells:
            raise CsitError("; ".join(self._failures) or "no cell was measured")
        return found

    def enough(self) -> None:
        """Check coverage against `least_measured`.

        Raises:
            CsitError: Too little was measured.
        """
        self.result().coverage.check("cells were measured", self.spec.least_measured, self._failures)

    def remove(self) -> str | None:
        """Remove what is deployed, if anything is; return what went wrong, None when nothing did."""
        deployed, self._deployed = self._deployed, None
        return deployed.remove(self.draft.plan) if deployed else None

    def _step(self, cell: Cell, plan: Plan) -> tuple[CellConnections | None, str]:
        outcome = measure_step(lambda: self._measure(cell, plan), self.remove)
        if outcome.row is None:
            self._failures.append(f"{_name(cell)}: {outcome.reason}")
            self.draft.warnings += [f"{_name(cell)} was not measured: {outcome.reason}", *outcome.removals]
            return None, outcome.reason
        row = outcome.row.model_copy(update={"notes": (*outcome.row.notes, *outcome.removals)})
        if self._journal is not None:
            self._journal.keep(CellMeasured(cell=row))
        return row, ""

    def _measure(self, cell: Cell, plan: Plan) -> CellConnections:
        spec = self.spec
        self.draft.plan = plan
        self._deployed = deployed = self._cell(cell)
        deployed.deploy(plan)
        if complaints := deployed.complaints(deployed.measure):
            raise NoTraffic("no traffic: " + "; ".join(complaints))
        connections = ConnectionCell(deployed, spec)
        connections.check()
        rate = self._rate(deployed, connections)
        load_cps = spec.share * rate.lower_cps
        connections.tear_down()
        empty = connections.tear_down()
        tear_downs = []
        for _ in range(spec.tear_downs):
            connections.fill_whole(_torn_down(spec, connections), load_cps)
            tear_downs.append(connections.tear_down())
        capacity = self._capacity(connections, load_cps) if spec.capacity else None
        self.draft.facts = deployed.deployment.facts()
        return CellConnections(
            instances=cell.nf_chains,
            nodes=cell.nf_nodes,
            plan=digest(plan),
            tables=dict(connections.tables),
            rate=rate,
            empty_s=empty.total_s,
            tear_downs=tuple(tear_downs),
            capacity=capacity,
            trials=tuple(connections.trials),
            checks=checks(spec, rate, connections.trials, tear_downs),
            notes=deployed.problems(),
        )

    def _rate(self, deployed: CellUnderTest, connections: ConnectionCell) -> EstablishmentRate:
        """Search the maximum connection establishment rate as NDR is searched."""
        spec, goal, instances = self.spec, self._profile.goals[0], connections.instances
        offered_cps = deployed.highest_loads().offered_pps
        most = MOST_FLOWS if connections.limit is None else min(MOST_FLOWS, int(spec.fill * connections.limit))
        fitting_cps = most * instances / goal.final_trial_duration_s
        clock = deployed.deployment.parts.clock
        begun_s, begun = clock(), len(connections.trials)
        outcome = search_throughput(
            lambda trial: connections.open(trial, Phase.RATE),
            self._profile,
            spec.frame,
            min(offered_cps, fitting_cps),
            clock,
            min_load_pps=_LEAST_CPS * instances,
        )
        search_s = clock() - begun_s
        found = outcome.goals[0]
        if found.lower_pps is None:
            raise NoTraffic(
                f"no rate without a failed connection was found down to {found.lowest_tried_pps or 0:,.0f} per second"
            )
        trials = connections.trials[begun:]
        at = next(each for each in reversed(trials) if each.load_cps == found.lower_pps)
        remarks = list(outcome.evidence)
        if found.upper_pps is None and fitting_cps <= offered_cps:
            remarks = [
                f"a trial of {goal.final_trial_duration_s:g} s at a higher rate fills more than {spec.fill:.0%} "
                f"of a table of {connections.limit or MOST_FLOWS:,} entries"
            ]
        return EstablishmentRate(
            lower_cps=found.lower_pps,
            upper_cps=found.upper_pps,
            by_instance_cps=tuple(each.established / at.duration_s for each in at.instances),
            complete=found.complete,
            trials=len(trials),
            search_s=search_s,
            sending_s=sum(each.total_duration_s for each in outcome.trials),
            remark="; ".join(remarks),
        )

    def _capacity(self, connections: ConnectionCell, load_cps: float) -> TableCapacity:
        """Search the most entries that all tables take at the same time."""
        instances, begun = connections.instances, len(connections.trials)
        in_time = int(_IN_TIME * self.spec.timeout_s * load_cps / instances)
        most = min(MOST_FLOWS, in_time)

        def passes(entries: int) -> bool:
            # Loss verification: what a pause of the host has lost is no limit of a table.
            return any(connections.fill(entries, load_cps, Phase.CAPACITY).complete for _ in range(2))

        lower, upper = search_capacity(passes, connections.limit or _FIRST_ENTRIES, most, self.spec.capacity_width)
        bound = "the generator's 5-tuples" if most == MOST_FLOWS else "the time after which entries expire"
        return TableCapacity(
            entries=lower,
            refused_at=upper,
            rate_cps=load_cps,
            trials=len(connections.trials) - begun,
            remark="" if upper is not None else f"{most:,} entries were still made, the most for {bound}",
        )

    def _cell(self, cell: Cell) -> CellUnderTest:
        asked = Asked(test_type=TestType.MRR, cell=cell, frame=self.spec.frame, profile=self._profile)
        return CellUnderTest(self._topology, self._world, asked)


def _torn_down(spec: StatefulSpec, connections: ConnectionCell) -> int:
    limit = connections.limit
    return spec.connections if limit is None else max(1, min(spec.connections, int(spec.fill * limit)))


def _name(cell: Cell) -> str:
    return f"{cell.nf_chains}x{cell.nf_nodes}"


def _profile_of(spec: StatefulSpec) -> SearchProfile:
    chosen = profile(spec.search)
    goals = tuple(goal for goal in chosen.goals if goal.name == NDR)
    if not goals:
        raise ConfigError(f"{spec.name}: search '{spec.search}' has no goal without loss; choose another profile")
    return chosen.model_copy(update={"goals": goals})

"""A study of stateful density from plan to record: the phases of its keywords, without Robot.

The method is that of RFC 9693: one packet for each new connection, from the initiator's side only; a rate counts when
every packet arrives and every table has an entry for it. Tables are emptied before each trial.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import ConfigError, NoTraffic, PlanError, SystemBroken, Unsupported
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.measurements.counters import ConnectionTable
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import MAX_FLOWS, Cell, Frame
from resources.libraries.python.model.request.frames import with_flows
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.linerate import max_rate
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.search.profiles import NDR, profile
from resources.libraries.python.search.session import judged
from resources.libraries.python.search.throughput import search_throughput
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.stateful.analysis import checks, headline, in_words, sentences, stateful_tables
from resources.libraries.python.studies.stateful.model import (
    CellConnections,
    ConnectionTrial,
    EstablishmentRate,
    InstanceConnections,
    Phase,
    StatefulDensity,
    StatefulRecord,
    StatefulSpec,
    TableCapacity,
    TearDown,
)
from resources.libraries.python.studies.stateful.planning import cost
from resources.libraries.python.testbed.deployment.cell import CellUnderTest


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of the connections of a trial, beside the system under test."""

    offered_cps: float
    """Highest rate that can be offered, aggregate."""
    most: int
    """Most connections of each instance in a trial."""
    full: str
    """What more of them would need."""
    line: str = ""
    """Why a line carries no higher rate; empty where the generator offers none."""


def most_one_way_pps(plan: Plan, frame: Frame, both_pps: float) -> tuple[float, str]:
    """Return the most packets per second in one direction, and the line that decides them.

    They fill the slowest port, where its speed is known; empty where the generator sends fewer.

    `both_pps`: most that can be offered in both directions, in sum. A generator whose directions share a CPU may reach
    as much in one.
    """
    line = max_rate(plan, frame)
    if line is None or line.direction_pps > both_pps:
        return both_pps, ""
    return line.direction_pps, line.reason


def search_rate(
    run: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    room: ConnectionLimits,
    clock: Callable[[], float],
    *,
    instances: int,
    least_cps: float,
) -> EstablishmentRate:
    """Search the highest rate at which all connections are established.

    `run`: runs a trial, whose load is new connections per second; what its result calls received is established.
    `profile`: with one goal, which allows no loss.
    `least_cps`: lowest rate, of each instance.

    Raises:
        NoTraffic: No rate is low enough.
    """
    final_s = profile.goals[0].final_trial_duration_s
    fitting_cps = room.most * instances / final_s
    begun_s = clock()
    outcome = search_throughput(
        run, profile, frame, min(room.offered_cps, fitting_cps), clock, min_load_pps=least_cps * instances
    )
    search_s = clock() - begun_s
    found = outcome.goals[0]
    if found.lower_pps is None:
        if found.lowest_tried_pps is None:
            count = len(outcome.trials)
            raise NoTraffic(f"no rate was decided by {count} trial{'s'[: count != 1]} in {search_s:.0f} s")
        early = "" if found.complete else f"; the search ended early, at its limit of {profile.duration_max_s:g} s"
        raise NoTraffic(
            f"no rate without a failed connection was found down to {found.lowest_tried_pps:,.0f} per second{early}"
        )
    at = next(each for each in reversed(outcome.trials) if each.trial.load_pps == found.lower_pps)
    remarks = [finding.text for finding in outcome.findings]
    if found.upper_pps is None and fitting_cps <= room.offered_cps:
        remarks = [f"a trial of {final_s:g} s at a higher rate {room.full}"]
    elif found.upper_pps is None and room.line:
        remarks.append(f"a line carries no more connections in one direction, of one packet each ({room.line})")
    return EstablishmentRate(
        lower_cps=found.lower_pps,
        upper_cps=found.upper_pps,
        by_instance_cps=tuple(
            each.received / at.trial.duration_s for each in sorted(at.flows, key=lambda flow: flow.instance)
        ),
        complete=found.complete,
        trials=len(outcome.trials),
        search_s=search_s,
        sending_s=sum(each.total_duration_s for each in outcome.trials),
        remark="; ".join(remarks),
    )


MIN_CPS = 500.0
"""Of each instance: the lowest rate that is tried."""
_FEW = 50
"""Connections of each instance that are opened at that rate before anything else."""
_ATTEMPTS = 5
_FIRST_ENTRIES = 1024
"""Where a search of the capacity begins if a table does not say its limit."""
_IN_TIME = 0.8
"""Share of the timeout of entries that filling the tables may take."""


class ConnectionCell:
    """A deployed cell whose tables are emptied before, and counted after, every trial.

    Raises:
        Unsupported: No network function of it has a table that can be read.
    """

    def __init__(self, cell: CellUnderTest, spec: StatefulSpec) -> None:
        functions = cell.deployment.parts.functions
        if not (tables := functions.hold_connections(spec.timeout_s)):
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
        self.emptied_s = 0.0
        """Time that deletions have taken, in sum."""
        self._counted: Mapping[str, ConnectionTable] = self.tables
        """After the last trial; no deletion changes its counters of failures."""

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
        """Delete all entries of all tables, and verify that none is left.

        Raises:
            SystemBroken: Entries are left.
        """
        found = self._functions.delete_connections()
        if left := {name: each.left for name, each in found.items() if each.left}:
            rest = ", ".join(starmap("{} of {}".format, ((count, name) for name, count in left.items())))
            raise SystemBroken(f"entries are left after the deletion of all: {rest}")
        rows = [found[name] for name in self.tables]
        total_s = (max(row.ended_ns for row in rows) - min(row.began_ns for row in rows)) / 1e9
        self.emptied_s += total_s
        return TearDown(
            entries=tuple(row.entries for row in rows), seconds=tuple(row.seconds for row in rows), total_s=total_s
        )

    def open(self, trial: Trial, phase: Phase) -> TrialResult:
        """Empty the tables, open the connections of a trial, and count the entries.

        Returns:
            The result; a packet counts as received where its connection is established.

        Raises:
            SystemBroken: The tables cannot be emptied, or a part is not well.
        """
        self.tear_down()
        before = self._counted
        asked = trial.model_copy(
            update={
                "frame": with_flows(self._spec.frame, MAX_FLOWS),
                "only": Direction.FORWARD,
                "protocol": Protocol.UDP,
                "purpose": "connections",
            }
        )
        result = judged(self._cell.measure(asked))
        after = self._counted = self._functions.connection_tables()
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
        few = self.fill_whole(_FEW, MIN_CPS * self.instances, Phase.FIRST)
        if not few.complete:
            rows = (f"{each.established:,} of {each.sent:,} of instance {n}" for n, each in enumerate(few.instances, 1))
            raise NoTraffic(f"connections are not established at {few.load_cps:g} per second: {', '.join(rows)}")

    def fill_whole(self, entries: int, load_cps: float, phase: Phase) -> ConnectionTrial:
        """Open so many connections of each instance; again, where a pause of the host has lost some."""
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


def search_capacity(passes: Callable[[int], bool], guess: int, most: int, width: float) -> tuple[int, int | None]:
    """Search the most entries of which all can be made: steps of growing size from a guess, then bisection (RFC 9693).

    The guess, such as the configured limit of a table, only decides where to begin: both bounds are tried.

    `passes`: tries so many entries, at least 1; returns whether all were made.
    `width`: relative width of the bounds at which the search ends.

    Returns:
        The most that passed, 0 if none did, and the fewest that did not; None where `most` passed.
    """
    low, high = 0, most + 1
    entries = max(1, min(guess, most))
    step = max(1, int(width * entries))
    while low == 0 or high > most:
        if passes(entries):
            low = entries
            if low == most:
                return low, None
            entries = min(entries + step, high - 1) if high > most else entries
        else:
            high = entries
            if high == 1:
                return 0, 1
            entries = max(1, entries - step)
        step *= 2
    while high - low > max(1, int(width * low)):
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low, high


class StatefulTest(StepStudy[StatefulSpec, Cell, CellConnections, StatefulDensity]):
    """Deploys each cell and measures its connections."""

    RECORD = StatefulRecord
    ROW = CellConnections
    MEASURED = "cells were measured"
    SPECIFICATION = StatefulSpec
    tables = staticmethod(stateful_tables)
    headline = staticmethod(headline)
    sentences = staticmethod(sentences)

    def set_up(self) -> None:
        self.cost = cost(self.spec)
        self._profile = _profile_of(self.spec)
        self._plans: dict[Cell, Plan] = {}
        self._skipped: dict[str, str] = {}
        self.draft.drivers = drivers_of(self._topology, self.spec.cells[0], self._world.drivers)

    def plan(self) -> None:
        """Derive the plans of all cells.

        Raises:
            PlanError: No cell fits.
            Unsupported: The generator cannot open connections.
        """
        generator = generators()[self._topology.tg.generator.driver]
        if not generator.opens_connections:
            raise Unsupported(f"the generator {generator.name} does not send each packet with another 5-tuple")
        for cell in self.spec.cells:
            try:
                self._plans[cell] = self.cell_of(cell).plan()
            except PlanError as error:
                self._skipped[self.key(cell)] = str(error)
        if not self._plans:
            raise PlanError("; ".join(self._skipped.values()))
        self.cost = cost(self.spec, len(self._plans))
        *_, self.draft.plan = self._plans.values()

    def preview(self) -> list[str]:
        return [f"{self.cost.steps} cells of {self.spec.kind}{self.about}"]

    def steps(self) -> Iterator[Sequence[Cell]]:
        yield tuple(self._plans)

    def key(self, cell: Cell) -> str:
        return f"{cell.nf_chains}x{cell.nf_nodes}"

    def in_words(self, row: CellConnections) -> str:
        return in_words(row)

    def plan_of(self, cell: Cell) -> Plan:
        return self._plans[cell]

    def cell_of(self, cell: Cell) -> CellUnderTest:
        return self.under_test(cell, self.spec.frame, self._profile)

    def analyse(self, cells: Sequence[CellConnections]) -> StatefulDensity:
        first = next(iter(self._plans.values()))
        self.draft.warnings = [*first.warnings, *self.notes]
        return StatefulDensity(spec=self.spec, cells=tuple(cells), skipped=self._skipped)

    def measure(self, cell: Cell) -> CellConnections:
        spec = self.spec
        deployed = self.deploy(cell)
        plan = deployed.deployment.plan
        deployed.verify_traffic()
        # Found in both directions, as what was sent until now; connections are opened in one.
        most_pps, line = most_one_way_pps(plan, spec.frame, deployed.highest_loads().offered_pps)
        connections = ConnectionCell(deployed, spec)
        connections.check()
        rate = self._rate(deployed, connections, most_pps, line)
        load_cps = spec.share * rate.lower_cps
        connections.tear_down()
        empty = connections.tear_down()
        limit, entries = connections.limit, spec.connections
        if limit is not None:
            entries = max(1, min(entries, int(spec.fill * limit)))
        tear_downs = []
        for _ in range(spec.tear_downs):
            connections.fill_whole(entries, load_cps, Phase.TEAR_DOWN)
            tear_downs.append(connections.tear_down())
        return CellConnections(
            instances=cell.nf_chains,
            nodes=cell.nf_nodes,
            plan=digest_of_model(plan),
            tables=dict(connections.tables),
            rate=rate,
            empty_s=empty.total_s,
            tear_downs=tuple(tear_downs),
            capacity=self._capacity(connections, load_cps) if spec.capacity else None,
            trials=tuple(connections.trials),
            checks=checks(spec, rate, connections.trials, tear_downs),
            notes=deployed.problems(),
        )

    def _rate(
        self, deployed: CellUnderTest, connections: ConnectionCell, most_pps: float, line: str
    ) -> EstablishmentRate:
        """Search the maximum connection establishment rate, up to a load, which may be a line's, as NDR is searched."""
        limit = connections.limit
        most = MAX_FLOWS if limit is None else min(MAX_FLOWS, int(self.spec.fill * limit))
        emptied_s = connections.emptied_s
        full = f"fills more than {self.spec.fill:.0%} of a table of {limit or MAX_FLOWS:,} entries"
        found = search_rate(
            partial(connections.open, phase=Phase.RATE),
            self._profile,
            self.spec.frame,
            ConnectionLimits(most_pps, most, full, line),
            deployed.deployment.parts.clock,
            instances=connections.instances,
            least_cps=MIN_CPS,
        )
        return found.model_copy(update={"emptying_s": connections.emptied_s - emptied_s})

    def _capacity(self, connections: ConnectionCell, load_cps: float) -> TableCapacity:
        """Search the most entries that all tables take at the same time."""
        instances, begun = connections.instances, len(connections.trials)
        in_time = int(_IN_TIME * self.spec.timeout_s * load_cps / instances)
        most = min(MAX_FLOWS, in_time)

        def passes(entries: int) -> bool:
            # What a pause of the host has lost before any table is no limit of a table.
            first = connections.fill(entries, load_cps, Phase.CAPACITY)
            second = first if first.complete else connections.fill(entries, load_cps, Phase.CAPACITY)
            return not (first.refused and second.refused)

        _, upper = search_capacity(passes, connections.limit or _FIRST_ENTRIES, most, self.spec.capacity_width)
        trials = connections.trials[begun:]
        largest = max((each for each in trials if not each.refused), key=lambda each: each.held, default=None)
        held = largest.held if largest is not None else 0
        refused_at = min((each.reached for each in trials if each.refused), default=None)
        remarks = []
        if largest is not None and (lost := sum(row.sent - row.arrived for row in largest.instances)):
            remarks.append(
                f"of {sum(row.sent for row in largest.instances):,} connections of the trial with the most entries, "
                f"{lost:,} were lost before any table"
            )
        bound = "the generator's 5-tuples" if most == MAX_FLOWS else "the time after which entries expire"
        if upper is None:
            remarks.append(f"{held:,} entries were still made, the most for {bound}")
        return TableCapacity(
            entries=held,
            refused_at=None if refused_at is None else max(refused_at, held + 1),
            rate_cps=load_cps,
            trials=len(trials),
            remark="; ".join(remarks),
        )


def _profile_of(spec: StatefulSpec) -> SearchProfile:
    chosen = profile(spec.search)
    goals = tuple(goal for goal in chosen.goals if goal.name == NDR)
    if not goals:
        raise ConfigError(f"{spec.name}: search '{spec.search}' has no goal without loss; choose another profile")
    return chosen.model_copy(update={"goals": goals})

"""A study of stateful density from plan to record: the phases of its keywords, without Robot.

The method is that of RFC 9693: one packet for each new connection, from the initiator's side only; a rate counts when
every packet arrives and every table has an entry for it. Tables are emptied before each trial.
"""

from collections.abc import Iterator, Sequence

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import ConfigError, PlanError, Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import MAX_FLOWS, Cell
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.planning.plan import digest, drivers_of
from resources.libraries.python.search.profiles import NDR, profile
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.stateful.analysis import checks, in_words, stateful_tables
from resources.libraries.python.studies.stateful.connection_cell import MIN_CPS, ConnectionCell
from resources.libraries.python.studies.stateful.model.record import (
    CellConnections,
    EstablishmentRate,
    Phase,
    StatefulDensity,
    StatefulRecord,
    TableCapacity,
)
from resources.libraries.python.studies.stateful.model.spec import StatefulSpec, load_stateful
from resources.libraries.python.studies.stateful.planning import cost
from resources.libraries.python.studies.stateful.rate import ConnectionLimits, most_one_way_pps, search_rate
from resources.libraries.python.studies.stateful.search import search_capacity
from resources.libraries.python.testbed.deployment.cell import CellUnderTest

_FIRST_ENTRIES = 1024
"""Where a search of the capacity begins if a table does not say its limit."""
_IN_TIME = 0.8
"""Share of the timeout of entries that filling the tables may take."""


class StatefulTest(StepStudy[StatefulSpec, Cell, CellConnections, StatefulDensity]):
    """Deploys each cell and measures its connections."""

    RECORD = StatefulRecord
    ROW = CellConnections
    MEASURED = "cells were measured"
    read = staticmethod(load_stateful)
    tables = staticmethod(stateful_tables)

    @classmethod
    def headline(cls, found: StatefulDensity) -> str:
        return f"{found.spec.name}: {len(found.cells)} cells"

    @classmethod
    def sentences(cls, found: StatefulDensity) -> Iterator[str]:
        return (f"{cell.name}: {in_words(cell)}" for cell in found.cells)

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
        tear_downs = []
        for _ in range(spec.tear_downs):
            connections.fill_whole(_torn_down(spec, connections), load_cps)
            tear_downs.append(connections.tear_down())
        return CellConnections(
            instances=cell.nf_chains,
            nodes=cell.nf_nodes,
            plan=digest(plan),
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
            connections.open_for_rate,
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


def _torn_down(spec: StatefulSpec, connections: ConnectionCell) -> int:
    limit = connections.limit
    return spec.connections if limit is None else max(1, min(spec.connections, int(spec.fill * limit)))


def _profile_of(spec: StatefulSpec) -> SearchProfile:
    chosen = profile(spec.search)
    goals = tuple(goal for goal in chosen.goals if goal.name == NDR)
    if not goals:
        raise ConfigError(f"{spec.name}: search '{spec.search}' has no goal without loss; choose another profile")
    return chosen.model_copy(update={"goals": goals})

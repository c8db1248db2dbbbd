"""A deployed cell whose tables are emptied before, and counted after, every trial."""

from collections.abc import Mapping
from itertools import starmap

from resources.libraries.python.errors import NoTraffic, SystemBroken, Unsupported
from resources.libraries.python.model.measurements.connections import ConnectionTable
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.request.cell import MAX_FLOWS
from resources.libraries.python.model.request.frames import with_flows
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.search.session import judged
from resources.libraries.python.studies.stateful.model.record import (
    ConnectionTrial,
    InstanceConnections,
    Phase,
    TearDown,
)
from resources.libraries.python.studies.stateful.model.spec import StatefulSpec
from resources.libraries.python.testbed.deployment.cell import CellUnderTest

MIN_CPS = 500.0
"""Of each instance: the lowest rate that is tried."""
_FEW = 50
"""Connections of each instance that are opened at that rate before anything else."""
_ATTEMPTS = 5


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

    def open_for_rate(self, trial: Trial) -> TrialResult:
        """As `open`, in the search of the rate."""
        return self.open(trial, Phase.RATE)

    def check(self) -> None:
        """Open a few connections of each instance at a low rate.

        Raises:
            NoTraffic: Some are not established.
        """
        few = self._whole(_FEW, MIN_CPS * self.instances, Phase.FIRST)
        if not few.complete:
            rows = (f"{each.established:,} of {each.sent:,} of instance {n}" for n, each in enumerate(few.instances, 1))
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

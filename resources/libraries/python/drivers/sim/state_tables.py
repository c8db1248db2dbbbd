"""Tables of connections in a simulated system, connection by connection.

The truth is a hash table with chains in front of a bounded queue. Each network function has a table of `buckets` random
buckets; a new connection walks along its bucket's chain before it is inserted, so that its cost grows as the table
fills. Packets wait in a queue for the thread that does this work; what does not fit there is lost, without an entry. A
full table refuses new connections or evicts an entry of another bucket. Nothing here knows of a rate or a
capacity in connections per second: these follow.
"""

from enum import StrEnum
from random import Random
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.counters import ConnectionTable, Deletion
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.quantities import rates

_GROUP = 64
"""Packets whose work is added up at once."""
_DEFAULT_TIMEOUT_S = 30
Nanoseconds = Annotated[float, Field(ge=0)]


class FullTablePolicy(StrEnum):
    """Behaviour of a full table at a new connection."""

    REFUSE = "refuse"
    EVICT = "evict"


class StateTables(Frozen):
    """Parameters of all tables."""

    buckets: Annotated[int, Field(ge=1, le=1 << 24)] = 65_536
    limit: Annotated[int, Field(ge=1)] = 262_144
    reports_limit: bool = True
    insert_ns: Nanoseconds = 1500.0
    """Work for a packet of a new connection, beside the walk along the chain."""
    link_ns: Nanoseconds = 100.0
    """For each entry of the chain before it."""
    queue: Annotated[int, Field(ge=1)] = 1024
    """Packets that wait."""
    delete_ns: Nanoseconds = 250.0
    """Work for the deletion of an entry."""
    walk_ns: Nanoseconds = 2.0
    """For each bucket that a deletion passes."""
    when_full: FullTablePolicy = FullTablePolicy.EVICT
    paused_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the trials in which the host stands still until the queue overflows by a tenth of its size."""
    host_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the speed of a table's thread that each other table takes."""


class SimulatedTable:
    """The table of one network function.

    `key`: Seed of its hash function.
    `others`: Tables on the same machine.
    """

    def __init__(self, truth: StateTables, key: str, others: int) -> None:
        self._truth = truth
        self._rng = np.random.default_rng(list(key.encode()))
        self._slowed = 1 + truth.host_share * others
        self._chains = np.zeros(truth.buckets, dtype=np.int64)
        self.timeout_s = _DEFAULT_TIMEOUT_S
        self.entries = self.dropped = self.evicted = 0

    @property
    def state(self) -> ConnectionTable:
        """As a driver reads it."""
        truth = self._truth
        return ConnectionTable(
            entries=self.entries,
            limit=truth.limit if truth.reports_limit else None,
            buckets=truth.buckets,
            timeout_s=self.timeout_s,
            failed=0,
            dropped=self.dropped,
            evicted=self.evicted,
        )

    def open(self, connections: int, rate_cps: float) -> int:
        """Let the first packets of connections arrive at equal distances; return how many pass."""
        truth, waiting_ns, passed = self._truth, 0.0, 0
        all_buckets = self._rng.integers(0, truth.buckets, connections)
        for first in range(0, connections, _GROUP):
            buckets = all_buckets[first : first + _GROUP]
            group = len(buckets)
            work_ns = self._slowed * (truth.insert_ns + truth.link_ns * self._chains[buckets])
            total_ns = float(np.add.reduce(work_ns))
            mean_ns = total_ns / group
            time_ns = group * 1e9 / rate_cps
            room = max(0, int((truth.queue * mean_ns + time_ns - waiting_ns) / mean_ns)) if mean_ns else group
            if room < group:
                buckets, total_ns = buckets[:room], float(np.add.reduce(work_ns[:room]))
            waiting_ns = max(0.0, waiting_ns + total_ns - time_ns)
            passed += self._insert(buckets)
        return passed

    def _insert(self, buckets: NDArray[np.int64]) -> int:
        """Make entries; return how many packets pass."""
        free = max(0, self._truth.limit - self.entries)
        np.add.at(self._chains, buckets[:free], 1)
        self.entries += min(free, len(buckets))
        surplus = buckets[free:]
        if len(surplus) and self._truth.when_full is FullTablePolicy.REFUSE:
            self.dropped += len(surplus)
            return min(free, len(buckets))
        if len(surplus):
            # As many others go, of random buckets that have any, so the number of entries stays.
            np.add.at(self._chains, surplus, 1)
            victims = self._rng.choice(np.flatnonzero(self._chains), len(surplus), replace=False)
            self._chains[victims] -= 1
            self.evicted += len(surplus)
        return len(buckets)

    def delete(self, now_s: float) -> tuple[Deletion, float]:
        """Delete all entries; return the record, and how long it took, in seconds."""
        entries, truth = self.entries, self._truth
        took_s = self._slowed * (entries * truth.delete_ns + truth.buckets * truth.walk_ns) / 1e9
        self._chains[:] = 0
        self.entries = 0
        began_ns = round(now_s * 1e9)
        return Deletion(entries=entries, left=0, began_ns=began_ns, ended_ns=began_ns + round(took_s * 1e9)), took_s


class SimulatedTables:
    """All tables of a simulated cell.

    `clock`: goes on with trials and deletions.
    """

    def __init__(self, plan: Plan, truth: StateTables, clock: VirtualClock, key: str) -> None:
        self._plan, self._clock = plan, clock
        self._truth = truth
        self._pauses = Random(f"{key}/pauses")  # noqa: S311 (reproducible, not secret)
        stateful = [nf for nf in plan.functions if nf.kind.driver.tracks_connections]
        self._tables = {nf.name: SimulatedTable(truth, f"{key}/{nf.name}", len(stateful) - 1) for nf in stateful}

    def states(self) -> dict[str, ConnectionTable]:
        """States of all tables by name of the network function."""
        return {name: table.state for name, table in self._tables.items()}

    def hold(self, timeout_s: int) -> dict[str, ConnectionTable]:
        """Set all timeouts."""
        for table in self._tables.values():
            table.timeout_s = timeout_s
        return self.states()

    def delete(self) -> dict[str, Deletion]:
        """Delete all entries of all tables at the same time, in virtual time."""
        done = {name: table.delete(self._clock.now()) for name, table in self._tables.items()}
        self._clock.advance(max((took_s for _, took_s in done.values()), default=0.0))
        return {name: deletion for name, (deletion, _) in done.items()}

    def run(self, trial: Trial, limit_pps: float, overhead_s: float) -> TrialResult:
        """Run a trial each of whose packets is the first one of a connection."""
        started_at, limited = self._clock.timestamp(), trial.load_pps > limit_pps * (1 + 1e-9)
        load_cps = min(trial.load_pps, limit_pps)
        flows = [flow for flow in self._plan.flows if flow.direction is (trial.only or Direction.FORWARD)]
        each = round(load_cps / len(flows) * trial.duration_s)
        paused = self._pauses.random() < self._truth.paused_share
        counts = []
        for flow in flows:
            passing = max(0, each - self._truth.queue // 10) if paused else each
            along = (nf for nf in self._plan.functions if nf.instance == flow.instance)
            for nf in sorted(along, key=lambda nf: nf.node):
                if (table := self._tables.get(nf.name)) is not None:
                    passing = table.open(passing, load_cps / len(flows))
            counts.append(FlowCount(instance=flow.instance, direction=flow.direction, sent=each, received=passing))
        total_s = trial.duration_s + overhead_s
        self._clock.advance(total_s)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=trial.duration_s,
            total_duration_s=total_s,
            flows=tuple(counts),
            generator_limited=limited,
            note=f"the generator reached {' of '.join(rates(limit_pps, trial.load_pps))}" if limited else None,
        )

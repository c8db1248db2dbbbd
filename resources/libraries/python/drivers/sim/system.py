"""The simulated testbed behind the three `sim` drivers: runs trials in virtual time and keeps per-hop counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from resources.libraries.python.drivers.sim.abort import forward
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.latency import FlowShape, flow_latency, simulate_latency
from resources.libraries.python.drivers.sim.models import Model, make_model
from resources.libraries.python.drivers.sim.simulation import OVERHEAD_BYTES, Simulation
from resources.libraries.python.drivers.sim.truth import Truth
from resources.libraries.python.drivers.sim.work import Work
from resources.libraries.python.model.cell import Frame, TestType
from resources.libraries.python.model.counters import InterfaceCounters, Sample
from resources.libraries.python.model.plan import Flow, Path, Plan
from resources.libraries.python.model.trial import FlowCount, FlowLatency, Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR, VSWITCH

_DIRECTIONS = 2
_LATENCY_SPREAD = 0.02


@dataclass(slots=True)
class _FlowState:
    """A flow and what has gone through it since the beginning."""

    flow: Flow
    path: Path
    loss_weight: float
    shape: FlowShape
    offered: int = 0
    lost: dict[int, int] = field(default_factory=dict)
    """What the system under test could not forward, by the index of the first hop that did not count it."""

    @property
    def forwarded(self) -> int:
        """What the system under test would have delivered, were no hop broken."""
        return self.offered - sum(self.lost.values())

    def add(self, offered: int, lost: int, hop: int) -> None:
        """Count packets; those that are lost are not counted at `hop` and beyond."""
        self.offered += offered
        self.lost[hop] = self.lost.get(hop, 0) + lost

    def reaching(self, hop: int) -> int:
        """Packets that a hop counts, were no hop broken."""
        return self.offered - sum(lost for first, lost in self.lost.items() if first <= hop)


class SimulatedSystem:
    """All of one simulated cell: generator, vSwitch, NFs.

    Results depend on the simulation's seed, the cell, the test type and the frame, never on what ran before.

    Args:
        plan: The cell.
        simulation: Its behaviour.
        clock: Goes on with each trial.
        test_type: What the test measures.
    """

    def __init__(self, plan: Plan, simulation: Simulation, clock: VirtualClock, test_type: TestType) -> None:
        self.plan = plan
        self.simulation = simulation
        self.clock = clock
        self.running: set[str] = set()
        """Owners that have been started; packets end where they meet another."""
        self._key = f"{simulation.seed}/{plan.cell.model_dump_json()}/{test_type}"
        self._rngs: dict[str, Random] = {}
        self._truth = Truth(plan, simulation)
        self._work = Work(plan, self._truth.idle())
        self._loaded = False
        rng = Random(self._key)  # noqa: S311 (reproducible, not secret)
        paths = {(path.instance, path.direction): path for path in plan.paths}
        self._flows = [
            _FlowState(
                flow,
                path := paths[flow.instance, flow.direction],
                loss_weight=max(0.0, 1 + simulation.unfairness * rng.uniform(-1, 1)),
                shape=_shape(path, 1 + rng.uniform(-1, 1) * _LATENCY_SPREAD),
            )
            for flow in plan.flows
        ]

    def maximum_pps(self, frame: Frame) -> float:
        """Line rate of both directions together."""
        return _DIRECTIONS * self.simulation.line_rate_pps * (64 + OVERHEAD_BYTES) / (frame.mean_bytes + OVERHEAD_BYTES)

    def capacity_pps(self, frame: Frame) -> float:
        """The truth: aggregate packets per second that the cell can forward."""
        return self._truth.capacity_pps(frame)

    def model(self, frame: Frame) -> Model:
        """The system under test, which knows the truth for any loss ratio."""
        return make_model(self.simulation, self.capacity_pps(frame))

    def limit_owners(self, frame: Frame) -> frozenset[str]:
        """The truth: whose loss it is when more is offered than the cell can forward."""
        return self._truth.limit_owners(frame)

    def run(self, trial: Trial) -> TrialResult:
        """Run one trial."""
        started_at = self.clock.timestamp()
        limit_pps = min(self.maximum_pps(trial.frame), self.simulation.generator_max_pps or float("inf"))
        # Equal within rounding of floats is equal.
        limited = trial.load_pps > limit_pps * (1 + 1e-9)
        load_pps = min(trial.load_pps, limit_pps)
        rng = self._rng(trial.frame)
        done = forward(self.model(trial.frame), load_pps, trial.duration_s, rng, trial.abort_loss_ratio)
        sent, received = done.sent, done.received
        sent_each = _split(sent, [1.0] * len(self._flows))
        owners = self.limit_owners(trial.frame)
        weights = [state.loss_weight * _crosses(state.path, owners) for state in self._flows]
        lost_each = _split(sent - received, weights, sent_each)
        self._loaded |= trial.purpose in {"search", "mrr"}
        for owner, rate_pps in self._truth.rates(trial.frame, self.maximum_pps(trial.frame)).items():
            self._work.add(owner, load_pps / rate_pps, done.duration_s)
        counts = []
        for state, sent_here, lost_here in zip(self._flows, sent_each, lost_each, strict=True):
            state.add(sent_here, lost_here, self._limit_hop(state.path, owners))
            arrived = 0 if self._ends_at(state) < len(state.path.hops) else sent_here - lost_here
            counts.append(
                FlowCount(
                    instance=state.flow.instance,
                    direction=state.flow.direction,
                    sent=sent_here,
                    received=arrived,
                )
            )
        arriving = received / sent if sent else 1.0
        probed = self._flows if trial.probe_pps > 0 else ()
        latency = tuple(self._latency(state, trial, done.duration_s, load_pps, arriving) for state in probed)
        total_s = done.duration_s + self.simulation.overhead_s
        self.clock.advance(total_s)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=done.duration_s,
            total_duration_s=total_s,
            flows=tuple(counts),
            latency=latency,
            aborted=done.aborted,
            generator_limited=limited,
            note=f"the generator reached {limit_pps:.0f} pps of {trial.load_pps:.0f} pps" if limited else None,
        )

    def counters(self, owners: frozenset[str]) -> dict[str, InterfaceCounters]:
        """Counters of the interfaces of some owners."""
        rows = {
            port.interface: [0, 0, 0, 0]
            for link in self.plan.links
            for port in (link.a, link.b)
            if port.owner in owners
        }
        for state in self._flows:
            self._count(state, rows)
        return {name: InterfaceCounters(*row) for name, row in rows.items()}

    def sample(self) -> Sample:
        """How data threads and their CPUs have spent their time."""
        return self._work.sample()

    def moved(self) -> frozenset[str]:
        """Interfaces whose data threads have left their planned CPU."""
        return frozenset(self.simulation.moved if self._loaded else ())

    def _limit_hop(self, path: Path, owners: frozenset[str]) -> int:
        """Index of the first hop that does not count what the limit loses.

        That is where the owner of the limit receives. Between the vSwitch and NFs, and from NF to NF, the sender counts
        the drops, as its ring to the receiver is full, so the sending hop before does not count them either.
        """
        index = next((i for i, hop in enumerate(path.hops) if hop.owner in owners and hop.counter == "rx"), 1)
        if self.simulation.drops_inside:
            return index + 1
        return index if index == 1 else index - 1

    def _count(self, state: _FlowState, rows: dict[str, list[int]]) -> None:
        """Add a flow to the counters along its path."""
        ends_at = self._ends_at(state)
        for index, hop in enumerate(state.path.hops[:ends_at]):
            row = rows.get(hop.interface)
            if row is None:
                continue
            reached = state.reaching(index)
            received = hop.counter == "rx"
            row[0 if received else 1] += reached
            if not self.simulation.drops_inside:
                row[2 if received else 3] += state.lost.get(index, 0)
            if index == ends_at - 1 and received and ends_at < len(state.path.hops):
                row[2] += reached

    def _ends_at(self, state: _FlowState) -> int:
        """Number of hops that see a flow's packets; all of them where nothing is broken."""
        broken = self.simulation.drop_at
        for index, hop in enumerate(state.path.hops):
            if hop.owner != GENERATOR and hop.owner not in self.running:
                return index
            if hop.interface in broken:
                return index
            if hop.owner in broken and hop.counter == "rx":
                return index + 1
        return len(state.path.hops)

    def _latency(
        self, state: _FlowState, trial: Trial, duration_s: float, load_pps: float, arriving: float
    ) -> FlowLatency:
        sent = round(trial.probe_pps * duration_s)
        received = round(sent * arriving)
        state.add(sent, sent - received, self._limit_hop(state.path, self.limit_owners(trial.frame)))
        if self._ends_at(state) < len(state.path.hops):
            received = 0
        pairs, mean_ns = simulate_latency(
            state.shape, load_pps, self.capacity_pps(trial.frame), sent=sent, received=received
        )
        return flow_latency(state.flow.instance, state.flow.direction, sent, pairs, mean_ns)

    def _rng(self, frame: Frame) -> Random:
        """One row of random numbers per frame size."""
        if frame.name not in self._rngs:
            self._rngs[frame.name] = Random(f"{self._key}/{frame.name}")  # noqa: S311 (reproducible, not secret)
        return self._rngs[frame.name]


def _crosses(path: Path, owners: frozenset[str]) -> bool:
    return any(hop.owner in owners for hop in path.hops)


def _shape(path: Path, scale: float) -> FlowShape:
    owners = [hop.owner for hop in path.hops if hop.counter == "rx"]
    crossings = owners.count(VSWITCH)
    return FlowShape(crossings=crossings, functions=len(owners) - crossings - 1, scale=scale)


def _split(total: int, weights: Sequence[float], most: Sequence[int] | None = None) -> list[int]:
    """Split a count by weights, none above its maximum; the parts sum to the total."""
    sum_left, left = sum(weights), total
    parts: list[int] = []
    for index, weight in enumerate(weights):
        part = round(left * weight / sum_left) if sum_left > 0 else left
        part = min(part, left if most is None else min(left, most[index]))
        parts.append(part)
        left -= part
        sum_left -= weight
    for index in range(len(parts)):
        if left == 0 or most is None:
            break
        more = min(left, most[index] - parts[index])
        parts[index] += more
        left -= more
    return parts

"""Cost of the noise floor of the CPUs: packets that their queues lose meanwhile, and packets that wait.

A data thread that is interrupted for a time g while packets arrive at r per second finds g x r of them. A receive queue
keeps `QUEUE_FRAMES` of them, the rest is lost. A packet that arrives t after the begin of the interruption waits for
the rest of it, and for the packets before it: g - t (1 - u) at a utilization u, and longer where the next interruption
comes before the queue is empty. For interruptions at random times that is the workload of an M/G/1 queue whose jobs are
the interruptions (Takagi, Queueing Analysis, vol. 1: Vacation and Priority Systems, 1991). Those of different CPUs are
taken as independent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.trial import FlowLatency, FlowLosses
from resources.libraries.python.model.plan import Path, Plan
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.result import Finding, LatencyAtLoad, LossesAtLoad, VerdictKind
from resources.libraries.python.quantities import counted, grouped, latency, rates
from resources.libraries.python.search.losses import OVERLOAD_LABEL, worst_flow

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

QUEUE_FRAMES = 256
"""Receive queue of a veth port, and the shortest default of common NICs."""
_EXPLAINS, _IRRELEVANT = 0.5, 0.1
"""Shares of a tail, or of losses, from which on the host is the cause, and below which it is not."""
_FEW = 10
"""Losses from which on their pattern says that they are not the host's."""
_Cause = Literal["host", "both", "system under test"]
_IN_WORDS = {
    "host": "the host causes",
    "both": "host and system under test cause",
    "system under test": "an NF or a vSwitch causes",
    "generator": "the generator's own ports dropped",
    "unknown": "there are too few to say what causes",
}
_TOLERANCE = 1.25
"""A rate that was reached may be above the estimated one by this factor."""
_STEPS = 60
"""Of a bisection: enough for the resolution of floats."""
_FULLEST = 0.95
"""Highest utilization: above it queues are in use without interruptions, too."""
_GRID, _STEPS_OF_LONGEST = 600, 50
"""Number of steps of a distribution of waiting times, and of those in the longest interruption."""


@dataclass(frozen=True, slots=True)
class _Stop:
    """A receive queue on the path of a flow."""

    noise: CpuNoise
    share: float
    """Its packets, of those of all flows."""


@dataclass(frozen=True, slots=True)
class TailCause:
    """Cause of the latency tail of one flow at one load."""

    label: str
    """Of the load: PDR50 and so on."""
    flow: FlowLatency
    host_ns: float
    """Delay that the noise floor of its CPUs explains at the 99.9th percentile."""
    worst: CpuNoise
    """The CPU on its path with the longest interruption."""

    @property
    def tail_ns(self) -> float:
        """The 99.9th percentile above the median."""
        return float((self.flow.p999_ns or 0) - (self.flow.p50_ns or 0))

    @property
    def cause(self) -> _Cause:
        """Whose it is."""
        return _cause(self.host_ns / self.tail_ns if self.tail_ns > 0 else 0.0)

    def __str__(self) -> str:
        """In a sentence with numbers."""
        explained = latency(min(self.host_ns, self.tail_ns))
        return (
            f"{self.label}: p99.9 of instance {self.flow.instance} {self.flow.direction} is {latency(self.tail_ns)} "
            f"above the median; interruptions of the CPUs on its path explain {explained} "
            f"(longest: {longest(self.worst)}): {_IN_WORDS[self.cause]} it"
        )


@dataclass(frozen=True, slots=True)
class LossCause:
    """Cause of the losses of one flow at one load."""

    label: str
    """Of the load: NDR or PDR."""
    flow: FlowLosses
    host_lost: float
    """Packets that the noise floor of the CPUs on its path loses in such a trial."""
    worst: CpuNoise
    """The CPU on its path with the longest interruption."""
    lost_at: Mapping[str, int]
    """Packets lost by owner of the hop, of all flows; empty where the counters do not say it."""
    generator: str
    """Owner of the generator's ports."""

    @property
    def explained(self) -> float:
        """Losses that may be the host's: a queue that overflows loses packets in a row."""
        return min(self.host_lost, sum(length * number for length, number in self.flow.run_lengths if length > 1))

    @property
    def cause(self) -> _Cause | Literal["generator", "unknown"]:
        """Whose they are."""
        if self.lost_at.get(self.generator, 0) >= _EXPLAINS * sum(self.lost_at.values()) > 0:
            return "generator"
        found = _cause(self.explained / self.flow.lost)
        return "unknown" if found != "host" and self.flow.lost < _FEW else found

    def __str__(self) -> str:
        """In a sentence with numbers."""
        counted = ", ".join(f"{owner} {lost:,}" for owner, lost in self.lost_at.items())
        return (
            f"{self.label}: instance {self.flow.instance} {self.flow.direction} lost {self.flow.lost:,} of "
            f"{self.flow.sent:,} packets, {self.flow.longest:,} in a row at most; interruptions of the CPUs on its "
            f"path explain {self.explained:,.0f} (longest: {longest(self.worst)}): {_IN_WORDS[self.cause]} them"
            + (f"; lost by the counters of all hops: {counted}" if counted else "")
        )


def _cause(explained: float) -> _Cause:
    return "host" if explained >= _EXPLAINS else "system under test" if explained < _IRRELEVANT else "both"


class HostNoise:
    """The noise floor along the paths of a plan.

    `noise`: CPUs that were observed; others are taken as free of noise.
    """

    def __init__(self, plan: Plan, noise: Iterable[CpuNoise]) -> None:
        self._plan = plan
        self._noise = {(row.machine, row.cpu): row for row in noise}

    @cached_property
    def planned(self) -> tuple[CpuNoise, ...]:
        """Observed CPUs that have data threads of the plan, the one with the longest interruption first."""
        found = {id(stop.noise): stop.noise for stops in self._stops.values() for stop in stops}
        return tuple(sorted(found.values(), key=lambda row: -row.longest_ns))

    @cached_property
    def _stops(self) -> dict[tuple[int, str], tuple[_Stop, ...]]:
        """By flow."""
        ports = {port.interface: port for port in self._plan.ports()}
        threads = {
            (thread.owner, thread.index): self._noise.get((thread.machine, thread.cpu))
            for thread in self._plan.cores.threads
            if thread.role == "data"
        }
        passing: dict[str, int] = {}
        for path in self._plan.paths:
            for interface in _received_at(path):
                passing[interface] = passing.get(interface, 0) + 1
        stops: dict[tuple[int, str], tuple[_Stop, ...]] = {}
        for path in self._plan.paths:
            found = []
            for interface in _received_at(path):
                port = ports.get(interface)
                row = threads.get((port.owner, port.data_thread)) if port is not None else None
                if row is not None:
                    found.append(_Stop(row, passing[interface] / len(self._plan.paths)))
            stops[path.instance, path.direction] = tuple(found)
        return stops

    def loss_ratio(self, load_pps: float) -> float:
        """Share of the packets of all flows that interruptions lose at a load, in [0, 1].

        `load_pps`: Aggregate of all instances and directions.
        """
        flows = [_lost_on(stops, load_pps) for stops in self._stops.values()]
        return min(1.0, sum(flows) / len(flows)) if flows else 0.0

    def highest_pps(self, loss_ratio: float, most_pps: float) -> float:
        """Highest load, up to `most_pps`, at which interruptions lose at most that share of the packets."""
        if self.loss_ratio(most_pps) <= loss_ratio:
            return most_pps
        low, high = 0.0, most_pps
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.loss_ratio(middle) <= loss_ratio else (low, middle)
        return low

    def delay_ns(self, instance: int, direction: str, quantile: float, utilization: float = 0.0) -> float:
        """Delay that interruptions cost a flow's packets at a quantile.

        `quantile`: In (0, 1), such as 0.999.
        `utilization`: Of the data threads, in [0, 1).
        """
        stops = [stop for stop in self._stops.get((instance, direction), ()) if stop.noise.longest_ns]
        if not stops:
            return 0.0
        import numpy as np  # noqa: PLC0415 - costs time

        step_s = max(stop.noise.longest_ns for stop in stops) * 1e-9 / _STEPS_OF_LONGEST
        free = 1 - min(utilization, _FULLEST)
        shares: NDArray[float64] = np.ones(1)
        for stop in stops:
            shares = np.convolve(shares, _waiting(stop.noise, free, step_s))[:_GRID]
        above = 1 - np.cumsum(shares)
        first = int(np.argmax(above <= 1 - quantile)) if above[-1] <= 1 - quantile else len(shares) - 1
        return first * step_s * 1e9

    def tails(self, latency: Iterable[LatencyAtLoad], full_pps: float | None) -> tuple[TailCause, ...]:
        """Causes of the latency tails, one for each load: that of the flow with the longest tail.

        `full_pps`: The rate that the loads are shares of; None where it is not known.
        """
        found = []
        for row in latency:
            known = [flow for flow in row.flows if flow.p999_ns is not None and flow.p50_ns is not None]
            if not known:
                continue
            flow = max(known, key=lambda flow: (flow.p999_ns or 0) - (flow.p50_ns or 0))
            stops = self._stops.get((flow.instance, flow.direction), ())
            if not stops:
                continue
            worst = max((stop.noise for stop in stops), key=lambda noise: noise.longest_ns)
            utilization = row.load_pps / full_pps if full_pps else 0.0
            host_ns = self.delay_ns(flow.instance, flow.direction, 0.999, utilization)
            found.append(TailCause(row.label, flow, host_ns, worst))
        return tuple(found)

    def losses(self, rows: Iterable[LossesAtLoad], generator: str) -> tuple[LossCause, ...]:
        """Causes of the losses at NDR and PDR, one for each load: of the flow that lost most. Overload has its own."""
        found = []
        for row in rows:
            flow = worst_flow(row)
            stops = self._stops.get((flow.instance, flow.direction), ())
            if row.label == OVERLOAD_LABEL or not flow.lost or not stops:
                continue
            worst = max((stop.noise for stop in stops), key=lambda noise: noise.longest_ns)
            host_lost = flow.sent * min(1.0, _lost_on(stops, row.load_pps))
            found.append(LossCause(row.label, flow, host_lost, worst, row.lost_at, generator))
        return tuple(found)

    def too_noisy(self, goals: Iterable[tuple[str, float]], most_pps: float) -> str | None:
        """Return why the machine is too noisy for a search, None where it is not.

        `most_pps`: The highest load of the search, aggregate.
        """
        limits = {name: self.highest_pps(ratio, most_pps) for name, ratio in goals}
        low = {name: limit for name, limit in limits.items() if limit < most_pps}
        if not low or not self.planned:
            return None
        *below, most = rates(*low.values(), most_pps)
        limited = " and ".join(f"{name} above {limit}" for name, limit in zip(low, below, strict=True))
        return (
            f"interruptions of data CPUs can limit {limited}: receive queues of {QUEUE_FRAMES:,} frames lose more "
            f"there than the goal allows (longest: {longest(self.planned[0])}); the search goes up to {most}"
        )

    def findings(self, goals: Iterable[GoalResult]) -> list[Finding]:
        """Goals whose bounds are where interruptions alone lose more than the goal allows.

        A lower bound well above that rate shows that queues are longer than assumed: then there is no finding.
        """
        found = []
        for goal in goals:
            if goal.upper_pps is None or not self.planned:
                continue
            limit_pps = self.highest_pps(goal.goal.loss_ratio, goal.upper_pps)
            if limit_pps >= goal.upper_pps or (goal.lower_pps or 0.0) > _TOLERANCE * limit_pps:
                continue
            limit, missed = rates(limit_pps, goal.upper_pps)
            text = (
                f"{goal.goal.name}: above {limit}, interruptions of the data CPUs alone lose more than the "
                f"loss ratio {goal.goal.loss_ratio:g} with receive queues of {QUEUE_FRAMES} frames (longest: "
                f"{longest(self.planned[0])}), and {missed} did not meet the goal: the host limits "
                "this rate, or nearly does"
            )
            found.append(Finding(kind=VerdictKind.HOST_NOISE, text=text, numbers=(goal.goal.name,)))
        return found


def _received_at(path: Path) -> list[str]:
    """Interfaces whose data threads receive a flow's packets, the generator's included."""
    return [hop.interface for hop in path.hops if hop.counter == "rx"]


def _lost_on(stops: Iterable[_Stop], load_pps: float) -> float:
    """Share of a flow's packets that interruptions on its path lose at an aggregate load."""
    return sum(_lost(stop.noise, load_pps * stop.share) for stop in stops)


def _lost(noise: CpuNoise, rate_pps: float) -> float:
    """Share of a queue's packets that interruptions of its CPU lose."""
    if rate_pps <= 0:
        return 0.0
    lost = sum(number * max(0.0, gap_s * rate_pps - QUEUE_FRAMES) for gap_s, number in noise.gaps())
    return lost / (rate_pps * noise.observed_s)


def _waiting(noise: CpuNoise, free: float, step_s: float) -> "NDArray[float64]":
    """Distribution of the waiting time of a queue's packets: shares of the packets in steps of `step_s`.

    Work of an interruption's duration comes at random times, and goes at the rate at which the data thread catches up:
    the workload of an M/G/1 queue (Pollaczek-Khinchine), a compound geometric sum of residual durations, computed by
    Panjer's recursion.
    """
    import numpy as np  # noqa: PLC0415 - costs time

    gaps = noise.gaps()
    total_s = sum(gap_s * number for gap_s, number in gaps)
    load = min(total_s / (free * noise.observed_s), _FULLEST)
    edges = np.arange(_GRID + 1) * step_s
    longer = sum((number * np.clip(gap_s - edges, 0.0, None) for gap_s, number in gaps), np.zeros(_GRID + 1)) / total_s
    residual = np.concatenate([[0.0], -np.diff(longer)])[:_GRID]  # rounded up to the end of its step
    shares: NDArray[float64] = np.zeros(_GRID)
    shares[0] = 1 - load
    for index in range(1, _GRID):
        shares[index] = load * np.dot(residual[1 : index + 1], shares[index - 1 :: -1])
    return shares


def longest(noise: CpuNoise) -> str:
    """The longest interruption of a CPU, in words."""
    where = f" of {noise.machine}" if noise.machine else ""
    return f"{latency(noise.longest_ns)} on CPU {noise.cpu}{where}, observed for {noise.observed_s:g} s"


def in_words(noise: Iterable[CpuNoise]) -> str:
    """The noise floor of a testbed in one line; empty where nothing was observed."""
    rows = list(noise)
    if not rows:
        return ""
    worst, busiest = max(rows, key=lambda row: row.longest_ns), max(rows, key=lambda row: row.share)
    where = f" of {busiest.machine}" if busiest.machine else ""
    return (
        f"noise floor of {counted(len(rows), 'data CPU')}: longest interruption {longest(worst)}; most time "
        f"taken {grouped(100 * busiest.share, 2)} % on CPU {busiest.cpu}{where}"
    )

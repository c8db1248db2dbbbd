"""Packets of the flows of a simulated system: by hop, their latency, and the copies that passive NFs receive.

Latency is a fixed time per hop, and waiting that grows with utilisation by the M/D/1 queue: mean `rho / (2 (1 - rho))`
service times (Pollaczek-Khinchine), no waiting for a share `1 - rho` of packets, and an exponential tail, which is the
usual approximation of its distribution. What is served is a vector of packets, so a service time is that of a vector.
None of it is calibrated; it has the right shape.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import log
from random import Random
from typing import TypeVar

from hdrh.histogram import HdrHistogram

from resources.libraries.python.drivers.generators.builtin import flow_results
from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency
from resources.libraries.python.model.plan import Flow, Hop, Path, Plan
from resources.libraries.python.planning.names import GENERATOR, is_vswitch

CROSSING_NS = 6_000.0
"""Of the vSwitch, from port to port."""
NF_NS = 3_000.0
PORT_NS = 2_000.0
"""Of each of the generator's ports."""
_VECTOR = 32
_HIGHEST_RHO = 0.98
"""Queues are finite: beyond it packets are lost instead of waiting longer."""
_HIGHEST_NS = 60 * 10**9
_DIGITS = 3
_EDGES = (*(index / 20 for index in range(20)), 0.97, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)
"""Quantiles between which all packets get one latency: two dozen values describe a flow, cheaply."""


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FlowShape:
    """Inputs of latency besides load."""

    steps_ns: tuple[float, ...]
    """Fixed time before each hop of the path but the first: of its owner, faults included."""
    scale: float = 1.0
    """A flow's own deviation."""


def simulate_latency(
    shape: FlowShape, load_pps: float, capacity_pps: float, *, sent: int, received: int
) -> tuple[list[tuple[int, int]], float | None]:
    """Latency of a flow's probe frames.

    Returns:
        Pairs of nanoseconds and number of frames, ascending, and the mean; nothing where no frame arrived.
    """
    if sent <= 0 or received <= 0:
        return [], None
    pairs = [
        (round(shape.scale * (fixed_ns + wait_ns)), count)
        for fixed_ns, wait_ns, count in _quantiles(shape, load_pps, capacity_pps, received)
    ]
    return pairs, sum(value * count for value, count in pairs) / received


def _quantiles(
    shape: FlowShape, load_pps: float, capacity_pps: float, received: int
) -> Iterator[tuple[float, float, int]]:
    """Fixed time and waiting time in nanoseconds, and number of frames, ascending; the flow's own deviation is left."""
    rho = min(load_pps / capacity_pps, _HIGHEST_RHO)
    base_ns = sum(shape.steps_ns)
    service_ns = _VECTOR / capacity_pps * 1e9
    counted = 0
    for low, high in pairwise(_EDGES):
        upto = round(high * received)
        if upto > counted:
            middle = (low + high) / 2
            wait_ns = service_ns / (2 * (1 - rho)) * max(0.0, log(rho / (1 - middle))) if rho > 0 else 0.0
            # A little jitter for packets that do not wait.
            yield base_ns * (1 + 0.05 * middle), wait_ns, upto - counted
            counted = upto


def add_waits(pairs: list[tuple[int, int]], waits_ns: Sequence[int]) -> list[tuple[int, int]]:
    """Add to the latency of each frame what it waits besides, which does not depend on its latency.

    `pairs`: Nanoseconds and number of frames.
    `waits_ns`: Of the frames sent, in their order; those of lost ones at the end are left out.
    """
    latencies = _by_arrival([value for value, count in pairs for _ in range(count)])
    return sorted(Counter(latency + wait for latency, wait in zip(latencies, waits_ns, strict=False)).items())


def _by_arrival(ascending: list[_T]) -> list[_T]:
    """Put frames into the order in which they arrive."""
    Random(len(ascending)).shuffle(ascending)  # noqa: S311 (reproducible, not secret)
    return ascending


def step_times(
    shape: FlowShape,
    load_pps: float,
    capacity_pps: float,
    *,
    received: int,
    queue: int,
    waits_s: Sequence[tuple[int, Sequence[float]]],
    noise: float,
    rng: Random,
) -> list[tuple[float, ...]]:
    """Where the latency of each frame that `simulate_latency` and `add_waits` give arises.

    `queue`: Index of the hop at which frames wait for the limit.
    `waits_s`: Index of a hop, and what each frame waits there besides.
    `noise`: Relative standard deviation of each time; the latency stays what it is.

    Returns:
        For each frame the time before each hop of the path but the first, in nanoseconds.
    """
    found = []
    quantiles = _quantiles(shape, load_pps, capacity_pps, received)
    frames = _by_arrival([(fixed_ns, wait_ns) for fixed_ns, wait_ns, count in quantiles for _ in range(count)])
    for number, (fixed_ns, wait_ns) in enumerate(frames):
        stretch = shape.scale * fixed_ns / sum(shape.steps_ns)
        steps = [stretch * step for step in shape.steps_ns]
        steps[queue - 1] += shape.scale * wait_ns
        for hop, row in waits_s:
            steps[hop - 1] += 1e9 * row[number]
        noisy = [step * max(0.0, 1 + noise * rng.gauss(0, 1)) for step in steps]
        found.append(tuple(step * sum(steps) / sum(noisy) for step in noisy))
    return found


def flow_latency(
    instance: int, direction: Direction, sent: int, pairs: list[tuple[int, int]], mean_ns: float | None
) -> FlowLatency:
    """The record of a flow's latency, with its histogram."""
    received = sum(count for _, count in pairs)
    return flow_results.flow_latency(
        instance, direction, sent=sent, received=received, values=_report(pairs, received, mean_ns or 0.0)
    )


def _report(pairs: list[tuple[int, int]], received: int, mean_ns: float) -> LatencyReport | None:
    if not pairs:
        return None
    histogram = HdrHistogram(1, _HIGHEST_NS, _DIGITS)
    for value, count in pairs:
        histogram.record_value(value, count)
    p50_ns, p90_ns, p99_ns, p999_ns = (_quantile(pairs, share * received) for share in (0.5, 0.9, 0.99, 0.999))
    return LatencyReport(
        min_ns=pairs[0][0],
        mean_ns=mean_ns,
        p50_ns=p50_ns,
        p90_ns=p90_ns,
        p99_ns=p99_ns,
        p999_ns=p999_ns,
        max_ns=pairs[-1][0],
        histogram=histogram.encode().decode("ascii"),
    )


def _quantile(pairs: list[tuple[int, int]], rank: float) -> int:
    """The value of the packet of that rank. The histogram's own search is fifty times as slow."""
    upto = accumulate(count for _, count in pairs)
    return next(value for (value, _), seen in zip(pairs, upto, strict=True) if seen >= rank)


@dataclass(slots=True)
class FlowState:
    """A flow and what has gone through it since the beginning."""

    flow: Flow
    path: Path
    loss_weight: float
    shape: FlowShape
    offered: int = 0
    lost: dict[int, int] = field(default_factory=dict)
    """Losses of the system under test, by the index of the first hop that did not count it."""
    vanished: dict[int, int] = field(default_factory=dict)
    """The same of packets that an NF lost inside: no port counts them as dropped."""

    @property
    def forwarded(self) -> int:
        """Packets that the system under test would have delivered, were no hop broken."""
        return self.offered - sum(self.lost.values()) - sum(self.vanished.values())

    def add(self, offered: int, lost: int, hop: int) -> None:
        """Count packets; those that are lost are not counted at `hop` and beyond."""
        self.offered += offered
        self.lose(lost, hop)

    def lose(self, lost: int, hop: int) -> None:
        """Count packets that were offered before as lost ahead of `hop`."""
        self.lost[hop] = self.lost.get(hop, 0) + lost

    def vanish(self, lost: int, hop: int) -> None:
        """The same, without that any port counts them."""
        self.vanished[hop] = self.vanished.get(hop, 0) + lost

    def reaching(self, hop: int) -> int:
        """Packets that a hop counts, were no hop broken."""
        return self.offered - sum(
            lost for losses in (self.lost, self.vanished) for first, lost in losses.items() if first <= hop
        )


def crosses(path: Path, owners: frozenset[str]) -> bool:
    """Whether a path leads through one of some owners."""
    return any(hop.owner in owners for hop in path.hops)


def first_of(path: Path, members: Sequence[str]) -> int:
    """Index of the hop at which a packet comes into an L2 segment."""
    return next(index for index, hop in enumerate(path.hops) if hop.interface in members)


def shape(path: Path, scale: float, delays_s: Mapping[str, float]) -> FlowShape:
    """Inputs of a path's latency besides load.

    `scale`: The flow's own deviation.
    `delays_s`: Faults: what each packet takes longer inside of NFs.
    """
    return FlowShape(tuple(_step_ns(*hops, delays_s) for hops in pairwise(path.hops)), scale)


def _step_ns(before: Hop, hop: Hop, delays_s: Mapping[str, float]) -> float:
    """Fixed time between two hops."""
    if hop.counter == "rx":
        return PORT_NS * (GENERATOR in (before.owner, hop.owner))
    return CROSSING_NS if is_vswitch(hop.owner) else NF_NS + 1e9 * delays_s.get(hop.owner, 0.0)


def split(total: int, weights: Sequence[float], most: Sequence[int] | None = None) -> list[int]:
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


class Copies:
    """Packets that passive NFs got since the beginning."""

    def __init__(self, plan: Plan) -> None:
        self._got = {tap.name: 0 for tap in plan.taps}
        self._lost = dict(self._got)
        self._at = {tap.interface: tap.name for tap in plan.taps}
        ends = {link.b.interface: link.a.interface for link in plan.links if link.b.owner in self._got}
        self._towards = {ends[tap.interface]: tap.name for tap in plan.taps}

    def add(self, name: str, copies: int, most: int) -> None:
        """Count copies, of which a passive NF takes no more than `most`."""
        got = min(copies, most)
        self._got[name] += got
        self._lost[name] += copies - got

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """By interface: those of passive NFs, and the vSwitch's towards them, which drop what finds no room."""
        return {
            **{port: InterfaceCounters(self._got[name], 0, 0, 0) for port, name in self._at.items()},
            **{
                port: InterfaceCounters(0, self._got[name], 0, self._lost[name]) for port, name in self._towards.items()
            },
        }

"""One-way latency of simulated packets: fixed time per hop, and waiting that grows with utilisation.

Waiting follows the M/D/1 queue: mean `rho / (2 (1 - rho))` service times (Pollaczek-Khinchine), no waiting for a share
`1 - rho` of packets, and an exponential tail, which is the usual approximation of its distribution. What is served is a
vector of packets, so a service time is that of a vector. None of it is calibrated; it has the right shape.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import log
from random import Random

from hdrh.histogram import HdrHistogram

from resources.libraries.python.model.measurements.trial import Direction, FlowLatency

_CROSSING_NS = 6_000.0
_NF_NS = 3_000.0
_PORTS_NS = 4_000.0
_VECTOR = 32
_HIGHEST_RHO = 0.98
"""Queues are finite: beyond it packets are lost instead of waiting longer."""
_HIGHEST_NS = 60 * 10**9
_DIGITS = 3
_EDGES = (*(index / 20 for index in range(20)), 0.97, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)
"""Quantiles between which all packets get one latency: two dozen values describe a flow, cheaply."""


@dataclass(frozen=True, slots=True)
class FlowShape:
    """Inputs of latency besides load."""

    crossings: int
    """Crossings of the vSwitch."""
    functions: int
    """NFs on the path."""
    scale: float = 1.0
    """A flow's own deviation."""
    delay_s: float = 0.0
    """More for each packet: a fault."""


def simulate_latency(
    shape: FlowShape, load_pps: float, capacity_pps: float, *, sent: int, received: int
) -> tuple[list[tuple[int, int]], float | None]:
    """Latency of a flow's probe frames.

    Returns:
        Pairs of nanoseconds and number of frames, ascending, and the mean; nothing where no frame arrived.
    """
    if sent <= 0 or received <= 0:
        return [], None
    rho = min(load_pps / capacity_pps, _HIGHEST_RHO)
    base_ns = _PORTS_NS + shape.crossings * _CROSSING_NS + shape.functions * _NF_NS + shape.delay_s * 1e9
    service_ns = _VECTOR / capacity_pps * 1e9
    pairs: list[tuple[int, int]] = []
    counted = 0
    for low, high in pairwise(_EDGES):
        upto = round(high * received)
        if upto > counted:
            middle = (low + high) / 2
            wait_ns = service_ns / (2 * (1 - rho)) * max(0.0, log(rho / (1 - middle))) if rho > 0 else 0.0
            # A little jitter for packets that do not wait.
            pairs.append((round(shape.scale * (base_ns * (1 + 0.05 * middle) + wait_ns)), upto - counted))
            counted = upto
    return pairs, sum(value * count for value, count in pairs) / received


def add_waits(pairs: list[tuple[int, int]], waits_ns: Sequence[int]) -> list[tuple[int, int]]:
    """Add to the latency of each frame what it waits besides, which does not depend on its latency.

    Args:
        pairs: Nanoseconds and number of frames.
        waits_ns: Of the frames sent, in their order; those of lost ones at the end are left out.
    """
    latencies = [value for value, count in pairs for _ in range(count)]
    Random(len(latencies)).shuffle(latencies)  # noqa: S311 (reproducible, not secret)
    return sorted(Counter(latency + wait for latency, wait in zip(latencies, waits_ns, strict=False)).items())


def flow_latency(
    instance: int, direction: Direction, sent: int, pairs: list[tuple[int, int]], mean_ns: float | None
) -> FlowLatency:
    """The record of a flow's latency, with its histogram."""
    received = sum(count for _, count in pairs)
    if not pairs:
        return FlowLatency(
            instance=instance,
            direction=direction,
            sent=sent,
            received=0,
            min_ns=None,
            mean_ns=None,
            p50_ns=None,
            p90_ns=None,
            p99_ns=None,
            p999_ns=None,
            max_ns=None,
            histogram=None,
        )
    histogram = HdrHistogram(1, _HIGHEST_NS, _DIGITS)
    for value, count in pairs:
        histogram.record_value(value, count)
    return FlowLatency(
        instance=instance,
        direction=direction,
        sent=sent,
        received=received,
        min_ns=pairs[0][0],
        mean_ns=mean_ns,
        p50_ns=_quantile(pairs, 0.5 * received),
        p90_ns=_quantile(pairs, 0.9 * received),
        p99_ns=_quantile(pairs, 0.99 * received),
        p999_ns=_quantile(pairs, 0.999 * received),
        max_ns=pairs[-1][0],
        histogram=histogram.encode().decode("ascii"),
    )


def _quantile(pairs: list[tuple[int, int]], rank: float) -> int:
    """The value of the packet of that rank. The histogram's own search is fifty times as slow."""
    upto = accumulate(count for _, count in pairs)
    return next(value for (value, _), seen in zip(pairs, upto, strict=True) if seen >= rank)

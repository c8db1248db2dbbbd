"""How far chains are from what is expected: Cook's distance from regressions, and the change against VNFs alone.

A point is a chain of two or more VNFs under one workload: x is the volume that was offered, y the mean of one feature
of one owner. One regression is made of all points with the same feature, owner, and workload but for the volume; and

 * of a VNF: all chains that it is in with the same resources, whatever their length, as in the code that was published
   with Probius;
 * of a chain from end to end, the host and the vSwitch: all chains of the same length, as in Figure 8 of the paper,
   because a longer chain is more work on the same machine.

VNFs alone are no points: they are the truth that chains are compared with afterwards (section 6.3).

Cook's distance of a point from a straight line through all is how much the line would move without it. Equations 1 to 5
of Probius (Nam et al., SOSR 2018), section 6.2, after Cook (1979). With one independent variable (k = 1), least squares
give residuals r and leverages h, and

    MSE = sum r^2 / (n - k - 1)        D = r^2 / ((k + 1) MSE) * h / (1 - h)^2

which is the squared change of all fitted values when the point is left out, over (k + 1) MSE. A point is influential
above 4/n (Bollen and Jackman). The code that was published with the paper divides the sum of squares by n instead, so
that its distances are n / (n - 2) times these, and compares them with 0.7.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from resources.libraries.python.model.measurements.features import CHAIN, StateGraph
from resources.libraries.python.studies.chains.analysis.features import IDLE_LATENCY, THROUGHPUT, notable
from resources.libraries.python.studies.chains.model import ChainRun, Distance, FeatureDeviation, Statistic
from resources.libraries.python.studies.chains.model.spec import Chain, Member, Workload

VARIABLES = 1
MIN_POINTS = VARIABLES + 2
"""With fewer, every line goes through all of them."""
_EXACT = 1e-10
"""Residuals this small beside the values are rounding."""
SIGMAS = 3
"""Standard deviations around the mean alone that are still as alone."""
SAME_PERFORMANCE = 0.1
"""Share by which a chain may differ from its slowest VNF alone: a run has one value, and so no standard deviation."""
BUSY = 0.9
"""Share of its CPUs from which on a VNF is close to saturation."""
SATURATED = 0.01
"""Share of what is offered that a saturated VNF does not forward, at least."""


def resources(chain: Chain, owner: str) -> Member | None:
    """A VNF of a chain with its resources there; None for an owner that is no VNF."""
    return next((member for member in chain.members if member.name == owner), None)


def distances(statistics: Sequence[Statistic]) -> Iterator[Distance]:
    """Return Cook's distances of all points of regressions with enough points."""
    groups: dict[tuple[object, ...], list[Statistic]] = defaultdict(list)
    for each in statistics:
        if len(each.chain.members) > 1 and each.feature != IDLE_LATENCY:
            population = resources(each.chain, each.owner) or len(each.chain.members)
            but_volume = each.workload.model_copy(update={"volume_bps": 1.0})
            groups[each.feature, each.owner, population, but_volume].append(each)
    for points in groups.values():
        if len({point.chain for point in points}) > 1:  # one chain has nothing to be compared with
            yield from _of(points)


@dataclass(frozen=True, slots=True)
class Regression:
    """A straight line through points, and how much each of them holds it."""

    expected: tuple[float, ...]
    """On the line, one for each point."""
    distances: tuple[float | None, ...]
    """None for a point that fixes the line alone (leverage 1): without it there would be none."""
    threshold: float
    """4/n."""


def regression(x: Sequence[float], y: Sequence[float]) -> Regression | None:
    """Cook's distances of points (x, y).

    Returns:
        None where they say nothing: fewer than three points, all at one x, or all on the line.
    """
    count = len(x)
    if count < MIN_POINTS:
        return None
    # Distances stay the same when either axis is scaled; squares of bits per second would lose digits.
    scale = max(map(abs, x)) or 1.0
    offsets = np.asarray(x, float) / scale
    offsets -= offsets.mean()
    values = np.asarray(y, float)
    spread = float(offsets @ offsets)
    if spread <= _EXACT**2 * count:
        return None
    height = float(np.abs(values).max()) or 1.0
    heights = values / height
    line = heights.mean() + (offsets @ (heights - heights.mean())) / spread * offsets
    residuals = heights - line
    if float(np.abs(residuals).max()) <= _EXACT:
        return None
    mean_squared_error = float(residuals @ residuals) / (count - VARIABLES - 1)
    leverages = 1 / count + offsets**2 / spread
    distances = tuple(
        None
        if 1 - leverage <= _EXACT
        else float(residual**2 / ((VARIABLES + 1) * mean_squared_error) * leverage / (1 - leverage) ** 2)
        for residual, leverage in zip(residuals, leverages, strict=True)
    )
    return Regression(tuple(map(float, line * height)), distances, 4 / count)


def _of(points: Sequence[Statistic]) -> Iterator[Distance]:
    found = regression([point.workload.volume_bps for point in points], [point.mean for point in points])
    if found is None:
        return
    for point, distance, expected in zip(points, found.distances, found.expected, strict=True):
        if distance is not None:
            yield _distance(point, distance, expected, found.threshold)


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Of all VNFs that were measured alone, with the resources and under the workload of that measurement."""

    statistics: dict[tuple[Member, Workload, str, str], Statistic] = field(default_factory=dict)
    """By VNF, workload, owner (the VNF itself or the chain of it alone) and feature."""
    graphs: dict[tuple[Member, Workload], StateGraph] = field(default_factory=dict)

    def alone(self, chain: Chain, workload: Workload, owner: str, feature: str) -> Statistic | None:
        """Baseline of a VNF of a chain; None where that was not measured."""
        member = resources(chain, owner)
        return None if member is None else self.statistics.get((member, workload, owner, feature))

    def slowest(self, chain: Chain, workload: Workload) -> tuple[str, float] | None:
        """The VNF of a chain with the least throughput alone, and that; None where one was not measured."""
        found = {member.name: self.statistics.get((member, workload, CHAIN, THROUGHPUT)) for member in chain.members}
        known = {name: each.mean for name, each in found.items() if each is not None}
        if len(known) < len(found):
            return None
        return min(known.items(), key=lambda item: item[1])


def truth(runs: Sequence[ChainRun], statistics: Sequence[Statistic]) -> GroundTruth:
    """Return the baselines, from the runs of VNFs alone."""
    found = GroundTruth()
    for each in statistics:
        if len(each.chain.members) == 1:
            found.statistics[each.chain.members[0], each.workload, each.owner, each.feature] = each
    for run in runs:
        if len(run.chain.members) == 1 and run.failed is None:
            member = run.chain.members[0]
            for graph in run.graphs:
                if graph.owner == member.name:
                    found.graphs[member, run.workload] = graph
    return found


def deviations(statistics: Sequence[Statistic], known: GroundTruth) -> tuple[FeatureDeviation, ...]:
    """Features of VNFs in a chain that are not as alone, those that changed most first.

    A feature that never varied alone has a standard deviation of zero, and a single packet is outside of that: it has
    changed by what matters of any such feature, see `features.notable`.
    """
    found = [
        FeatureDeviation(
            owner=each.owner,
            workload=each.workload,
            feature=each.feature,
            alone=alone.mean,
            alone_stdev=alone.stdev,
            here=each.mean,
        )
        for each in statistics
        if (alone := known.alone(each.chain, each.workload, each.owner, each.feature)) is not None
        and alone.samples > 1
        and abs(each.mean - alone.mean) > (SIGMAS * alone.stdev or notable(each.feature))
    ]
    return tuple(sorted(found, key=lambda each: -change(each.alone, each.here)))


def change(alone: float, here: float) -> float:
    """Difference of two values over the larger one: 0 for equal ones, 1 where one of them is 0."""
    return abs(here - alone) / (max(abs(alone), abs(here)) or 1.0)


def distances_from_truth(statistics: Sequence[Statistic], known: GroundTruth) -> Iterator[Distance]:
    """In place of Cook's distance, where there are too few points for a line: the change against the VNFs alone.

    The distance is `change`, the threshold what three standard deviations alone make of it.
    """
    for each in statistics:
        if len(each.chain.members) == 1:
            continue
        alone = known.alone(each.chain, each.workload, each.owner, each.feature)
        if alone is not None and alone.samples > 1:
            size = max(abs(alone.mean), abs(each.mean)) or 1.0
            yield _distance(each, change(alone.mean, each.mean), alone.mean, SIGMAS * alone.stdev / size)
        elif (each.owner, each.feature) == (CHAIN, THROUGHPUT):
            slowest = known.slowest(each.chain, each.workload)
            if slowest is not None:
                yield _distance(each, change(slowest[1], each.mean), slowest[1], SAME_PERFORMANCE)


def _distance(each: Statistic, distance: float, expected: float, threshold: float) -> Distance:
    return Distance(
        chain=each.chain,
        owner=each.owner,
        workload=each.workload,
        feature=each.feature,
        distance=distance,
        threshold=threshold,
        expected=expected,
        measured=each.mean,
    )

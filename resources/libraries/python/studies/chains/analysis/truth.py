"""Baselines of VNFs, and features of a chain that differ from them (Probius, section 6.3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from resources.libraries.python.model.measurements.features import CHAIN, StateGraph
from resources.libraries.python.studies.chains.analysis.features import THROUGHPUT, notable
from resources.libraries.python.studies.chains.analysis.points import resources
from resources.libraries.python.studies.chains.model import ChainRun, Distance, FeatureDeviation, Statistic
from resources.libraries.python.studies.chains.model.spec import Chain, Member, Workload

SIGMAS = 3
"""Standard deviations around the mean alone that are still as alone."""
SAME_PERFORMANCE = 0.1
"""Share by which a chain may differ from its slowest VNF alone: a run has one value, and so no standard deviation."""


BUSY = 0.9
"""Share of its CPUs from which on a VNF is close to saturation."""
SATURATED = 0.01
"""Share of what is offered that a saturated VNF does not forward, at least."""


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
            yield _distance(each, alone.mean, SIGMAS * alone.stdev / size)
        elif (each.owner, each.feature) == (CHAIN, THROUGHPUT):
            slowest = known.slowest(each.chain, each.workload)
            if slowest is not None:
                yield _distance(each, slowest[1], SAME_PERFORMANCE)


def _distance(each: Statistic, expected: float, threshold: float) -> Distance:
    return Distance(
        chain=each.chain,
        owner=each.owner,
        workload=each.workload,
        feature=each.feature,
        distance=change(expected, each.mean),
        threshold=threshold,
        expected=expected,
        measured=each.mean,
    )

"""Groups of measurements that are compared: the points of the regressions.

A point is a chain of two or more VNFs under one workload: x is the volume that was offered, y the mean of one feature
of one owner. One regression is made of all points with the same feature, owner, and workload but for the volume; and

 * of a VNF: all chains that it is in with the same resources, whatever their length, as in the code that was published
   with Probius;
 * of a chain from end to end, the host and the vSwitch: all chains of the same length, as in Figure 8 of the paper,
   because a longer chain is more work on the same machine.

VNFs alone are no points: they are the truth that chains are compared with afterwards.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from resources.libraries.python.studies.chains.analysis.cook import regression
from resources.libraries.python.studies.chains.analysis.statistics import IDLE_LATENCY
from resources.libraries.python.studies.chains.model.record import Distance
from resources.libraries.python.studies.chains.model.spec import Chain, Member, Workload
from resources.libraries.python.studies.chains.model.statistic import Statistic


def resources(chain: Chain, owner: str) -> Member | None:
    """A VNF of a chain with its resources there; None for an owner that is no VNF."""
    return next((member for member in chain.members if member.name == owner), None)


def distances(statistics: Sequence[Statistic]) -> Iterator[Distance]:
    """Return Cook's distances of all points of regressions with enough points."""
    groups: dict[tuple[object, ...], list[Statistic]] = defaultdict(list)
    for each in statistics:
        if len(each.chain.members) > 1 and each.feature != IDLE_LATENCY:
            groups[_group(each)].append(each)
    for points in groups.values():
        if len({point.chain for point in points}) > 1:  # one chain has nothing to be compared with
            yield from _of(points)


def _group(each: Statistic) -> tuple[object, ...]:
    population = resources(each.chain, each.owner) or len(each.chain.members)
    return each.feature, each.owner, population, _kind(each.workload)


def _kind(workload: Workload) -> Workload:
    """All of a workload but its volume."""
    return workload.model_copy(update={"volume_bps": 1.0})


def _of(points: Sequence[Statistic]) -> Iterator[Distance]:
    found = regression([point.workload.volume_bps for point in points], [point.mean for point in points])
    if found is None:
        return
    for point, distance, expected in zip(points, found.distances, found.expected, strict=True):
        if distance is not None:
            yield Distance(
                chain=point.chain,
                owner=point.owner,
                workload=point.workload,
                feature=point.feature,
                distance=distance,
                threshold=found.threshold,
                expected=expected,
                measured=point.mean,
            )

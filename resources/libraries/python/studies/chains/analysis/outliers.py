"""Chains that are an outlier in one quantity: beside Cook's distance, which is a mean and dilutes a local fault.

A chain is compared with others at the same workload: end to end with those that are limited by a VNF as well, or
neither; a VNF with itself in other chains and alone. What is expected follows from the VNFs alone:

    throughput  that of the slowest VNF              loss  that of the VNF with the largest
    latency     the sum of all VNFs, less the path between the testbed's ports for all but one of them

Deviations are positive where they are for the worse. Their center is the median. Their scale is the median absolute
deviation (MAD, times 1.4826), or the distance of the ninth decile (over 1.2816) where that is larger, of all values but
the one that is judged. A deviation over the scale is compared with Student's
t at `ALPHA` over the number of comparisons in the study (Bonferroni): where noise is Gaussian, `ALPHA` is the share of
fault-free studies in which any chain is called an outlier. The MAD has 37 % of the efficiency of a standard deviation
(Rousseeuw and Croux, JASA 88, 1993), so t has 37 % of the degrees of freedom.

The reference of a suspect is a chain that is no suspect, as near to the suspect as there is one. In another order the
same functions of the same VNFs do the same work, so that what grew is the chain's. Otherwise it is the longest part of
the suspect, down to the VNF alone with which the analysis compares features; of parts as long, one with the VNF that
stands out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import exp, log
from statistics import median, quantiles
from typing import NamedTuple

from resources.libraries.python import special_functions
from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.studies.chains.analysis.features import (
    IDLE_LATENCY,
    LATENCY,
    LOSS,
    PERFORMANCE,
    THROUGHPUT,
    TROUBLE,
    notable,
)
from resources.libraries.python.studies.chains.analysis.points import resources
from resources.libraries.python.studies.chains.analysis.truth import SAME_PERFORMANCE, GroundTruth
from resources.libraries.python.studies.chains.model.record import ChainRun, Outlier, Reference
from resources.libraries.python.studies.chains.model.spec import Chain, Member, Workload
from resources.libraries.python.studies.chains.model.statistic import Statistic

ALPHA = 0.01
"""Of all comparisons of a study together."""
LEAST_PEERS = 5
"""Fewest end-to-end values to judge one of them."""
LEAST_PEERS_OF_VNF = 4
"""Of a VNF: that of the VNF alone is among them."""
_JUDGED = (*PERFORMANCE, IDLE_LATENCY)
_EFFICIENCY = 0.37
_TO_SIGMA = 1.4826
_TENTH_SIGMAS = 1.2816
"""Standard deviations beyond which a tenth of a Gaussian lies."""


class _Point(NamedTuple):
    statistic: Statistic
    expected: float
    deviation: float
    """For the worse where positive; relative for throughput and latency."""
    least: float
    """Deviations up to this are none."""


def outliers(statistics: Sequence[Statistic], known: GroundTruth) -> Iterator[Outlier]:
    """All outliers of a study, in no order; none where VNFs were not measured alone."""
    groups = _groups(statistics, known)
    judged = {
        key: points
        for key, points in groups.items()
        if len(points) >= (LEAST_PEERS_OF_VNF if key[0] in TROUBLE else LEAST_PEERS)
    }
    comparisons = sum(map(len, judged.values()))
    for points in judged.values():
        freedom = _EFFICIENCY * (len(points) - 1)
        yield from _of(points, -float(special_functions.stdtrit(freedom, ALPHA / comparisons)))


def _groups(statistics: Sequence[Statistic], known: GroundTruth) -> Mapping[tuple[object, ...], list[_Point]]:
    groups: dict[tuple[object, ...], list[_Point]] = defaultdict(list)
    limited = {
        (chain, workload): known.is_limited(chain, workload)
        for chain, workload in {(each.chain, each.workload): None for each in statistics}
    }
    path_s = _path_s(statistics, known)
    for each in statistics:
        if each.owner == CHAIN and each.feature in _JUDGED and len(each.chain.members) > 1:
            expected = _expected(each, known, path_s)
            if expected is not None:
                is_limited = each.feature != IDLE_LATENCY and limited[each.chain, each.workload]
                point = _Point(each, expected, _worse(each, expected), _least(each.feature, is_limited))
                groups[each.feature, each.workload, is_limited].append(point)
        elif each.feature in TROUBLE and (member := resources(each.chain, each.owner)) is not None:
            groups[each.feature, each.workload, member].append(_Point(each, 0.0, each.mean, notable(each.feature)))
    return groups


def _path_s(statistics: Sequence[Statistic], known: GroundTruth) -> float | None:
    """Latency of the path without VNFs, which every VNF alone has in it; None where unknown."""
    found = [
        (sum(alone) - each.mean) / (len(alone) - 1)
        for each in statistics
        if (each.owner, each.feature) == (CHAIN, IDLE_LATENCY) and len(alone := _alone(each, known)) > 1
    ]
    return median(found) if found else None


def _expected(each: Statistic, known: GroundTruth, path_s: float | None) -> float | None:
    alone = _alone(each, known)
    if not alone:
        return None
    match each.feature:
        case "throughput_bps":
            return min(alone)
        case "loss_ratio":
            return max(alone)
        case _:
            expected_s = 0.0 if path_s is None else sum(alone) - (len(alone) - 1) * path_s
            return expected_s if expected_s > 0 else None


def _alone(each: Statistic, known: GroundTruth) -> list[float]:
    """Baselines of a chain's VNFs; empty if one is unknown."""
    found = [known.statistics.get((member, each.workload, CHAIN, each.feature)) for member in each.chain.members]
    values = [alone.mean for alone in found if alone is not None]
    return values if len(values) == len(found) else []


def _worse(each: Statistic, expected: float) -> float:
    if each.feature == LOSS:
        return each.mean - expected
    if each.feature == THROUGHPUT:
        return (expected - each.mean) / (expected or 1.0)
    return log(each.mean / expected) if each.mean > 0 else 0.0


def _of(points: Sequence[_Point], threshold: float) -> Iterator[Outlier]:
    center = median(point.deviation for point in points)
    for place, point in enumerate(points):
        each = point.statistic
        # Chains that are better than their VNFs alone are no reason to ask it of the others.
        beyond = point.deviation - max(0.0, center)
        if len(each.chain.members) == 1 or beyond <= point.least:
            continue
        scale = _scale([other.deviation - center for other in (*points[:place], *points[place + 1 :])])
        if beyond > threshold * scale:
            yield Outlier(
                chain=each.chain,
                owner=each.owner,
                workload=each.workload,
                feature=each.feature,
                measured=each.mean,
                expected=_value(point, max(0.0, center)),
                score=beyond / max(scale, point.least / threshold),
                threshold=threshold,
                peers=len(points),
            )


def _scale(deviations: Sequence[float]) -> float:
    """The larger of two robust standard deviations, of all values but the one that is judged."""
    spread = _TO_SIGMA * median(map(abs, deviations))
    return max(spread, quantiles(deviations, n=10, method="inclusive")[-1] / _TENTH_SIGMAS)


def _least(feature: str, is_limited: bool) -> float:
    """At the edge of a VNF's capacity one run says no more than `SAME_PERFORMANCE` about throughput and loss."""
    return SAME_PERFORMANCE if is_limited and feature != LATENCY else notable(feature)


def _value(point: _Point, deviation: float) -> float:
    """The value that a deviation from what a point expects is."""
    match point.statistic.feature:
        case "throughput_bps":
            return point.expected * (1 - deviation)
        case "latency_s" | "idle_latency_s":
            return point.expected * exp(deviation)
        case _:
            return point.expected + deviation


ANOTHER_ORDER = "the same VNFs in another order"


def reference(
    suspect: Chain, at: Workload, owner: str | None, runs: Sequence[ChainRun], suspects: Collection[Chain]
) -> Reference | None:
    """Return the chain to compare a suspect with; None where none was measured that is no suspect.

    Args:
        suspect: The chain.
        at: Workload under which it stands out most.
        owner: Its VNF that stands out; None where that is the chain from end to end.
        runs: All that were measured.
        suspects: All suspects.
    """
    well = [
        run.chain
        for run in sorted(runs, key=lambda run: -(run.throughput_bps or 0.0))
        if run.workload == at and run.failed is None and run.planted is None and run.chain not in suspects
    ]
    here = sorted(suspect.members, key=_by_name)
    for chain in well:
        if sorted(chain.members, key=_by_name) == here:
            return Reference(chain=chain, workload=at, relation=ANOTHER_ORDER)
    parts = [chain for chain in well if _is_part(chain.members, suspect.members)]
    parts.sort(key=lambda chain: (-len(chain.members), owner not in chain.order))
    if not parts:
        return None
    missing = [member.name for member in suspect.members if member not in parts[0].members]
    return Reference(chain=parts[0], workload=at, relation=f"without {', '.join(missing)}")


def _by_name(member: Member) -> str:
    return member.name


def _is_part(part: Sequence[Member], whole: Sequence[Member]) -> bool:
    """Whether all of its VNFs are in the whole, in that order."""
    left = iter(whole)
    return len(part) < len(whole) and all(member in left for member in part)

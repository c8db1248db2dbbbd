"""A study of chains from its runs to its suspects: what is measured goes in, what is reported comes out."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from resources.libraries.python.model.measurements.features import CHAIN, HOST, VSWITCH, StateGraph
from resources.libraries.python.studies.chains.analysis.classes import portions
from resources.libraries.python.studies.chains.analysis.features import (
    IDLE_LATENCY,
    LOSS,
    THROUGHPUT,
    feature,
    statistics,
)
from resources.libraries.python.studies.chains.analysis.outliers import outliers, reference
from resources.libraries.python.studies.chains.analysis.points import distances
from resources.libraries.python.studies.chains.analysis.reasons import Evidence, QueueDrops, amount, reasons
from resources.libraries.python.studies.chains.analysis.truth import (
    SAME_PERFORMANCE,
    GroundTruth,
    deviations,
    distances_from_truth,
    truth,
)
from resources.libraries.python.studies.chains.model.record import (
    ChainRun,
    Distance,
    FeatureDeviation,
    Outlier,
    Suspect,
)
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Workload
from resources.libraries.python.studies.chains.model.statistic import Statistic

_SAME = 0.01
"""Of the larger one: what is nearer to each other is the same."""
_SAME_LOSS = 0.001
"""Loss ratios are compared as they are: half of next to nothing is next to nothing."""


class Analysis(NamedTuple):
    """Findings of a study."""

    statistics: tuple[Statistic, ...]
    suspects: tuple[Suspect, ...]
    """By falling strength."""
    notes: tuple[str, ...]
    """Judgement of chains without Cook's distance, and chains that could not be judged."""


def analyse(spec: ChainStudySpec, runs: Sequence[ChainRun]) -> Analysis:
    """Compare the chains of a study with each other, and those that stand out with their VNFs alone.

    A chain of two or more VNFs is a suspect by one of two rules, which are named with it:

     * its mean distance over all features, owners and workloads is above the mean of their thresholds: in Probius,
       section 6.2, chains are sorted by the average distance, and those above the threshold 4/n are suspects;
     * one quantity is an outlier, see `outliers`, whose rate of false alarms is bounded.

    Suspects are ranked by how far they are above the limit of the rule whose limit is exceeded most.

    Where no straight line can be laid through the chains (one volume only, too few chains), they are judged by how far
    they are from their VNFs alone instead, and a note says so.
    """
    means = statistics(runs)
    known = truth(runs, means)
    cook = list(distances(means))
    judged = cook or list(distances_from_truth(means, known))
    notes = _notes(spec, runs, means, cook, judged)
    chains = _grouped(runs, means, judged, tuple(outliers(means, known)))
    far = [chain for chain in chains if chain.outliers or _stands_out(chain.distances)]
    names = {chain.chain for chain in far}
    found = [_suspect(chain, known, runs, names) for chain in far]
    return Analysis(means, tuple(sorted(found, key=lambda each: -each.strength)), notes)


@dataclass
class _Measured:
    """All that is known of one chain."""

    chain: Chain
    distances: list[Distance] = field(default_factory=list)
    outliers: list[Outlier] = field(default_factory=list)
    statistics: list[Statistic] = field(default_factory=list)
    cpus: Mapping[str, float] = field(default_factory=dict)
    graphs: dict[tuple[str, Workload], StateGraph] = field(default_factory=dict)
    planted: str | None = None


def _grouped(
    runs: Sequence[ChainRun], means: Sequence[Statistic], judged: Sequence[Distance], far: Sequence[Outlier]
) -> Sequence[_Measured]:
    found: dict[Chain, _Measured] = {}
    for run in runs:
        each = found.setdefault(run.chain, _Measured(run.chain))
        each.planted = each.planted or run.planted
        each.cpus = each.cpus or run.cpus
        each.graphs |= {(graph.owner, run.workload): graph for graph in run.graphs}
    for statistic in means:
        found[statistic.chain].statistics.append(statistic)
    for distance in judged:
        found[distance.chain].distances.append(distance)
    for outlier in far:
        found[outlier.chain].outliers.append(outlier)
    return tuple(found.values())


def _stands_out(found: Sequence[Distance]) -> bool:
    return bool(found) and _mean(found) > _threshold(found) and any(map(_above, found))


def _above(each: Distance) -> bool:
    """Above the threshold, and not only by rounding: of points on a line some are always the farthest."""
    least = _SAME_LOSS if each.feature == LOSS else _SAME * max(abs(each.measured), abs(each.expected))
    return each.distance > each.threshold and abs(each.measured - each.expected) > least


def _mean(found: Sequence[Distance]) -> float:
    return fmean(each.distance for each in found) if found else 0.0


def _threshold(found: Sequence[Distance]) -> float:
    return fmean(each.threshold for each in found) if found else 0.0


def _suspect(chain: _Measured, known: GroundTruth, runs: Sequence[ChainRun], suspects: Collection[Chain]) -> Suspect:
    above = sorted(filter(_above, chain.distances), key=lambda each: -each.distance)
    far = _farthest(chain.outliers)
    changed = deviations(chain.statistics, known)
    at = _worst(chain)
    here = [each for each in changed if each.workload == at]
    evidence = [_evidence(chain, at, known, owner, here) for owner in chain.chain.order]
    why = [reason.sentence for reason in reasons(evidence, here, tuple(_dropped(chain, at, known)))]
    owners = (*(each.owner for each in far), *(each.owner for each in above))
    owner = next((name for name in owners if name in chain.chain.order), None)
    by_distance = above[:1] if _stands_out(chain.distances) else []
    return Suspect(
        chain=chain.chain,
        mean_distance=_mean(chain.distances),
        threshold=_threshold(chain.distances),
        distances=tuple(above),
        outliers=far,
        deviations=changed,
        portions=tuple(portion for each in evidence for portion in each.portions),
        reasons=(*_slower(chain, at, known), *why, *map(_outlier_in_words, far[:2]), *map(_in_words, by_distance)),
        planted=chain.planted,
        reference=reference(chain.chain, at, owner, runs, suspects),
    )


def _farthest(found: Sequence[Outlier]) -> tuple[Outlier, ...]:
    """Return the farthest deviation of each owner and feature."""
    farthest: dict[tuple[str, str], Outlier] = {}
    for each in sorted(found, key=lambda each: -each.score / each.threshold):
        farthest.setdefault((each.owner, each.feature), each)
    return tuple(farthest.values())


def _worst(chain: _Measured) -> Workload:
    """The workload at which a chain stands out most; the larger one of equals."""
    if not _stands_out(chain.distances):
        return max(chain.outliers, key=lambda each: (each.score / each.threshold, each.workload.volume_bps)).workload
    by_workload: dict[Workload, list[Distance]] = defaultdict(list)
    for each in chain.distances:
        by_workload[each.workload].append(each)
    return max(by_workload, key=lambda workload: (_mean(by_workload[workload]), workload.volume_bps))


def _evidence(
    chain: _Measured, at: Workload, known: GroundTruth, owner: str, changed: Sequence[FeatureDeviation]
) -> Evidence:
    member = next(member for member in chain.chain.members if member.name == owner)
    here = {each.feature: each.mean for each in chain.statistics if (each.owner, each.workload) == (owner, at)}
    alone = {
        name: known_alone.mean
        for name in here
        if (known_alone := known.alone(chain.chain, at, owner, name)) is not None
    }
    graph, graph_alone = chain.graphs.get((owner, at)), known.graphs.get((member, at))
    classes = () if graph is None else portions(graph, graph_alone)
    return Evidence(
        member=member,
        here=here,
        alone=alone,
        changed={each.feature for each in changed if each.owner == owner},
        cpus=chain.cpus.get(owner),
        portions=classes,
        graph=graph,
        graph_alone=graph_alone,
    )


_QUEUES = (
    (VSWITCH, "rx_dropped_pps", "the vSwitch, on receive,"),
    (VSWITCH, "tx_dropped_pps", "the vSwitch, on transmit,"),
    (VSWITCH, "socket_dropped_pps", "the vSwitch, at full sockets,"),
    (HOST, "backlog_drops", "the queue of a CPU"),
)
"""Outside of VNFs: owner, feature, and what that is."""


def _dropped(chain: _Measured, at: Workload, known: GroundTruth) -> Iterator[QueueDrops]:
    means = {(each.owner, each.feature): each.mean for each in chain.statistics if each.workload == at}
    passed_pps = means.get((CHAIN, THROUGHPUT), 0.0) / 8 / at.frame.mean_bytes
    for owner, name, where in _QUEUES:
        alone = [
            each.mean
            for member in chain.chain.members
            if (each := known.statistics.get((member, at, owner, name))) is not None
        ]
        if (owner, name) in means:
            yield QueueDrops(where, means[owner, name], max(alone, default=None), passed_pps)


def _slower(chain: _Measured, at: Workload, known: GroundTruth) -> Iterator[str]:
    """The symptoms, before the reasons."""
    slowest = known.slowest(chain.chain, at)
    here = next((each.mean for each in chain.statistics if _is(each, CHAIN, THROUGHPUT, at)), None)
    if slowest is None or here is None or not slowest[1]:
        return
    name, alone = slowest
    if here < (1 - SAME_PERFORMANCE) * alone:
        yield (
            f"throughput is {here / 1e6:.4g} Mbit/s of {at.volume_bps / 1e6:.4g} Mbit/s offered; {name}, the slowest "
            f"of its VNFs alone, has {alone / 1e6:.4g} Mbit/s ({100 * (here / alone - 1):.0f} %)"
        )


def _is(each: Statistic, owner: str, name: str, at: Workload) -> bool:
    return (each.owner, each.feature, each.workload) == (owner, name, at)


def _in_words(each: Distance) -> str:
    unit = feature(each.feature).unit
    whose = "" if each.owner == CHAIN else f" of {each.owner}"
    return (
        f"it stands out most in {each.feature}{whose} at {each.workload.volume_bps / 1e6:.4g} Mbit/s: "
        f"{amount(each.measured, unit)}, where {amount(each.expected, unit)} are expected "
        f"(distance {each.distance:.2f}, threshold {each.threshold:.2f})"
    )


def _outlier_in_words(each: Outlier) -> str:
    unit = feature(each.feature).unit
    whose = "" if each.owner == CHAIN else f" of {each.owner}"
    load = "" if each.feature == IDLE_LATENCY else f" at {each.workload.volume_bps / 1e6:.4g} Mbit/s"
    source = "from its VNFs alone" if each.owner == CHAIN else "from the other chains"
    return (
        f"{each.feature}{whose}{load} is an outlier: {amount(each.measured, unit)}, {amount(each.expected, unit)} "
        f"expected {source} ({each.score:.0f} standard deviations, limit {each.threshold:.1f})"
    )


def _notes(
    spec: ChainStudySpec,
    runs: Sequence[ChainRun],
    means: Sequence[Statistic],
    cook: Sequence[Distance],
    judged: Sequence[Distance],
) -> tuple[str, ...]:
    notes = []
    measured = {each.chain for each in means if len(each.chain.members) > 1}
    if measured and not cook:
        volumes = len({workload.volume_bps for workload in spec.workloads})
        why = "one volume only" if volumes == 1 else f"too few chains ({len(measured)}) to compare"
        if judged:
            notes.append(f"chains are ranked by their distance from their VNFs alone, not by Cook's distance: {why}")
        else:
            notes.append(f"chains cannot be judged: {why}, and their VNFs were not measured alone")
    unjudged = [chain.name for chain in measured - {each.chain for each in judged}] if judged else []
    if unjudged:
        notes.append(f"not judged, for lack of comparable chains: {', '.join(sorted(unjudged))}")
    alone = {run.chain.order[0] for run in runs if len(run.chain.members) == 1 and run.failed is None}
    if measured and (missing := [vnf.name for vnf in spec.vnfs if vnf.name not in alone]):
        notes.append(f"without a baseline, which chains with them need: {', '.join(missing)}")
    return tuple(notes)

"""A study of chains from its runs to its suspects: what is measured goes in, what is reported comes out."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from resources.libraries.python.model.measurements.features import CHAIN, HOST, VSWITCH, StateGraph
from resources.libraries.python.studies.chains.analysis.causes import causes, unexplained
from resources.libraries.python.studies.chains.analysis.classes import portions
from resources.libraries.python.studies.chains.analysis.distances import (
    BUSY,
    SATURATED,
    GroundTruth,
    deviations,
    distances,
    distances_from_truth,
    truth,
)
from resources.libraries.python.studies.chains.analysis.features import (
    CPU,
    LOSS,
    READ,
    THROUGHPUT,
    feature,
    ordinary,
    statistics,
)
from resources.libraries.python.studies.chains.analysis.prediction import Judged, judge
from resources.libraries.python.studies.chains.analysis.reasons import Evidence, QueueDrops, amount, reasons
from resources.libraries.python.studies.chains.analysis.sentences import excess_in_words, judgement
from resources.libraries.python.studies.chains.model import (
    ChainRun,
    ChangedChain,
    CommonCause,
    Distance,
    Excess,
    FeatureDeviation,
    Reference,
    Statistic,
    Suspect,
    VnfBound,
)
from resources.libraries.python.studies.chains.model.spec import PATH, Chain, ChainStudySpec, Member, Workload

ANOTHER_ORDER = "the same VNFs in another order"


def reference(
    suspect: Chain, at: Workload, owner: str | None, runs: Sequence[ChainRun], suspects: Collection[Chain]
) -> Reference | None:
    """Return the chain to compare a suspect with; None where none was measured that is no suspect.

    `at`: Workload under which it stands out most.
    `owner`: Its VNF that stands out; None where that is the chain from end to end.
    """
    well = [
        run.chain
        for run in sorted(runs, key=lambda run: -(run.throughput_bps or 0.0))
        if run.workload == at and run.failed is None and run.planted is None and run.chain not in suspects
    ]
    by_name = attrgetter("name")
    here = sorted(suspect.members, key=by_name)
    for chain in well:
        if sorted(chain.members, key=by_name) == here:
            return Reference(chain=chain, workload=at, relation=ANOTHER_ORDER)
    parts = [chain for chain in well if _is_part(chain.members, suspect.members)]
    parts.sort(key=lambda chain: (-len(chain.members), owner not in chain.order))
    if not parts:
        return None
    missing = [member.name for member in suspect.members if member not in parts[0].members]
    return Reference(chain=parts[0], workload=at, relation=f"without {', '.join(missing)}")


def _is_part(part: Sequence[Member], whole: Sequence[Member]) -> bool:
    """Whether all of its VNFs are in the whole, in that order."""
    left = iter(whole)
    return len(part) < len(whole) and all(member in left for member in part)


_MUCH_STORAGE = float(2**20)
"""Bytes a second from which on storage counts."""
_KERNEL = ("system_percent", "helper_percent")


def bounds(runs: Sequence[ChainRun]) -> Iterator[VnfBound]:
    """Say of each VNF what bounds it, at the highest volume that it was offered alone."""
    highest: dict[Member, ChainRun] = {}
    for run in runs:
        if len(run.chain.members) == 1 and run.failed is None:
            member = run.chain.members[0]
            if member not in highest or run.workload.volume_bps > highest[member].workload.volume_bps:
                highest[member] = run
    for member, run in highest.items():
        yield _bound(member, run)


def _bound(member: Member, run: ChainRun) -> VnfBound:
    means = _means(member.name, run)
    used, cpus = means.get(CPU, 0.0) / 100, run.cpus.get(member.name)
    share = used / cpus if cpus else None
    storage = means.get(READ, 0.0) + means.get("written_bytes_per_s", 0.0)
    offered, passed = run.offered_bps or 0.0, run.throughput_bps or 0.0
    load = f"{offered / 1e6:.4g} Mbit/s"
    forwards = f"forwards {passed / 1e6:.4g} of {load}"
    cpu = "CPU use unknown" if share is None else f"{100 * share:.0f} % of its CPUs"
    is_saturated = passed < (1 - SATURATED) * offered
    if storage >= _MUCH_STORAGE:
        return VnfBound(vnf=member.name, bound="disk", evidence=f"{storage / 2**20:.3g} MiB/s of storage at {load}")
    if share is not None and share >= BUSY:
        return VnfBound(vnf=member.name, bound="CPU", evidence=f"{forwards} with {cpu}")
    if is_saturated:
        return VnfBound(vnf=member.name, bound="network", evidence=f"{forwards} with {cpu}")
    kernel = sum(means.get(name, 0.0) for name in _KERNEL) / 100
    io = f", {100 * min(1.0, kernel / used):.0f} % of that in the kernel" if used and kernel else ""
    return VnfBound(vnf=member.name, bound="none", evidence=f"{forwards} with {cpu}{io}")


def _means(owner: str, run: ChainRun) -> Mapping[str, float]:
    kept = {series.feature: ordinary(series.values)[0] for series in run.series if series.owner == owner}
    return {name: fmean(values) for name, values in kept.items() if values}


_SAME = 0.01
"""Of the larger one: what is nearer to each other is the same."""
_SAME_LOSS = 0.001
"""Loss ratios are compared as they are: half of next to nothing is next to nothing."""


_MAX_CHANGED = 12
"""Changed features of a chain that is no suspect, the largest changes."""


class Analysis(NamedTuple):
    """Findings of a study."""

    statistics: tuple[Statistic, ...]
    suspects: tuple[Suspect, ...]
    """By falling strength."""
    notes: tuple[str, ...]
    """Judgement of chains without Cook's distance, and chains that could not be judged."""
    causes: tuple[CommonCause, ...]
    judged: tuple[str, ...]
    """Sentences: what was judged with which error, and what could not be."""
    changed: tuple[ChangedChain, ...]
    """Chains that are no suspects, with what changed in them."""
    bounds: tuple[VnfBound, ...]


def analyse(spec: ChainStudySpec, runs: Sequence[ChainRun], others: Sequence[ChainRun] = ()) -> Analysis:
    """Compare the chains of a study with their VNFs alone and with each other.

    A chain of two or more VNFs is a suspect by one of two rules, which are named with it:

     * a quantity is worse than its VNFs alone predict, see `prediction`, whose rate of false alarms is bounded;
     * its mean distance over all features, owners and workloads is above the mean of their thresholds: in Probius,
       section 6.2, chains are sorted by the average distance, and those above the threshold 4/n are suspects. Where
       other chains are worse than predicted, only one that could not be compared is a suspect by this rule alone.

    Suspects are ranked by how far they are above the limit of the rule whose limit is exceeded most. What those of the
    first rule have in common is asked by `causes`.

    Where no straight line can be laid through the chains (one volume only, too few chains), they are ranked by how far
    they are from their VNFs alone instead, and a note says so.

    `runs`: One of each chain and workload that were measured.
    `others`: Of the path without VNFs, and repeated ones, those that failed among them.
    """
    means = statistics(runs)
    known = truth(runs, means)
    cook = list(distances(means))
    ranked = cook or list(distances_from_truth(means, known))
    notes = _notes(spec, runs, means, cook, ranked)
    judged = judge((*runs, *others))
    chains = _grouped(runs, means, ranked, judged)
    # Beside chains that are worse, one that was compared and is not only differs from them.
    by_distance = set(judged.unknown) if judged.worse else {chain.chain for chain in chains}
    far = [chain for chain in chains if chain.worse or (chain.chain in by_distance and _stands_out(chain.distances))]
    names = {chain.chain for chain in far}
    found = [_suspect(chain, known, runs, names) for chain in far]
    changed = [
        ChangedChain(chain=chain.chain, deviations=deviations(chain.statistics, known)[:_MAX_CHANGED])
        for chain in chains
        if chain.chain not in names and len(chain.chain.members) > 1
    ]
    return Analysis(
        means,
        tuple(sorted(found, key=lambda each: -each.strength)),
        notes,
        causes(judged, runs),
        tuple(
            judgement(
                judged,
                [chain.chain for chain in chains],
                has_path=any(run.chain == PATH and run.failed is None for run in others),
            )
        ),
        tuple(each for each in changed if each.deviations),
        tuple(bounds(runs)),
    )


@dataclass
class _Measured:
    chain: Chain
    distances: list[Distance] = field(default_factory=list)
    worse: list[Excess] = field(default_factory=list)
    statistics: list[Statistic] = field(default_factory=list)
    cpus: Mapping[str, float] = field(default_factory=dict)
    graphs: dict[tuple[str, Workload], StateGraph] = field(default_factory=dict)
    planted: str | None = None


def _grouped(
    runs: Sequence[ChainRun], means: Sequence[Statistic], ranked: Sequence[Distance], judged: Judged
) -> Sequence[_Measured]:
    found: dict[Chain, _Measured] = {}
    for run in runs:
        each = found.setdefault(run.chain, _Measured(run.chain))
        each.planted = each.planted or run.planted
        each.cpus = each.cpus or run.cpus
        each.graphs |= {(graph.owner, run.workload): graph for graph in run.graphs}
    for statistic in means:
        found[statistic.chain].statistics.append(statistic)
    for distance in ranked:
        found[distance.chain].distances.append(distance)
    for excess in judged.worse:
        found[excess.chain].worse.append(excess)
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
    far = _farthest(chain.worse)
    first = tuple(unexplained(far))
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
        worse=far,
        deviations=changed,
        portions=tuple(portion for each in evidence for portion in each.portions),
        reasons=(
            *(excess_in_words(each) for each in far if each in first),
            *why,
            *(excess_in_words(each) for each in far if each not in first),
            *map(_in_words, by_distance),
        ),
        planted=chain.planted,
        reference=reference(chain.chain, at, owner, runs, suspects),
    )


def _farthest(found: Sequence[Excess]) -> tuple[Excess, ...]:
    """Return the largest excess of each owner and feature, the largest first."""
    farthest: dict[tuple[str, str], Excess] = {}
    for each in sorted(found, key=lambda each: -each.strength):
        farthest.setdefault((each.owner, each.feature), each)
    return tuple(farthest.values())


def _worst(chain: _Measured) -> Workload:
    """The workload at which a chain stands out most, of those that were traced if any was; the larger one of equals."""
    if chain.worse:
        traced = {workload for _, workload in chain.graphs}
        return max(
            chain.worse, key=lambda each: (each.workload in traced, each.strength, each.workload.volume_bps)
        ).workload
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


def _in_words(each: Distance) -> str:
    known = feature(each.feature)
    whose = "" if each.owner == CHAIN else f" of {each.owner}"
    return (
        f"it stands out most in {known.title}{whose} at {each.workload.volume_bps / 1e6:.4g} Mbit/s: "
        f"{amount(each.measured, known.unit)}, where {amount(each.expected, known.unit)} are expected "
        f"(distance {each.distance:.2f}, threshold {each.threshold:.2f})"
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

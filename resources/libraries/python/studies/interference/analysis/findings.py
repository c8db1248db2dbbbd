"""Throughput beside others over throughput alone, and what the pairs of a study say.

Findings are whether there is interference, who is sensitive, who aggressive, and from what. The normalized throughput
is that of "Demystifying the Performance Interference of Co-located Virtual Network Functions" (Zeng et al.), section
IV-A: T(i|j) / T(i). The paper gives means only; the intervals here are ours.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import stdev

from resources.libraries.python.studies.interference.analysis.estimates import (
    ALPHA,
    SampledEstimate,
    average,
    difference,
    exact,
    mean_of,
    ratio,
    ratio_interval,
    told_apart,
)
from resources.libraries.python.studies.interference.model import (
    ColocationMeasurement,
    EstimatedValue,
    Group,
    InterferenceSpec,
    Normalized,
    PairsFindings,
    RankedMean,
    Resource,
    ResourceShare,
)


class Throughputs:
    """Mean throughputs at one frame size and load, each with its error.

    `measurements`: All of that point, with and without guarantees.
    """

    def __init__(self, measurements: Iterable[ColocationMeasurement]) -> None:
        self._values: dict[tuple[Resource | None, Group], list[float]] = defaultdict(list)
        for each in measurements:
            # Alone there is nothing to share: that without a limit is the baseline of all.
            if each.against or not each.guaranteed:
                self._values[each.guarantee, (each.target, each.against)].append(each.throughput_pps)
        self._means = {key: mean_of(values) for key, values in self._values.items()}

    def baseline(self, target: str) -> SampledEstimate | None:
        """Packets per second alone; None where that was not measured, or nothing was let through."""
        found = self._means.get((None, (target, ())))
        return found if found and found.value > 0 else None

    def beside(self, group: Group, guarantee: Resource | None = None) -> SampledEstimate:
        """Packets per second beside others; KeyError where that was not measured."""
        return self._means[guarantee, group]

    def normalized(self, guarantee: Resource | None = None) -> dict[Group, SampledEstimate]:
        """Normalized throughput of each target and group that were measured, where there is a baseline.

        They share the errors of their baselines. The order is that of their first measurements.
        """
        return {group: ratio(self.beside(group, guarantee), alone) for group, alone in self._groups(guarantee)}

    def rows(self, guarantee: Resource | None = None) -> tuple[Normalized, ...]:
        """The same with confidence intervals, by Fieller's theorem."""
        return tuple(self._row(group, alone, guarantee) for group, alone in self._groups(guarantee))

    def _groups(self, guarantee: Resource | None) -> Iterator[tuple[Group, SampledEstimate]]:
        for under, group in self._means:
            if under is guarantee and group[1] and (alone := self.baseline(group[0])):
                yield group, alone

    def _row(self, group: Group, alone: SampledEstimate, guarantee: Resource | None) -> Normalized:
        values, beside = self._values[guarantee, group], self.beside(group, guarantee)
        low, high = ratio_interval(beside, alone) or (None, None)
        return Normalized(
            target=group[0],
            against=group[1],
            mean=beside.value / alone.value,
            stdev=stdev(values) / alone.value if len(values) > 1 else None,
            low=low,
            high=high,
            samples=len(values),
        )


def in_order(spec: InterferenceSpec, matrix: Iterable[Normalized]) -> tuple[Normalized, ...]:
    """Rows and columns as the specification names them; they were measured in any order."""
    place = {contender.name: index for index, contender in enumerate(spec.contenders)}
    return tuple(
        sorted(matrix, key=lambda row: (place[row.target], len(row.against), [place[name] for name in row.against]))
    )


def pairs(matrix: Sequence[Normalized]) -> tuple[Normalized, ...]:
    """Those of two network functions."""
    return tuple(row for row in matrix if len(row.against) == 1)


Excluded = Mapping[Resource, Collection[Group]]
"""Groups that a guarantee says nothing of, as the limit itself holds the target back."""


def findings_of(
    throughputs: Throughputs, names: Sequence[str], excluded: Excluded | None = None
) -> PairsFindings | None:
    """Test and estimate what the pairs at one frame size and load show.

    `throughputs`: Of all pairs that were measured.
    `names`: Network functions, in the order of results.
    `excluded`: By guaranteed resource, groups that do not count for its share.

    Returns:
        None without a pair.
    """
    normalized = throughputs.normalized()
    of_two = {group: each for group, each in normalized.items() if len(group[1]) == 1}
    if not of_two:
        return None
    lost = _degradation(list(of_two.values()))
    none_p = _none_p(lost, list(of_two.values()))
    nothing = none_p is not None and none_p >= ALPHA
    rows = _means(names, {group: group[0] for group in of_two}, of_two)
    columns = _means(names, {group: group[1][0] for group in of_two}, of_two)
    return PairsFindings(
        degradation=_interval(lost),
        none_p=none_p,
        sensitivity=_ranked(rows, {name: _row_interval(throughputs, name, of_two) for name in rows}),
        aggressiveness=_ranked(columns, {name: each.interval() for name, each in columns.items()}),
        shares=tuple(
            each.model_copy(update={"share": None}) if nothing else each
            for each in _shares(throughputs, normalized, excluded or {})
        ),
    )


def lowest(means: Sequence[RankedMean]) -> tuple[RankedMean, ...]:
    """Those that may have the lowest mean, the lowest first; of one repetition the lowest, which is not tested."""
    ordered = sorted(means, key=lambda each: each.normalized.value)
    return tuple(each for each in ordered if each.ranks and each.ranks[0] == 1) or tuple(ordered[:1])


def _none_p(lost: SampledEstimate, pairs: Sequence[SampledEstimate]) -> float | None:
    """Two tests by Bonferroni's inequality, each at half of the level: of the mean of all pairs, and of every pair."""
    whole, each = lost.p_value(), [pair.p_value(1.0) for pair in pairs]
    known = [p_value for p_value in each if p_value is not None]
    if whole is None or len(known) < len(each):
        return None
    return min(1.0, 2 * min(whole, len(each) * min(known)))


def _means(
    names: Sequence[str], owner: Mapping[Group, str], pairs: Mapping[Group, SampledEstimate]
) -> dict[str, SampledEstimate]:
    found: dict[str, list[SampledEstimate]] = defaultdict(list)
    for group, each in pairs.items():
        found[owner[group]].append(each)
    return {name: average(found[name]) for name in names if name in found}


def _row_interval(
    throughputs: Throughputs, target: str, pairs: Mapping[Group, SampledEstimate]
) -> tuple[float, float] | None:
    """By Fieller's theorem: all normalized throughputs of a row are over one baseline."""
    alone = throughputs.baseline(target)
    beside = [throughputs.beside(group) for group in pairs if group[0] == target]
    return ratio_interval(average(beside), alone) if alone else None


def _ranked(
    means: Mapping[str, SampledEstimate], intervals: Mapping[str, tuple[float, float] | None]
) -> tuple[RankedMean, ...]:
    apart = told_apart(means, ALPHA / 2)  # half for rows, half for columns
    found = []
    for name, each in means.items():
        low, high = intervals[name] or (None, None)
        ranks = None
        if apart is not None:
            above, below = (sum(pair[at] == name for pair in apart) for at in (0, 1))
            ranks = (1 + below, len(means) - above)
        found.append(
            RankedMean(name=name, normalized=EstimatedValue(value=each.value, low=low, high=high), ranks=ranks)
        )
    return tuple(found)


def _shares(
    throughputs: Throughputs, plain: Mapping[Group, SampledEstimate], excluded: Excluded
) -> Iterator[ResourceShare]:
    """Of the mean over all groups of a size that were measured both ways, then of each pair.

    (N_guaranteed - N) / (1 - N) = 1 - (1 - N_guaranteed) / (1 - N), of means: a group that hardly degrades could have
    any share. Both are over the same baseline without a limit: a limit on it would count as interference.
    """
    for resource in Resource:
        better = throughputs.normalized(resource)
        both = [group for group in plain if group in better and group not in excluded.get(resource, ())]
        for size in sorted({1 + len(against) for _, against in both}):
            groups = [group for group in both if 1 + len(group[1]) == size]
            yield _share(resource, size, [plain[each] for each in groups], [better[each] for each in groups])
        for group in both:
            if len(group[1]) == 1:
                found = _share(resource, 2, [plain[group]], [better[group]])
                yield found.model_copy(update={"target": group[0], "against": group[1]})


def _share(
    resource: Resource, size: int, plain: Sequence[SampledEstimate], better: Sequence[SampledEstimate]
) -> ResourceShare:
    lost, still_lost = _degradation(plain), _degradation(better)
    within = lost.interval()
    share = None
    if within is not None and within[0] > 0:
        ends = ratio_interval(still_lost, lost)
        low, high = (1 - ends[1], 1 - ends[0]) if ends else (None, None)
        share = EstimatedValue(value=1 - ratio(still_lost, lost).value, low=low, high=high)
    return ResourceShare(resource=resource, together=size, degradation=_interval(lost), share=share)


def _degradation(normalized: Sequence[SampledEstimate]) -> SampledEstimate:
    return difference(exact(1.0), average(normalized))


def _interval(estimate: SampledEstimate) -> EstimatedValue:
    low, high = estimate.interval() or (None, None)
    return EstimatedValue(value=estimate.value, low=low, high=high)

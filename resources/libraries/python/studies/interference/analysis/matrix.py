"""Throughput beside others over throughput alone, and what follows: sensitivity, aggressiveness, degradation.

The normalized throughput is that of "Demystifying the Performance Interference of Co-located Virtual Network Functions"
(Zeng et al.), section IV-A: T(i|j) / T(i). The paper gives means only; the intervals here are ours.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from resources.libraries.python import special_functions
from resources.libraries.python.studies.interference.model.record import (
    ColocationMeasurement,
    InterferenceSpec,
    Normalized,
)

CONFIDENCE = 0.95


def normalized(measurements: Iterable[ColocationMeasurement]) -> tuple[Normalized, ...]:
    """A row for each target and group that were measured, where the target was measured alone, too.

    Args:
        measurements: Of one load and frame, all with a guarantee or all without one.

    Returns:
        In the order of their first measurements. A target that let nothing through alone has none.
    """
    values: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(list)
    for measurement in measurements:
        values[measurement.target, measurement.against].append(measurement.throughput_pps)
    return tuple(
        _row(target, against, beside, alone)
        for (target, against), beside in values.items()
        if against and (alone := values.get((target, ()))) and fmean(alone) > 0
    )


def in_order(spec: InterferenceSpec, matrix: Iterable[Normalized]) -> tuple[Normalized, ...]:
    """Rows and columns as the specification names them; they were measured in any order."""
    place = {contender.name: index for index, contender in enumerate(spec.contenders)}
    return tuple(
        sorted(matrix, key=lambda row: (place[row.target], len(row.against), [place[name] for name in row.against]))
    )


def _row(target: str, against: tuple[str, ...], beside: Sequence[float], alone: Sequence[float]) -> Normalized:
    interval = ratio_interval(beside, alone)
    return Normalized(
        target=target,
        against=against,
        mean=fmean(beside) / fmean(alone),
        stdev=stdev(beside) / fmean(alone) if len(beside) > 1 else None,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        samples=len(beside),
    )


def ratio_interval(
    above: Sequence[float], below: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Confidence interval of the ratio of two means of independent samples, by Fieller's theorem.

    Student's t has the degrees of freedom of Welch and Satterthwaite for `above - ratio * below`.

    Returns:
        Its ends; None with one value on a side, or where the mean below may be 0.
    """
    if min(len(above), len(below)) < 2:
        return None
    top, bottom = fmean(above), fmean(below)
    ratio = top / bottom
    spread, unit = stdev(above) ** 2 / len(above), stdev(below) ** 2 / len(below)
    total = spread + ratio**2 * unit
    if total == 0:
        return ratio, ratio
    freedom = total**2 / (spread**2 / (len(above) - 1) + (ratio**2 * unit) ** 2 / (len(below) - 1))
    times = float(special_functions.stdtrit(freedom, (1 + confidence) / 2))
    doubt = times**2 * unit / bottom**2
    if doubt >= 1:
        return None
    half = times / bottom * sqrt(max(0.0, total - doubt * spread))
    return (ratio - half) / (1 - doubt), (ratio + half) / (1 - doubt)


def pairs(matrix: Sequence[Normalized]) -> tuple[Normalized, ...]:
    """Those of two network functions."""
    return tuple(row for row in matrix if len(row.against) == 1)


def sensitivity(matrix: Sequence[Normalized]) -> dict[str, float]:
    """Mean normalized throughput of each target in pairs, a row of the matrix: low is sensitive (Table III)."""
    return _means([(row.target, row.mean) for row in pairs(matrix)])


def aggressiveness(matrix: Sequence[Normalized]) -> dict[str, float]:
    """Mean normalized throughput beside each competitor in pairs, a column of the matrix: low is aggressive."""
    return _means([(row.against[0], row.mean) for row in pairs(matrix)])


def degradation(normalized: float) -> float:
    """Share of the throughput alone that is lost beside others."""
    return 1 - normalized


def network_share(without: Sequence[Normalized], guaranteed: Sequence[Normalized], together: int = 2) -> float | None:
    """Share of the degradation that goes away when each has network I/O guaranteed.

    (N_guaranteed - N_without) / (1 - N_without), of the means over all groups that were measured both ways: one
    that hardly degrades could have any share.

    Args:
        without: Normalized by throughput alone, without a limit.
        guaranteed: Normalized by the same throughput: a limit on the baseline would count as network I/O.
        together: How many share the server.

    Returns:
        Usually in [0, 1]; None where nothing was measured both ways or nothing degraded.
    """
    known = {(row.target, row.against): row.mean for row in guaranteed if len(row.against) == together - 1}
    both = [(row.mean, known[row.target, row.against]) for row in without if (row.target, row.against) in known]
    if not both:
        return None
    plain, better = fmean(one for one, _ in both), fmean(other for _, other in both)
    return (better - plain) / (1 - plain) if plain < 1 else None


def lowest(means: Mapping[str, float]) -> str | None:
    """The most sensitive one of rows, the most aggressive one of columns; None of nothing."""
    return min(means, key=lambda name: means[name]) if means else None


def _means(values: Sequence[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for name, value in values:
        found[name].append(value)
    return {name: fmean(each) for name, each in found.items()}

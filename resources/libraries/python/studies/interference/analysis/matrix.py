"""Throughput beside others over throughput alone, with its confidence interval.

The normalized throughput is that of "Demystifying the Performance Interference of Co-located Virtual Network Functions"
(Zeng et al.), section IV-A: T(i|j) / T(i). The paper gives means only; the intervals here are ours.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev

from scipy.special import stdtrit

from resources.libraries.python.studies.interference.model.record import InterferenceSpec, Meeting, Normalized

CONFIDENCE = 0.95


def normalized(meetings: Iterable[Meeting]) -> tuple[Normalized, ...]:
    """A row for each target and group that were measured, where the target was measured alone, too.

    Args:
        meetings: Of one load and frame, all with a guarantee or all without one.

    Returns:
        In the order in which they first met. A target that let nothing through alone has none.
    """
    values: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(list)
    for meeting in meetings:
        values[meeting.target, meeting.against].append(meeting.throughput_pps)
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
    times = float(stdtrit(freedom, (1 + confidence) / 2))
    doubt = times**2 * unit / bottom**2
    if doubt >= 1:
        return None
    half = times / bottom * sqrt(max(0.0, total - doubt * spread))
    return (ratio - half) / (1 - doubt), (ratio + half) / (1 - doubt)

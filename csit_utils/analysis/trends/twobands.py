"""Detection of figures that alternate between two levels, whose low nights are no regressions.

Values are split into an upper and a lower group where Ashman's `D = |m1 - m2| / sqrt((s1^2 + s2^2) / 2)` is largest
(Ashman, Bird and Zepf, Astronomical Journal 108 (1994) 2348). There are two bands if `D` is at least `MIN_D`, each
group has `fewest` values, each band was left and entered again, and the order is
consistent with chance: the number of runs is not too small for a random order (Wald and Wolfowitz, Annals of
Mathematical Statistics 11 (1940) 147). A level that changed once and stayed has two runs: that is a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, fsum, sqrt
from statistics import fmean

from resources.libraries.python.search.findings.unseen_bands import UnseenBands, fewest, unseen_bands

MIN_D = 6.0
MIN_RUNS = 4
"""Each band was left and entered again."""
MIN_CHANCE = 0.001
"""Probability of so few runs in a random order, below which the order is not random."""


@dataclass(frozen=True)
class TwoBands:
    """Two levels between which a figure alternates."""

    upper: float
    """Mean of the upper band."""
    lower: float
    lower_share: float
    """Share of values in the lower band, in [0, 1]."""
    runs: int
    """Number of uninterrupted visits of either band."""
    chance: float
    """Probability of at most this number of runs in a random order."""
    in_lower: tuple[bool, ...]
    """By value, in the order of time."""


def unseen_two_bands(values: Sequence[float], resolution: float = 0.0) -> UnseenBands:
    """Return what a series without two bands says about them; arguments as of `find_two_bands`."""
    boundary = _boundary(sorted(values), resolution, 1)
    low = sum(value < boundary for value in values) if boundary is not None else 0
    few = min(low, len(values) - low)
    return unseen_bands(len(values), few if few < fewest(len(values)) else 0, _in_too_few_runs)


def _in_too_few_runs(one: int, other: int) -> float:
    return chance_of_runs(MIN_RUNS - 1, one, other)


def find_two_bands(values: Sequence[float], resolution: float = 0.0) -> TwoBands | None:
    """Return the two bands of a series; None if there are none.

    `values`: in the order of time.
    `resolution`: difference without a change of the system; the least spread of a band.
    """
    boundary = _boundary(sorted(values), resolution, fewest(len(values)))
    if boundary is None:
        return None
    in_lower = tuple(value < boundary for value in values)
    lower = [value for value, low in zip(values, in_lower, strict=True) if low]
    upper = [value for value, low in zip(values, in_lower, strict=True) if not low]
    runs = 1 + sum(one != other for one, other in pairwise(in_lower))
    chance = chance_of_runs(runs, len(lower), len(upper))
    if runs < MIN_RUNS or chance < MIN_CHANCE:
        return None
    return TwoBands(fmean(upper), fmean(lower), len(lower) / len(values), runs, chance, in_lower)


def chance_of_runs(runs: int, one: int, other: int) -> float:
    """Return the probability of at most so many runs in a random order of two kinds (Wald and Wolfowitz)."""
    every = comb(one + other, one)
    return sum(_orders(number, one, other) for number in range(2, runs + 1)) / every


def _orders(runs: int, one: int, other: int) -> int:
    """Number of orders of two kinds with exactly so many runs."""
    half, odd = divmod(runs, 2)

    def ways(parts_of_one: int, parts_of_other: int) -> int:
        return comb(one - 1, parts_of_one - 1) * comb(other - 1, parts_of_other - 1)

    return ways(half, half + 1) + ways(half + 1, half) if odd else 2 * ways(half, half)


def _boundary(ordered: Sequence[float], resolution: float, least: int) -> float | None:
    """Lowest value of the upper group of the best split into groups of some size; None if no split qualifies."""
    best, boundary = MIN_D, None
    for place in range(least, len(ordered) - least + 1):
        if ordered[place] - ordered[place - 1] <= resolution:
            continue
        lower, upper = ordered[:place], ordered[place:]
        spread = sqrt((_variance(lower, resolution) + _variance(upper, resolution)) / 2)
        distance = (fmean(upper) - fmean(lower)) / spread if spread > 0 else float("inf")
        if distance >= best:
            best, boundary = distance, ordered[place]
    return boundary


def _variance(values: Sequence[float], resolution: float) -> float:
    """Variance of a group, that of equal values exactly 0. The exact fractions of `pvariance` take 20 times as long."""
    offsets = [value - values[0] for value in values]
    mean = fmean(offsets)
    return max(fsum((offset - mean) ** 2 for offset in offsets) / len(values), resolution**2)

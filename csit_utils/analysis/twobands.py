"""Does a figure go back and forth between two levels? Then a low night is no regression. Numbers in, bands out.

Values are split into an upper and a lower group wherever they are farthest apart against their spread: Ashman's `D =
|m1 - m2| / sqrt((s1^2 + s2^2) / 2)` (Ashman, Bird and Zepf, Astronomical Journal 108 (1994) 2348). There are two
bands when `D` is at least `LEAST_D`, when either group has `LEAST` values and `LEAST_SHARE` of all, when each was
left and come back to, and when the order of visits may be chance: the number of unbroken runs is not too small for a
random order (Wald and Wolfowitz, Annals of Mathematical Statistics 11 (1940) 147). A level that changed once and
stayed has two runs: that is a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, sqrt
from statistics import fmean, pvariance

LEAST = 3
LEAST_SHARE = 0.1
LEAST_D = 6.0
LEAST_RUNS = 4
"""Each band was left and come back to."""
LEAST_CHANCE = 0.001
"""Of so few runs in a random order; below it the order is no chance."""


@dataclass(frozen=True)
class TwoBands:
    """Two levels that a figure goes back and forth between."""

    upper: float
    """Mean of the upper band."""
    lower: float
    lower_share: float
    """Of the values, in [0, 1]."""
    runs: int
    """Unbroken visits of either band."""
    chance: float
    """Of no more runs than these, were the order random; of the whole, not of a sample."""
    in_lower: tuple[bool, ...]
    """By value, in the order of time."""


def find_two_bands(values: Sequence[float], resolution: float = 0.0) -> TwoBands | None:
    """Look for two bands.

    Args:
        values: In the order of time.
        resolution: What figures may differ by without any reason; spreads below count as that.
    """
    boundary = _boundary(sorted(values), resolution)
    if boundary is None:
        return None
    in_lower = tuple(value < boundary for value in values)
    lower = [value for value, low in zip(values, in_lower, strict=True) if low]
    upper = [value for value, low in zip(values, in_lower, strict=True) if not low]
    runs = 1 + sum(one != other for one, other in pairwise(in_lower))
    chance = chance_of_runs(runs, len(lower), len(upper))
    if runs < LEAST_RUNS or chance < LEAST_CHANCE:
        return None
    return TwoBands(fmean(upper), fmean(lower), len(lower) / len(values), runs, chance, in_lower)


def chance_of_runs(runs: int, one: int, other: int) -> float:
    """Probability of at most so many runs in a random order of two kinds (Wald and Wolfowitz)."""
    every = comb(one + other, one)
    return sum(_orders(number, one, other) for number in range(2, runs + 1)) / every


def _orders(runs: int, one: int, other: int) -> int:
    """Orders of two kinds that have exactly so many runs."""
    half, odd = divmod(runs, 2)

    def ways(parts_of_one: int, parts_of_other: int) -> int:
        return comb(one - 1, parts_of_one - 1) * comb(other - 1, parts_of_other - 1)

    return ways(half, half + 1) + ways(half + 1, half) if odd else 2 * ways(half, half)


def _boundary(ordered: Sequence[float], resolution: float) -> float | None:
    """Least value of the upper group of the best split; None where no split is good enough."""
    fewest = max(LEAST, round(LEAST_SHARE * len(ordered)))
    best, boundary = LEAST_D, None
    for place in range(fewest, len(ordered) - fewest + 1):
        if ordered[place] - ordered[place - 1] <= resolution:
            continue
        lower, upper = ordered[:place], ordered[place:]
        spread = sqrt((_variance(lower, resolution) + _variance(upper, resolution)) / 2)
        distance = (fmean(upper) - fmean(lower)) / spread if spread > 0 else float("inf")
        if distance >= best:
            best, boundary = distance, ordered[place]
    return boundary


def _variance(values: Sequence[float], resolution: float) -> float:
    return max(pvariance(values), resolution**2)

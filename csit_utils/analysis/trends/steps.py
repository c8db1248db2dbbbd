"""Detection of steps in the level of a noisy series, and of two levels between which it alternates.

A figure is a level plus noise. Noise of benchmarks has heavy tails, so it is modelled as Student's t with 4 degrees of
freedom, and levels are medians: an outlier affects neither.

**Noise.** The mean of the middle half of the absolute differences of neighbours, which a few steps do not disturb,
over that of the distribution; widened for short series, where it is uncertain; at least the resolution of the figures.
(The median is not used: figures of a search are multiples of its width, and so would be their median.)

**Evidence for one split.** For a split into a longer part of `a` values and a shorter one of `m`, let `d` be the
distance from the median of the longer part that the majority of the shorter one, `r = max(3, m // 2 + 1)` values,
reach or exceed on one side. It is reduced by `sqrt(a / (a + m))`, as the level of the longer part is uncertain too. A
single value at the same level reaches it with the tail probability `q`, a majority with `P(Binomial(m, q) >= r)`, and
on either side with twice that. So a large distance needs few nights, a small one many, and one or two outliers are
never enough.

**Splits.** All splits of seeded intervals, which also detect a short episode between two equal levels (Kovács,
Bühlmann, Li and Munk, *Seeded binary segmentation*, Biometrika 110 (2023), arXiv:2002.06633). The best split is
taken, then the best of those whose interval it does not divide. There are several times as many splits as values, but
they overlap so much that probabilities are multiplied by the number of values only. `alpha` is then the probability of
any false step in a series whose noise is no worse than assumed.

**Two bands.** A figure that alternates between two levels has low nights that are no regressions. Values are split into
an upper and a lower group where Ashman's `D = |m1 - m2| / sqrt((s1^2 + s2^2) / 2)` is largest (Ashman, Bird and Zepf,
Astronomical Journal 108 (1994) 2348). There are two bands if `D` is at least `MIN_D`, each group has `fewest` values,
each band was left and entered again, and the order is consistent with chance: the number of runs is not too small for a
random order (Wald and Wolfowitz, Annals of Mathematical Statistics 11 (1940) 147). A level that changed once and stayed
has two runs: that is a step.

`docs/statistics.md` has the measured false alarm rate, and the share of steps detected by size and number of nights.
"""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, fsum, sqrt
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python import special_functions
from resources.libraries.python.search.findings.unseen_bands import UnseenBands, fewest, unseen_bands

FREEDOM = 4
"""Degrees of freedom of the noise."""
MIN_RUNS = 3
"""Fewest values in a part."""
_MEAN_DIFFERENCE = 1.1815
"""Mean of the middle half of |x - y| of independent values of Student's t with 4 degrees of freedom."""
_WIDENING = 6.0
"""The noise of n values is widened by this over n - 1, as the estimate from few values may be far too small."""
_DECAY = sqrt(0.5)
"""Length of a layer of seeded intervals over that of the previous layer."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """A change of level."""

    index: int
    """Index of the first value of the new level."""
    before: float
    """Median of the level before."""
    after: float
    probability: float
    """Probability that noise alone makes such a split anywhere in the series; at most 1."""

    @property
    def change(self) -> float:
        """Relative change; 0.0 if the level before is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else 0.0


def noise(values: Sequence[float], resolution: float = 0.0) -> float:
    """Return the scale of the noise of a series as Student's t with 4 degrees of freedom.

    Its standard deviation is 1.41 times the scale.

    `values`: in the order of time.
    `resolution`: difference without a change of the system, such as half of the width between a search's bounds.
    """
    if len(values) < 2:
        return resolution
    differences = np.sort(np.abs(np.diff(np.asarray(values, dtype=float))))
    quarter = len(differences) // 4
    middle = differences[quarter : len(differences) - quarter]
    return max(resolution, float(middle.mean()) / _MEAN_DIFFERENCE * widening(len(values)))


def widening(count: int) -> float:
    """Return the factor that widens the noise of so many values."""
    return 1 + _WIDENING / max(1, count - 1)


def find_steps(values: Sequence[float], scale: float, alpha: float) -> tuple[Step, ...]:
    """Return the steps of a series, in the order of time.

    `values`: in the order of time, without gaps.
    """
    splits = list(_splits(values))
    if not splits:
        return ()
    starts, places, ends = (np.array([split[i] for split in splits]) for i in range(3))
    probabilities = _probabilities(splits, scale)
    found: list[int] = []
    open_ = probabilities * len(values) <= alpha
    while open_.any():
        best = int(np.where(open_, probabilities, np.inf).argmin())
        found.append(int(places[best]))
        open_ &= (ends <= places[best]) | (starts >= places[best])
    return _settled(values, sorted(found), scale, alpha)


def tail(departure: float, scale: float) -> float:
    """Return the two-sided probability that the noise of one value reaches a distance."""
    return min(1.0, 2 * float(special_functions.stdtr(FREEDOM, -abs(departure) / scale)))


def split_chance(before: Sequence[float], after: Sequence[float], scale: float) -> float:
    """Return the two-sided probability that noise alone makes a split at a given place.

    `before`: values before it, at least `MIN_RUNS`.
    `after`: values after it, at least `MIN_RUNS`.
    """
    shorter, longer = sorted((sorted(before), sorted(after)), key=len)
    return float(_probabilities([_between(shorter, longer)], scale)[0])


_Split = tuple[int, int, int, float, int]
"""Start, place and end of a split, reduced distance of the shorter part, its number of values."""


def _splits(values: Sequence[float]) -> Iterator[_Split]:
    for start, end in _intervals(len(values)):
        inside = values[start:end]
        count = len(inside)
        (ends, levels), (other_ends, other_levels) = (_parts(each) for each in (inside, inside[::-1]))
        for size in range(MIN_RUNS, count - MIN_RUNS + 1):
            rest = count - size
            if size <= rest:
                yield start, start + size, end, _departure(ends[size], size, other_levels[rest], rest), size
            else:
                yield start, start + size, end, _departure(other_ends[rest], rest, levels[size], size), rest


_Ends = tuple[float, float]
"""What the majority of the values of a part reach or exceed, and what the majority reach or stay below."""


def _parts(values: Sequence[float]) -> tuple[Mapping[int, _Ends], Mapping[int, float]]:
    """Return the ends of the shorter heads of a series and the medians of the longer ones, by number of values."""
    ends, levels, ordered = {}, {}, list[float]()
    for size, value in enumerate(values, 1):
        insort(ordered, value)
        if MIN_RUNS <= size <= len(values) / 2:
            ends[size] = _ends(ordered)
        if size >= len(values) / 2:
            levels[size] = _middle(ordered)
    return ends, levels


def _departure(shorter: _Ends, size: int, level: float, rest: int) -> float:
    """Distance of the majority of the shorter part, of `size` values, from the level of the longer one, of `rest`."""
    low, high = shorter
    return max(0.0, low - level, level - high) * sqrt(rest / (rest + size))


def _ends(ordered: Sequence[float]) -> _Ends:
    majority = max(MIN_RUNS, len(ordered) // 2 + 1)
    return ordered[-majority], ordered[majority - 1]


def _middle(ordered: Sequence[float]) -> float:
    """Median of values in order, which `statistics` would sort again."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _probabilities(splits: Sequence[_Split], scale: float) -> Array:
    departures = np.array([split[3] for split in splits])
    sizes = np.array([split[4] for split in splits])
    away = np.maximum(MIN_RUNS, sizes // 2 + 1)
    reached = special_functions.stdtr(FREEDOM, -departures / scale)
    return np.asarray(np.minimum(1.0, 2 * special_functions.bdtrc(away - 1, sizes, reached)))


def _intervals(count: int) -> list[tuple[int, int]]:
    """Seeded intervals: the whole, and layers of shorter ones that overlap by half."""
    found = {(0, count)} if count >= 2 * MIN_RUNS else set()
    length = count * _DECAY
    while length >= 2 * MIN_RUNS:
        number = 2 * int(np.ceil(count / length)) - 1
        shift = (count - length) / max(1, number - 1)
        found |= {(int(i * shift), min(count, int(np.ceil(i * shift + length)))) for i in range(number)}
        length *= _DECAY
    return sorted(found)


def _settled(values: Sequence[float], places: list[int], scale: float, alpha: float) -> tuple[Step, ...]:
    """Steps moved to the best places between their neighbours, without those that then lack evidence."""
    while places:
        bounds = [0, *places, len(values)]
        for i in range(1, len(bounds) - 1):
            bounds[i] = _best(values, bounds[i - 1], bounds[i + 1])
        places = bounds[1:-1]
        parts = [sorted(values[one:two]) for one, two in pairwise(bounds)]
        pairs = list(pairwise(parts))
        rows = [_between(*sorted(pair, key=len)) for pair in pairs]
        probabilities = np.minimum(1.0, _probabilities(rows, scale) * len(values))
        worst = int(probabilities.argmax())
        if probabilities[worst] <= alpha:
            return tuple(
                Step(place, median(one), median(two), float(probability))
                for place, (one, two), probability in zip(places, pairs, probabilities, strict=True)
            )
        del places[worst]
    return ()


def _between(shorter: Sequence[float], longer: Sequence[float]) -> _Split:
    size, rest = len(shorter), len(longer)
    return 0, 0, 0, _departure(_ends(shorter), size, _middle(longer), rest), size


def _best(values: Sequence[float], start: int, end: int) -> int:
    """The split with the least sum of absolute deviations from the medians of its parts."""

    def cost(place: int) -> float:
        parts = (values[start:place], values[place:end])
        return sum(abs(value - level) for part in parts for level in (median(part),) for value in part)

    return min(range(start + MIN_RUNS, end - MIN_RUNS + 1), key=cost)


MIN_D = 6.0
_MIN_VISITS = 4
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
    return chance_of_runs(_MIN_VISITS - 1, one, other)


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
    if runs < _MIN_VISITS or chance < MIN_CHANCE:
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

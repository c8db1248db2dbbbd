"""Where a noisy series changes its level. Numbers in, steps out.

A night's figure is a level plus noise. Noise of benchmarks has heavy tails, so it is taken to be Student's t with 4
degrees of freedom, and levels are medians: a night that went wrong moves neither.

**Noise.** The mean of the middle half of the absolute differences of neighbours, which a few steps do not disturb,
over that of the distribution; widened for short series, where it is itself uncertain; never below the resolution of
the figures. (The median would do, but figures of a search come in steps of its width, and so would their median.)

**Evidence for one split.** Of a split into a longer part of `a` values and a shorter one of `m`, let `d` be the
departure from the longer part's median that the majority of the shorter one, `r = max(3, m // 2 + 1)` values, reach
or exceed to one side. It is shrunk by `sqrt(a / (a + m))`, as the longer part's level is not exact either. A single
value of the same level reaches it with the probability `q` of the tail, a majority with `P(Binomial(m, q) >= r)`, to
either side twice that. So a large departure needs few nights, a small one many, and one or two wild nights are never
enough.

**Splits.** All splits of seeded intervals, so that a short episode between two equal levels is seen as well (Kovács,
Bühlmann, Li and Munk, *Seeded binary segmentation*, Biometrika 110 (2023), arXiv:2002.06633). The best split is
taken, then the best of those whose interval it does not divide. There are several times as many splits as values, but
they overlap so much that probabilities are multiplied by the number of values only. `alpha` is then the chance of any
false step in a series whose noise is no worse than assumed.

How often that holds, and which steps are found after how many nights, is measured: `docs/statistics.md`.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, stdtr

FREEDOM = 4
"""Degrees of freedom of the noise."""
LEAST = 3
"""Values in a part at least."""
_MEAN_DIFFERENCE = 1.1815
"""Mean of the middle half of |x - y| of independent values of Student's t with 4 degrees of freedom."""
_WIDENING = 6.0
"""The noise of n values is widened by this over n - 1: that of few may come out far too small."""
_DECAY = sqrt(0.5)
"""Each layer of seeded intervals is shorter by this."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """A change of level."""

    index: int
    """Of the first value of the new level."""
    before: float
    """Median of the level before."""
    after: float
    probability: float
    """That noise alone makes such a split anywhere in the series; at most 1."""

    @property
    def change(self) -> float:
        """Relative; 0.0 where the level before is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else 0.0


def noise(values: Sequence[float], resolution: float = 0.0) -> float:
    """Scale of the noise of a series, as a Student's t with 4 degrees of freedom has it.

    The standard deviation of that is 1.41 times its scale.

    Args:
        values: In the order of time.
        resolution: What figures may differ by without any reason, such as half of the width between a search's bounds.
    """
    if len(values) < 2:
        return resolution
    differences = np.sort(np.abs(np.diff(np.asarray(values, dtype=float))))
    quarter = len(differences) // 4
    middle = differences[quarter : len(differences) - quarter]
    return max(resolution, float(middle.mean()) / _MEAN_DIFFERENCE * widening(len(values)))


def widening(count: int) -> float:
    """What the noise of so many values is widened by."""
    return 1 + _WIDENING / max(1, count - 1)


def find_steps(values: Sequence[float], scale: float, alpha: float) -> tuple[Step, ...]:
    """Steps of a series, in the order of time.

    Args:
        values: In the order of time; nights without a figure are left out.
        scale: Of the noise, above 0.
        alpha: Chance of any false step.
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
    """Chance that the noise of one value reaches a departure, to either side."""
    return min(1.0, 2 * float(stdtr(FREEDOM, -abs(departure) / scale)))


_Split = tuple[int, int, int, float, int]
"""Start, place and end of a split, departure of the shorter part (shrunk), its number of values."""


def _splits(values: Sequence[float]) -> Iterator[_Split]:
    for start, end in _intervals(len(values)):
        inside = list(values[start:end])
        count = len(inside)
        heads, tails = _running(inside), _running(inside[::-1])
        for size in range(LEAST, count - LEAST + 1):
            yield (
                start,
                start + size,
                end,
                _departure(heads[size - 1], tails[count - size - 1]),
                min(size, count - size),
            )


def _running(values: Sequence[float]) -> list[list[float]]:
    """Sorted heads of a series: of one value, of two, and so on."""
    heads, head = [], list[float]()
    for value in values:
        insort(head, value)
        heads.append(head.copy())
    return heads


def _departure(one: list[float], other: list[float]) -> float:
    """How far the majority of the shorter part is from the longer part's level; both are sorted."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    level, majority = median(long), _majority(len(short))
    away = max(0.0, short[-majority] - level, level - short[majority - 1])
    return away * sqrt(len(long) / (len(long) + len(short)))


def _probabilities(splits: Sequence[_Split], scale: float) -> Array:
    departures = np.array([split[3] for split in splits])
    sizes = np.array([split[4] for split in splits])
    away = np.array([_majority(split[4]) for split in splits])
    reached = stdtr(FREEDOM, -departures / scale)
    return np.asarray(np.minimum(1.0, 2 * bdtrc(away - 1, sizes, reached)))


def _majority(count: int) -> int:
    """How many values of a part have to be away: more than half of them, and three."""
    return max(LEAST, count // 2 + 1)


def _intervals(count: int) -> list[tuple[int, int]]:
    """Seeded intervals: the whole, and layers of ever shorter ones that overlap by half."""
    found = {(0, count)} if count >= 2 * LEAST else set()
    length = count * _DECAY
    while length >= 2 * LEAST:
        number = 2 * int(np.ceil(count / length)) - 1
        shift = (count - length) / max(1, number - 1)
        found |= {(int(i * shift), min(count, int(np.ceil(i * shift + length)))) for i in range(number)}
        length *= _DECAY
    return sorted(found)


def _settled(values: Sequence[float], places: list[int], scale: float, alpha: float) -> tuple[Step, ...]:
    """Steps at the best places between their neighbours; those that then lack evidence are left out."""
    while places:
        bounds = [0, *places, len(values)]
        for i in range(1, len(bounds) - 1):
            bounds[i] = _best(values, bounds[i - 1], bounds[i + 1])
        places = bounds[1:-1]
        parts = [sorted(values[one:two]) for one, two in pairwise(bounds)]
        pairs = list(pairwise(parts))
        rows = [(0, 0, 0, _departure(one, two), min(len(one), len(two))) for one, two in pairs]
        probabilities = np.minimum(1.0, _probabilities(rows, scale) * len(values))
        worst = int(probabilities.argmax())
        if probabilities[worst] <= alpha:
            return tuple(
                Step(place, median(one), median(two), float(probability))
                for place, (one, two), probability in zip(places, pairs, probabilities, strict=True)
            )
        del places[worst]
    return ()


def _best(values: Sequence[float], start: int, end: int) -> int:
    """The split with the least sum of absolute departures from the medians of its parts."""

    def cost(place: int) -> float:
        parts = (values[start:place], values[place:end])
        return sum(abs(value - level) for part in parts for level in (median(part),) for value in part)

    return min(range(start + LEAST, end - LEAST + 1), key=cost)

"""Where in an ordered list of revisions a metric has changed: a posterior over all places, and what to measure next.

The levels of revisions are a step function with 0 to 2 changes; between two changes they are equal. Observations, one
per deployment, scatter around the level of their revision with an unknown standard deviation, possibly in two bands,
and a few are outliers. All of this is summed over on a grid, exactly (forward-backward recursion over revisions, as for
a hidden Markov model whose state is the level and the number of changes so far), so that each place of a change has a
probability given the observations. An answer is given when its probability of being wrong is below the one asked for;
until then the revision whose level is the least certain is measured next.

Bisection under noise: Horstein, IEEE Trans. Inf. Theory 9 (1963) 136; Waeber, Frazier, Henderson, SIAM J. Control
Optim. 51 (2013) 2261. Exact posteriors of change-points: Fearnhead, Stat. Comput. 16 (2006) 203.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil, comb, floor, pi, sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]
MAX_CHANGES = 2
_PRIOR = (0.1, 0.75, 0.15)
"""Probability of 0, 1 and 2 changes before anything is measured."""
_SAFETY = 2
"""The posterior must be this many times as certain as promised: the noise is not exactly one of the grid."""
_OUTLIERS = 0.02
_BANDS = 0.3
"""Probability of two bands before anything is measured."""
_LOW_SHARES = (0.25, 0.5, 0.75)
_SIGMAS = (1.0, 1.6, 2.5, 4.0, 6.5, 10.0)
"""Standard deviations, in steps of the grid of levels."""
_STEPS_OF_CHANGE = 3
_MAX_STEPS = 60
"""Steps of the grid in the range of all observations."""
_PARTS = 4
"""A change smaller than this part of the whole difference is none: it would cost more than all else to exclude."""
_ROUNDED = 8
"""Steps by which the ends of the grid are rounded."""
_NEGLIGIBLE = 20.0
"""Kinds of noise this much less likely than the best one are left out, in natural logarithms."""
_MIN_VISITS = 2
"""Observations of good and bad revision before the first look, and of both sides of a change."""
_SAME_WORTH_MEASURING = 0.05
"""Only good and bad revision are measured while they are equal with at least this probability."""


class BisectionAnswer(StrEnum):
    """Result of a bisection."""

    CULPRIT = "culprit"
    TWO_CULPRITS = "two culprits"
    NOT_HERE = "not in these revisions"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class BisectionQuestion:
    """Goal of a bisection."""

    revisions: int
    """From the good one, number 0, to the bad one."""
    change: float = 0.02
    """Smallest change of interest, as a difference of natural logarithms: 0.02 is 2 %. No change counts that is smaller
    than a quarter of the whole difference."""
    wrong: float = 0.01
    """Largest probability of a wrong answer."""
    most: int = 400
    """Observations after which it ends undecided."""


@dataclass(frozen=True)
class Culprit:
    """A place where the level changes."""

    first: int
    """First revision that may have changed it; smaller than `last` where those between could not be measured."""
    last: int
    probability: float


@dataclass(frozen=True)
class RevisionLevel:
    """Level of a measured revision: logarithm of the metric, mean and standard deviation of the posterior."""

    mean: float
    stdev: float


@dataclass(frozen=True)
class Beliefs:
    """Posterior after some observations."""

    answer: BisectionAnswer | None
    """None: not decided yet."""
    culprits: tuple[Culprit, ...]
    """Of the answer; undecided: the most probable places."""
    probability: float
    """Of the answer, or of the most probable one so far."""
    next: int | None
    """Revision to measure next; None where there is an answer."""
    levels: Mapping[int, RevisionLevel]


def look(values: Mapping[int, Sequence[float]], skipped: AbstractSet[int], question: BisectionQuestion) -> Beliefs:
    """Return what observations say, and what to measure next.

    `values`: logarithms of the metric by number of the revision; one per deployment.
    `skipped`: revisions that cannot be measured; neither the first nor the last.
    """
    last = question.revisions - 1
    counts = {end: len(values.get(end, ())) for end in (0, last)}
    fewest = min((0, last), key=lambda end: counts[end])
    measured = {number: seen for number, seen in values.items() if seen and number not in skipped}
    if counts[fewest] < _MIN_VISITS:
        return Beliefs(None, (), 0.0, fewest, {})
    tolerated = question.wrong / _SAFETY
    whole = abs(median(measured[0]) - median(measured[last]))
    model = _Model([value for seen in measured.values() for value in seen], max(question.change, whole / _PARTS))
    ends = model.posterior({end: measured[end] for end in (0, last)}, (1,), most=1)
    end = BisectionAnswer.UNDECIDED if sum(map(len, measured.values())) >= question.most else None
    if ends.changes[0] >= 1 - tolerated:
        return Beliefs(BisectionAnswer.NOT_HERE, (), ends.changes[0], None, ends.levels)
    if ends.changes[0] > _SAME_WORTH_MEASURING:
        return Beliefs(end, (), ends.changes[0], None if end else fewest, ends.levels)
    places = _with_midpoints(sorted(measured), skipped, last)
    gaps = tuple(_positions(one, other, skipped) for one, other in pairwise(places))
    found = model.posterior({place: measured.get(place, ()) for place in places}, gaps)
    settled = _settled(places, found, skipped, tolerated)
    if settled is not None:
        probability, answer, culprits = settled
        short = [side for each in culprits for side in _sides(each) if len(measured.get(side, ())) < _MIN_VISITS]
        if not short:
            return Beliefs(answer, culprits, probability, None, _of(found.levels, measured))
        following = short[0]
    else:
        following = max(places, key=lambda place: found.levels[place].stdev)
    best = _most_probable(places, found)
    chance = max((each.probability for each in best), default=0.0)
    return Beliefs(end, best, chance, None if end else following, _of(found.levels, measured))


def _of(levels: Mapping[int, RevisionLevel], measured: Mapping[int, Sequence[float]]) -> dict[int, RevisionLevel]:
    return {number: level for number, level in levels.items() if number in measured}


def _sides(culprit: Culprit) -> tuple[int, int]:
    return culprit.first - 1, culprit.last


def _positions(one: int, other: int, skipped: AbstractSet[int]) -> int:
    """Places of a change between two revisions that can be told apart."""
    return sum(number not in skipped for number in range(one + 1, other)) + 1


def _with_midpoints(measured: Sequence[int], skipped: AbstractSet[int], last: int) -> list[int]:
    """Measured revisions, and the middle one of those between two of them that can be measured."""
    places = []
    for one, other in pairwise(measured):
        between = [number for number in range(one + 1, other) if number not in skipped]
        places += [one, *between[len(between) // 2 : len(between) // 2 + 1]]
    return [*places, last]


@dataclass(frozen=True)
class _Posterior:
    changes: tuple[float, ...]
    """Probability of each number of changes."""
    single: tuple[float, ...]
    """By gap: probability that there is one change, and that it is here."""
    one_of_two: tuple[float, ...]
    """By gap: probability that there are two changes, and that one or both are here."""
    any: tuple[float, ...]
    """By gap: probability of at least one change here."""
    levels: Mapping[int, RevisionLevel]


def _settled(
    places: Sequence[int], found: _Posterior, skipped: AbstractSet[int], tolerated: float
) -> tuple[float, BisectionAnswer, tuple[Culprit, ...]] | None:
    if found.changes[0] >= 1 - tolerated:
        return found.changes[0], BisectionAnswer.NOT_HERE, ()
    narrow = [_positions(one, other, skipped) == 1 for one, other in pairwise(places)]
    best = max(range(len(narrow)), key=lambda gap: found.single[gap])
    if narrow[best] and found.single[best] >= 1 - tolerated:
        return found.single[best], BisectionAnswer.CULPRIT, (_culprit(places, best, found.single[best]),)
    pair = sorted(sorted(range(len(narrow)), key=lambda gap: -found.one_of_two[gap])[:2])
    both = sum(found.one_of_two[gap] for gap in pair) - found.changes[2]  # at least, by Bonferroni's inequality
    if len(pair) > 1 and all(narrow[gap] for gap in pair) and both >= 1 - tolerated:
        return both, BisectionAnswer.TWO_CULPRITS, tuple(_culprit(places, gap, found.one_of_two[gap]) for gap in pair)
    return None


def _most_probable(places: Sequence[int], found: _Posterior) -> tuple[Culprit, ...]:
    """Places of changes, one for each expected change, in the order of revisions."""
    count = max(range(1, MAX_CHANGES + 1), key=lambda number: found.changes[number])
    chances = found.single if count == 1 else found.any
    best = sorted(sorted(range(len(chances)), key=lambda gap: -chances[gap])[:count])
    return tuple(_culprit(places, gap, chances[gap]) for gap in best)


def _culprit(places: Sequence[int], gap: int, probability: float) -> Culprit:
    return Culprit(places[gap] + 1, places[gap + 1], probability)


@dataclass(frozen=True)
class _Grid:
    """Levels from `low` upwards, and kinds of noise. Rounded, so that more observations seldom change it."""

    low: int
    """In steps."""
    step: float
    count: int

    @property
    def levels(self) -> _Array:
        return np.arange(self.low, self.low + self.count, dtype=np.float64) * self.step


def _grid(values: Sequence[float], change: float) -> _Grid:
    low, high = min(values), max(values)
    step = change / _STEPS_OF_CHANGE
    while high - low > _MAX_STEPS * step:
        step *= 2
    begin = _ROUNDED * floor((low / step - 1) / _ROUNDED)
    return _Grid(begin, step, _ROUNDED * ceil((high / step + 2 - begin) / _ROUNDED))


@cache
def _noises(count: int) -> tuple[_Array, _Array, _Array, _Array]:
    """Standard deviation and distance of the bands in steps, share of the lower band, and prior weight of each kind."""
    noises = [(sigma, 0.0, 0.0) for sigma in _SIGMAS]
    for sigma in _SIGMAS:
        gaps = range(ceil(3 * sigma), count, ceil(1.5 * sigma))
        noises += [(sigma, float(gap), share) for gap in gaps for share in _LOW_SHARES]
    bands = len(noises) - len(_SIGMAS)
    weights = [(1 - _BANDS) / len(_SIGMAS)] * len(_SIGMAS) + [_BANDS / max(bands, 1)] * bands
    sigmas, gaps_apart, shares = np.array(noises).T
    return sigmas, gaps_apart, shares, np.array(weights)


@lru_cache(maxsize=1024)
def _log_likelihood(value: float, grid: _Grid) -> _Array:
    """Of an observation, by kind of noise and level."""
    sigmas, gaps, shares, _ = (row[:, None] for row in _noises(grid.count))
    apart = (value - grid.levels[None, :]) / grid.step
    density = (1 - shares) * np.exp(-0.5 * (apart / sigmas) ** 2)
    density += shares * np.exp(-0.5 * ((apart + gaps) / sigmas) ** 2)
    found: _Array = np.log((1 - _OUTLIERS) / (sigmas * sqrt(2 * pi)) * density + _OUTLIERS / grid.count)
    return found


class _Model:
    """The grid and what follows from it.

    `change`: smallest change of interest.
    """

    def __init__(self, values: Sequence[float], change: float) -> None:
        self._grid = _grid(values, change)
        self._levels = self._grid.levels
        self._weights = _noises(self._grid.count)[3]
        apart = np.abs(self._levels[:, None] - self._levels[None, :])
        changed = (apart > change - 0.5 * self._grid.step).astype(float)
        self._change: _Array = changed / np.maximum(changed.sum(axis=1, keepdims=True), 1.0)

    def posterior(
        self, seen: Mapping[int, Sequence[float]], gaps: Sequence[int], most: int = MAX_CHANGES
    ) -> _Posterior:
        """Return the posterior of changes.

        Args:
            seen: Observations by revision, in the order of revisions; may be empty.
            gaps: Places of a change between each two of them.
            most: Changes; a larger number is not considered.
        """
        none = np.zeros((len(self._weights), len(self._levels)))
        logs = np.array([sum((_log_likelihood(one, self._grid) for one in each), none) for each in seen.values()])
        highest = logs.max(axis=2).sum(axis=0) + np.log(self._weights)  # no level makes the observations more likely
        kept = highest > highest.max() - _NEGLIGIBLE
        logs = logs[:, kept]
        likelihoods = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
        states = (most + 1, kept.sum(), len(self._levels))
        forward = np.zeros((len(seen), *states))
        forward[0, 0] = likelihoods[0] * self._weights[kept, None] / len(self._levels)
        for place, gap in enumerate(gaps, 1):
            after = self._cross(forward[place - 1], gap, self._change) * likelihoods[place]
            forward[place] = after / after.max()
        backward = np.zeros_like(forward)
        backward[-1, 0] = 1.0
        for place, gap in reversed(list(enumerate(gaps))):
            after = self._cross(backward[place + 1] * likelihoods[place + 1], gap, self._change.T)
            backward[place] = after / after.max()
        total = sum(gaps)
        prior = np.array([_PRIOR[count] / comb(total, count) if count <= total else 0.0 for count in range(most + 1)])
        ends = prior * forward[-1].sum(axis=(1, 2))
        changes = ends / ends.sum()
        by_gap = [
            self._in_gap(forward[place], backward[place + 1] * likelihoods[place + 1], gap, prior, changes)
            for place, gap in enumerate(gaps)
        ]
        levels = {number: self._level(forward[place], backward[place], prior) for place, number in enumerate(seen)}
        single, of_two, every = zip(*by_gap, strict=True)
        return _Posterior(tuple(map(float, changes)), single, of_two, every, levels)

    @staticmethod
    def _cross(state: _Array, gap: int, change: _Array) -> _Array:
        """State behind a gap, with every number of changes in it."""
        found, moved = state.copy(), state
        for count in range(1, min(gap, len(state) - 1) + 1):
            moved = moved[: len(state) - count] @ change
            found[count:] += comb(gap, count) * moved
        return found

    def _in_gap(
        self, before: _Array, after: _Array, gap: int, prior: _Array, changes: _Array
    ) -> tuple[float, float, float]:
        """Probabilities of `single`, `one_of_two` and `any` of a gap."""
        ways = [before]
        for _ in range(min(gap, len(prior) - 1)):
            ways.append(ways[-1] @ self._change)
        table = np.zeros((len(prior), 2))  # by number of changes; without and with one in this gap
        for inside, way in enumerate(ways):
            for left in range(len(prior)):
                for right in range(len(prior) - inside - left):
                    weight = comb(gap, inside) * float(np.vdot(way[left], after[right]))
                    table[left + inside + right, int(inside > 0)] += weight
        table *= prior[:, None]
        with_change = table[:, 1] / table.sum()
        return float(with_change[1]), float(with_change[2]) if len(changes) > 2 else 0.0, float(with_change.sum())

    def _level(self, before: _Array, after: _Array, prior: _Array) -> RevisionLevel:
        weights = np.zeros(len(self._levels))
        for left in range(len(prior)):
            for right in range(len(prior) - left):
                weights += prior[left + right] * (before[left] * after[right]).sum(axis=0)
        weights /= weights.sum()
        mean = float(weights @ self._levels)
        return RevisionLevel(mean, sqrt(max(float(weights @ (self._levels - mean) ** 2), 0.0)))

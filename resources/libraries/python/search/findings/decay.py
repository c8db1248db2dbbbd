"""Decay of a system while it is searched: repeated loads of which each trial forwards less than the one before.

Trials are compared within their load only, so that it does not matter which loads a search chooses. Kendall's S counts
pairs of trials that fell in time less those that rose, over all loads; a run of bad luck gives a large S with a
probability of at most `FALSE_ALARM` a look, by its variance with ties (Kendall, Rank Correlation Methods, 1970). A
step or a change of band would give one too: wherever the trials are cut in two, those of both parts have to fall as
well. The slope is that of Theil and Sen over the same pairs.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import erfc, expm1, log, sqrt
from statistics import median

from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.quantities import counted, grouped

FALSE_ALARM = 1e-4
"""Probability of a look. A search looks after each trial, but its looks share almost all trials."""
_WITHOUT_STEP = 0.02
"""The same of pairs on the same side of any cut."""
MIN_DECAY = 0.02
"""Least share that is lost from the first to the last of these trials: less changes no bound that a search reports."""
_TIE = 1e-6
_MIN_SENT = 0.05
"""Share of a trial that must have been sent to count: what was ended at once says little about a rate."""


class Decaying(Exception):
    """The system forwards less and less: a search finds no bound that holds."""


@dataclass(frozen=True, slots=True)
class Decay:
    """A system that forwards less and less."""

    per_minute: float
    """Percent of its rate that it loses in a minute."""
    trials: int
    """Trials of repeated loads that show it."""
    loads: int

    def __str__(self) -> str:
        of = f"{self.trials} trials at {counted(self.loads, 'repeated load')}"
        return f"decaying: {grouped(self.per_minute, 2)} % per minute in {of}"


@dataclass(frozen=True, slots=True)
class Point:
    """A value that may fall with time."""

    at_s: float
    value: float


class DecayWatch:
    """The trials of a search so far, by load."""

    def __init__(self) -> None:
        self._loads: dict[tuple[float, float], list[Point]] = defaultdict(list)

    def add(self, result: TrialResult, at_s: float) -> Decay | None:
        """Take a trial that ended at a time in seconds; return the decay if there is one by now."""
        trial = result.trial
        if result.generator_limited or result.offered_duration_s < _MIN_SENT * trial.duration_s or not result.received:
            return None
        points = self._loads[trial.load_pps, trial.duration_s]
        points.append(Point(at_s, log(result.forwarded_pps)))
        return self._decay() if len(points) > 1 else None

    def _decay(self) -> Decay | None:
        groups = [points for points in self._loads.values() if len(points) > 1]
        if chance_of_fall(groups) > FALSE_ALARM:
            return None
        times = sorted(point.at_s for points in groups for point in points)
        if any(chance_of_fall(_cut(groups, at_s)) > _WITHOUT_STEP for at_s in times):
            return None
        slope = median(
            (one.value - other.value) / (other.at_s - one.at_s)
            for points in groups
            for one, other in combinations(points, 2)
        )
        if -expm1(-slope * (times[-1] - times[0])) < MIN_DECAY:
            return None
        return Decay(-100 * expm1(-60 * slope), sum(map(len, groups)), len(groups))


def _cut(groups: Sequence[Sequence[Point]], at_s: float) -> list[list[Point]]:
    """Trials before a time and after it as groups of their own."""
    sides = ((lambda point: point.at_s < at_s), (lambda point: point.at_s >= at_s))
    return [list(filter(side, points)) for points in groups for side in sides]


def chance_of_fall(groups: Sequence[Sequence[Point]]) -> float:
    """Probability of at least this S where no value depends on time; the points of a group are in order of time."""
    score, spread = 0, 0.0
    for points in groups:
        values = [point.value for point in points]
        signs = [_sign(one - other) for one, other in combinations(values, 2)]
        score += sum(signs)
        spread += _variance(len(values)) - sum(map(_variance, _ties(values)))
    return 0.5 * erfc((score - 1) / sqrt(2 * spread)) if spread > 0 and score > 0 else 1.0


def _sign(fall: float) -> int:
    return 0 if abs(fall) < _TIE else 1 if fall > 0 else -1


def _variance(count: int) -> float:
    return count * (count - 1) * (2 * count + 5) / 18


def _ties(rates: Sequence[float]) -> list[int]:
    """Sizes of groups of equal rates."""
    found, ordered = [1], sorted(rates)
    for one, other in pairwise(ordered):
        if other - one < _TIE:
            found[-1] += 1
        else:
            found.append(1)
    return found

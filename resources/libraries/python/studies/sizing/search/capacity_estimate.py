"""Load at which the expected indicator falls below a share of the load, with its confidence interval.

Each repetition has a capacity of its own, as a service and its host drift: what is offered below it is carried, and of
more only that much. So the indicator of a repetition that carried its load says only that the capacity was not less,
and those of all others show it: a censored regression (Tobin, Econometrica 26 (1958) 24) of the indicator on the load.
The log-likelihood is concave in Olsen's parameters (Econometrica 46 (1978) 1211): coefficients over the standard
deviation, and one over that.

Where a service carries clearly less as soon as it is overloaded, which load is carried and how much of the others are
two questions (Cragg, Econometrica 39 (1971) 829). Where two answers are more likely, the second one alone is taken
where it crosses the share; otherwise it is crossed somewhere between the loads that are all carried and those of which
none is. Where few repetitions do not tell whether one answer or two are right, the interval is that of both.

Drift may last from one repetition to the next, of which a dozen repetitions say little. So the interval is that of the
mean distribution over all autocorrelations by their restricted likelihood (Patterson and Thompson, Biometrika 58 (1971)
545), which counts that a fitted line takes some of the drift with it; before anything is measured, none at all is half
as likely as all others together.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import erfc, exp, inf, log, pi, sqrt
from statistics import median, stdev
from typing import NamedTuple

from resources.libraries.python import special_functions
from resources.libraries.python.model.service.spec import Offered

CONFIDENCE = 0.95
_MIN_TOLERANCE = 0.001
"""A repetition carries its load where the indicator is at most this share of the load below its level at low loads."""
_MIN_DEVIATION = 1e-3
"""Of the load: repetitions that differ by less have the same capacity."""
_BEYOND = 1.3
"""Times the first load that is not carried: the curve is straight enough up to there."""
_FEWEST_LOADS, _FEWEST_VALUES = 2, 4
"""Not carried: with fewer, the indicator is taken as the same at all loads beyond the capacity."""
_FALLS = 2.0
"""Log-likelihood by which two parts, of which the second is not the continuation of the first, are better or worse."""
_LASTING = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Autocorrelations of drift; the first one is half as likely as all others."""
_SURELY_LASTING = 1.645
"""Standard deviations from which on it is certain (5 %, one-sided) that drift lasts from one repetition to the next."""
_ROUNDING = 1e-9
_NEWTON_STEPS, _HALVINGS = 50, 60
_WIDEST = 1e4
"""Standard deviations."""


class Crossing(NamedTuple):
    """A load with its confidence interval."""

    load: float
    low: float
    high: float


class _Seen(NamedTuple):
    load: float
    bound: float
    """The indicator where the load is carried."""
    value: float
    """The indicator, or the bound where the load was carried."""
    carried: bool


def crossing(offered: Sequence[Offered], threshold: float) -> Crossing | None:
    """Estimate the load at which the expected indicator is `threshold` of it.

    `offered`: Loads, lowest first.
    `threshold`: Share in (0, 1].

    Returns:
        None where all loads are carried, or fewer than two repetitions show how much is carried beyond the capacity.
    """
    near = _near_capacity(offered, threshold)
    if near is None:
        return None
    seen, first, level = near
    fit = _fit(seen, offered[first].load)
    if fit is None:
        return None
    one = fit.crossing(threshold, level if first else inf)
    apart = _fit([row for row in seen if not row.carried], offered[first].load)
    better = apart.height + _carried_or_not(seen) - fit.height if first and apart else -inf
    if apart is None or better < -_FALLS:
        return one
    beyond, between = apart.crossing(threshold, inf), _transition(seen)
    two = beyond if beyond and not (between and beyond.load <= between.high) else between
    if better > _FALLS or one is None:
        return two
    return one if two is None else Crossing(one.load, min(one.low, two.low), max(one.high, two.high))


def lasting_drift(offered: Sequence[Offered], threshold: float) -> float | None:
    """Correlation of successive repetitions beyond the capacity; None where it may be nothing."""
    near = _near_capacity(offered, threshold)
    if near is None:
        return None
    seen, first, _ = near
    fit = _fit([row for row in seen if not row.carried], offered[first].load)
    return fit.correlation if fit and fit.correlation * sqrt(fit.pairs) > _SURELY_LASTING else None


def _near_capacity(offered: Sequence[Offered], threshold: float) -> tuple[list[_Seen], int, float] | None:
    """Repetitions up to somewhat beyond the first load that is not carried, its index, and the ratio of those below."""
    first = next((index for index, row in enumerate(offered) if row.ratio < threshold - _ROUNDING), None)
    if first is None:
        return None
    level, tolerance = _carrying(offered[:first])
    far = max(_BEYOND * offered[first].load, offered[min(first + 1, len(offered) - 1)].load)
    near = [row for row in offered if row.load <= far]
    seen = [
        _Seen(row.load, level * row.load, level * row.load if carried else value, carried)
        for row in near
        for value in row.indicators
        for carried in (bool(first) and value >= (level - tolerance) * row.load,)
    ]
    return seen, first, level


def _carrying(carried: Sequence[Offered]) -> tuple[float, float]:
    """Ratio of a load that is carried, and how much less still is: from the lower half of the loads, at least one."""
    ratios = [value / row.load for row in carried[: (len(carried) + 1) // 2] for value in row.indicators]
    if not ratios:
        return 1.0, _MIN_TOLERANCE
    return median(ratios), max(_MIN_TOLERANCE, 3 * stdev(ratios) if len(ratios) > 1 else 0.0)


def _carried_or_not(seen: Sequence[_Seen]) -> float:
    """Log-likelihood of which repetitions carry their load, with any chance that does not grow with the load.

    That is isotonic regression by pooling adjacent violators (Barlow, Bartholomew, Bremner and Brunk 1972).
    """
    pooled: list[tuple[int, int]] = []
    for load in sorted({row.load for row in seen}):
        carried = [row.carried for row in seen if row.load == load]
        yes, no = sum(carried), len(carried) - sum(carried)
        while pooled and pooled[-1][0] * no < yes * pooled[-1][1]:
            before = pooled.pop()
            yes, no = yes + before[0], no + before[1]
        pooled.append((yes, no))
    return sum(count * log(count / sum(row)) for row in pooled for count in row if count)


def _transition(seen: Sequence[_Seen]) -> Crossing | None:
    """From the last load below which all is carried to the first one above which nothing is."""
    loads = sorted({row.load for row in seen})
    low = min(row.load for row in seen if not row.carried)
    high = max(row.load for row in seen if row.carried)
    ends = [load for load in loads if load < low][-1:] + [load for load in loads if load > high][:1]
    return Crossing(sum(ends) / 2, *ends) if len(ends) == 2 else None


class _Fit:
    """Capacity of a repetition as a normally distributed value around a line over the load.

    `around`: A load; the line is in terms of the load relative to it.
    """

    def __init__(self, seen: Sequence[_Seen], around: float, *, slope: bool) -> None:
        self._around, self._slope = around, slope
        shown = [row.value for row in seen if not row.carried]
        self._floor = _MIN_DEVIATION * around
        mean = sum(shown) / len(shown)
        begin = max(self._floor, 0.01 * mean, stdev(shown) if len(shown) > 1 else 0.0)
        self._values = [mean / begin, *([0.0] if slope else []), 1 / begin]
        self._shown = len(shown)
        self.freedom = len(shown) - (2 if slope else 1)
        self._climb(seen)

    def _row(self, load: float) -> list[float]:
        return [1.0, load / self._around - 1] if self._slope else [1.0]

    def _climb(self, seen: Sequence[_Seen]) -> None:
        """Find the maximum of the log-likelihood by Newton's method with shorter steps where it would fall."""
        self.height = self._height(self._values, seen)
        for _ in range(_NEWTON_STEPS):
            gradient, self._information = self._slopes(seen)
            step = _solve(self._information, gradient)
            part = 1.0
            while (after := self._height(self._moved(step, part), seen)) < self.height and part > _ROUNDING:
                part /= 2
            if after < self.height:
                break
            self._values = self._moved(step, part)
            gained, self.height = after - self.height, after
            if gained < _ROUNDING:
                break
        _, self._information = self._slopes(seen)
        self._correlate(seen)

    def _correlate(self, seen: Sequence[_Seen]) -> None:
        shown = [row for row in seen if not row.carried]
        distances = self._distances(self._values, shown)
        self._rows = [[*self._row(row.load), off] for row, off in zip(shown, distances, strict=True)]
        pairs = list(pairwise(distances))
        squares = sum(before**2 + after**2 for before, after in pairs) / 2
        self.pairs = len(pairs)
        self.correlation = sum(before * after for before, after in pairs) / squares if squares else 0.0

    def _deviations(self, load: float) -> float:
        """Half of the interval at a load, in standard deviations of independent repetitions."""
        heights, variances = [], []
        for each in _LASTING:
            scale = sqrt(1 - each**2)
            white = self._rows[:1] + [
                [(after - each * before) / scale for before, after in zip(*pair, strict=True)]
                for pair in pairwise(self._rows)
            ]
            columns = list(zip(*white, strict=True))
            products = [[_dot(one, other) for other in columns] for one in columns]
            *pivots, left = _pivots(products)
            squares, row = left + _ROUNDING, self._row(load)
            variances.append(_dot(row, _solve([line[:-1] for line in products[:-1]], row)) * squares)
            heights.append(-(self._shown - 1) * log(scale) - (self.freedom * log(squares) + sum(map(log, pivots))) / 2)
        weights = [exp(each - max(heights)) for each in heights]
        weights[0] *= (len(_LASTING) - 1) / 2

        def surplus(half: float) -> float:
            distances = [-half * sqrt(variances[0] / each) for each in variances]
            outside = special_functions.stdtr([float(self.freedom)] * len(distances), distances)
            return _dot(weights, outside) / sum(weights) - (1 - CONFIDENCE) / 2

        return _crossed(surplus, 0.0, _WIDEST)

    def _moved(self, step: Sequence[float], part: float) -> list[float]:
        return [value + part * each for value, each in zip(self._values, step, strict=True)]

    def _distances(self, values: Sequence[float], seen: Sequence[_Seen]) -> list[float]:
        """Of each repetition, from the line in standard deviations; positive above it."""
        *line, inverse = values
        return [inverse * row.value - _dot(line, self._row(row.load)) for row in seen]

    def _height(self, values: Sequence[float], seen: Sequence[_Seen]) -> float:
        inverse = values[-1]
        if inverse <= 0:
            return -inf
        distances = list(zip(self._distances(values, seen), seen, strict=True))
        carried = [-distance for distance, row in distances if row.carried]
        likely = float(sum(special_functions.log_ndtr(carried))) if carried else 0.0
        squares = sum(distance**2 for distance, row in distances if not row.carried)
        return self._shown * log(inverse) - (squares + (self._floor * inverse) ** 2) / 2 + likely

    def _slopes(self, seen: Sequence[_Seen]) -> tuple[list[float], list[list[float]]]:
        """Gradient of the log-likelihood, and its information: the second derivatives with the sign changed."""
        size, inverse = len(self._values), self._values[-1]
        gradient = [0.0] * size
        information = [[0.0] * size for _ in range(size)]
        gradient[-1] = self._shown / inverse - self._floor**2 * inverse
        information[-1][-1] = self._shown / inverse**2 + self._floor**2
        distances = self._distances(self._values, seen)
        logs = special_functions.log_ndtr([-distance for distance in distances])
        for row, distance, logarithm in zip(seen, distances, logs, strict=True):
            pull, weight = distance, 1.0
            if row.carried:
                pull = exp(-(distance**2) / 2 - float(logarithm)) / sqrt(2 * pi)  # inverse Mills ratio
                weight = pull * (pull - distance)
            outward = [*self._row(row.load), -row.value]
            for index, each in enumerate(outward):
                gradient[index] += pull * each
                for other, one in enumerate(outward):
                    information[index][other] += weight * each * one
        return gradient, information

    def crossing(self, threshold: float, level: float) -> Crossing | None:
        """Where the expected indicator crosses the threshold's share, with the interval of the delta method."""

        def surplus(values: Sequence[float], load: float) -> float:
            *line, inverse = values
            middle, deviation = _dot(line, self._row(load)) / inverse, 1 / inverse
            return _mean_of_least(middle, deviation, level * load) - threshold * load

        load = _root(lambda load: surplus(self._values, load), self._around)
        if load is None or self.freedom < 1:
            return None
        steps = [1e-5 * max(abs(value), 1e-3 * abs(self._values[0])) for value in self._values]
        at = surplus(self._values, load)
        changes = [
            (surplus([*self._values[:index], self._values[index] + step, *self._values[index + 1 :]], load) - at) / step
            for index, step in enumerate(steps)
        ]
        fall = (surplus(self._values, load * (1 + 1e-5)) - at) / (load * 1e-5)
        variance = _dot(changes, _solve(self._information, changes)) / fall**2
        # The likelihood's variance is over all values; over the degrees of freedom it has no bias.
        half = self._deviations(load) * sqrt(variance * self._shown / self.freedom)
        return Crossing(load, max(0.0, load - half), load + half)


def _fit(seen: Sequence[_Seen], around: float) -> _Fit | None:
    shown = [row for row in seen if not row.carried]
    if len(shown) < 2:
        return None
    slope = len(shown) >= _FEWEST_VALUES and len({row.load for row in shown}) >= _FEWEST_LOADS
    return _Fit(seen, around, slope=slope)


def _mean_of_least(middle: float, deviation: float, bound: float) -> float:
    """Expected value of a normally distributed number or the bound, whichever is less."""
    if bound == inf:
        return middle
    distance = (bound - middle) / deviation
    below = erfc(-distance / sqrt(2)) / 2
    return middle * below + bound * (1 - below) - deviation * exp(-(distance**2) / 2) / sqrt(2 * pi)


def _root(falling: Callable[[float], float], around: float) -> float | None:
    low, high = around / 10, 3 * around
    if falling(low) < 0 or falling(high) > 0:
        return None
    return _crossed(falling, low, high)


def _crossed(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function crosses zero."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _solve(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    """Solve a positive definite system of two or three equations by elimination.

    numpy is not imported here: each start of a sizing would pay for it.
    """
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    size = len(rows)
    _eliminate(rows)
    solution = [0.0] * size
    for index in reversed(range(size)):
        known = _dot(rows[index][index + 1 : size], solution[index + 1 :])
        solution[index] = (rows[index][size] - known) / rows[index][index]
    return solution


def _pivots(matrix: Sequence[Sequence[float]]) -> list[float]:
    """Return the pivots of a positive definite matrix; the last one of cross-products is what a regression leaves."""
    rows = [list(row) for row in matrix]
    _eliminate(rows)
    return [row[index] for index, row in enumerate(rows)]


def _eliminate(rows: list[list[float]]) -> None:
    for pivot, row in enumerate(rows):
        for below in range(pivot + 1, len(rows)):
            factor = rows[below][pivot] / row[pivot]
            rows[below] = [a - factor * b for a, b in zip(rows[below], row, strict=True)]

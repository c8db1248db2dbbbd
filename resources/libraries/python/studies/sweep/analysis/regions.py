"""Whether one break-point describes a service: a second one, and functions that miss the points."""

from collections.abc import Iterator, Sequence

import numpy as np

from resources.libraries.python.studies.sweep.analysis.broken_lines import (
    BETTER,
    Knot,
    accumulated,
    best_line,
    quantiles,
)
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.fitting import best_fit
from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation
from resources.libraries.python.studies.sweep.model import BreakPoint, Fit, Indicator, ProfileMetric

_FEWEST = 8
"""Fewest rates of a region in which a second break-point is looked for."""
_MISSES = 0.01
"""Mean error of a function, relative to the mean value, from which on a second break-point is worth it."""
_HALF = 0.5
"""Of the errors of the function: what errors of a broken line have to be below."""
_DOUBT = 3.0
"""Standard deviations by which neighbouring errors are alike, beyond which a function misses the points."""
MISSED = 0.02
"""Relative error from which on that is worth saying."""
_CLEARER = 4.0
"""Of Akaike's criterion: by how much a bend of throughput is better than the best curve without one."""
_FINEST = 1e-12
"""Sum of squares relative to the rate: nothing is measured more exactly."""
_PLACES = 400
"""Where it is looked for."""


def second_break_point(observed: Sequence[LoadObservation], first: BreakPoint) -> BreakPoint | None:
    """Return another load at which throughput, or the CPU of a VNF, changes its course.

    It is looked for below and above the first one: where no function of the catalogue describes the points of a region
    half as well as two straight or bent lines do. Of several it is the one that functions miss by most. Where noise
    hides all of them, it is the load from which on throughput falls behind the rate.

    Args:
        observed: By rising rate.
        first: The break-point that is known.
    """
    found = []
    for indicator, vnf, x, y in _figures(observed):
        for region in (x < first.rate, x >= first.rate):
            if (another := _within(indicator, vnf, x[region], y[region])) is not None:
                found.append(another)
    clear = [
        (gain, each)
        for gain, each in found
        if (each.low or each.rate) > (first.high or first.rate) or (each.high or each.rate) < (first.low or first.rate)
    ]
    if clear:
        return max(clear, key=lambda row: row[0])[1]
    _, _, x, y = next(_figures(observed))
    return _behind_the_rate(x, y, first)


def _figures(observed: Sequence[LoadObservation]) -> Iterator[tuple[Indicator, str | None, Array, Array]]:
    rows: list[tuple[Indicator, str | None, list[tuple[float, float | None]]]] = [
        (Indicator.THROUGHPUT, None, [(each.rate, each.values.get(ProfileMetric.THROUGHPUT)) for each in observed])
    ]
    names = dict.fromkeys(name for each in observed for name in each.cpu)
    rows += [(Indicator.CPU, name, [(each.rate, each.used(name)) for each in observed]) for name in names]
    for indicator, vnf, pairs in rows:
        known = [(rate, value) for rate, value in pairs if value is not None]
        yield indicator, vnf, np.array([rate for rate, _ in known]), np.array([value for _, value in known])


def _within(indicator: Indicator, vnf: str | None, x: Array, y: Array) -> tuple[float, BreakPoint] | None:
    """A break-point in a region, and by how much functions miss the points there."""
    if len(np.unique(x)) < _FEWEST or not np.ptp(y):
        return None
    line, smooth = best_line(x, y), best_line(x, y, ((2,),))
    if line is None or smooth is None or line.criterion > smooth.criterion - BETTER:
        return None
    fit = best_fit(ProfileMetric.THROUGHPUT, x.tolist(), y.tolist())
    if fit is None:
        return None
    function, broken = (float(np.sqrt(np.mean((value - y) ** 2))) for value in (_values(fit, x), line.values))
    scale = float(np.mean(np.abs(y)))
    if function < _MISSES * scale or broken > _HALF * function:
        return None
    knot = max(line.knots, key=lambda each: _turn(x, line.values, each.at))
    return function / scale, _changes(x, knot, indicator, vnf, _slopes(x, line.values, knot.at))


def _behind_the_rate(x: Array, y: Array, first: BreakPoint) -> BreakPoint | None:
    """The load from which on throughput grows more slowly than the rate, or than its share of the rate.

    A line through zero, mostly all of the rate, that bends once below the first break-point; behind that it goes on
    from there with any slope. As so much is known of it, noise hides a bend less than one of any line. It has to be
    much better than the same line without a bend, and better than smooth curves. Residuals are relative to the rate.
    """
    clear, at_first = first.low or first.rate, first.rate
    if len(np.unique(x[x < clear])) < _FEWEST:
        return None
    before, held = np.minimum(1.0, at_first / x), np.minimum(x, at_first)
    behind = np.maximum(0.0, 1 - at_first / x)
    rest = behind[:, None][:, : int(behind.any())]
    share, lost = y / x, y / x - before - behind

    def columns(*each: Array) -> Array:
        shape = np.broadcast_shapes(before.shape, *(row.shape for row in each))
        rows = [np.broadcast_to(row * before, shape)[..., None] for row in each]
        return np.concatenate([*rows, np.broadcast_to(rest, (*shape, rest.shape[-1]))], axis=-1)

    one = np.ones_like(x)
    straight = min(_least(lost, columns()[None]), _least(share, columns(one)[None]))
    curves = ((held,), (np.log(held),), (1 / held,), (held, 1 / held))
    smooth = min(_least(lost, columns(held)[None]), *(_least(share, columns(one, *curve)[None]) for curve in curves))
    places = np.linspace(np.unique(x)[1], at_first, _PLACES, endpoint=False)
    bend = np.maximum(0.0, 1 - places[:, None] / held)
    shapes = ((lost, columns(bend)), (share, columns(one, bend)))
    criteria = np.array([_least(*shape, places=1) for shape in shapes])
    if criteria.min() > min(straight - BETTER, smooth - _CLEARER):
        return None
    laid = [_laid(*shape) for shape in shapes]
    chosen = int(np.argmin(criteria))
    place = int(np.argmin(laid[chosen][0]))
    coefficients = laid[chosen][1][place]
    if _follow_each_other(shapes[chosen][1][place] @ coefficients - shapes[chosen][0]):
        return None
    likely = [
        (np.maximum(squares, _FINEST) / max(squares.min(), _FINEST)) ** ((each.shape[-1] - len(x)) / 2)
        for (squares, _), (_, each) in zip(laid, shapes, strict=True)
    ]
    weights = np.exp((criteria.min() - criteria) / 2)
    at, low, high = quantiles([accumulated(places, places, each) for each in likely], weights).tolist()
    slope = float(coefficients[0]) if chosen else 1.0
    after = slope + float(coefficients[chosen])
    if after >= slope or high >= clear:
        return None
    return _changes(x, Knot(at, low, high), Indicator.THROUGHPUT, None, (slope, after))


def _least(values: Array, columns: Array, places: int = 0) -> float:
    """Akaike's criterion, corrected for few points, of the best of many linear models: models, points, columns.

    `places` are parameters by which the models differ.
    """
    squares, _ = _laid(values, columns)
    count, parameters = len(values), columns.shape[-1] + places + 1
    charge = 2 * parameters + 2 * parameters * (parameters + 1) / (count - parameters - 1)
    return float(count * np.log(max(float(squares.min()), _FINEST) / count) + charge)


def _laid(values: Array, columns: Array) -> tuple[Array, Array]:
    """Sums of squares and coefficients of linear models by least squares."""
    coefficients = np.linalg.pinv(columns) @ values
    return np.sum(((columns @ coefficients[..., None])[..., 0] - values) ** 2, axis=-1), coefficients


def _changes(x: Array, knot: Knot, indicator: Indicator, vnf: str | None, slopes: tuple[float, float]) -> BreakPoint:
    """`slopes`: before and behind it."""
    what, unit = ("throughput", "Gbit/s") if vnf is None else (f"the CPU of {vnf}", "CPUs")
    return BreakPoint(
        rate=knot.at,
        low=knot.low,
        high=knot.high,
        measured_rate=float(x[np.searchsorted(x, knot.at)]),
        indicator=indicator,
        vnf=vnf,
        cpus_used=None,
        cpus_there=None,
        reason=f"{what} changes by {slopes[1]:.3g} {unit} per Gbit/s behind it, and by {slopes[0]:.3g} before",
    )


def _slopes(x: Array, values: Array, at: float) -> tuple[float, float]:
    """Mean slopes of a fitted line between the two points before and the two points behind a place."""
    behind = int(np.clip(np.searchsorted(x, at), 2, len(x) - 2))
    slopes = np.diff(values) / np.maximum(np.diff(x), np.finfo(float).tiny)
    return float(slopes[behind - 2]), float(slopes[behind])


def _turn(x: Array, values: Array, at: float) -> float:
    before, after = _slopes(x, values, at)
    return abs(after - before)


def _values(fit: Fit, x: Array) -> Array:
    return BY_NAME[fit.function].value(fit.coefficients, x)


def misses(fit: Fit, rates: Sequence[float], values: Sequence[float]) -> bool:
    """Whether a function misses its points: neighbouring errors are alike, and they are not small.

    By von Neumann's ratio of the mean square of successive differences to the variance (Ann. Math. Stat. 12 (1941)
    367), which is about 2 where errors are independent. It takes no model of the noise.
    """
    if fit.relative_error is None or fit.relative_error < MISSED:
        return False
    order = np.argsort(np.array(rates), kind="stable")
    return _follow_each_other((_values(fit, np.array(rates, dtype=float)) - np.array(values, dtype=float))[order])


def _follow_each_other(off: Array) -> bool:
    """Whether neighbouring errors are more alike than independent ones are."""
    count, spread = len(off), float(np.sum(off**2))
    if count < _FEWEST or not spread:
        return False
    ratio = float(np.sum(np.diff(off) ** 2)) / spread
    return 2 - ratio > _DOUBT * float(np.sqrt(4 * (count - 2) / (count**2 - 1)))

"""One curve through points, and the curve that describes them best.

The best has the least standard error, with two reservations. *Parsimony*: a curve with more coefficients, or one that
is less simple, has to earn it; Akaike's criterion (IEEE Trans. Automatic Control 19 (1974) 716) charges for
coefficients, and of all curves that are at most `TIE` worse than the best (with more there is essentially no support
for them: Burnham and Anderson, "Model Selection", 2.6), the simplest is taken. So one more coefficient has to be
better at a level of 2.5 % of an F test with four points, of 0.3 % with ten. Between curves with as many coefficients as
the best, n points of which k are coefficients decide n / (n - k - 1) times less: the factor of the correction for few
points (the same, 2.4). What the points do not exclude stays
possible, so values and their intervals are means over a curve and its rival by Akaike weights (the same, 4.2).
*Noise*: where its size follows the value, as with a loss over ten decades, residuals count in proportion to the value,
so that small values say as much as large ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from resources.libraries.python.studies.sweep.analysis.broken_lines import CONFIDENCE
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME, CURVES, Coefficients, Curve
from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.model import Fit, ProfileMetric

FEWEST = 4
"""Points of different rates through which a curve is laid."""
TIE = 10.0
"""Of Akaike's criterion."""
_CLEAR = 4.0
"""The same: noise follows the value where it is that much likelier than noise of one size."""
_POINTS_EACH = 2
"""Different rates that a curve needs for each of its coefficients."""
_MIN_FREE = 2
"""Degrees of freedom of the interval of a rival: with one it would have no ends, see `student`."""
_OUTSIDE = 6.0
_FINER = 33
"""Candidates of a row in the search for a shape."""
_STEPS = np.arange(_FINER)
_ZOOMS = 9
"""Rows, each over a sixteenth of the one before: down to the exactness of a double."""
_STEP = 1e-5
"""Of a coefficient, for derivatives."""
_TOLD_APART = 1e13
"""Largest condition number at which coefficients are identifiable."""
_FINEST = 1e-6
"""Relative to the values: nothing is measured more exactly, so curves that fit better than this are equally good."""


def best_fit(metric: ProfileMetric, rates: Sequence[float], values: Sequence[float]) -> Fit | None:
    """The monotonic curve that describes points best.

    Args:
        metric: What the values are.
        rates: Gbit/s, greater than zero.
        values: One per rate.

    Returns:
        None for fewer than FEWEST different rates.
    """
    r, y = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    if len(np.unique(r)) < FEWEST:
        return None
    weights = noise_weights(r, y)
    found = []
    for curve in (curve for curve in CURVES if curve.only in (None, metric)):
        if len(np.unique(r)) >= _POINTS_EACH * curve.parameters:
            coefficients = lay(curve, r, y, weights)
            if coefficients is not None and _is_monotonic(curve, coefficients, r):
                found.append((_criterion(curve, coefficients, r, y, weights), curve, coefficients))
    least, best, _ = min(found, key=lambda row: row[0])
    free = len(r) - best.parameters - 1
    # Errors of a few points are small by chance, most of those of the best curve.
    alike = {best.parameters: TIE * len(r) / max(1, free)}
    criterion, curve, coefficients = next(row for row in found if row[0] <= least + alike.get(row[1].parameters, TIE))
    fit = describe(curve, coefficients, r, y, weights)
    for other, rival, its in found:
        if rival.name == curve.rival and len(r) >= rival.parameters + _MIN_FREE + 1:
            weight = float(np.exp(-np.logaddexp(0.0, (other - criterion) / 2)))
            return fit.model_copy(update={"rival": describe(rival, its, r, y, weights), "rival_weight": weight})
    return fit


def stands_out(fit: Fit, rates: Sequence[float], values: Sequence[float], rate: float, value: float) -> bool:
    """Whether one more point is none of a function: further off than `_OUTSIDE` times its standard error."""
    r, y = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    weights = noise_weights(r, y)
    parts = weights * (BY_NAME[fit.function].value(fit.coefficients, r) - y)
    error = np.sqrt(np.sum(parts**2) / (len(y) - BY_NAME[fit.function].parameters))
    follows = np.ptp(weights) > 0 and value != 0
    expected = value_of(fit, rate)
    off = np.inf if expected is None else abs(expected - value) * (1 / abs(value) if follows else 1.0)
    return bool(off > _OUTSIDE * max(error, 1e-3 * float(np.abs(y * weights).max())))


def value_of(fit: Fit, rate: float) -> float | None:
    """A fitted function at a rate in Gbit/s; None behind a pole, where it is another function."""
    curve = BY_NAME[fit.function]
    if curve.pole is not None:
        pole = fit.coefficients[curve.pole]
        if (rate - pole) * (fit.first_rate - pole) <= 0:
            return None
    with np.errstate(all="ignore"):
        value = float(curve.value(fit.coefficients, np.array([rate]))[0])
    return value if np.isfinite(value) else None


def noise_weights(r: Array, y: Array) -> Array:
    """One over the relative size of the noise at each point.

    What a point is off the line through its two neighbours is curvature and noise. Is it of one size everywhere, or
    does it follow the value? The likelier of the two under normal noise; of one size unless the other is much
    likelier. Weights by mistake would let the smallest value of a few decide on the function, and on its interval.
    """
    sizes = np.abs(y)
    if len(r) < FEWEST or not (sizes > 0).all():
        return np.ones_like(y)
    order = np.argsort(r, kind="stable")
    rate, value = r[order], y[order]
    gaps = np.maximum(rate[2:] - rate[:-2], np.finfo(float).tiny)
    share = (rate[1:-1] - rate[:-2]) / gaps
    off = value[1:-1] - (1 - share) * value[:-2] - share * value[2:]
    local = np.median(np.abs([value[:-2], value[1:-1], value[2:]]), axis=0)
    finest = _FINEST * sizes.max()
    alike = np.log(max(np.sqrt(np.mean(off**2)), finest))
    following = np.log(max(np.sqrt(np.mean((off / local) ** 2)), _FINEST)) + np.mean(np.log(local))
    if 2 * len(off) * (alike - following) <= _CLEAR:
        return np.ones_like(y)
    smooth = np.abs(y)
    smooth[order[1:-1]] = local
    return np.asarray(1 / smooth)


def lay(curve: Curve, r: Array, y: Array, weights: Array) -> Coefficients | None:
    """Lay a curve through points by weighted least squares; None where no member of the family fits."""
    with np.errstate(all="ignore"):
        best = min((_best_shape(curve, row, r, y, weights) for row in curve.shapes(r)), key=_rank)
        if not np.isfinite(best.squares):
            return None
        found = curve.coefficients(best.linear, best.shape, r)
        return found if np.isfinite(curve.value(found, r)).all() else None


class _Laid(NamedTuple):
    """A curve of one shape, laid through points."""

    squares: float
    """Weighted sum of squares; infinite for none of the family."""
    shape: float
    linear: Array
    """What multiplies the basis functions."""


def _rank(laid: _Laid) -> tuple[float, float]:
    return laid.squares, laid.shape


def _best_shape(curve: Curve, row: Array, r: Array, y: Array, weights: Array) -> _Laid:
    """Least sum of squares: of a row of shapes, then of ever finer ones around the best."""
    best = _Laid(np.inf, float(row[0]), np.zeros(0))
    for _ in range(_ZOOMS if len(row) > 1 else 1):
        squares, linear = _solve(curve, row, r, y, weights)
        index = int(squares.argmin())
        best = min(best, _Laid(float(squares[index]), float(row[index]), linear[index]), key=_rank)
        first, last = row[max(0, index - 1)], row[min(len(row) - 1, index + 1)]
        row = _STEPS * ((last - first) / (_FINER - 1)) + first
        row[-1] = last
    return best


def _solve(curve: Curve, shapes: Array, r: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """For each shape the sum of squares and the multipliers of the basis functions (Gram-Schmidt).

    It is called tens of thousands of times with small arrays, so it uses ufuncs directly instead of their wrappers.
    """
    shape = (len(shapes), len(r))
    rest = np.multiply(y - curve.fixed, weights, out=np.empty(shape))
    columns = curve.columns(r, shapes[:, None])
    count = len(columns)
    units = list[Array]()
    upper = np.zeros((len(shapes), count, count))
    parts = np.zeros((len(shapes), count))
    for index, column in enumerate(columns):
        across = np.multiply(column, weights, out=np.empty(shape))
        for before, unit in enumerate(units):
            upper[:, before, index] = along = np.add.reduce(unit * across, axis=1)
            across = across - along[:, None] * unit
        upper[:, index, index] = length = np.sqrt(np.add.reduce(across * across, axis=1))
        units.append(unit := across / length[:, None])
        parts[:, index] = part = np.add.reduce(unit * rest, axis=1)
        rest = rest - part[:, None] * unit
    linear = np.zeros((len(shapes), count))
    for index in reversed(range(count)):
        known = np.add.reduce(upper[:, index, index + 1 :] * linear[:, index + 1 :], axis=1)
        linear[:, index] = (parts[:, index] - known) / upper[:, index, index]
    squares = np.add.reduce(rest * rest, axis=1)
    member = np.isfinite(linear).all(axis=1) & np.isfinite(squares)
    if curve.sign:
        member &= curve.sign * linear[:, -1] > 0
    return np.where(member, squares, np.inf), linear


def _is_monotonic(curve: Curve, coefficients: Coefficients, r: Array) -> bool:
    values = curve.value(coefficients, np.linspace(r.min(), r.max(), 200))
    steps = np.diff(values)
    allowed = 1e-12 * max(1e-300, float(np.abs(values).max()))
    return bool((steps >= -allowed).all() or (steps <= allowed).all())


def _criterion(curve: Curve, coefficients: Coefficients, r: Array, y: Array, weights: Array) -> float:
    """Akaike's."""
    squares = float(np.mean(((curve.value(coefficients, r) - y) * weights) ** 2))
    finest = (_FINEST * float(np.abs(y * weights).max())) ** 2
    return len(y) * float(np.log(max(squares, finest, 1e-300))) + 2 * curve.parameters


def describe(curve: Curve, coefficients: Coefficients, r: Array, y: Array, weights: Array | None = None) -> Fit:
    """A curve that was laid through points, with its errors.

    `weights`: of their errors; None for the same of all.
    """
    off = curve.value(coefficients, r) - y
    nonzero = y != 0
    return Fit(
        function=curve.name,
        formula=curve.formula,
        coefficients=dict(coefficients),
        standard_error=float(np.sqrt(np.sum(off**2) / (len(y) - curve.parameters))),
        relative_error=float(np.mean(np.abs(off[nonzero] / y[nonzero]))) if nonzero.any() else None,
        points=len(y),
        first_rate=float(r.min()),
        last_rate=float(r.max()),
        covariance=_covariance(curve, coefficients, r, off, np.ones_like(y) if weights is None else weights),
    )


def _covariance(
    curve: Curve, coefficients: Coefficients, r: Array, off: Array, weights: Array
) -> tuple[tuple[float, ...], ...]:
    """Covariance of coefficients by linearization (Seber and Wild, "Nonlinear Regression", 5.1).

    Empty where points do not tell some of the coefficients apart.
    """
    with np.errstate(all="ignore"):
        slopes = _gradients(curve, coefficients, r) * weights[:, None]
        lengths = np.sqrt((slopes**2).sum(axis=0))
        unit = slopes / lengths
        square = unit.T @ unit
        if not np.isfinite(square).all() or np.linalg.cond(square) > _TOLD_APART:
            return ()
        spread = float(np.sum((off * weights) ** 2)) / (len(r) - curve.parameters)
        found = spread * np.linalg.inv(square) / np.outer(lengths, lengths)
    return tuple(tuple(map(float, row)) for row in found) if np.isfinite(found).all() else ()


def _gradients(curve: Curve, coefficients: Coefficients, r: Array) -> Array:
    """Derivatives of a curve by its coefficients at rates, a column for each."""
    columns = []
    for name, value in coefficients.items():
        step = _STEP * (abs(value) or 1.0)
        up, down = ({**coefficients, name: value + sign * step} for sign in (1, -1))
        columns.append((curve.value(up, r) - curve.value(down, r)) / (2 * step))
    return np.stack(columns, axis=-1)


def student(fit: Fit) -> float:
    """Standard errors from a value to the end of its 95 % interval, for the points of a function.

    One degree of freedom less than points minus coefficients, because the same points chose the function.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - imports take longer than an analysis

    return float(stdtrit(max(1, fit.points - len(fit.coefficients) - 1), (1 + CONFIDENCE) / 2))


def coefficient_intervals(fit: Fit) -> dict[str, tuple[float, float]]:
    """95 % intervals of coefficients; empty where they are unknown."""
    if not fit.covariance:
        return {}
    times = student(fit)
    halves = [times * np.sqrt(max(0.0, row[place])) for place, row in enumerate(fit.covariance)]
    rows = zip(fit.coefficients.items(), halves, strict=True)
    return {name: (value - half, value + half) for (name, value), half in rows}


def reach(fit: Fit, rate: float, side: int) -> float:
    """Distance from a function at a rate to the estimate of the value there, or to an end of its 95 % interval.

    Each is the mean of those of the function and of its rival by their weights.

    Args:
        fit: The function.
        rate: Gbit/s.
        side: 0 for the estimate, which is that of the function itself where it has no rival; 1 for the upper end; -1
            for the lower end. An end that is unknown is the estimate.
    """
    own = side * _half_width(fit, rate)
    value, other = value_of(fit, rate), None if fit.rival is None else value_of(fit.rival, rate)
    if fit.rival is None or value is None or other is None:
        return own
    return own + fit.rival_weight * (other + side * _half_width(fit.rival, rate) - value - own)


def _half_width(fit: Fit, rate: float) -> float:
    if not fit.covariance:
        return 0.0
    with np.errstate(all="ignore"):
        slopes = _gradients(BY_NAME[fit.function], fit.coefficients, np.array([rate]))[0]
        squared = float(slopes @ np.array(fit.covariance) @ slopes)
    return student(fit) * float(np.sqrt(squared)) if np.isfinite(squared) and squared > 0 else 0.0

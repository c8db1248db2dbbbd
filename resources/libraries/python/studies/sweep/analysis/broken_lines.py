"""Broken lines through noisy points: where they bend, with 95 % confidence intervals.

Segmented regression (Hudson, J. Amer. Stat. Assoc. 61 (1966) 1097): lines, straight or bent, joined at one knot or two.
Being joined, they locate a knot more precisely than any threshold. How probable a place of a knot is follows from its
likelihood with all other parameters integrated out (Bacon and Watts, Biometrika 58 (1971) 525): before anything is
measured, all places are equally probable, all values of the line at the points, and all logarithms of the noise. This
distribution may have several peaks and be longer on the side that points say less about.

A few points do not tell lines of all forms apart, and the interval of the likeliest one alone is too narrow. So the
place of a knot and the ends of its interval are those below which 50, 2.5 and 97.5 % of the mean distribution of all
forms and noises are, by their Akaike weights (Buckland, Burnham and Augustin, Biometrics 53 (1997) 603).

Noise has one size, follows the value, or has a size of its own on either side of the last knot, whichever is likeliest.
A level that cannot be exceeded, such as all CPUs of a VNF, cuts noise off: points at that level are known only to be no
lower (censored: Tobin, Econometrica 26 (1958) 24). Taken as they are, they would pull the level down, and the knot too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from resources.libraries.python.studies.sweep.analysis.points import Array

BETTER = 10.0
"""Of Akaike's criterion: a more complicated line has to be that much better than a simpler one."""
CONFIDENCE = 0.95
"""Of all intervals."""
POWERS = (1, 0, -1, -2, -3, 2)
"""Of x > 0, in which a line may be straight behind a knot; 0 stands for ln x.

How much the line bends there is averaged, not estimated, so together they count as one line.
"""
STRAIGHT_IN_POWER = tuple((1, -1 - index) for index in range(len(POWERS)))
"""Degrees of the lines left and right of a knot; below 0: -1 for the first of the powers, and so on."""
TWO_KNOTS = ((1, 1, 0), (1, 1, 1))
ALL_SHAPES = ((1, 0), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2), *TWO_KNOTS)
"""Degrees of lines joined at one knot or two, simplest first."""
_STRAIGHTER = 4.0
"""As BETTER, of lines with as many knots."""
_RARER = 0.7
"""The same for each degree of a line: before anything is measured, two more are half as likely."""
_SIMPLE = 3
"""Shapes by which the noise is judged."""
UP_TO_FULL = ((1, 0), (2, 0), (1, 1, 0))
"""Degrees of lines to a level that cannot be exceeded."""
_FINEST = 1e-6
"""Relative to the values: nothing is measured more exactly, so lines that fit better than this are equally good."""
_MIN_SIZE = 0.05
"""Of the highest value: noise that follows the value has at least the size that it has here."""
_TWO_SIZES = 0.999
"""Noise has two sizes only where that is certain at this level of an F test."""
_KNOT = 0.5
"""Of the parameter that is a knot: the part which counts on the other side of it, too."""
_FORM, _FORM_OF_COUNTS = 0.5, 1.0
"""Of a degree of freedom, for the form of the noise, which is found too; counts follow theirs only roughly. Calibrated
by tests.truth.sweeps: with 1 instead of 0.5, intervals by loss and throughput were a quarter wider than needed."""
_ALIKE, _FOLLOWS, _COUNTS, _TWO = "alike", "follows the value", "that of a count", "two sizes"
ANY_NOISE, EQUAL_NOISE, RELATIVE_NOISE, COUNT_NOISE = (_ALIKE, _FOLLOWS), (_ALIKE,), (_FOLLOWS,), (_COUNTS,)
"""Noise in question beside that of two sizes: either of one size or relative to the value, or that of things in use,
such as buffers, whose variance grows with their number."""
_QUIET = 1e-4
"""Of the highest value: the smaller of two sizes is at least that."""
_FIRST_PLACES = {1: 80, 2: 24}
"""Most candidates of each knot in the first round, by number of knots."""
_FINER_PLACES = {1: 61, 2: 21}
"""The same in later rounds."""
_CLOSER = 9
"""The same in later rounds that look for the likeliest place only."""
_CLOSER_ROUNDS = 9
"""Where there is hardly any noise, a line is judged by where exactly its knots are."""
_ROUNDS = 3
_NEGLIGIBLE = 1e-3
"""Relative to the likeliest place of a knot, or the likeliest line."""
_MAX_EXPONENT = 300.0
_STEPS = 25
"""Of the iteration for values that were cut off."""


@dataclass(frozen=True)
class Knot:
    """Place at which a line bends, with its interval."""

    at: float
    low: float
    high: float


@dataclass(frozen=True)
class BrokenLine:
    """A fitted line."""

    knots: tuple[Knot, ...]
    """Rising; none of a line without."""
    degrees: tuple[int, ...]
    """Of its segments."""
    criterion: float
    """Akaike's, corrected for few points; comparable between lines through the same points."""
    values: Array
    """At the points."""
    levels: tuple[float, ...]
    """At the knots."""
    growth: float
    """Slope behind the last knot, as that of a straight line there; 0 where a level was given."""
    growth_error: float
    """Standard error of it."""


@dataclass(frozen=True)
class _Points:
    """Points at places from 0 to 1."""

    u: Array
    y: Array
    full: float | None = None
    """The level that cannot be exceeded; None for no such level."""
    noises: Sequence[str] = ANY_NOISE
    """See `best_line`."""
    zero: float = 0.0
    """Place of x = 0."""

    @property
    def cut(self) -> npt.NDArray[np.bool_]:
        """Points of which is known only that they are no lower."""
        return np.asarray(self.y >= (np.inf if self.full is None else self.full * (1 - _FINEST)), dtype=np.bool_)

    @property
    def finest(self) -> float:
        return _FINEST * float(np.abs(self.y).max())


@dataclass(frozen=True)
class _Noise:
    """Relative size of the noise at each point."""

    sizes: Array
    estimated: int = 0
    """Parameters that this took."""
    free: float | None = None
    """Degrees of freedom of the estimate that matters most; None for those of all points."""


@dataclass(frozen=True)
class _Fit:
    """A line of one shape under one noise."""

    degrees: tuple[int, ...]
    noise: _Noise
    places: Array
    """Of its knots."""
    coefficients: Array
    criterion: float
    charge: float
    """The part of the criterion that is for the number of parameters."""


def best_line(
    x: Array,
    y: Array,
    shapes: Sequence[tuple[int, ...]] = ALL_SHAPES,
    full: float | None = None,
    noises: Sequence[str] = ANY_NOISE,
) -> BrokenLine | None:
    """Return the simplest line that no other beats by much.

    Args:
        x: Rising.
        y: One each, in any unit.
        shapes: Degrees of the segments of lines to try, simplest first.
        full: The level that is reached at the last knot and cannot be exceeded; None where it is to be found.
        noises: In question.

    Returns:
        None for too few points for any of these lines.
    """
    first, width = float(x[0]), float(x[-1] - x[0])
    points = _Points((x - first) / width, y, full, noises, -first / width)
    by_noise: dict[str, list[_Fit]] = {}
    for degrees in shapes:
        if _enough(points, degrees):
            for kind, noise in _noises(points, degrees).items():
                if (fit := _fit(points, degrees, noise)) is not None:
                    by_noise.setdefault(kind, []).append(fit)
    if not by_noise:
        return None
    # By the simple shapes: one that bends twice may suit the wrong noise as well.
    likeliest = min((fits for kind, fits in by_noise.items() if kind != _TWO), key=lambda fits: _least(fits[:_SIMPLE]))
    # What one line misses would pass for noise of two sizes.
    if _TWO in by_noise and _least(by_noise[_TWO][:_SIMPLE]) < _least(likeliest):
        likeliest = by_noise[_TWO]
    limit = _least(likeliest) + BETTER
    knots = next(len(fit.degrees) for fit in likeliest if fit.criterion <= limit)
    alike = [fit for fit in likeliest if len(fit.degrees) == knots]
    chosen = min(alike, key=lambda fit: fit.criterion + _STRAIGHTER * _terms(fit.degrees))
    rivals = [fit for fits in by_noise.values() for fit in fits if len(fit.degrees) == knots]
    return _described(points, chosen, rivals, first, width)


def _least(fits: Sequence[_Fit]) -> float:
    return min(fit.criterion for fit in fits)


def _enough(points: _Points, degrees: tuple[int, ...]) -> bool:
    certain = int((~points.cut).sum())
    distinct = len(np.unique(points.u))
    return certain >= _parameters(points, degrees) + 1 and distinct >= max(4, 2 * len(degrees) + (len(degrees) > 2))


def _terms(degrees: Sequence[int]) -> int:
    return sum(1 if degree < 0 else degree for degree in degrees)


def _parameters(points: _Points, degrees: tuple[int, ...]) -> int:
    return _terms(degrees) + (points.full is None) + len(degrees) - 1


def _free(points: _Points, degrees: tuple[int, ...]) -> float:
    """Degrees of freedom, less those that the form of the noise costs."""
    lost = _FORM_OF_COUNTS if _COUNTS in points.noises else _FORM
    return max(_FORM, int((~points.cut).sum()) - _parameters(points, degrees) - lost)


def _noises(points: _Points, degrees: tuple[int, ...]) -> dict[str, _Noise]:
    """Noise of one size; noise that follows the value; noise of two sizes beside the last knot. That of a count."""
    highest = float(np.abs(points.y).max())
    # The same for all shapes: sizes of its own would reward a shape that comes close to zero somewhere.
    padded = np.concatenate([points.y[:1], points.y, points.y[-1:]])
    around = np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0)
    if _COUNTS in points.noises:
        above = (around - around.min()) / max(float(np.ptp(around)), points.finest)
        return {_COUNTS: _Noise(np.sqrt(np.maximum(above, _MIN_SIZE)))}
    alike = _Noise(np.ones_like(points.y))
    found = {}
    if highest > 0 and _FOLLOWS in points.noises:
        found[_FOLLOWS] = _Noise(np.maximum(np.abs(around) / highest, _MIN_SIZE))
    if not found or _ALIKE in points.noises:
        found[_ALIKE] = alike
    if len(degrees) == 1 or points.full is not None:
        return found
    from scipy.special import fdtri  # noqa: PLC0415 - imports take longer than an analysis

    two = alike
    for _ in range(2):  # the first line was laid as if the noise had one size, so its knot may be some way off
        fit = _fit(points, degrees, two)
        if fit is None:
            return found
        behind = points.u > fit.places[-1]
        rest = (points.y - _values(points, fit)) ** 2
        free = np.array(
            [(~behind).sum() - sum(degrees[:-1]) - len(degrees) + 1.5, behind.sum() - _terms(degrees[-1:]) - 0.5],
            dtype=float,
        )
        if free.min() < 1:
            return found
        spread = np.array([rest[~behind].sum() / free[0], rest[behind].sum() / free[1]])
        spread = np.maximum(spread, (_QUIET * highest) ** 2)
        large, small = (int(place(spread)) for place in (np.argmax, np.argmin))
        if spread[large] < spread[small] * fdtri(free[large], free[small], _TWO_SIZES):
            return found
        # The line of the smaller noise is known, so it is the other one that locates the knot.
        spread[large] *= free[large] / (free[large] - _KNOT)
        two = _Noise(np.sqrt(np.where(behind, spread[1], spread[0])), 1, float(free[large] - _KNOT))
    return found | {_TWO: two}


def _fit(points: _Points, degrees: tuple[int, ...], noise: _Noise) -> _Fit | None:
    """The likeliest line of a shape: its knots among a first row of places, then among ever closer ones."""
    count = len(degrees) - 1
    axes = [_first_places(points, count)] * count
    best: tuple[float, Array, Array] | None = None
    for _ in range(_CLOSER_ROUNDS if count else 1):
        places = _combined(axes, points.u)
        if not len(places):
            break
        squares, coefficients = _lay(points, places, degrees, noise)
        least = int(np.argmin(squares))
        best = float(squares[least]), places[least], coefficients[least]
        axes = [_around(axis, best[1][knot : knot + 1], _CLOSER) for knot, axis in enumerate(axes)]
    if best is None or not np.isfinite(best[0]):
        return None
    certain = ~points.cut
    parameters = _parameters(points, degrees) + noise.estimated
    free = int(certain.sum()) - parameters - 1
    charge = 2 * parameters + 2 * parameters * (parameters + 1) / max(0.5, free)
    criterion = certain.sum() * np.log(best[0]) + 2 * np.log(noise.sizes[certain]).sum() + charge
    return _Fit(degrees, noise, best[1], best[2], float(criterion), charge)


def _described(points: _Points, chosen: _Fit, fits: Sequence[_Fit], first: float, width: float) -> BrokenLine:
    """A line with its knots, whose places and intervals are those of all lines in question.

    Akaike's criterion takes the size of the noise that suits each line best; of few points that favors one by chance.
    Here, too, it is integrated out.
    """
    certain = int((~points.cut).sum())
    integrated = (_free(points, chosen.degrees) + 1) / certain
    criteria = np.array(
        [integrated * (fit.criterion - fit.charge) + fit.charge + _RARER * _terms(fit.degrees) for fit in fits]
    )
    weights = np.exp((criteria.min() - criteria) / 2)
    weights /= [len(POWERS) if fit.degrees[-1] < 0 else 1 for fit in fits]
    kept = weights > _NEGLIGIBLE
    found = [_distributions(points, fit) for fit, likely in zip(fits, kept, strict=True) if likely]
    knots = (Knot(*(first + width * quantiles(each, weights[kept])).tolist()) for each in zip(*found, strict=True))
    growth, error = _growth(points, chosen) if points.full is None and len(chosen.places) else (0.0, 0.0)
    values = _values(points, chosen)
    levels = tuple(map(float, _values(replace(points, u=chosen.places), chosen)))
    return BrokenLine(tuple(knots), chosen.degrees, chosen.criterion, values, levels, growth / width, error / width)


def quantiles(distributions: Sequence[tuple[Array, Array]], weights: Array) -> Array:
    """Return the median and the ends of the interval of a weighted mean of distributions, see `accumulated`."""
    places = np.unique(np.concatenate([axis for axis, _ in distributions]))
    below = weights @ [np.interp(places, axis, chances) for axis, chances in distributions] / weights.sum()
    ends = np.interp((0.5, (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2), below, places)
    return np.asarray(ends)


def _distributions(points: _Points, fit: _Fit) -> list[tuple[Array, Array]]:
    """For each knot of a line, places and the probabilities that it is below them.

    A finer grid is laid over the places that are not negligible until it is fine enough for lines without noise.
    """
    count = len(fit.degrees) - 1
    certain = int((~points.cut).sum())
    free = fit.noise.free or _free(points, fit.degrees)
    row = np.array([points.u.min(), *_first_places(points, count), points.u.max()])
    axes = [np.union1d(row, place) for place in fit.places]
    found = [(axis, axis) for axis in axes]
    for _ in range(_ROUNDS if count else 0):
        places = _combined(axes, points.u)
        squares, _ = _lay(points, places, fit.degrees, fit.noise)
        # Noise of two sizes has been estimated already: squares are in units of it.
        unit = squares.min() * certain / free if fit.noise.free is None else 1.0
        likely = (1 + certain * (squares - squares.min()) / unit / free) ** (-(free + 1) / 2)
        found = [accumulated(axis, places[:, knot], likely) for knot, axis in enumerate(axes)]
        inside = places[likely > _NEGLIGIBLE]
        axes = [_around(axis, inside[:, knot], _FINER_PLACES[count]) for knot, axis in enumerate(axes)]
    return found


def accumulated(axis: Array, places: Array, likely: Array) -> tuple[Array, Array]:
    """Return places of a knot, and the probabilities that it is below them (trapezoidal rule).

    Args:
        axis: Rising places.
        places: Some of them, each as often as it was tried.
        likely: How likely each of these is, in any unit.
    """
    density = np.bincount(np.searchsorted(axis, places), likely, len(axis))
    below = np.append(0.0, np.cumsum((density[1:] + density[:-1]) * np.diff(axis)))
    return axis, below / below[-1]


def _growth(points: _Points, fit: _Fit) -> tuple[float, float]:
    """Slope of a straight line behind the last knot, and its standard error."""
    degrees = (*fit.degrees[:-1], 1)
    columns = _columns(points, fit.places[None], degrees)[0] / fit.noise.sizes[:, None]
    seen = points.y / fit.noise.sizes
    coefficients, *_ = np.linalg.lstsq(columns, seen, rcond=None)
    free = max(1, len(seen) - columns.shape[1])
    spread = float(np.sum((columns @ coefficients - seen) ** 2)) / free
    return float(coefficients[-1]), float(np.sqrt(spread * np.linalg.pinv(columns.T @ columns)[-1, -1]))


def _first_places(points: _Points, count: int) -> Array:
    """Points and middles between them, or fewer; two points at least are on either side, or one below a given level."""
    distinct = np.unique(points.u)
    most = _FIRST_PLACES.get(count, 1)
    last = distinct[-1] if points.full is not None else distinct[-2]
    halves = np.interp(np.arange(2, 2 * len(distinct) - 1) / 2, np.arange(len(distinct)), distinct)
    row = halves[halves <= last]
    return row if len(row) <= most else np.linspace(row[0], row[-1], most)


def _combined(axes: Sequence[Array], u: Array) -> Array:
    """All combinations of knots in rising order with two points at least between any two of them."""
    if not axes:
        return np.zeros((1, 0))
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    distinct = np.unique(u)
    for left, right in pairwise(range(len(axes))):
        between = np.searchsorted(distinct, places[:, right], "right") - np.searchsorted(distinct, places[:, left])
        places = places[(between >= 2) & (places[:, left] < places[:, right])]
    return places


def _around(axis: Array, inside: Array, count: int) -> Array:
    """A finer row over the places within the interval, and their neighbours."""
    first = axis[max(0, int(np.searchsorted(axis, inside.min())) - 1)]
    last = axis[min(len(axis) - 1, int(np.searchsorted(axis, inside.max(), "right")))]
    return np.linspace(first, last, count)


def _columns(points: _Points, places: Array, degrees: tuple[int, ...]) -> Array:
    """Basis functions at the points in the last axis, for each row of knots.

    Each is a power of the way from the last knot within one segment, so the first coefficient is the level there.
    """
    u = points.u
    columns = [] if points.full is not None else [np.ones((len(places), len(u)))]
    if not places.shape[1]:
        return np.stack([*columns, *(u[None] ** power for power in range(1, degrees[0] + 1))], axis=-1)
    for segment, degree in enumerate(degrees[:-1]):
        end = places[:, segment : segment + 1]
        way = np.maximum(end - u, 0.0)
        if segment:
            way = np.minimum(way, end - places[:, segment - 1 : segment])
        columns += [way**power for power in range(1, degree + 1)]
    behind = np.maximum(u - places[:, -1:], 0.0)
    if degrees[-1] < 0:
        power, x = POWERS[-1 - degrees[-1]], np.maximum(np.maximum(u, places[:, -1:]) - points.zero, _FINEST)
        ratio = x / x.min(axis=1, keepdims=True)
        behind = (ratio**power - 1) / power if power else np.log(ratio)
    return np.stack([*columns, *(behind**power for power in range(1, _terms(degrees[-1:]) + 1))], axis=-1)


def _values(points: _Points, fit: _Fit) -> Array:
    return np.asarray((points.full or 0.0) + _columns(points, fit.places[None], fit.degrees)[0] @ fit.coefficients)


def _lay(points: _Points, places: Array, degrees: tuple[int, ...], noise: _Noise) -> tuple[Array, Array]:
    """Mean squares in units of the noise, and coefficients, for each row of knots."""
    columns = _columns(points, places, degrees) / noise.sizes[:, None]
    scale = np.maximum(np.sqrt((columns**2).sum(axis=1)), 1e-300)
    unit = columns / scale[:, None, :]
    square = np.swapaxes(unit, 1, 2) @ unit + 1e-13 * np.eye(unit.shape[-1])
    solver = np.linalg.inv(square) @ np.swapaxes(unit, 1, 2)
    seen = np.broadcast_to((points.y - (points.full or 0.0)) / noise.sizes, (len(places), len(points.y)))
    finest = (points.finest / noise.sizes.max()) ** 2
    if points.full is None:
        coefficients = (solver @ seen[..., None])[..., 0]
        squares = np.mean((seen - (unit @ coefficients[..., None])[..., 0]) ** 2, axis=1)
    else:
        squares, coefficients = _censored(unit, solver, seen.copy(), points.cut, finest)
        above = ((unit @ coefficients[..., None])[..., 0] > _FINEST * np.abs(seen).max()).any(axis=1)
        squares = np.where(above, np.inf, squares)
    return np.maximum(squares, finest), coefficients / scale


def _censored(
    unit: Array, solver: Array, seen: Array, cut: npt.NDArray[np.bool_], finest: float
) -> tuple[Array, Array]:
    """Expectation maximization: values that were cut off are replaced by what the line expects of them.

    Returns:
        For each row what stands for the mean squares of the points that were not cut off, so that the logarithm of the
        likelihood is that of as many points without others; and coefficients.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415 - imports take longer than an analysis

    known, least = ~cut, seen[:, cut].copy()
    count = max(1, int(known.sum()))
    for _ in range(_STEPS):
        coefficients = (solver @ seen[..., None])[..., 0]
        line = (unit @ coefficients[..., None])[..., 0]
        squares = np.maximum(np.mean((seen[:, known] - line[:, known]) ** 2, axis=1), finest)
        size = np.sqrt(squares)[:, None]
        off = (least - line[:, cut]) / size
        chance = log_ndtr(-off)
        seen[:, cut] = line[:, cut] + size * np.exp(-0.5 * off**2 - 0.5 * np.log(2 * np.pi) - chance)
    return squares * np.exp(np.minimum(-2 * chance.sum(axis=1) / count, _MAX_EXPONENT)), coefficients

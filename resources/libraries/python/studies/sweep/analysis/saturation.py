"""The break-point: the load that saturates the CPUs of a service (Troia et al., Algorithm 2, line 3).

It is found by segmented regression of noisy points that stop growing: a straight or bent line on the left, a flat,
straight or bent one on the right, joined at the break-point (Hudson, J. Amer. Stat. Assoc. 61 (1966) 1097). Being
joined, the lines locate the break-point more precisely than a threshold: at 80 points, to a fraction of the distance
between two of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation
from resources.libraries.python.studies.sweep.model.profile import BreakPoint

FULL = 0.98
"""Share of its CPUs from which on a VNF uses all of them."""
NEARLY = 0.95
"""As FULL, where the CPU stops growing there."""
SAME_ALWAYS = 0.05
"""A CPU that varies by less than this share over all loads does not follow the load."""
_SLACK = 0.1
"""Of the distance between two loads: a break-point so little above a load is at that load."""
WAITS = 0.05
"""A VNF that waits for less than this share of the time has its CPUs for itself."""


@dataclass(frozen=True)
class _FoundSaturation:
    """Saturation of one VNF."""

    at: float
    point: BreakPoint


FEWEST = 5
"""Fewest points for a break-point."""
BETTER = 10.0
"""Of Akaike's criterion: a break-point has to be that much better than a line without one."""
GROWS = 0.05
"""Share of the level at the break-point: what grows by more behind it, grows still."""
SLOWER = 0.5
"""Of the mean growth before the break-point: the growth behind it has to be less than that beyond doubt."""
_FINER = 16
_BENDS = ((1, 0), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2))
"""Degrees of the lines left and right of a break-point, simplest first."""


@dataclass(frozen=True)
class CurveBreakPoint:
    """End of the growth of a curve."""

    at: float
    level: float
    """There."""


@dataclass(frozen=True)
class _Broken:
    """A fitted segmented line."""

    criterion: float
    at: float
    coefficients: Array
    bends: tuple[int, int]
    """See _BENDS."""

    def value(self, x: Array) -> Array:
        return np.asarray(_columns(x, self.at, self.bends) @ self.coefficients)


def curve_break_point(x: Array, y: Array) -> CurveBreakPoint | None:
    """Find the break-point of points with rising x.

    A line that grows in two steps, fast and then slowly, has its break-point at the end of the second; a line that
    still grows at its end has none, however bent it is.
    """
    while len(np.unique(x)) >= FEWEST and np.ptp(y) > 0:
        broken = _best_broken(x, y)
        if broken is None or broken.criterion > _smooth_criterion(x, y) - BETTER:
            return None
        if not _grows_behind(broken, x, y):
            return CurveBreakPoint(broken.at, float(broken.value(np.array([broken.at]))[0]))
        behind = x >= broken.at
        x, y = x[behind], y[behind]
    return None


def reaches(x: Array, y: Array, level: float) -> float | None:
    """The least x from which on points are at a level or above, at two x at least.

    Of the closest row that never falls (isotonic regression), so that one noisy point does not count.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - imports take longer than an analysis

    there = np.flatnonzero(isotonic_regression(y).x >= level)
    return float(x[there[0]]) if len(np.unique(x[there])) > 1 else None


def _columns(x: Array, at: Array | float, bends: tuple[int, int]) -> Array:
    """Basis functions at x in the last axis, for one break-point or for a row of them."""
    place = np.asarray(at)[..., None]
    before, behind = np.minimum(x, place), np.maximum(x - place, 0.0)
    return np.stack(
        [np.ones_like(before), *(before**power for power in range(1, bends[0] + 1))]
        + [behind**power for power in range(1, bends[1] + 1)],
        axis=-1,
    )


def _lay(y: Array, columns: Array, extra: int = 0) -> tuple[Array, Array]:
    """Akaike's criterion corrected for few points, and the multipliers of the columns: by least squares.

    Args:
        y: The points.
        columns: Basis functions at the points in the last axis; of several lines in the first.
        extra: Parameters besides the multipliers.
    """
    parameters, count = columns.shape[-1] + extra, len(y)
    if count < parameters + 2:
        return np.full(columns.shape[:-2], np.inf), np.zeros((*columns.shape[:-2], columns.shape[-1]))
    coefficients = np.linalg.pinv(columns, rcond=count * np.finfo(float).eps) @ y
    off = (columns @ coefficients[..., None])[..., 0] - y
    squares = np.maximum(np.mean(off**2, axis=-1), (1e-6 * np.abs(y).max()) ** 2)
    charge = 2 * parameters + 2 * parameters * (parameters + 1) / (count - parameters - 1)
    return count * np.log(squares) + charge, coefficients


def _smooth_criterion(x: Array, y: Array) -> float:
    """Return the criterion of the best line without a break-point, straight or bent."""
    return min(float(_lay(y, np.vander(x, degree + 1))[0]) for degree in (1, 2))


def _best_broken(x: Array, y: Array) -> _Broken | None:
    """The simplest broken line that is not beaten by much."""
    found = [broken for bends in _BENDS if (broken := _laid(x, y, bends)) is not None]
    limit = min((each.criterion for each in found), default=0.0) + BETTER
    return next((each for each in found if each.criterion <= limit), None)


def _laid(x: Array, y: Array, bends: tuple[int, int]) -> _Broken | None:
    """The best place of the break-point for these bends, first among the points, then around the best of them."""
    distinct = np.unique(x)
    coarse = _best_place(x, y, distinct[1:-1], bends)
    if not np.isfinite(coarse.criterion):
        return None
    middle = int(np.searchsorted(distinct, coarse.at))
    # Two points at least on either side: with one, the line through it is anything.
    lowest, highest = distinct[max(1, middle - 1)], distinct[min(len(distinct) - 2, middle + 1)]
    places = np.linspace(lowest, highest, 2 * _FINER + 1)
    return _best_place(x, y, places, bends)


def _best_place(x: Array, y: Array, places: Array, bends: tuple[int, int]) -> _Broken:
    """The first of the best break-points in a row, fitted together: one after the other takes three times as long."""
    criteria, coefficients = _lay(y, _columns(x, places, bends), extra=1)
    best = int(np.argmin(criteria))
    return _Broken(float(criteria[best]), float(places[best]), coefficients[best], bends)


def _grows_behind(broken: _Broken, x: Array, y: Array) -> bool:
    """Whether points behind the break-point may still grow: by much, or not significantly slower than before."""
    first, level = map(float, broken.value(np.array([x[0], broken.at])))
    growth = (level - first) / float(broken.at - x[0])
    if growth <= 0:
        return True
    columns = _columns(x, broken.at, (broken.bends[0], 1))
    _, coefficients = _lay(y, columns)
    freedom = max(1, len(x) - columns.shape[1])
    noise = np.sum((columns @ coefficients - y) ** 2) / freedom
    doubt = float(np.sqrt(noise * np.linalg.pinv(columns.T @ columns)[-1, -1]))
    slope = float(coefficients[-1])
    highest = float(np.max(broken.value(np.linspace(broken.at, x[-1], 50))))
    return slope + 3 * doubt > SLOWER * growth or highest > (1 + GROWS) * level


def find_break_point(
    observed: Sequence[LoadObservation], vcpus: Mapping[str, int]
) -> tuple[BreakPoint | None, tuple[str, ...]]:
    """The lowest load at which a CPU is at its maximum, of the VNF that gets there first.

    Of a VNF that shares its CPUs: at which it has work all the time, see `crowded_break_point`.

    At its maximum is: all of its CPUs, or a level above which it does not go although there are more. Where several get
    there within one step of the loads, it is the one that uses the greatest share of its CPUs: the others may just be
    waiting for it.

    Args:
        observed: By rising rate.
        vcpus: CPUs of each VNF, by name.

    Returns:
        None where no load saturated anything, or that is unknown; and sentences that say what is not known and why.
    """
    found, notes = [], []
    for name, there in vcpus.items():
        points = [each for each in observed if each.used(name) is not None]
        if (rates := len({each.rate for each in points})) < FEWEST:
            what = f"is known at {rates} load{'s' * (rates > 1)} only" if rates else "is not known"
            notes.append(f"the CPU of {name} {what}: it gives no break-point")
            continue
        if is_crowded(name, points, there):
            if (crowded := crowded_break_point(name, points, there)) is not None:
                found.append(_FoundSaturation(crowded.rate, crowded))
            continue
        x = np.array([each.rate for each in points])
        y = np.array([each.used(name) for each in points], dtype=float)
        if y.min() >= FULL * there or np.ptp(y) <= SAME_ALWAYS * np.abs(y).max():
            notes.append(
                f"the CPU of {name} does not follow the load ({np.mean(y):.2f} of {there} everywhere), as of software "
                f"that polls, or that the lowest load saturates: it gives no break-point"
            )
            continue
        at = _saturation(x, y, there)
        if at is not None:
            found.append(_FoundSaturation(at, _described(name, at, x, points, there)))
    if not found:
        return None, tuple(notes)
    first = min(found, key=lambda each: each.at)
    step = float(np.median(np.diff(np.unique([each.rate for each in observed]))))
    rivals = [each for each in found if each.at <= first.at + step]
    return max(rivals, key=lambda each: each.point.cpus_used / each.point.cpus_there).point, tuple(notes)


def _saturation(x: Array, y: Array, there: int) -> float | None:
    found = curve_break_point(x, y)
    return found.at if found is not None else reaches(x, y, FULL * there)


def _described(name: str, at: float, x: Array, points: Sequence[LoadObservation], there: int) -> BreakPoint:
    distinct = np.unique(x)
    index = int(np.searchsorted(distinct, at))
    if index and at - distinct[index - 1] <= _SLACK * (distinct[min(index, len(distinct) - 1)] - distinct[index - 1]):
        index -= 1
    rate = float(distinct[min(index, len(distinct) - 1)])
    here = next(each for each in points if each.rate == rate)
    used = sum(here.cpu[name])
    behind = [each.used(name) or 0.0 for each in points if each.rate >= rate]
    level = float(np.median(behind))
    if level >= NEARLY * there:
        reason = f"{name} uses all of its CPUs ({level:.2f} of {there})"
    else:
        threads = np.median([each.cpu[name] for each in points if each.rate >= rate], axis=0)
        busiest = f"; its busiest data thread runs {100 * max(threads):.0f} % of the time" if len(threads) > 1 else ""
        reason = f"{name} uses no more than {level:.2f} of {there} CPUs, whatever the load{busiest}"
    return BreakPoint(rate=rate, vnf=name, cpus_used=used, cpus_there=there, reason=reason)


def is_crowded(name: str, points: Sequence[LoadObservation], there: int) -> bool:
    """Whether a VNF waits for CPUs that others have, at any load.

    Args:
        name: Of the VNF.
        points: Those that know what it uses.
        there: Its CPUs.
    """
    return any((each.wanted(name) or 0.0) - (each.used(name) or 0.0) > WAITS * there for each in points)


def crowded_break_point(name: str, points: Sequence[LoadObservation], there: int) -> BreakPoint | None:
    """Return the lowest load from which on a VNF that shares its CPUs has work all the time.

    It never runs all of the time, so its CPU usage is no indicator; the time in which it has work is, whether it runs
    or waits for the CPU. Data threads that take more packets at once the longer they waited use the CPU more
    efficiently at higher loads. So neither a busy CPU nor a level of its use is a sign.

    Args:
        name: Of the VNF.
        points: By rising rate; all know what it uses.
        there: Its CPUs.

    Returns:
        None where that is the lowest load already, or at no load.
    """
    known = [each for each in points if each.wanted(name) is not None]
    rates = np.array([each.rate for each in known])
    wanted = np.array([each.wanted(name) for each in known], dtype=float)
    at = reaches(rates, wanted, FULL * there)
    if at is None or at == rates[0]:
        return None
    here = next(each for each in known if each.rate == at)
    used = float(sum(here.cpu[name]))
    reason = (
        f"{name} has work all the time ({here.wanted(name):.2f} of {there}) and gets {used:.2f} of its CPUs, which it "
        "shares"
    )
    return BreakPoint(rate=at, vnf=name, cpus_used=used, cpus_there=there, reason=reason)

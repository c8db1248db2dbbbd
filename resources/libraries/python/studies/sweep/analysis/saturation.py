"""The break-point: the load that saturates a service (Troia et al., Algorithm 2, line 3).

The paper takes the lowest measured load at which the CPU is at its maximum. That load is up to a step of the sweep too
high, so here a broken line is laid through the CPU (see `broken_lines`), and the break-point is where it bends. What
saturates no CPU may show in throughput, loss or memory: the same is done with these. Memory may stop growing long
before a service saturates, as buffers that are kept do, so it counts only where the service saturates at the same load.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.sweep.analysis.broken_lines import (
    ALL_SHAPES,
    ANY_NOISE,
    BETTER,
    COUNT_NOISE,
    EQUAL_NOISE,
    RELATIVE_NOISE,
    STRAIGHT_IN_POWER,
    TWO_KNOTS,
    UP_TO_FULL,
    BrokenLine,
    best_line,
)
from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation
from resources.libraries.python.studies.sweep.model import BreakPoint, Indicator, ProfileMetric

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
FEWEST = 5
"""Fewest points for a break-point."""
GROWS = 0.05
"""Share of the level at the break-point: what grows by more behind it, grows still."""
SLOWER = 0.5
"""Of the mean growth before the break-point: the growth behind it has to be less than that beyond doubt."""
LOSES = 0.01
"""Share of the rate that is lost at the last load where loss shows a break-point."""
_NONE_LOST = 1e-4
"""Of the highest rate of lost packets: less than this is none."""
_LEVEL = 1e-6
"""Relative: a CPU that is so close to all there are is cut off there."""
_STRAIGHT = ((1, 0), *STRAIGHT_IN_POWER, (1, 2), *TWO_KNOTS)
"""Shapes of throughput, which is straight below saturation."""
_OF_CPU = ((1, 0), (2, 0), *STRAIGHT_IN_POWER, (1, 2), (2, 1), (2, 2), *TWO_KNOTS)
_ONE_BEND = ((1, 0),)
"""Shape of memory: of a soft approach to its bound, a curve or a line with two bends would take the end."""
_LIKELIER = 6.0
"""As BETTER, of throughput."""


@dataclass(frozen=True)
class CurveBreakPoint:
    """End of the growth of a curve."""

    at: float
    low: float
    high: float
    level: float
    """There."""


def curve_break_point(
    x: Array,
    y: Array,
    shapes: Sequence[tuple[int, ...]] = ALL_SHAPES,
    better: float = BETTER,
    noises: Sequence[str] = ANY_NOISE,
) -> CurveBreakPoint | None:
    """Find the break-point of points with rising x.

    A line that grows in two steps, fast and then slowly, has its break-point at the end of the second; a line that
    still grows at its end has none, however bent it is.

    Args:
        x: Rising.
        y: One each.
        shapes: Of lines, see `best_line`.
        better: By how much the line has to be better than one without a break-point, of Akaike's criterion.
        noises: In question, see `best_line`.
    """
    while len(np.unique(x)) >= FEWEST and np.ptp(y) > 0:
        line = best_line(x, y, shapes, noises=noises)
        if line is None or line.criterion > _smooth_criterion(x, y, noises) - better:
            return None
        # The knot from which on it no longer grows is the last one, unless it falls towards it.
        last = 0 if line.levels[0] > line.levels[-1] else len(line.knots) - 1
        if not _grows_behind(line, x, last):
            return _at(line, last)
        behind = x >= line.knots[-1].at
        x, y = x[behind], y[behind]
    return None


def reaches(x: Array, y: Array, level: float) -> float | None:
    """The least x from which on points are at a level or above, at two x at least.

    Of the closest row that never falls (isotonic regression), so that one noisy point does not count.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - imports take longer than an analysis

    there = np.flatnonzero(isotonic_regression(y).x >= level)
    return float(x[there[0]]) if len(np.unique(x[there])) > 1 else None


def _smooth_criterion(x: Array, y: Array, noises: Sequence[str] = ANY_NOISE) -> float:
    """Return the criterion of the best line without a break-point, straight or bent."""
    lines = [line for degree in (1, 2) if (line := best_line(x, y, ((degree,),), noises=noises)) is not None]
    return min((line.criterion for line in lines), default=np.inf)


def _grows_behind(line: BrokenLine, x: Array, knot: int) -> bool:
    """Whether points behind a knot may still grow: by much, or not significantly slower than before."""
    at, level = line.knots[knot].at, line.levels[knot]
    growth = (level - float(line.values[0])) / (at - float(x[0]))
    if growth <= 0:
        return True
    highest = float(line.values[x >= at].max(initial=level))
    return line.growth + 3 * line.growth_error > SLOWER * growth or highest > (1 + GROWS) * level


def find_break_point(
    observed: Sequence[LoadObservation], vcpus: Mapping[str, int]
) -> tuple[BreakPoint | None, tuple[str, ...]]:
    """The lowest load at which a CPU is at its maximum, of the VNF that gets there first.

    Of a VNF that shares its CPUs: at which it has work all the time, see `crowded_break_point`.

    At its maximum is: all of its CPUs, or a level above which it does not go although there are more. Where several get
    there within one step of the loads, it is the one that uses the greatest share of its CPUs: the others may just be
    waiting for it. Where no CPU gets there: the load at which throughput stops growing, or from which on packets are
    lost. Where the memory of a VNF stops growing there, too, and the CPUs have time left, the break-point is of memory.

    Args:
        observed: By rising rate.
        vcpus: CPUs of each VNF, by name.

    Returns:
        None where no load saturated anything, or that is unknown; and sentences that say what is not known and why.
    """
    found, notes = [], []
    for name, there in vcpus.items():
        points = [each for each in observed if each.used(name) is not None]
        x = np.array([each.rate for each in points])
        y = np.array([each.used(name) for each in points], dtype=float)
        rates = len(np.unique(x))
        point = None
        if rates and is_crowded(name, points, there):
            point = crowded_break_point(name, points, there)
        elif rates and (at := _saturation(x, y, there)) is not None:
            point = _described(name, at, x, points, there)
        if point is not None:
            found.append(point)
        elif rates < FEWEST:
            what = f"is known at {counted(rates, 'load')} only" if rates else "is not known"
            notes.append(f"the CPU of {name} {what}: it gives no break-point")
        elif _does_not_follow(y, there):
            notes.append(
                f"the CPU of {name} does not follow the load ({np.mean(y):.2f} of {there} everywhere), as of software "
                f"that polls, or that the lowest load saturates: it gives no break-point"
            )
        elif y.max() >= FULL * there:
            notes.append(
                f"{name} uses all of its CPUs ({y.max():.2f} of {there}) at {x[y.argmax()]:.4g} Gbit/s only: "
                "a break-point needs two such loads"
            )
    steps = np.diff(np.unique([each.rate for each in observed]))
    step = float(np.median(steps)) if len(steps) else 0.0
    saturated: BreakPoint | None
    if found:
        first = min(found, key=lambda each: each.rate)
        rivals = [each for each in found if each.rate <= first.rate + step]
        saturated = max(rivals, key=lambda each: (each.cpus_used or 0.0) / (each.cpus_there or 1))
        if _has_no_cpu_left(saturated, observed):
            return saturated, tuple(notes)
    else:
        saturated = _by_throughput(observed) or _by_loss(observed)
    memory, remarks = _by_memory(observed, tuple(vcpus), saturated, step)
    lost_percent = observed[-1].values.get(ProfileMetric.LOSS) if observed else None
    if not memory and not saturated and (lost_percent or 0.0) >= 100 * LOSES:
        lost = f"{lost_percent:.3g} % of the packets are lost at {observed[-1].rate:.4g} Gbit/s"
        few = f": {len(observed)} loads are too few, {FEWEST} are needed" if len(observed) < FEWEST else ""
        notes.append(f"{lost}, but it is not known from which load on{few}")
    return memory or saturated, (*notes, *remarks)


def _has_no_cpu_left(at: BreakPoint, observed: Sequence[LoadObservation]) -> bool:
    """Whether the VNF of a break-point uses all of its CPUs there, or all of one, or has work all the time."""
    name, there = at.vnf or "", at.cpus_there or 0
    behind = [each for each in observed if name in each.cpu and each.rate >= (at.measured_rate or at.rate)]
    threads = np.median([each.cpu[name] for each in behind], axis=0)
    wanted = np.median([each.wanted(name) or 0.0 for each in behind])
    return bool(max(threads) >= NEARLY or sum(threads) >= NEARLY * there or wanted >= NEARLY * there)


def _does_not_follow(y: Array, there: int) -> bool:
    return bool(y.min() >= FULL * there or np.ptp(y) <= SAME_ALWAYS * np.abs(y).max())


def _saturation(x: Array, y: Array, there: int) -> CurveBreakPoint | None:
    """Where a CPU is at its maximum; None where that is at the lowest load already, or at none."""
    if _does_not_follow(y, there):
        return None
    full = reaches(x, y, FULL * there)
    cut = y >= there * (1 - _LEVEL)
    at = None
    if len(np.unique(x[~cut])) >= FEWEST and len(np.unique(x)) > FEWEST:
        if y.max() <= there * (1 + _LEVEL) and cut.any() and reaches(x, y, NEARLY * there) is not None:
            line = best_line(x, y, UP_TO_FULL, full=float(there))
            at = None if line is None else _at(line)
        else:
            at = curve_break_point(x, y, _OF_CPU)
            if at is None and full is not None and (line := best_line(x, y, _OF_CPU)) is not None:
                at = _at(line) if line.levels[-1] >= NEARLY * there else None
    elif full is None:
        at = curve_break_point(x, y, _OF_CPU)
    if at is None and full is not None and full > x[0]:
        # Loads that use all CPUs are sign enough where there are too few others for a line.
        return CurveBreakPoint(*_between(x, y, (float(x[x < full].max()), full), FULL * there), float(there))
    return at


def _at(line: BrokenLine, knot: int = -1) -> CurveBreakPoint:
    found = line.knots[knot]
    return CurveBreakPoint(found.at, found.low, found.high, line.levels[knot])


def _between(x: Array, y: Array, edges: tuple[float, float], level: float) -> tuple[float, float, float]:
    """Place at which a straight line between two loads reaches a level, and these loads."""
    below, above = (float(np.mean(y[x == edge])) for edge in edges)
    share = (level - below) / (above - below) if above > level > below else 1.0
    return edges[0] + share * (edges[1] - edges[0]), *edges


def _measured(at: float, x: Array) -> float:
    """The lowest measured rate at or above a break-point; one that is hardly below it counts as well."""
    distinct = np.unique(x)
    index = int(np.searchsorted(distinct, at))
    if index and at - distinct[index - 1] <= _SLACK * (distinct[min(index, len(distinct) - 1)] - distinct[index - 1]):
        index -= 1
    return float(distinct[min(index, len(distinct) - 1)])


def _described(name: str, at: CurveBreakPoint, x: Array, points: Sequence[LoadObservation], there: int) -> BreakPoint:
    rate = _measured(at.at, x)
    here = next(each for each in points if each.rate == rate)
    level = float(np.median([each.used(name) or 0.0 for each in points if each.rate >= rate]))
    if level >= NEARLY * there:
        reason = f"{name} uses all of its CPUs ({level:.2f} of {there})"
    else:
        threads = np.median([each.cpu[name] for each in points if each.rate >= rate], axis=0)
        busiest = f"; its busiest data thread runs {100 * max(threads):.0f} % of the time" if len(threads) > 1 else ""
        reason = f"{name} uses no more than {level:.2f} of {there} CPUs, whatever the load{busiest}"
    return BreakPoint(
        rate=at.at,
        low=at.low,
        high=at.high,
        measured_rate=rate,
        vnf=name,
        cpus_used=sum(here.cpu[name]),
        cpus_there=there,
        reason=reason,
    )


def is_crowded(name: str, points: Sequence[LoadObservation], there: int) -> bool:
    """Whether a VNF waits for CPUs that others have, at any load.

    `there`: its CPUs.
    """
    return any((each.wanted(name) or 0.0) - (each.used(name) or 0.0) > WAITS * there for each in points)


def crowded_break_point(name: str, points: Sequence[LoadObservation], there: int) -> BreakPoint | None:
    """Return the lowest load from which on a VNF that shares its CPUs has work all the time.

    It never runs all of the time, so its CPU usage is no indicator; the time in which it has work is, whether it runs
    or waits for the CPU. Data threads that take more packets at once the longer they waited use the CPU more
    efficiently at higher loads. So neither a busy CPU nor a level of its use is a sign, and there is no line to fit:
    the break-point is between two loads, which are its interval.

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
    full = reaches(rates, wanted, FULL * there)
    if full is None or full == rates[0]:
        return None
    here = next(each for each in known if each.rate == full)
    used = float(sum(here.cpu[name]))
    reason = (
        f"{name} has work all the time ({here.wanted(name):.2f} of {there}) and gets {used:.2f} of its CPUs, which it "
        "shares"
    )
    at, low, high = _between(rates, wanted, (float(rates[rates < full].max()), full), FULL * there)
    return BreakPoint(
        rate=at, low=low, high=high, measured_rate=full, vnf=name, cpus_used=used, cpus_there=there, reason=reason
    )


def _by_memory(
    observed: Sequence[LoadObservation], vnfs: Sequence[str], near: BreakPoint | None, step: float
) -> tuple[BreakPoint | None, tuple[str, ...]]:
    """The lowest load at which the memory of a VNF stops growing, and what is to be said of others.

    Args:
        observed: By rising rate.
        vnfs: Their names; of none those whose memory is known.
        near: Where the service saturates; None where that is not known.
        step: Distance of two loads.
    """
    found, notes = [], []
    lost_percent = observed[-1].values.get(ProfileMetric.LOSS) if observed else None
    for name in vnfs or sorted({name for each in observed for name in each.memory_mib}):
        x, y = _series(observed, partial(_memory, name))
        if len(np.unique(x)) < FEWEST or np.ptp(y) <= SAME_ALWAYS * y.max():
            continue
        if (end := curve_break_point(x, y, _ONE_BEND, noises=COUNT_NOISE)) is None:
            continue
        there = f"the memory of {name} does not grow beyond {end.level:.4g} MiB"
        point = _of_service(Indicator.MEMORY, end, x, there, name)
        if (lost_percent or 0.0) >= 100 * LOSES if near is None else _is_at(point, near, step):
            found.append(point)
        else:
            notes.append(f"{there}, from {point.rate:.4g} Gbit/s on, where the service does not saturate")
    return min(found, key=lambda each: each.rate, default=None), tuple(notes)


def _is_at(one: BreakPoint, other: BreakPoint, step: float) -> bool:
    """Whether two break-points may be one: no more than a step of the loads is between their intervals."""
    low, high = max(one.low or one.rate, other.low or other.rate), min(one.high or one.rate, other.high or other.rate)
    return low - high <= step


def _by_throughput(observed: Sequence[LoadObservation]) -> BreakPoint | None:
    x, y = _series(observed, lambda each: each.values.get(ProfileMetric.THROUGHPUT))
    if len(np.unique(x)) >= FEWEST and (at := _end_of_throughput(x, y)) is not None:
        reason = f"throughput does not grow beyond {at.level:.4g} Gbit/s, and no CPU is known to be at its maximum"
        point = _of_service(Indicator.THROUGHPUT, at, x, reason)
        # Of a service that the lowest load saturates, only the origin is below the bend.
        above = _measured(at.at, x) > x[0]
        return point if above else point.model_copy(update={"rate": x[0], "low": None, "high": x[0]})
    return None


def _end_of_throughput(x: Array, y: Array) -> CurveBreakPoint | None:
    """Of nothing nothing gets through: a point without noise, which says where the line begins that all loads are on.

    Noise vanishes there, so it follows the value. As that much is known of the line, less evidence for it is asked for.
    What is not found here is looked for in what is lost, where noise below the break-point is cut off at nothing, and
    locates it less well.
    """
    return curve_break_point(np.append(0.0, x), np.append(0.0, y), _STRAIGHT, _LIKELIER, RELATIVE_NOISE)


def _memory(name: str, each: LoadObservation) -> float | None:
    return each.memory_mib.get(name)


def _by_loss(observed: Sequence[LoadObservation]) -> BreakPoint | None:
    """The load from which on packets are lost: where the rate of lost packets begins to grow."""
    x, percent = _series(observed, lambda each: each.values.get(ProfileMetric.LOSS))
    if len(np.unique(x)) < FEWEST or percent[-1] < 100 * LOSES:
        return None
    y = x * percent / 100
    line = best_line(x, y, ((1, 1), (1, 1, 1)))
    if line is None or line.criterion > _smooth_criterion(x, y) - BETTER:
        return None
    # No less than nothing is lost: mirrored, that is a level not to be exceeded. What is lost varies by as much as what
    # gets through, so this noise does not vanish with the loss.
    some = -np.where(y > _NONE_LOST * y.max(), y, 0.0)[::-1]
    onset = best_line(-x[::-1], some, UP_TO_FULL, 0.0, EQUAL_NOISE) if np.count_nonzero(some) < len(some) - 1 else None
    at = _at(line, 0) if onset is None else _mirrored(_at(onset))
    before = float(line.values[0]) / float(x[0])
    if line.growth - 3 * line.growth_error <= max(0.0, before):
        return None
    reason = f"packets are lost from there on, {percent[-1]:.3g} % at {x[-1]:.4g} Gbit/s, and no CPU is known to be "
    return _of_service(Indicator.LOSS, at, x, reason + "at its maximum")


def _mirrored(at: CurveBreakPoint) -> CurveBreakPoint:
    return CurveBreakPoint(-at.at, -at.high, -at.low, -at.level)


def _series(
    observed: Sequence[LoadObservation], value: Callable[[LoadObservation], float | None]
) -> tuple[Array, Array]:
    known = [(each.rate, found) for each in observed if (found := value(each)) is not None]
    return np.array([rate for rate, _ in known]), np.array([found for _, found in known])


def _of_service(indicator: Indicator, at: CurveBreakPoint, x: Array, reason: str, vnf: str | None = None) -> BreakPoint:
    return BreakPoint(
        rate=at.at,
        low=at.low,
        high=at.high,
        measured_rate=_measured(at.at, x),
        indicator=indicator,
        vnf=vnf,
        cpus_used=None,
        cpus_there=None,
        reason=reason,
    )

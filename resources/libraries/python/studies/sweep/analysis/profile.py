"""A sweep becomes a profile: its break-points, a function per metric on either side (Algorithm 2), and queries of it.

Where functions miss the points, one break-point does not describe a service, and a second one is looked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resources.libraries.python.studies.sweep.analysis.broken_lines import (
    BETTER,
    Knot,
    accumulated,
    best_line,
    quantiles,
)
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.fitting import (
    FEWEST,
    best_fit,
    reach,
    stands_out,
    value_of,
)
from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model import (
    BreakPoint,
    Fit,
    Indicator,
    MetricProfile,
    Profile,
    ProfileMetric,
    Sweep,
    SweepPoint,
)

_CONSISTENT = 1.0
"""Percentage points by which loss may differ from what throughput leaves over."""
_ENOUGH = 2 * FEWEST
"""Fewest points that permit to detect an outlier among them."""
_FEWEST_RATES = 8
"""Fewest rates of a region in which a second break-point is looked for."""
_WORTH_IT = 0.01
"""Mean error of a function, relative to the mean value, from which on a second break-point is worth it."""
_HALF = 0.5
"""Of the errors of the function: what errors of a broken line have to be below."""
_DOUBT = 3.0
"""Standard deviations by which neighbouring errors are alike, beyond which a function misses the points."""
_MISSED = 0.02
"""Relative error from which on that is worth saying."""
_CLEARER = 4.0
"""Of Akaike's criterion: by how much a bend of throughput is better than the best curve without one."""
_FINEST = 1e-12
"""Sum of squares relative to the rate: nothing is measured more exactly."""
_PLACES = 400
"""Where such a bend is looked for."""
_STEPS = 200
"""Rates between neighbours of which a bound is looked for; functions are monotonic in a region, so none is missed."""
_EXACT = 1e-6
"""Of a rate."""


def profile_of_sweep(sweep: Sweep) -> Profile:
    """The profile of a sweep of constant loads; see `profile_of`."""
    return profile_of(sweep.name, sweep.points, {vnf.name: vnf.vcpus for vnf in sweep.vnfs})


def profile_of(name: str, points: Sequence[SweepPoint], vcpus: Mapping[str, int]) -> Profile:
    """The profile of a service.

    Args:
        name: Of the service.
        points: Its loads, in any order.
        vcpus: CPUs of each of its VNFs, by name.
    """
    observed, notes = observe(points)
    break_point, unknown = find_break_point(observed, vcpus)
    second = None if break_point is None else second_break_point(observed, break_point)
    profile = Profile(name=name, break_point=break_point, second=second, metrics=())
    metrics, remarks = [], [*notes, *unknown]
    for metric in ProfileMetric:
        row, missing = _metric(metric, observed, profile.break_points)
        metrics.append(row)
        remarks += missing
    profile = profile.model_copy(update={"metrics": tuple(metrics)})
    remarks += [note for note in (_hidden(profile), _contradiction(observed)) if note]
    return profile.model_copy(update={"notes": tuple(remarks)})


_REGIONS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("nonsat", "of the rate"),),
    (("nonsat", "below the break-point"), ("sat", "from the break-point on")),
    (
        ("nonsat", "below the first break-point"),
        ("between", "between the break-points"),
        ("sat", "from the second break-point on"),
    ),
)
"""Names of regions, and how they are called, by number of break-points."""
_WHOLE = 10
_COUNTED = ("no break-point does", "one break-point does", "two break-points do")


def _percent(share: float | None) -> str:
    percent = 100 * (share or 0.0)
    return f"{percent:.0f} %" if percent >= _WHOLE else f"{percent:.2g} %"


def _metric(
    metric: ProfileMetric, observed: Sequence[LoadObservation], break_points: Sequence[BreakPoint]
) -> tuple[MetricProfile, list[str]]:
    known = [(each.rate, value) for each in observed if (value := each.values[metric]) is not None]
    if not known:
        return MetricProfile(metric=metric, nonsat=None, sat=None), [f"{metric} was not measured"]
    notes: list[str] = []

    def fitted(region: str, part: Sequence[tuple[float, float]], edges: Sequence[int]) -> Fit | None:
        kept = part
        for edge in edges:
            kept = _without_edge(metric, kept, edge)
        fit = best_fit(metric, [rate for rate, _ in kept], [value for _, value in kept])
        notes.extend(
            f"{metric} at {rate:.4g} Gbit/s is an outlier {region}: left out there"
            for rate, value in part
            if (rate, value) not in kept and not any(_within(each, rate) for each in break_points)
        )
        if fit is None:
            there = len({rate for rate, _ in part})
            notes.append(f"{metric} has no function {region}: {there} loads there, {FEWEST} are needed")
        elif _misses(fit, *zip(*kept, strict=True)):
            notes.append(
                f"{_COUNTED[len(break_points)]} not describe this: {metric} {region} is "
                f"{_percent(fit.relative_error)} off on average, and the errors follow the rate"
            )
        return fit

    rates = [each.rate for each in break_points]
    fits = {}
    regions = _REGIONS[len(rates)]
    for number, (region, words) in enumerate(regions):
        low, high = [-np.inf, *rates][number], [*rates, np.inf][number]
        edges = (*((0,) if number else ()), *((-1,) if number < len(regions) - 1 else ()))
        fits[region] = fitted(words, [each for each in known if low <= each[0] < high], edges)
    return MetricProfile(
        metric=metric, nonsat=fits.get("nonsat"), sat=fits.get("sat"), between=fits.get("between")
    ), notes


def _within(point: BreakPoint, rate: float) -> bool:
    """Whether a load is at a break-point as far as is known: then it may be of either region."""
    return point.low is not None and point.high is not None and point.low <= rate <= point.high


def _without_edge(
    metric: ProfileMetric, part: Sequence[tuple[float, float]], edge: int
) -> Sequence[tuple[float, float]]:
    """Points of a region without the one next to the break-point, where that one is none of theirs.

    The break-point is known to a step. Where a metric jumps there, a single point on the wrong side would bend the
    function of all others.
    """
    others = [each for each in part if each != part[edge]] if part else []
    if len(others) < _ENOUGH:
        return part
    rates, values = [rate for rate, _ in others], [value for _, value in others]
    fit = best_fit(metric, rates, values)
    return others if fit is not None and stands_out(fit, rates, values, *part[edge]) else part


def _hidden(profile: Profile) -> str | None:
    """Whether noise may hide another break-point below the one that was found: where a bend matters most."""
    throughput = profile.of(ProfileMetric.THROUGHPUT)
    fit = throughput.nonsat if throughput and profile.break_point and not profile.second else None
    if fit is None or (fit.relative_error or 0.0) < _MISSED:
        return None
    scatter = f"throughput is {_percent(fit.relative_error)} off its function below the break-point"
    return f"{scatter}: another break-point may be hidden there"


def _contradiction(observed: Sequence[LoadObservation]) -> str | None:
    """Loads at which loss is not what throughput leaves over, as measured, whatever the functions are."""
    off = [
        (abs(max(0.0, 100 * (1 - throughput / each.rate)) - loss), each.rate)
        for each in observed
        if (throughput := each.values[ProfileMetric.THROUGHPUT]) is not None
        and (loss := each.values[ProfileMetric.LOSS]) is not None
    ]
    worst, rate = max(off, default=(0.0, 0.0))
    if worst <= _CONSISTENT:
        return None
    return f"loss and throughput contradict each other by up to {worst:.1f} percentage points, at {rate:.4g} Gbit/s"


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
            if (another := _break_within(indicator, vnf, x[region], y[region])) is not None:
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


def _break_within(indicator: Indicator, vnf: str | None, x: Array, y: Array) -> tuple[float, BreakPoint] | None:
    """A break-point in a region, and by how much functions miss the points there."""
    if len(np.unique(x)) < _FEWEST_RATES or not np.ptp(y):
        return None
    line, smooth = best_line(x, y), best_line(x, y, ((2,),))
    if line is None or smooth is None or line.criterion > smooth.criterion - BETTER:
        return None
    fit = best_fit(ProfileMetric.THROUGHPUT, x.tolist(), y.tolist())
    if fit is None:
        return None
    function, broken = (float(np.sqrt(np.mean((value - y) ** 2))) for value in (_values(fit, x), line.values))
    scale = float(np.mean(np.abs(y)))
    if function < _WORTH_IT * scale or broken > _HALF * function:
        return None
    knot = max(line.knots, key=lambda each: _turn(x, line.values, each.at))
    return function / scale, _second_of(x, knot, indicator, vnf, _slopes(x, line.values, knot.at))


def _behind_the_rate(x: Array, y: Array, first: BreakPoint) -> BreakPoint | None:
    """The load from which on throughput grows more slowly than the rate, or than its share of the rate.

    A line through zero, mostly all of the rate, that bends once below the first break-point; behind that it goes on
    from there with any slope. As so much is known of it, noise hides a bend less than one of any line. It has to be
    much better than the same line without a bend, and better than smooth curves. Residuals are relative to the rate.
    """
    clear, at_first = first.low or first.rate, first.rate
    if len(np.unique(x[x < clear])) < _FEWEST_RATES:
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
    return _second_of(x, Knot(at, low, high), Indicator.THROUGHPUT, None, (slope, after))


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


def _second_of(x: Array, knot: Knot, indicator: Indicator, vnf: str | None, slopes: tuple[float, float]) -> BreakPoint:
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


def _misses(fit: Fit, rates: Sequence[float], values: Sequence[float]) -> bool:
    """Whether a function misses its points: neighbouring errors are alike, and they are not small.

    By von Neumann's ratio of the mean square of successive differences to the variance (Ann. Math. Stat. 12 (1941)
    367), which is about 2 where errors are independent. It takes no model of the noise.
    """
    if fit.relative_error is None or fit.relative_error < _MISSED:
        return False
    order = np.argsort(np.array(rates), kind="stable")
    return _follow_each_other((_values(fit, np.array(rates, dtype=float)) - np.array(values, dtype=float))[order])


def _follow_each_other(off: Array) -> bool:
    """Whether neighbouring errors are more alike than independent ones are."""
    count, spread = len(off), float(np.sum(off**2))
    if count < _FEWEST_RATES or not spread:
        return False
    ratio = float(np.sum(np.diff(off) ** 2)) / spread
    return 2 - ratio > _DOUBT * float(np.sqrt(4 * (count - 2) / (count**2 - 1)))


@dataclass(frozen=True)
class QualityBounds:
    """Highest loss and delay that a service may have; None for no bound."""

    loss_percent: float | None = None
    delay_ms: float | None = None

    def each(self) -> tuple[tuple[ProfileMetric, float], ...]:
        """Those that are given."""
        rows = ((ProfileMetric.LOSS, self.loss_percent), (ProfileMetric.DELAY, self.delay_ms))
        return tuple((metric, bound) for metric, bound in rows if bound is not None)


@dataclass(frozen=True)
class HighestRate:
    """The highest rate within bounds."""

    rate: float | None
    """Gbit/s; None where no measured rate is within them."""
    limited_by: ProfileMetric | None
    """The metric that is out of bounds, or unknown, above it; None if none
    is up to the last measured rate: the service then carries at least this."""
    known: bool = True
    """Whether `limited_by` has a function there."""
    from_rate: float | None = None
    """The lowest rate within bounds: delay can be longer at low rates, where software sleeps between packets."""
    low: float | None = None
    """Gbit/s: lower end of the 95 % interval of `rate`; None where no measured rate is within bounds for certain."""
    high: float | None = None
    """Gbit/s: its upper end; None where it is beyond the measured rates."""


def value_at(profile: Profile, metric: ProfileMetric, rate: float, side: int = 0) -> float | None:
    """A metric at a rate in Gbit/s, kept where it makes sense: none is negative, loss is at most 100 percent.

    Up to the break-point the function below it holds, from there on the one above, also where the next load is a step
    away. Loss and delay stay between the ends of both functions there, and up to the break-point they do not go beyond
    what the function above it has at the break-point: what the one below it has behind its last load is a guess.

    `rate`: Gbit/s.
    `side`: 1 for the upper end of the value's 95 % interval, with break-points at the lower ends of theirs; -1 for the
    other ends.

    Returns:
        None where the region has no function. Beyond the measured rates the value is a guess.
    """
    value = _value(profile, metric, rate, side)
    if value is None:
        return None
    return min(100.0, max(0.0, value)) if metric is ProfileMetric.LOSS else max(0.0, value)


def measured_rates(profile: Profile) -> tuple[float, float] | None:
    """Lowest and highest rate in Gbit/s at which functions have points; None for a profile without functions."""
    fits = [fit for row in profile.metrics for fit in (row.nonsat, row.between, row.sat) if fit is not None]
    return (min(fit.first_rate for fit in fits), max(fit.last_rate for fit in fits)) if fits else None


def highest_rate(profile: Profile, bounds: QualityBounds) -> HighestRate:
    """The highest measured rate within bounds, before the first one that no longer is, with its interval.

    There is no interval where that of the function which breaks the bound is unknown.
    """
    found = _highest_rate(profile, bounds, 0)
    if found.rate is None:
        return found
    deciding = [found.limited_by] if found.limited_by else [metric for metric, _ in bounds.each()]
    region = sum(found.rate * (1 + 2 * _EXACT) >= edge for edge in edges(profile, 0))
    fits = [regions_of(profile, row)[region] for row in profile.metrics if row.metric in deciding]
    if not all(fit is not None and fit.covariance for fit in fits):
        return found
    low, high = (_highest_rate(profile, bounds, side) for side in (1, -1))
    return replace(found, low=low.rate, high=None if high.limited_by is None else high.rate)


def _highest_rate(profile: Profile, bounds: QualityBounds, side: int) -> HighestRate:
    rates = measured_rates(profile)
    if rates is None:
        return HighestRate(None, next((metric for metric, _ in bounds.each()), ProfileMetric.THROUGHPUT), known=False)
    first, good, outside = None, None, None
    for rate in sorted({*np.linspace(*rates, _STEPS).tolist(), *rates, *edges(profile, side)}):
        broken = _broken(profile, bounds, rate, side)
        if broken is None:
            first, good = rate if first is None else first, rate
        elif good is not None:
            return HighestRate(_last(profile, bounds, side, good, rate), *broken, from_rate=first)
        else:
            outside = outside or broken
    return (
        HighestRate(good, None, from_rate=first) if outside is None or good is not None else HighestRate(None, *outside)
    )


def _last(profile: Profile, bounds: QualityBounds, side: int, good: float, bad: float) -> float:
    """The last good rate between two."""
    while bad - good > _EXACT * bad:
        middle = (good + bad) / 2
        if _broken(profile, bounds, middle, side) is None:
            good = middle
        else:
            bad = middle
    return good


def _broken(profile: Profile, bounds: QualityBounds, rate: float, side: int) -> tuple[ProfileMetric, bool] | None:
    """The bound that a rate breaks, and whether its metric is known there."""
    for metric, bound in bounds.each():
        value = value_at(profile, metric, rate, side)
        if value is None or value > bound:
            return metric, value is not None
    return None


def edges(profile: Profile, side: int) -> list[float]:
    """Break-points, or the ends of their intervals on one side."""
    points = profile.break_points
    ends = [(each.rate, each.low, each.high)[side] for each in points]
    return [each.rate if end is None else end for each, end in zip(points, ends, strict=True)]


def regions_of(profile: Profile, row: MetricProfile) -> tuple[Fit | None, ...]:
    """Functions of a metric: one more than there are break-points."""
    return ((row.nonsat,), (row.nonsat, row.sat), (row.nonsat, row.between, row.sat))[len(profile.break_points)]


def _value(profile: Profile, metric: ProfileMetric, rate: float, side: int) -> float | None:
    row = profile.of(metric)
    if row is None:
        return None
    fits = regions_of(profile, row)
    region = sum(rate >= edge for edge in edges(profile, side))
    fit = fits[region]
    if fit is None:
        # A straight line crosses the region between two break-points where it has too few loads.
        return _across(fits[0], fits[-1], rate, side) if 0 < region < len(fits) - 1 else None
    value, beside = value_of(fit, rate), _beside(fits, region, rate)
    if beside is not None:
        below, above = sorted((fit, beside), key=lambda each: each.last_rate)
        if value is None:
            return _across(below, above, rate, side)
        start, end = value_of(below, below.last_rate), value_of(above, above.first_rate)
        if metric is not ProfileMetric.THROUGHPUT and start is not None and end is not None:
            if fit is below and (meeting := value_of(above, edges(profile, side)[region])) is not None:
                end = _between(start, meeting, end)
            value = _between(start, value, end)
    return None if value is None else value + reach(fit, rate, side)


def _between(one: float, value: float, other: float) -> float:
    """The value, or the end that is nearest to it."""
    return min(max(one, other), max(min(one, other), value))


def _beside(fits: Sequence[Fit | None], region: int, rate: float) -> Fit | None:
    """The function of the other region between whose loads and those of its own a rate lies."""
    fit = fits[region]
    if fit is None or fit.first_rate <= rate <= fit.last_rate:
        return None
    beside = region + (1 if rate > fit.last_rate else -1)
    return fits[beside] if 0 <= beside < len(fits) else None


def _across(below: Fit | None, above: Fit | None, rate: float, side: int) -> float | None:
    """A straight line from the last load of one function to the first load of another."""
    if below is None or above is None:
        return None
    start, end = value_of(below, below.last_rate), value_of(above, above.first_rate)
    if start is None or end is None:
        return None
    share = (rate - below.last_rate) / (above.first_rate - below.last_rate)
    off = max((reach(below, below.last_rate, side), reach(above, above.first_rate, side)), key=abs)
    return start + share * (end - start) + off

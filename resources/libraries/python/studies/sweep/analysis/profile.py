"""A sweep becomes a profile: its break-point, a function per metric on either side (Algorithm 2), and queries of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resources.libraries.python.studies.sweep.analysis.fitting import (
    FEWEST,
    best_fit,
    reach,
    stands_out,
    value_of,
)
from resources.libraries.python.studies.sweep.analysis.points import LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.regions import MISSED, misses, second_break_point
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
    Sweep,
    SweepPoint,
)

CONSISTENT = 1.0
"""Percentage points by which loss may differ from what throughput leaves over."""
_ENOUGH = 2 * FEWEST
"""Fewest points that permit to detect an outlier among them."""


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
        elif misses(fit, *zip(*kept, strict=True)):
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
    if fit is None or (fit.relative_error or 0.0) < MISSED:
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
    if worst <= CONSISTENT:
        return None
    return f"loss and throughput contradict each other by up to {worst:.1f} percentage points, at {rate:.4g} Gbit/s"


_STEPS = 200
"""Rates between neighbours of which a bound is looked for; functions are monotonic in a region, so none is missed."""
_EXACT = 1e-6
"""Of a rate."""


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

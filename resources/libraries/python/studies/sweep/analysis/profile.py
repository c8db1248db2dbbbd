"""A sweep becomes a profile: its break-point, a function per metric on either side (Algorithm 2), and queries of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from resources.libraries.python.studies.sweep.analysis.fitting import FEWEST, best_fit, stands_out, value_of
from resources.libraries.python.studies.sweep.analysis.points import LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model.profile import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
)
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint

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
    remarks = [*notes, *unknown]
    metrics = []
    for metric in ProfileMetric:
        row, missing = _metric(metric, observed, break_point)
        metrics.append(row)
        remarks += missing
    profile = Profile(name=name, break_point=break_point, metrics=tuple(metrics), notes=())
    contradiction = _contradiction(profile, observed)
    return profile.model_copy(update={"notes": (*remarks, *([contradiction] if contradiction else []))})


def _metric(
    metric: ProfileMetric, observed: Sequence[LoadObservation], break_point: BreakPoint | None
) -> tuple[MetricProfile, list[str]]:
    known = [(each.rate, value) for each in observed if (value := each.values[metric]) is not None]
    if not known:
        return MetricProfile(metric=metric, nonsat=None, sat=None), [f"{metric} was not measured"]
    notes = []

    def fitted(region: str, part: Sequence[tuple[float, float]], edge: int | None = None) -> Fit | None:
        kept = part if edge is None else _without_edge(metric, part, edge)
        fit = best_fit(metric, [rate for rate, _ in kept], [value for _, value in kept])
        if edge is not None and len(kept) < len(part):
            notes.append(f"{metric} at {part[edge][0]:.4g} Gbit/s is an outlier {region}: left out there")
        if fit is None:
            there = len({rate for rate, _ in part})
            notes.append(f"{metric} has no function {region}: {there} loads there, {FEWEST} are needed")
        return fit

    if break_point is None:
        return MetricProfile(metric=metric, nonsat=fitted("of the rate", known), sat=None), notes
    below = [(rate, value) for rate, value in known if rate < break_point.rate]
    above = [(rate, value) for rate, value in known if rate >= break_point.rate]
    row = MetricProfile(
        metric=metric,
        nonsat=fitted("below the break-point", below, -1),
        sat=fitted("from the break-point on", above, 0),
    )
    return row, notes


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


def inconsistency(profile: Profile, rate: float) -> float | None:
    """Contradiction of loss and throughput of a profile: loss should be 100*(1-throughput/r).

    Returns:
        The difference in percentage points; None where either is unknown.
    """
    throughput, loss = value_at(profile, ProfileMetric.THROUGHPUT, rate), value_at(profile, ProfileMetric.LOSS, rate)
    if throughput is None or loss is None:
        return None
    return abs(max(0.0, 100 * (1 - throughput / rate)) - loss)


def _contradiction(profile: Profile, observed: Sequence[LoadObservation]) -> str | None:
    off = [
        (difference, each.rate) for each in observed if (difference := inconsistency(profile, each.rate)) is not None
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


def value_at(profile: Profile, metric: ProfileMetric, rate: float) -> float | None:
    """A metric at a rate in Gbit/s, kept where it makes sense: none is negative, loss is at most 100 percent.

    Between the last load of the lower region and the first of the upper one lies a straight line: where a function of
    either ends there is not known.

    Returns:
        None where the region has no function. Beyond the measured rates the value is a guess.
    """
    value = _value(profile, metric, rate)
    if value is None:
        return None
    return min(100.0, max(0.0, value)) if metric is ProfileMetric.LOSS else max(0.0, value)


def measured_rates(profile: Profile) -> tuple[float, float] | None:
    """Lowest and highest rate in Gbit/s at which functions have points; None for a profile without functions."""
    fits = [fit for row in profile.metrics for fit in (row.nonsat, row.sat) if fit is not None]
    return (min(fit.first_rate for fit in fits), max(fit.last_rate for fit in fits)) if fits else None


def highest_rate(profile: Profile, bounds: QualityBounds) -> HighestRate:
    """The highest measured rate within bounds, before the first one that no longer is."""
    rates = measured_rates(profile)
    if rates is None:
        return HighestRate(None, next((metric for metric, _ in bounds.each()), ProfileMetric.THROUGHPUT), known=False)
    edges = {*rates, *([profile.break_point.rate] if profile.break_point else [])}
    first, good, outside = None, None, None
    for rate in sorted({*np.linspace(*rates, _STEPS).tolist(), *edges}):
        broken = _broken(profile, bounds, rate)
        if broken is None:
            first, good = rate if first is None else first, rate
        elif good is not None:
            return HighestRate(_last(profile, bounds, good, rate), *broken, from_rate=first)
        else:
            outside = outside or broken
    return (
        HighestRate(good, None, from_rate=first) if outside is None or good is not None else HighestRate(None, *outside)
    )


def _last(profile: Profile, bounds: QualityBounds, good: float, bad: float) -> float:
    """The last good rate between two."""
    while bad - good > _EXACT * bad:
        middle = (good + bad) / 2
        if _broken(profile, bounds, middle) is None:
            good = middle
        else:
            bad = middle
    return good


def _broken(profile: Profile, bounds: QualityBounds, rate: float) -> tuple[ProfileMetric, bool] | None:
    """The bound that a rate breaks, and whether its metric is known there."""
    for metric, bound in bounds.each():
        value = value_at(profile, metric, rate)
        if value is None or value > bound:
            return metric, value is not None
    return None


def _value(profile: Profile, metric: ProfileMetric, rate: float) -> float | None:
    row = profile.of(metric)
    if row is None:
        return None
    below, above = row.nonsat, row.sat
    if below is not None and above is not None and below.last_rate < rate < above.first_rate:
        start, end = value_of(below, below.last_rate), value_of(above, above.first_rate)
        share = (rate - below.last_rate) / (above.first_rate - below.last_rate)
        return None if start is None or end is None else start + share * (end - start)
    saturated = profile.break_point is not None and rate >= profile.break_point.rate
    fit = above if saturated else below
    return None if fit is None else value_of(fit, rate)

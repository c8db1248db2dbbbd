"""Queries of a profile: a metric at a rate, and the highest rate within bounds."""

from dataclasses import dataclass

import numpy as np

from resources.libraries.python.studies.sweep.analysis.fitting import value_of
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric

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
class Highest:
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


def highest_rate(profile: Profile, bounds: QualityBounds) -> Highest:
    """The highest measured rate within bounds, before the first one that no longer is."""
    rates = measured_rates(profile)
    if rates is None:
        return Highest(None, next((metric for metric, _ in bounds.each()), ProfileMetric.THROUGHPUT), known=False)
    edges = {*rates, *([profile.break_point.rate] if profile.break_point else [])}
    first, good, outside = None, None, None
    for rate in sorted({*np.linspace(*rates, _STEPS).tolist(), *edges}):
        broken = _broken(profile, bounds, rate)
        if broken is None:
            first, good = rate if first is None else first, rate
        elif good is not None:
            return Highest(_last(profile, bounds, good, rate), *broken, from_rate=first)
        else:
            outside = outside or broken
    return Highest(good, None, from_rate=first) if outside is None or good is not None else Highest(None, *outside)


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

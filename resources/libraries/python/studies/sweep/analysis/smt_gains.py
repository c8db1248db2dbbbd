"""One service with SMT on and off: what SMT adds to the break-point and to the saturated throughput."""

from collections.abc import Iterator

from resources.libraries.python.search.ratio_interval import IntervalEstimate, relative_gain
from resources.libraries.python.studies.sweep.analysis.fitting import reach, value_of
from resources.libraries.python.studies.sweep.model import Profile, ProfileMetric, SmtEstimate, SmtGain


def smt_gains(smt_on: Profile, smt_off: Profile) -> tuple[SmtGain, ...]:
    """Compare two profiles of one service, quantity by quantity; one that either of them lacks is left out."""
    return tuple(_compared(smt_on, smt_off))


def _compared(smt_on: Profile, smt_off: Profile) -> Iterator[SmtGain]:
    on, off = _break_point(smt_on), _break_point(smt_off)
    if on is not None and off is not None:
        yield SmtGain(quantity="break-point", smt_on=on, smt_off=off, gain=_gain(off, on))
    on, off = saturated_throughput(smt_on), saturated_throughput(smt_off)
    if on is not None and off is not None:
        yield SmtGain(quantity="saturated throughput", smt_on=on, smt_off=off, gain=_gain(off, on))


def _break_point(profile: Profile) -> SmtEstimate | None:
    found = profile.break_point
    if found is None or found.is_upper_bound:
        return None
    return SmtEstimate(value=found.rate, low=found.low, high=found.high)


def saturated_throughput(profile: Profile) -> SmtEstimate | None:
    """Throughput at the first saturated load, by the fitted function; None where there is none."""
    row = profile.of(ProfileMetric.THROUGHPUT)
    fit = None if row is None or profile.break_point is None else row.sat
    value = None if fit is None else value_of(fit, fit.first_rate)
    if fit is None or value is None or value <= 0:
        return None
    low, high = (value + reach(fit, fit.first_rate, side) for side in (-1, 1))
    return SmtEstimate(value=value, low=low, high=high) if fit.covariance else SmtEstimate(value=value)


def _gain(before: SmtEstimate, after: SmtEstimate) -> SmtEstimate:
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return SmtEstimate(value=after.value / before.value - 1)
    value, low, high = relative_gain(
        IntervalEstimate(before.value, before.low, before.high), IntervalEstimate(after.value, after.low, after.high)
    )
    return SmtEstimate(value=value, low=low, high=high)

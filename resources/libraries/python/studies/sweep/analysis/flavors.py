"""One service with other CPUs: which number of vCPUs is enough, from where on more are wasted, and what SMT adds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from resources.libraries.python.search.ratio_interval import IntervalEstimate, relative_gain
from resources.libraries.python.studies.sweep.analysis.fitting import reach, value_of
from resources.libraries.python.studies.sweep.analysis.profile import HighestRate, QualityBounds, highest_rate
from resources.libraries.python.studies.sweep.model import Profile, ProfileMetric, SmtEstimate, SmtGain

MIN_GAIN = 0.1
"""Of the smaller flavor's capacity; a step that brings less is none."""
_ALL_USED = 0.95
"""Share of its vCPUs from which on a flavor uses them all."""


@dataclass(frozen=True)
class ProfiledFlavor:
    """A profile, and the number of vCPUs that it was measured with."""

    name: str
    vcpus: int
    profile: Profile

    @property
    def saturates_before_first_load(self) -> bool:
        """Whether only an upper bound of its capacity is known."""
        return self.profile.break_point is not None and self.profile.break_point.is_upper_bound


@dataclass(frozen=True)
class FlavorCapacity:
    """Highest load that a flavor carries."""

    flavor: ProfiledFlavor
    highest: HighestRate
    carries: bool | None
    """Whether the rate in question is within the bounds; None where it was not measured so far, or none was asked."""


@dataclass(frozen=True)
class FlavorStep:
    """Gain from one flavor to the next larger one."""

    smaller: ProfiledFlavor
    larger: ProfiledFlavor
    gain: float | None
    """Relative growth of the capacity; None where a capacity is unknown."""
    used: float | None
    """CPUs that the larger one uses at its break-point."""
    scales: bool | None
    """False where it gains less than asked and uses no more vCPUs than the smaller one has; None where unknown."""


def answers(
    flavors: Sequence[ProfiledFlavor], bounds: QualityBounds, rate: float | None = None
) -> tuple[FlavorCapacity, ...]:
    """Return the capacity of each flavor, by rising vCPUs.

    Args:
        flavors: In any order.
        bounds: What must be kept.
        rate: The expected rate in Gbit/s.
    """
    rows = sorted(flavors, key=lambda each: each.vcpus)
    found = [(each, highest_rate(each.profile, bounds)) for each in rows]
    return tuple(FlavorCapacity(flavor, highest, _carries(highest, rate)) for flavor, highest in found)


def best_flavor(found: Sequence[FlavorCapacity]) -> FlavorCapacity | None:
    """The smallest flavor that carries the rate; None where none is known to."""
    return next((each for each in found if each.carries), None)


def steps(flavors: Sequence[ProfiledFlavor], least_gain: float = MIN_GAIN) -> tuple[FlavorStep, ...]:
    """Gain of each step to a larger flavor; the capacity is the break-point.

    The rule is that of NFV-VITAL's comparison of flavors (Cao et al.): a larger flavor that carries hardly more, and
    leaves some of its vCPUs unused, shows that the software does not scale. Software that uses some of the added vCPUs
    does scale past the smaller flavor, be it to no effect.
    """
    rows = sorted(flavors, key=lambda each: each.vcpus)
    return tuple(_step(one, other, least_gain) for one, other in pairwise(rows) if other.vcpus > one.vcpus)


def _carries(highest: HighestRate, rate: float | None) -> bool | None:
    if rate is None:
        return None
    if highest.rate is not None and rate <= highest.rate:
        return highest.from_rate is None or rate >= highest.from_rate
    return False if highest.limited_by is not None and highest.known else None


def _step(smaller: ProfiledFlavor, larger: ProfiledFlavor, least_gain: float) -> FlavorStep:
    before, after = smaller.profile.break_point, larger.profile.break_point
    if before is None or after is None or smaller.saturates_before_first_load or larger.saturates_before_first_load:
        # Of what never saturates, or always does, the capacity is not known.
        return FlavorStep(smaller, larger, None, after.cpus_used if after else None, None)
    gain = after.rate / before.rate - 1
    if after.cpus_used is None:
        return FlavorStep(smaller, larger, gain, None, None)
    wasted = after.cpus_used < min(_ALL_USED * larger.vcpus, smaller.vcpus / _ALL_USED)
    return FlavorStep(smaller, larger, gain, after.cpus_used, not (gain < least_gain and wasted))


def smt_gains(smt_on: Profile, smt_off: Profile) -> tuple[SmtGain, ...]:
    """Compare two profiles of one service, quantity by quantity; one that either of them lacks is left out."""
    return tuple(_compared(smt_on, smt_off))


def _compared(smt_on: Profile, smt_off: Profile) -> Iterator[SmtGain]:
    on, off = _break_point(smt_on), _break_point(smt_off)
    if on is not None and off is not None:
        yield SmtGain(quantity="break-point", smt_on=on, smt_off=off, gain=_gain(off, on))
    on, off = _saturated_throughput(smt_on), _saturated_throughput(smt_off)
    if on is not None and off is not None:
        yield SmtGain(quantity="saturated throughput", smt_on=on, smt_off=off, gain=_gain(off, on))


def _break_point(profile: Profile) -> SmtEstimate | None:
    found = profile.break_point
    if found is None or found.is_upper_bound:
        return None
    return SmtEstimate(value=found.rate, low=found.low, high=found.high)


def _saturated_throughput(profile: Profile) -> SmtEstimate | None:
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

"""What a profile answers: a metric at a rate, the highest rate within bounds, the best flavor, what vCPUs bring."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, answers, best_flavor, steps
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, highest_rate, value_at
from resources.libraries.python.studies.sweep.analysis.sentences import highest_in_words, scaling_in_words
from resources.libraries.python.studies.sweep.model.profile import Fit, MetricProfile, Profile, ProfileMetric
from tests.unit.studies.sweep.known_profiles import LAST, function, known_profile, line


def with_metric(metric: ProfileMetric, nonsat: Fit, sat: Fit | None) -> Profile:
    """A service that saturates at 2 Gbit/s, or never, of which only this is known."""
    metrics = (MetricProfile(metric=metric, nonsat=nonsat, sat=sat),)
    return known_profile("v", 2.0 if sat else None).model_copy(update={"metrics": metrics})


def test_a_value_is_that_of_the_region() -> None:
    profile = known_profile("v", 2.0)
    assert value_at(profile, ProfileMetric.DELAY, 1.999) == pytest.approx(0.5)
    assert value_at(profile, ProfileMetric.DELAY, 2.0) == pytest.approx(12.0)
    assert value_at(profile, ProfileMetric.LOSS, 4.0) == pytest.approx(50.0)


def test_no_value_is_negative_and_loss_is_no_more_than_all() -> None:
    profile = with_metric(ProfileMetric.LOSS, line(100, -50), None)
    assert value_at(profile, ProfileMetric.LOSS, 0.1) == 0.0
    assert value_at(profile, ProfileMetric.LOSS, 3.0) == 100.0
    assert value_at(profile, ProfileMetric.DELAY, 1.0) is None


@pytest.mark.parametrize(("pole", "values"), [(1.9, [1, 3, 4, 5]), (1.7, [None, None, None, 5])])
def test_between_the_last_load_below_and_the_first_above_lies_a_straight_line(
    pole: float, values: list[float | None]
) -> None:
    """The lower function has a pole there: read on, it would be of another sign. Behind the pole nothing is known."""
    queue = function("hyperbola with a pole", "a+b/(c-r)", last=1.8, a=0.0, b=0.1, c=pole)
    profile = with_metric(ProfileMetric.DELAY, queue, function("constant", "a", first=2.0, a=5.0))
    found = [value_at(profile, ProfileMetric.DELAY, rate) for rate in (1.8, 1.9, 1.95, 2.0)]
    assert found == [None if value is None else pytest.approx(value) for value in values]


def test_the_highest_rate_is_where_the_bound_is_met() -> None:
    found = highest_rate(known_profile("v", 2.0), QualityBounds(loss_percent=20.0))
    assert (found.rate, found.limited_by) == (pytest.approx(2.5, rel=1e-5), ProfileMetric.LOSS)
    both = highest_rate(known_profile("v", 2.0), QualityBounds(loss_percent=20.0, delay_ms=1.0))
    assert (both.rate, both.limited_by) == (pytest.approx(2.0, rel=1e-5), ProfileMetric.DELAY)
    assert highest_in_words(both) == "2 Gbit/s"
    just = highest_rate(known_profile("v", 2.0, delay_ms=0.5), QualityBounds(delay_ms=0.5))
    assert just.rate == pytest.approx(2.0), "a delay that is just the bound is within it"


def test_a_cliff_behind_the_last_load_below_the_break_point_is_no_limit() -> None:
    """A few packets are lost at 1.9: read on, the function has 15 % at 1.95, the one above has nothing at 2."""
    cliff = function("exponential", "a*exp(b*r)", last=1.9, a=2 * math.exp(-40 * 1.9), b=40.0)
    above = function("fixed capacity", "100*(1-d/r)", first=2.2, d=2.0)
    profile = with_metric(ProfileMetric.LOSS, cliff, above)
    assert value_at(profile, ProfileMetric.LOSS, 1.99) == pytest.approx(2.0)
    assert highest_rate(profile, QualityBounds(loss_percent=5.0)).rate == pytest.approx(2 / 0.95, rel=1e-5)


def test_a_highest_rate_has_an_interval_only_where_its_function_has_one() -> None:
    """The unknown interval is none of no width, though that of the other region is known."""
    nothing = function("constant", "a", last=1.9, a=0.0).model_copy(update={"covariance": ((0.0,),)})
    above = function("fixed capacity", "100*(1-d/r)", first=2.2, d=2.0)
    bounds = QualityBounds(loss_percent=10.0)
    unknown = highest_rate(with_metric(ProfileMetric.LOSS, nothing, above), bounds)
    assert unknown.rate == pytest.approx(2 / 0.9, rel=1e-5)
    assert (unknown.low, unknown.high) == (None, None)
    certain = above.model_copy(update={"covariance": ((1e-4,),)})
    known = highest_rate(with_metric(ProfileMetric.LOSS, nothing, certain), bounds)
    assert known.low < 2 / 0.9 < known.high


@pytest.mark.parametrize(
    ("capacity", "bounds", "rate", "limited_by", "words"),
    [
        (None, QualityBounds(loss_percent=1.0), LAST, None, "at least 4 Gbit/s"),
        (2.0, QualityBounds(delay_ms=0.1), None, ProfileMetric.DELAY, "none"),
    ],
)
def test_bounds_that_always_hold_give_the_last_measured_rate_as_the_least_and_those_that_never_do_none(
    capacity: float | None, bounds: QualityBounds, rate: float | None, limited_by: ProfileMetric | None, words: str
) -> None:
    found = highest_rate(known_profile("v", capacity), bounds)
    assert (found.rate, found.limited_by, found.known) == (rate, limited_by, True)
    assert highest_in_words(found) == words


def test_a_metric_without_a_function_limits_as_unknown() -> None:
    profile = known_profile("v", 2.0)
    loss = profile.of(ProfileMetric.LOSS)
    halved = (*profile.metrics[:2], loss.model_copy(update={"sat": None}))
    found = highest_rate(profile.model_copy(update={"metrics": halved}), QualityBounds(loss_percent=1.0))
    assert found.rate == pytest.approx(2.0, rel=1e-5)
    assert (found.limited_by, found.known) == (ProfileMetric.LOSS, False)
    empty = Profile(name="v", break_point=None, metrics=())
    nothing = highest_rate(empty, QualityBounds(delay_ms=1.0))
    assert (nothing.rate, nothing.limited_by, nothing.known) == (None, ProfileMetric.DELAY, False)
    unbounded = highest_rate(empty, QualityBounds())
    assert (unbounded.rate, unbounded.limited_by) == (None, ProfileMetric.THROUGHPUT)


@pytest.mark.parametrize(("sat", "rate"), [(None, LAST), (line(1, 10), 2.0)])
def test_a_delay_that_is_long_at_low_rates_says_from_where_on(sat: Fit | None, rate: float) -> None:
    """Also where it is long at both ends."""
    falling = function("hyperbola", "a+b/r", last=2.0 if sat else LAST, a=0.0, b=1.0)
    found = highest_rate(with_metric(ProfileMetric.DELAY, falling, sat), QualityBounds(delay_ms=1.0))
    assert found.rate == pytest.approx(rate, rel=1e-5)
    assert found.from_rate == pytest.approx(1.0, abs=0.03)


@given(st.floats(0.2, 3.9), st.floats(0, 50), st.floats(0, 50))
def test_a_wider_bound_never_lowers_the_rate(capacity: float, one: float, other: float) -> None:
    profile = known_profile("v", capacity)
    narrow, wide = sorted((one, other))
    assert (highest_rate(profile, QualityBounds(narrow)).rate or 0) <= (
        highest_rate(profile, QualityBounds(wide)).rate or 0
    )


SMALL, MIDDLE, LARGE = (
    ProfiledFlavor("small", 1, known_profile("small", 1.0, used=1.0)),
    ProfiledFlavor("middle", 2, known_profile("middle", 1.9, used=1.98, vcpus=2)),
    ProfiledFlavor("large", 3, known_profile("large", 1.95, used=2.0, vcpus=3)),
)


def test_the_best_flavor_is_the_smallest_that_carries_the_rate() -> None:
    found = answers([LARGE, SMALL, MIDDLE], QualityBounds(loss_percent=0.5), 1.5)
    assert [(each.flavor.name, each.carries) for each in found] == [("small", False), ("middle", True), ("large", True)]
    assert best_flavor(found).flavor is MIDDLE
    assert best_flavor(answers([SMALL], QualityBounds(loss_percent=0.5), 1.5)) is None


def test_a_rate_beyond_what_was_measured_is_not_known_to_be_carried() -> None:
    (found,) = answers([ProfiledFlavor("v", 1, known_profile("v", None))], QualityBounds(loss_percent=1), LAST + 1)
    assert found.carries is None
    (unasked,) = answers([SMALL], QualityBounds(loss_percent=1))
    assert unasked.carries is None


@pytest.mark.parametrize(
    ("smaller", "capacity", "used", "scales"),
    [
        (SMALL, 1.9, 1.98, True),
        (MIDDLE, 1.95, 2.0, False),  # two of three vCPUs are used
        (MIDDLE, 1.95, 2.99, True),  # all are: no verdict against the software
        (MIDDLE, 1.95, 2.6, True),  # more are than the smaller flavor has: neither
        (MIDDLE, 1.9 * 1.2, 2.0, True),  # a fifth more, though vCPUs stay unused
        (MIDDLE, 1.9 * 1.09, 2.0, False),
        (MIDDLE, 1.9 * 1.11, 2.0, True),
        (MIDDLE, 1.9, 2.08, False),
        (MIDDLE, 1.9, 2.13, True),
    ],
)
def test_a_step_brings_nothing_below_a_tenth_more_and_five_percent_more_vcpus_in_use(
    smaller: ProfiledFlavor, capacity: float, used: float, *, scales: bool
) -> None:
    larger = ProfiledFlavor("larger", 3, known_profile("larger", capacity, used=used, vcpus=3))
    (step,) = steps([larger, smaller])
    assert (step.smaller.name, step.larger.name, step.scales) == (smaller.name, "larger", scales)
    assert step.gain == pytest.approx(capacity / smaller.profile.break_point.rate - 1)


def test_the_gain_from_which_on_a_step_scales_can_be_chosen_and_is_said() -> None:
    found = steps([LARGE, SMALL, MIDDLE])
    assert [(step.smaller.name, step.larger.name) for step in found] == [("small", "middle"), ("middle", "large")]
    assert scaling_in_words(found)[1] == (
        "middle (2 vCPUs) to large (3 vCPUs): break-point +2.6 %, 2.00 of 3 vCPUs are used: does not scale past 2 vCPUs"
    )
    assert steps([MIDDLE, LARGE], least_gain=0.02)[0].scales is True


@pytest.mark.parametrize("endless_first", [False, True])
def test_without_a_break_point_it_is_unknown_whether_it_scales(endless_first: bool) -> None:
    """The vCPUs in use are known though the smaller flavor never saturates."""
    endless = ProfiledFlavor("endless", 1 if endless_first else 3, known_profile("endless", None))
    (step,) = steps([MIDDLE, endless])
    used = MIDDLE.profile.break_point.cpus_used if endless_first else None
    assert (step.gain, step.used, step.scales) == (None, used, None)
    assert "unknown, not both were saturated" in scaling_in_words([step])[0]


@pytest.mark.parametrize("order", [1, -1])
def test_without_a_lower_end_of_a_break_point_the_gain_is_unknown(order: int) -> None:
    profile = known_profile("low", 1.0)
    at = profile.break_point.model_copy(update={"high": 1.0})
    low = ProfiledFlavor("low", 2 - order, profile.model_copy(update={"break_point": at}))
    (step,) = steps([low, ProfiledFlavor("known", 2, known_profile("known", 1.9, vcpus=2))])
    assert (step.gain, step.scales) == (None, None)
    (words,) = scaling_in_words([step])
    assert "low saturates at its lowest load" in words

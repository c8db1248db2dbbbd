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


def test_a_value_is_that_of_the_region() -> None:
    profile = known_profile("v", 2.0)
    assert value_at(profile, ProfileMetric.DELAY, 1.999) == pytest.approx(0.5)
    assert value_at(profile, ProfileMetric.DELAY, 2.0) == pytest.approx(12.0)
    assert value_at(profile, ProfileMetric.LOSS, 4.0) == pytest.approx(50.0)


def test_no_value_is_negative_and_loss_is_no_more_than_all() -> None:
    metrics = (MetricProfile(metric=ProfileMetric.LOSS, nonsat=line(100, -50), sat=None),)
    profile = Profile(name="v", break_point=None, metrics=metrics)
    assert value_at(profile, ProfileMetric.LOSS, 0.1) == 0.0
    assert value_at(profile, ProfileMetric.LOSS, 3.0) == 100.0
    assert value_at(profile, ProfileMetric.DELAY, 1.0) is None


def test_between_the_last_load_below_and_the_first_above_lies_a_straight_line() -> None:
    """The lower function has a pole there: read on, it would be of another sign."""
    queue = function("hyperbola with a pole", "a+b/(c-r)", last=1.8, a=0.0, b=0.1, c=1.9)
    full = function("constant", "a", first=2.0, a=5.0)
    metrics = (MetricProfile(metric=ProfileMetric.DELAY, nonsat=queue, sat=full),)
    profile = known_profile("v", 2.0).model_copy(update={"metrics": metrics})
    assert [value_at(profile, ProfileMetric.DELAY, rate) for rate in (1.8, 1.9, 1.95, 2.0)] == pytest.approx(
        [1, 3, 4, 5]
    )


def test_the_highest_rate_is_where_the_bound_is_met() -> None:
    found = highest_rate(known_profile("v", 2.0), QualityBounds(loss_percent=20.0))
    assert found.rate == pytest.approx(2.5, rel=1e-5)
    assert found.limited_by is ProfileMetric.LOSS
    both = highest_rate(known_profile("v", 2.0), QualityBounds(loss_percent=20.0, delay_ms=1.0))
    assert both.rate == pytest.approx(2.0, rel=1e-5)
    assert both.limited_by is ProfileMetric.DELAY
    assert highest_in_words(both) == "2 Gbit/s"


def _with_loss(nonsat: Fit, sat: Fit) -> Profile:
    metrics = (MetricProfile(metric=ProfileMetric.LOSS, nonsat=nonsat, sat=sat),)
    return known_profile("v", 2.0).model_copy(update={"metrics": metrics})


def test_a_cliff_behind_the_last_load_below_the_break_point_is_no_limit() -> None:
    """A few packets are lost at 1.9: read on, the function has 15 % at 1.95, the one above has nothing at 2."""
    cliff = function("exponential", "a*exp(b*r)", last=1.9, a=2 * math.exp(-40 * 1.9), b=40.0)
    profile = _with_loss(cliff, function("fixed capacity", "100*(1-d/r)", first=2.2, d=2.0))
    assert value_at(profile, ProfileMetric.LOSS, 1.99) == pytest.approx(2.0)
    found = highest_rate(profile, QualityBounds(loss_percent=5.0))
    assert found.rate == pytest.approx(2 / 0.95, rel=1e-5)


def test_a_highest_rate_has_an_interval_only_where_its_function_has_one() -> None:
    """The unknown interval is none of no width, though that of the other region is known."""
    nothing = function("constant", "a", last=1.9, a=0.0).model_copy(update={"covariance": ((0.0,),)})
    above = function("fixed capacity", "100*(1-d/r)", first=2.2, d=2.0)
    bounds = QualityBounds(loss_percent=10.0)
    unknown = highest_rate(_with_loss(nothing, above), bounds)
    assert unknown.rate == pytest.approx(2 / 0.9, rel=1e-5)
    assert (unknown.low, unknown.high) == (None, None)
    assert highest_in_words(unknown) == "2.222 Gbit/s"
    known = highest_rate(_with_loss(nothing, above.model_copy(update={"covariance": ((1e-4,),)})), bounds)
    assert known.low < 2 / 0.9 < known.high


def test_bounds_that_always_hold_give_the_last_measured_rate_as_the_least() -> None:
    found = highest_rate(known_profile("v", None), QualityBounds(loss_percent=1.0))
    assert (found.rate, found.limited_by) == (LAST, None)
    assert highest_in_words(found) == "at least 4 Gbit/s"


def test_bounds_that_never_hold_give_none() -> None:
    found = highest_rate(known_profile("v", 2.0), QualityBounds(delay_ms=0.1))
    assert (found.rate, found.limited_by, found.known) == (None, ProfileMetric.DELAY, True)
    assert highest_in_words(found) == "none"


def test_a_metric_without_a_function_limits_as_unknown() -> None:
    profile = known_profile("v", 2.0)
    loss = profile.of(ProfileMetric.LOSS)
    halved = (*profile.metrics[:2], loss.model_copy(update={"sat": None}))
    found = highest_rate(profile.model_copy(update={"metrics": halved}), QualityBounds(loss_percent=1.0))
    assert found.rate == pytest.approx(2.0, rel=1e-5)
    assert (found.limited_by, found.known) == (ProfileMetric.LOSS, False)
    nothing = highest_rate(Profile(name="v", break_point=None, metrics=()), QualityBounds(delay_ms=1.0))
    assert (nothing.rate, nothing.limited_by, nothing.known) == (None, ProfileMetric.DELAY, False)
    unbounded = highest_rate(Profile(name="v", break_point=None, metrics=()), QualityBounds())
    assert (unbounded.rate, unbounded.limited_by) == (None, ProfileMetric.THROUGHPUT)


def test_a_delay_that_is_long_at_low_rates_says_from_where_on() -> None:
    metrics = (
        MetricProfile(metric=ProfileMetric.DELAY, nonsat=function("hyperbola", "a+b/r", a=0.0, b=1.0), sat=None),
    )
    found = highest_rate(Profile(name="v", break_point=None, metrics=metrics), QualityBounds(delay_ms=1.0))
    assert found.rate == LAST
    assert found.from_rate == pytest.approx(1.0, abs=0.03)


def test_rates_within_a_bound_begin_and_end_where_a_delay_is_long_at_both_ends() -> None:
    delay = MetricProfile(
        metric=ProfileMetric.DELAY, nonsat=function("hyperbola", "a+b/r", last=2.0, a=0.0, b=1.0), sat=line(1, 10)
    )
    found = highest_rate(known_profile("v", 2.0).model_copy(update={"metrics": (delay,)}), QualityBounds(delay_ms=1.0))
    assert found.rate == pytest.approx(2.0, rel=1e-5)
    assert found.from_rate == pytest.approx(1.0, abs=0.03)


def test_a_delay_that_is_just_the_bound_is_within_it() -> None:
    assert highest_rate(known_profile("v", 2.0, delay_ms=0.5), QualityBounds(delay_ms=0.5)).rate == pytest.approx(2.0)


def test_there_is_no_prediction_between_regions_where_one_ends_behind_a_pole() -> None:
    behind = function("hyperbola with a pole", "a+b/(c-r)", last=1.8, a=0.0, b=0.1, c=1.7)
    full = function("constant", "a", first=2.0, a=5.0)
    metrics = (MetricProfile(metric=ProfileMetric.DELAY, nonsat=behind, sat=full),)
    assert value_at(known_profile("v", 2.0).model_copy(update={"metrics": metrics}), ProfileMetric.DELAY, 1.9) is None


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
    best = best_flavor(found)
    assert best.flavor is MIDDLE
    assert best_flavor(answers([SMALL], QualityBounds(loss_percent=0.5), 1.5)) is None


def test_a_rate_beyond_what_was_measured_is_not_known_to_be_carried() -> None:
    (found,) = answers([ProfiledFlavor("v", 1, known_profile("v", None))], QualityBounds(loss_percent=1), LAST + 1)
    assert found.carries is None
    (unasked,) = answers([SMALL], QualityBounds(loss_percent=1))
    assert unasked.carries is None


def test_three_vcpus_of_which_two_are_used_do_not_scale_past_two() -> None:
    found = steps([LARGE, SMALL, MIDDLE])
    assert [(step.smaller.name, step.larger.name, step.scales) for step in found] == [
        ("small", "middle", True),
        ("middle", "large", False),
    ]
    assert [step.gain for step in found] == pytest.approx([0.9, 1.95 / 1.9 - 1])
    assert scaling_in_words(found)[1] == (
        "middle (2 vCPUs) to large (3 vCPUs): break-point +2.6 %, 2.00 of 3 vCPUs are used: does not scale past 2 vCPUs"
    )


def test_a_small_gain_with_all_vcpus_used_is_no_verdict_against_the_software() -> None:
    full = ProfiledFlavor("full", 3, known_profile("full", 1.95, used=2.99, vcpus=3))
    assert [step.scales for step in steps([MIDDLE, full])] == [True]


def test_a_small_gain_with_more_vcpus_used_than_the_smaller_flavor_has_is_no_verdict_either() -> None:
    more = ProfiledFlavor("more", 3, known_profile("more", 1.95, used=2.6, vcpus=3))
    assert [step.scales for step in steps([MIDDLE, more])] == [True]


def test_without_a_break_point_it_is_unknown_whether_it_scales() -> None:
    (step,) = steps([SMALL, ProfiledFlavor("endless", 2, known_profile("endless", None))])
    assert (step.gain, step.used, step.scales) == (None, None, None)
    assert scaling_in_words([step]) == ("small (1 vCPU) to endless (2 vCPUs): unknown, not both were saturated",)


@pytest.mark.parametrize("order", [1, -1])
def test_without_a_lower_end_of_a_break_point_the_gain_is_unknown(order: int) -> None:
    profile = known_profile("low", 1.0)
    at = profile.break_point.model_copy(update={"high": 1.0})
    low = ProfiledFlavor("low", 2 - order, profile.model_copy(update={"break_point": at}))
    (step,) = steps([low, ProfiledFlavor("known", 2, known_profile("known", 1.9, vcpus=2))])
    assert (step.gain, step.scales) == (None, None)
    (words,) = scaling_in_words([step])
    assert "low saturates at its lowest load" in words


def test_the_vcpus_in_use_are_known_though_the_smaller_flavor_never_saturates() -> None:
    (step,) = steps([ProfiledFlavor("endless", 1, known_profile("endless", None)), MIDDLE])
    assert (step.gain, step.used, step.scales) == (None, MIDDLE.profile.break_point.cpus_used, None)


def test_a_step_that_brings_a_fifth_more_scales_though_vcpus_stay_unused() -> None:
    grown = ProfiledFlavor("grown", 3, known_profile("grown", 2.28, used=2.0, vcpus=3))
    (step,) = steps([MIDDLE, grown])
    assert step.gain == pytest.approx(0.2)
    assert step.scales is True
    assert steps([MIDDLE, grown], least_gain=0.25)[0].scales is False


@pytest.mark.parametrize(
    ("gain", "used", "scales"), [(1.09, 2.0, False), (1.11, 2.0, True), (1.0, 2.08, False), (1.0, 2.13, True)]
)
def test_a_step_brings_nothing_below_a_tenth_more_and_five_percent_more_vcpus_in_use(
    gain: float, used: float, *, scales: bool
) -> None:
    larger = ProfiledFlavor("larger", 3, known_profile("larger", 1.9 * gain, used=used, vcpus=3))
    assert [step.scales for step in steps([MIDDLE, larger])] == [scales]

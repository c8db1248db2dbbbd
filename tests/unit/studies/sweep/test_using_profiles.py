"""What profiles answer: a metric at a rate, the highest rate within bounds, the best flavor, a chain from its parts."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.sweep.analysis import chain_prediction, sentences
from resources.libraries.python.studies.sweep.analysis.chain_prediction import (
    MeasuredPath,
    MeasuredVnf,
    Model,
    predict_rates,
)
from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, answers, best_flavor, steps
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, highest_rate, value_at
from resources.libraries.python.studies.sweep.model import (
    Fit,
    MetricProfile,
    PredictedPoint,
    Prediction,
    Profile,
    ProfileMetric,
    Vnf,
)
from tests.unit.studies.sweep.synthetic_sweeps import (
    LAST,
    function,
    growing_to,
    known_profile,
    line,
    plain_router,
    sweep_of,
)


def with_metric(metric: ProfileMetric, nonsat: Fit, sat: Fit | None) -> Profile:
    """A service that saturates at 2 Gbit/s, or never, of which only this is known."""
    metrics = (MetricProfile(metric=metric, nonsat=nonsat, sat=sat),)
    return known_profile("v", 2.0 if sat else None).model_copy(update={"metrics": metrics})


def test_a_value_is_that_of_the_region_not_negative_and_no_loss_beyond_all() -> None:
    profile = known_profile("v", 2.0)
    assert value_at(profile, ProfileMetric.DELAY, 1.999) == pytest.approx(0.5)
    assert value_at(profile, ProfileMetric.DELAY, 2.0) == pytest.approx(12.0)
    assert value_at(profile, ProfileMetric.LOSS, 4.0) == pytest.approx(50.0)
    profile = with_metric(ProfileMetric.LOSS, line(100, -50), None)
    assert value_at(profile, ProfileMetric.LOSS, 0.1) == 0.0
    assert value_at(profile, ProfileMetric.LOSS, 3.0) == 100.0
    assert value_at(profile, ProfileMetric.DELAY, 1.0) is None


@pytest.mark.parametrize(("pole", "values"), [(1.9, [1, 3, 4, 5]), (1.7, [None, None, None, 5])])
def test_between_the_regions_lies_a_straight_line(pole: float, values: list[float | None]) -> None:
    """The lower function has a pole there: read on, it would be of another sign. Behind the pole nothing is known."""
    queue = function("hyperbola with a pole", "a+b/(c-r)", last=1.8, a=0.0, b=0.1, c=pole)
    profile = with_metric(ProfileMetric.DELAY, queue, function("constant", "a", first=2.0, a=5.0))
    found = [value_at(profile, ProfileMetric.DELAY, rate) for rate in (1.8, 1.9, 1.95, 2.0)]
    assert found == [None if value is None else pytest.approx(value) for value in values]


EMPTY = Profile(name="v", break_point=None, metrics=())
V = known_profile("v", 2.0)
HALVED = V.model_copy(update={"metrics": (*V.metrics[:2], V.metrics[2].model_copy(update={"sat": None}))})
"""Its loss in saturation is not known."""


@pytest.mark.parametrize(
    ("profile", "bounds", "rate", "limited_by", "known", "words"),
    [
        (V, QualityBounds(loss_percent=20.0), 2.5, ProfileMetric.LOSS, True, "2.5 Gbit/s"),
        (V, QualityBounds(loss_percent=20.0, delay_ms=1.0), 2.0, ProfileMetric.DELAY, True, "2 Gbit/s"),
        (V, QualityBounds(delay_ms=0.5), 2.0, ProfileMetric.DELAY, True, "2 Gbit/s"),  # a delay that is just the bound
        (V, QualityBounds(delay_ms=0.1), None, ProfileMetric.DELAY, True, "none"),
        (known_profile("v", None), QualityBounds(loss_percent=1.0), LAST, None, True, "at least 4 Gbit/s"),
        (HALVED, QualityBounds(loss_percent=1.0), 2.0, ProfileMetric.LOSS, False, "at least 2 Gbit/s"),
        (EMPTY, QualityBounds(delay_ms=1.0), None, ProfileMetric.DELAY, False, "unknown"),
        (EMPTY, QualityBounds(), None, ProfileMetric.THROUGHPUT, False, "unknown"),
    ],
)
def test_the_highest_rate_is_where_the_bound_is_met(  # noqa: PLR0917 - a row of a table
    profile: Profile, bounds: QualityBounds, rate: float | None, limited_by: str | None, known: bool, words: str
) -> None:
    found = highest_rate(profile, bounds)
    assert found.rate == (rate and pytest.approx(rate, rel=1e-5))
    assert (found.limited_by, found.known) == (limited_by, known)
    assert (found.low, found.high) == (None, None), "no function has an interval"
    assert sentences.highest_in_words(found) == words


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


def test_the_best_flavor_is_the_smallest_that_is_known_to_carry_the_rate() -> None:
    found = answers([LARGE, SMALL, MIDDLE], QualityBounds(loss_percent=0.5), 1.5)
    assert [(each.flavor.name, each.carries) for each in found] == [("small", False), ("middle", True), ("large", True)]
    assert best_flavor(found).flavor is MIDDLE
    assert best_flavor(answers([SMALL], QualityBounds(loss_percent=0.5), 1.5)) is None
    (beyond,) = answers([ProfiledFlavor("v", 1, known_profile("v", None))], QualityBounds(loss_percent=1), LAST + 1)
    assert beyond.carries is None
    assert [steps([MIDDLE, LARGE], least_gain=gain)[0].scales for gain in (0.02, 0.03)] == [True, False]


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
def test_a_step_has_to_bring_a_tenth_more_or_use_more_vcpus(
    smaller: ProfiledFlavor, capacity: float, used: float, *, scales: bool
) -> None:
    larger = ProfiledFlavor("larger", 3, known_profile("larger", capacity, used=used, vcpus=3))
    (step,) = steps([larger, smaller])
    assert (step.smaller.name, step.larger.name, step.scales) == (smaller.name, "larger", scales)
    assert step.gain == pytest.approx(capacity / smaller.profile.break_point.rate - 1)


@pytest.mark.parametrize("vcpus", [1, 3])
def test_without_a_break_point_or_its_lower_end_it_is_unknown_whether_it_scales(vcpus: int) -> None:
    """The vCPUs in use are known though the smaller flavor never saturates."""
    (step,) = steps([MIDDLE, ProfiledFlavor("endless", vcpus, known_profile("endless", None))])
    used = MIDDLE.profile.break_point.cpus_used if vcpus == 1 else None
    assert (step.gain, step.used, step.scales) == (None, used, None)
    profile = known_profile("low", 1.0)
    at = profile.break_point.model_copy(update={"high": 1.0})
    low = ProfiledFlavor("low", vcpus, profile.model_copy(update={"break_point": at}))
    (step,) = steps([low, ProfiledFlavor("known", 2, known_profile("known", 1.9, vcpus=2))])
    assert (step.gain, step.scales) == (None, None)
    (words,) = sentences.scaling_in_words([step])
    assert "low saturates at its lowest load" in words


PATH = MeasuredPath("path", (0.5, 1.5, 2.5), (0.1, 0.2, 0.4))
ROUTER = known_profile("router", 2.5, delay_ms=0.3)
FIREWALL = known_profile("firewall", 1.5, delay_ms=0.8, full_ms=200.0)
BOTH = [MeasuredVnf(ROUTER), MeasuredVnf(FIREWALL)]
BRANCHES = [MeasuredVnf(ROUTER), MeasuredVnf(FIREWALL, 0.5), MeasuredVnf(FIREWALL, 0.5)]


def at(parts: list[MeasuredVnf], rate: float, model: Model = "hungriest") -> dict[ProfileMetric, float]:
    return predict_rates("chain", parts, [rate], model).points[0].predicted


ON_ONE_CPU = [MeasuredVnf(ROUTER, cpus="one"), MeasuredVnf(FIREWALL, cpus="one")]
TOGETHER = 1 / (1 / 2.5 + 1 / 1.5)
"""Their times for each packet add up."""


@pytest.mark.parametrize(
    ("parts", "model", "rate", "through", "lost", "delay_ms"),
    [
        (BOTH, "hungriest", 1.0, 1.0, 0.0, 0.3 + 0.8),
        (BOTH, "hungriest", 2.0, 1.5, 25.0, 0.3 + 202.0),
        (BOTH[::-1], "hungriest", 2.0, 1.5, 25.0, 0.3 + 202.0),
        (BOTH, "shared_cpus", 2.0, 1.5, 25.0, 0.3 + 202.0),
        ([*BRANCHES, BOTH[0]], "hungriest", 2.0, 2.0, 0.0, 0.3 + 0.8 + 0.3),
        ([*BRANCHES, BOTH[0]], "hungriest", 3.0, 2.5, 100 * (1 - 2.5 / 3), None),
        (ON_ONE_CPU, "shared_cpus", 1.2, TOGETHER, 100 * (1 - TOGETHER / 1.2), None),
        (ON_ONE_CPU, "shared_cpus", 0.9, 0.9, 0.0, None),
        (ON_ONE_CPU, "hungriest", 1.2, 1.2, 0.0, None),
        ([MeasuredVnf(known_profile("endless", None)), BOTH[1]], "hungriest", 2.0, 1.5, 25.0, None),
    ],
)
def test_throughput_is_that_of_the_hungriest_or_of_shared_cpus_and_delays_add_up(  # noqa: PLR0917 - a row of a table
    parts: list[MeasuredVnf], model: Model, rate: float, through: float, lost: float, delay_ms: float | None
) -> None:
    found = at(parts, rate, model)
    assert found[ProfileMetric.THROUGHPUT] == pytest.approx(through)
    assert found[ProfileMetric.LOSS] == pytest.approx(lost)
    assert delay_ms is None or found[ProfileMetric.DELAY] == pytest.approx(delay_ms)


@pytest.mark.parametrize(
    ("parts", "rate", "path", "delay_ms"),
    [
        (BOTH, 1.0, PATH, 0.15 + (0.3 - 0.15) + (0.8 - 0.15)),
        (BRANCHES, 2.0, PATH, 0.3 + (0.3 - 0.3) + (0.8 - 0.15)),
        (BOTH[:1], 1.0, MeasuredPath("long", (1.0,), (5.0,)), 5.0),
    ],
    ids=["once", "at the rate of a branch", "no VNF takes less than no time"],
)
def test_the_path_around_vnfs_is_taken_off(
    parts: list[MeasuredVnf], rate: float, path: MeasuredPath, delay_ms: float
) -> None:
    found = predict_rates("chain", parts, [rate], "hungriest", path)
    assert found.points[0].predicted[ProfileMetric.DELAY] == pytest.approx(delay_ms)
    assert found.points[0].summed_delay == pytest.approx(at(parts, rate)[ProfileMetric.DELAY])
    assert (found.path, found.notes) == (path.name, ())


def test_a_path_has_the_loads_of_its_sweep_that_have_a_delay_and_is_beyond_them_as_there() -> None:
    delays = {ProfileMetric.DELAY: lambda r: 0.1 * r}
    first, second, third = sweep_of(np.linspace(1, 2, 3), {**plain_router(3.0), **delays}, {})
    unknown = second.model_copy(update={"delay_s": None})
    path = MeasuredPath.of("path", [third, unknown, first])
    assert (path.rates, path.delays) == (pytest.approx((1.0, 2.0)), pytest.approx((0.1, 0.2)))
    assert [path.delay_ms(rate) for rate in (0.1, 1.5, 9.0)] == pytest.approx([0.1, 0.15, 0.2])
    assert MeasuredPath.of("path", [unknown]) is None
    ((lossless,), _) = observe([first.model_copy(update={"loss_ratio": None})])
    assert lossless.values[ProfileMetric.LOSS] is None


def test_both_errors_of_the_delay_are_reported() -> None:
    delays = {ProfileMetric.DELAY: lambda r: 0.95 + 0.0 * r}
    points = sweep_of(np.linspace(0.5, 1.4, 10), {**plain_router(1.5), **delays}, {"firewall": (growing_to(1, 1.5),)})
    found = chain_prediction.predict("chain", BOTH, points, "hungriest", MeasuredPath("path", (1.0, 2.0), (0.2, 0.2)))
    assert found.errors[ProfileMetric.DELAY] == pytest.approx(0.05 / 0.95, abs=1e-6)
    assert found.summed_delay_error == pytest.approx(0.15 / 0.95, abs=1e-6)
    (line,) = sentences.errors_in_words(found)
    assert "delay 5.3 %" in line and "without subtracting path 16 %" in line


def test_what_else_runs_on_shared_cpus_counts_once() -> None:
    """Measured with the vSwitch on the CPU of the VNFs: both alone, and 0.065 to 0.075 Gbit/s through both in a row."""
    alone = (("router", 0.115, 0.275), ("firewall", 0.0788, 0.36))
    parts = [MeasuredVnf(known_profile(name, capacity, used=used), cpus="x") for name, capacity, used in alone]
    through = at(parts, 0.2, "shared_cpus")[ProfileMetric.THROUGHPUT]
    assert through == pytest.approx(1 / (0.275 / 0.115 + 0.36 / 0.0788 + 0.64 / 0.0788))
    assert 0.065 < through < 0.075


AT_ITS_LOWEST_LOAD = FIREWALL.model_copy(
    update={"break_point": FIREWALL.break_point.model_copy(update={"high": FIREWALL.break_point.rate})}
)


@pytest.mark.parametrize(
    ("part", "rates", "note"),
    [
        (known_profile("endless", None), [2.0], "endless: where it or a VNF on its CPUs saturates is not known"),
        (ROUTER, [1.0, 5.0], "at 1 of 2 rates a VNF was not measured alone"),
        (ROUTER, [1.0, 3.0], "at 1 of 2 rates the path path was not measured: its delay is as at its last"),
        (AT_ITS_LOWEST_LOAD, [1.0], "or below"),
    ],
)
def test_what_a_prediction_only_assumes_is_noted(part: Profile, rates: list[float], note: str) -> None:
    found = predict_rates("chain", [MeasuredVnf(part)], rates, "hungriest", PATH)
    assert [each for each in found.notes if note in each]


def test_a_prediction_is_compared_with_the_measured_chain() -> None:
    rates = np.linspace(0.1, 3.0, 30)
    functions = {**plain_router(1.5), ProfileMetric.DELAY: lambda r: np.where(r < 1.5, 2.2, 2 * (200.3 + r))}
    points = sweep_of(rates, functions, {"firewall": (growing_to(1, 1.5),)})
    found = chain_prediction.predict("chain", BOTH, points, "hungriest")
    assert len(found.points) == 30
    assert found.errors == pytest.approx(
        {ProfileMetric.THROUGHPUT: 0.0, ProfileMetric.DELAY: 0.5, ProfileMetric.LOSS: 0.0}, abs=0.02
    )
    assert (found.points[0].summed_delay, found.path, found.notes) == (None, None, (chain_prediction.WITHOUT_PATH,))
    line, note = sentences.errors_in_words(found)
    assert note == chain_prediction.WITHOUT_PATH
    assert "router + firewall" in line and "throughput 0 %, delay " in line


def test_errors_leave_out_what_cannot_be_compared_and_no_chain_is_without_vnfs() -> None:
    points = [
        PredictedPoint(
            rate=1, predicted={ProfileMetric.DELAY: 2.0, ProfileMetric.LOSS: 3.0}, measured={ProfileMetric.LOSS: 1.0}
        ),
        PredictedPoint(rate=2, predicted={ProfileMetric.THROUGHPUT: 1.0}, measured={ProfileMetric.THROUGHPUT: 0.0}),
    ]
    assert chain_prediction.errors(points) == {ProfileMetric.LOSS: 2.0}
    with pytest.raises(ValueError, match="at least one VNF"):
        predict_rates("chain", [], [1.0], "hungriest")


def test_vnfs_share_cpus_also_by_way_of_others() -> None:
    def vnf(name: str, *others: str) -> Vnf:
        return Vnf(name=name, kind=NfKind("linux_router"), vcpus=1, shares_cpus_with=others)

    vnfs = [vnf("a", "b", "vswitch"), vnf("b", "a", "c"), vnf("c", "b"), vnf("d", "vswitch"), vnf("e")]
    words = chain_prediction.sharing(vnfs)
    assert words["a"] == words["b"] == words["c"] and words["c"]
    assert words["d"] is words["e"] is None


@given(
    st.lists(st.tuples(st.floats(0.3, 3.9), st.sampled_from([0.25, 0.5, 1.0])), min_size=1, max_size=5),
    st.lists(st.floats(0.05, 3.9), min_size=2, max_size=6),
)
def test_neither_more_load_nor_shared_cpus_let_more_through_than_they_can(
    vnfs: list[tuple[float, float]], rates: list[float]
) -> None:
    parts = [MeasuredVnf(known_profile(f"v{at}", capacity), share, "x") for at, (capacity, share) in enumerate(vnfs)]
    models: tuple[Model, Model] = ("hungriest", "shared_cpus")
    alone, shared = (predict_rates("chain", parts, sorted(rates), model).points for model in models)
    for points, metric in product((alone, shared), (ProfileMetric.THROUGHPUT, ProfileMetric.LOSS)):
        assert all(one.predicted[metric] <= other.predicted[metric] + 1e-9 for one, other in pairwise(points))
    through = ProfileMetric.THROUGHPUT
    assert all(two.predicted[through] <= one.predicted[through] + 1e-9 for one, two in zip(alone, shared, strict=True))


def words(metric: ProfileMetric, *points: tuple[float, float, float]) -> list[str]:
    """Of a prediction with these points: rate, predicted, measured."""
    predicted = tuple(
        PredictedPoint(rate=rate, predicted={metric: value}, measured={metric: measured})
        for rate, value, measured in points
    )
    found = Prediction(chain="c", parts=("a",), model="hungriest", points=predicted, errors={})
    return [f"{each.metric} {sentences.trust_in_words(each)}" for each in chain_prediction.trust(found)]


def test_trust_ends_at_the_first_load_that_is_wrong_whatever_comes_behind_it() -> None:
    """What was not measured is not judged."""
    found = words(ProfileMetric.DELAY, (3.0, 1.0, 1.0), (1.0, 1.2, 1.0), (2.0, 1.3, 1.0))
    assert found == ["delay within 25 % up to 1 Gbit/s"]
    assert words(ProfileMetric.DELAY) == []


@pytest.mark.parametrize(
    ("metric", "right", "wrong", "measured"),
    [
        (ProfileMetric.THROUGHPUT, 1.09, 1.11, 1.0), (ProfileMetric.THROUGHPUT, 0.91, 0.89, 1.0),
        (ProfileMetric.DELAY, 1.24, 1.26, 1.0), (ProfileMetric.LOSS, 4.9, 5.1, 0.0),
        (ProfileMetric.LOSS, 34.9, 35.1, 30.0),
    ],
)  # fmt: skip
def test_a_prediction_is_right_within_bounds(
    metric: ProfileMetric, right: float, wrong: float, measured: float
) -> None:
    assert words(metric, (1.0, right, measured))[0].endswith("at all rates")
    assert words(metric, (1.0, wrong, measured))[0].endswith("at no rate")

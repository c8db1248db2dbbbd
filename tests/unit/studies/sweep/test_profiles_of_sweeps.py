"""A sweep becomes a profile of curves of the catalogue: the published functions come back from noisy samples."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import f as f_test

from csit_utils.dataset.reference import paper
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.sweep.analysis import fitting
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME, CURVES
from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.profile import profile_of, profile_of_sweep, value_at
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model import Fit, ProfileMetric, SweepPoint
from tests.unit.csit_utils.characterization_records import FIREWALL
from tests.unit.csit_utils.characterization_records import sweep_of as firewall_of
from tests.unit.examples import share
from tests.unit.studies.sweep.synthetic_sweeps import (
    ADVA,
    BONSAI,
    PublishedRouter,
    growing_to,
    plain_router,
    printed_function,
    printed_sweep,
    sweep_of,
)

NOISE = 0.002
"""Relative: a mean of 30 samples that are 1 % off."""
OFFSET_LOST = ("exponential over a base", BONSAI)
"""Its base is 7.15e-26 ms under at least 5e-3 ms: no double holds their sum, so a*exp(b*r) is the same function."""


@pytest.mark.parametrize("testbed", [ADVA, BONSAI], ids=["ADVA", "BONSAI"])
def test_tables_iv_to_vi_come_back(testbed: PublishedRouter) -> None:
    profile = profile_of("router", printed_sweep(testbed, NOISE, 0), {"router": 1})
    assert abs(profile.break_point.rate - testbed.break_point) <= testbed.last_rate / 80
    assert (profile.break_point.vnf, profile.break_point.cpus_there) == ("router", 1)
    for metric, (below, above) in testbed.metrics.items():
        row = profile.of(metric)
        assert row.sat.function == above.function
        assert row.sat.coefficients == pytest.approx(dict(above.coefficients), rel=0.05)
        if (below.function, testbed) == OFFSET_LOST:
            assert row.nonsat.function == "exponential"
            a, b = row.nonsat.coefficients["a"], row.nonsat.coefficients["b"]
            assert b == pytest.approx(below.coefficients["b"], rel=0.05)
            assert -np.log(a) / b == pytest.approx(below.coefficients["c"], rel=0.05)
        else:
            assert row.nonsat.function == below.function
            assert row.nonsat.coefficients == pytest.approx(dict(below.coefficients), rel=0.05)
        assert (row.nonsat.relative_error or 0) < 0.01
    contradict = any("loss and throughput contradict each other by up to 14" in note for note in profile.notes)
    assert contradict is (testbed == BONSAI), "as printed, below saturation"


def test_the_printed_profile_of_adva_is_consistent_in_saturation() -> None:
    profile, _ = paper("troia").profiles
    for rate in np.linspace(2.6, 3.5, 10).tolist():
        through, lost = (value_at(profile, metric, rate) for metric in (ProfileMetric.THROUGHPUT, ProfileMetric.LOSS))
        assert abs(100 * (1 - through / rate) - lost) <= 0.7


def router(
    capacity: float = 1.5, loads: int = 20, first: float = 0.1, last: float = 3.0, noise: float = 0.0
) -> list[SweepPoint]:
    cpu = {"v": (growing_to(1, capacity),)}
    return list(sweep_of(np.linspace(first, last, loads), plain_router(capacity), cpu, noise))


def test_a_consistent_sweep_has_no_notes_and_one_function_where_it_never_saturates() -> None:
    profile = profile_of("v", router(loads=30, noise=0.002), {"v": 1})
    assert profile.break_point and profile.notes == ()
    profile = profile_of("v", router(5, loads=12, last=1.0, noise=0.001), {"v": 1})
    assert profile.break_point is None
    assert all(row.nonsat and row.sat is None for row in profile.metrics)


def test_a_region_with_too_few_points_and_what_was_not_measured_have_no_function_and_a_note() -> None:
    profile = profile_of("v", router(2.5, loads=15, first=0.2), {"v": 1})
    delay = profile.of(ProfileMetric.DELAY)
    assert delay.nonsat and delay.sat is None
    assert any("delay" in note and "3 loads there, 4 are needed" in note for note in profile.notes)
    profile = profile_of("v", [each.model_copy(update={"delay_s": None, "cpu": {}}) for each in router()], {"v": 1})
    delay = profile.of(ProfileMetric.DELAY)
    assert profile.break_point.indicator == "throughput"
    assert (delay.nonsat, delay.sat) == (None, None)
    assert "delay was not measured" in profile.notes


def test_flagged_points_are_fitted_and_those_without_a_rate_are_not() -> None:
    points = router()
    points[3] = points[3].model_copy(update={"sender_pps": 0.5 * points[3].input_pps})
    points[4] = points[4].model_copy(update={"flagged": "40 % of what was asked"})
    points[5] = points[5].model_copy(update={"input_bps": 0.0, "input_pps": 0.0})
    profile = profile_of("v", points, {"v": 1})
    row = profile.of(ProfileMetric.THROUGHPUT)
    assert row.nonsat.points + row.sat.points == 18
    assert [note[:8] for note in profile.notes[:3]] == ["1 point "] * 3


@pytest.mark.parametrize(("counted", "known"), [(0.94, 19), (0.96, 20), (1.04, 20), (1.06, 19)])
def test_a_rate_is_doubtful_where_the_interface_counted_five_percent_more_or_less(counted: float, known: int) -> None:
    points = router()
    points[3] = points[3].model_copy(update={"sender_pps": counted * points[3].input_pps})
    assert len(observe(points)[0]) == known


@pytest.mark.parametrize(("loss_ratio", "contradicts"), [(0.009, False), (0.011, True)])
def test_loss_contradicts_throughput_from_one_percentage_point_on(loss_ratio: float, *, contradicts: bool) -> None:
    """All packets get through, and so much is said to be lost."""
    sweep, lost = router(loads=10, last=1.0), {"loss_ratio": loss_ratio}
    points = [each.model_copy(update={**lost, "output_bps": each.input_bps}) for each in sweep]
    notes = profile_of("v", points, {"v": 1}).notes
    assert any("contradict each other by up to 1.1 percentage points" in note for note in notes) is contradicts


def test_one_point_on_the_wrong_side_of_the_break_point_does_not_bend_the_function() -> None:
    """CPU is full one load before delay jumps."""
    functions = {**plain_router(1.55), ProfileMetric.DELAY: lambda r: np.where(r < 1.55, 0.2, 5 + r)}
    points = sweep_of(np.linspace(0.1, 3.0, 30), functions, {"v": (growing_to(1, 1.46),)}, 0.002)
    profile = profile_of("v", points, {"v": 1})
    delay = profile.of(ProfileMetric.DELAY)
    assert delay.sat.function == "linear"
    assert any(note.startswith("delay at 1.5 Gbit/s is an outlier") for note in profile.notes)


def test_a_sweep_knows_the_cpus_of_its_vnfs() -> None:
    cpu = {"nf-1-1": (growing_to(2 / 3, 1.5),) * 3}
    points = sweep_of(np.linspace(0.1, 3.0, 30), plain_router(1.5), cpu)
    swept = firewall_of("router", FIREWALL, size=NfSize.of(3)).model_copy(update={"points": points})
    profile = profile_of_sweep(swept)
    assert (profile.name, profile.break_point.cpus_there) == ("router", 3)
    assert profile.break_point.cpus_used == pytest.approx(2.0)


SHARED = (0.014, 0.029, 0.043, 0.057, 0.072, 0.086, 0.100, 0.115, 0.129, 0.143)
RUNNING = (0.168, 0.224, 0.231, 0.235, 0.249, 0.256, 0.267, 0.274, 0.257, 0.250)
WORKING = (0.174, 0.656, 0.871, 0.934, 0.921, 0.950, 0.965, 0.982, 0.985, 0.988)
"""Measured: a Linux router on a CPU that it shares with the vSwitch. It lost 4 % at 0.115 Gbit/s and 20 % at 0.129."""


def shared(working: tuple[float, ...] = WORKING) -> list[LoadObservation]:
    rows = zip(SHARED, RUNNING, working, strict=True)
    return [LoadObservation(rate, {}, {"router": (cpu,)}, {"router": (busy,)}) for rate, cpu, busy in rows]


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_break_point_is_where_losses_begin_and_says_that_cpus_are_shared(cpus: int) -> None:
    """With two CPUs it is where both have work all the time."""
    loads = [
        replace(each, cpu={"router": cpus * each.cpu["router"]}, busy={"router": cpus * each.busy["router"]})
        for each in shared()
    ]
    point, notes = find_break_point(loads, {"router": cpus})
    assert (point.measured_rate, point.vnf, point.cpus_used, notes) == (0.115, "router", cpus * 0.274, ())
    assert (point.low, point.high, point.cpus_there) == (0.100, 0.115, cpus)
    assert 0.100 < point.rate <= 0.115
    assert f"all the time ({0.982 * cpus:.2f} of {cpus})" in point.reason
    hungrier = []
    for each in loads:
        used, busy = each.cpu["router"], each.busy["router"]
        cpu = {"router": used, "firewall": tuple(1.4 * share for share in used)}
        hungrier.append(replace(each, cpu=cpu, busy={"router": busy, "firewall": busy}))
    assert find_break_point(hungrier, {"router": cpus, "firewall": cpus})[0].vnf == "firewall"


@pytest.mark.parametrize("working", [tuple(0.9 * busy for busy in WORKING), (0.99,) * len(SHARED)])
def test_where_no_load_or_every_one_saturates_there_is_no_break_point(working: tuple[float, ...]) -> None:
    assert find_break_point(shared(working), {"router": 1})[0] is None


@pytest.mark.parametrize(
    ("waits", "reason"),
    [
        (0.04, "router uses all of its CPUs (1.92 of 2)"),
        (0.06, "router has work all the time (2.00 of 2) and gets 1.88 of its CPUs, which it shares"),
    ],
)
def test_a_vnf_that_waits_for_a_twentieth_of_the_time_shares_its_cpus(waits: float, reason: str) -> None:
    """The share of the time is that on each of its two CPUs."""
    rates = np.linspace(0.1, 3.5, 35)
    points = [
        LoadObservation(float(rate), {}, {"router": (used, used)}, {"router": (used + waits, used + waits)})
        for rate, used in zip(rates, np.minimum(1 - waits, rates / 2.4).tolist(), strict=True)
    ]
    point, _ = find_break_point(points, {"router": 2})
    assert point.reason == reason


RATES = np.linspace(0.2, 3.0, 40)

MEMBERS: Mapping[str, Mapping[str, float]] = {
    "constant": {"a": 0.31}, "linear": {"a": 0.98, "b": 0.02}, "exponential": {"a": 2e-9, "b": 7.5},
    "excess": {"d": 0.9, "g": -0.75}, "fixed capacity": {"d": 0.1}, "logarithm": {"a": 4.0, "b": 1.5},
    "power": {"a": 0.3, "b": 2.6}, "hyperbola": {"a": 2.0, "b": 0.7},
    "exponential over a base": {"a": 0.4, "b": 9.0, "c": 2.9},
    "exponential below a base": {"a": 5.0, "b": -1.6, "c": 1.1}, "quadratic": {"a": 0.5, "b": 0.1, "c": 2.0},
    "power over a base": {"a": 1.5, "b": 0.02, "c": 5.5}, "hyperbola with a pole": {"a": 0.1, "b": 0.4, "c": 3.3},
}  # fmt: skip


def fit_of(name: str, rates: Sequence[float] | Array, values: Sequence[float] | Array) -> Fit:
    """One curve of the catalogue through points, whether or not another one describes them better."""
    r, y = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    coefficients = fitting.lay(BY_NAME[name], r, y, fitting.noise_weights(r, y))
    return fitting.describe(BY_NAME[name], coefficients, r, y)


@pytest.mark.parametrize("name", [curve.name for curve in CURVES])
@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_a_sampled_curve_comes_back_as_itself(name: str, noise: float) -> None:
    values = BY_NAME[name].value(MEMBERS[name], RATES)
    seen = values * (1 + noise * np.random.default_rng(3).standard_normal(len(RATES)))
    fit = fitting.best_fit(ProfileMetric.LOSS, RATES.tolist(), seen.tolist())
    assert fit.function == name
    assert fit.coefficients == pytest.approx(dict(MEMBERS[name]), rel=1e-3 if not noise else 0.05)
    assert fit.standard_error <= 3 * noise * np.abs(values).max() + 1e-6 * np.abs(values).max()


def test_losses_beyond_a_capacity_are_no_constant_and_none_below_it() -> None:
    """A capacity of 1 with noise of 5 %: a constant is off by 12 points, the capacity by 4."""
    fit = fit_of("fixed capacity", [1.043, 1.173, 1.304, 1.434, 1.564], [11.1, 16.9, 17.8, 35.1, 32.7])
    assert fit.coefficients["d"] == pytest.approx(1.0, abs=0.05)
    assert BY_NAME["excess"].value({"d": 1.722, "g": 0.754}, np.array([2.476]))[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "coefficients"),
    [
        ("excess", {"d": 0.008, "g": 0.19}),  # nearly all is lost: the pole is 0.004 of the range below the lowest rate
        ("exponential", {"a": 8.503e-17, "b": 14.95}),
        ("exponential", {"a": 1e-40, "b": 30.0}),
        ("exponential", {"a": 1e12, "b": -9.0}),
    ],
)
def test_extreme_coefficients_are_found_without_a_warning(name: str, coefficients: Mapping[str, float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fit_of(name, RATES, BY_NAME[name].value(coefficients, RATES))
    assert fit.coefficients == pytest.approx(dict(coefficients), rel=1e-3 if name == "excess" else 1e-4)


def test_the_base_of_an_exponential_that_no_point_shows_is_found_to_be_next_to_nothing() -> None:
    rates = np.linspace(0.01625, 0.86, 53)
    found = fit_of("exponential over a base", rates, printed_function(BONSAI, ProfileMetric.DELAY)(rates)).coefficients
    assert (found["b"], found["c"]) == (pytest.approx(8.999, rel=0.001), pytest.approx(0.595, rel=0.001))
    assert abs(found["a"]) < 1e-4


def test_few_points_have_no_function_four_have_a_line_and_zeros_a_constant() -> None:
    assert fitting.best_fit(ProfileMetric.DELAY, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) is None
    assert fitting.best_fit(ProfileMetric.DELAY, [1.0, 2.0, 3.0, 3.0], [1.0, 2.0, 3.0, 3.1]) is None
    assert fitting.best_fit(ProfileMetric.THROUGHPUT, [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.001]).function == "linear"
    squares = fitting.best_fit(ProfileMetric.DELAY, [1.0, 2.0, 3.0, 4.0], [1.0, 4.0, 9.0, 16.0])
    assert len(squares.coefficients) <= 2, "two rates for each coefficient"
    nothing = fitting.best_fit(ProfileMetric.LOSS, RATES.tolist(), [0.0] * len(RATES))
    assert (nothing.function, nothing.coefficients) == ("constant", {"a": 0.0})
    assert (nothing.standard_error, nothing.relative_error) == (0.0, None)


def scattered(count: int, growth: float) -> tuple[Array, Array]:
    """Points that alternate around a line of this growth over the standard error of its fit."""
    rates = np.arange(1.0, count + 1)
    columns = np.column_stack([np.ones(count), rates])
    scatter = np.resize([1.0, -1.0], count)
    scatter -= columns @ np.linalg.lstsq(columns, scatter, rcond=None)[0]
    error = np.sqrt(np.sum(scatter**2) / (count - 2))
    return rates, 100 + scatter / error + growth * rates


@pytest.mark.parametrize(
    ("count", "level", "function"),
    [(4, 0.05, "constant"), (4, 0.01, "linear"), (10, 0.005, "constant"), (10, 0.001, "linear")],
)
def test_a_coefficient_is_earned_at_levels_that_fall_with_the_points(count: int, level: float, function: str) -> None:
    """Levels of an F test of the slope of a line."""
    rates, _ = scattered(count, 0)
    growth = np.sqrt(f_test.isf(level, 1, count - 2) / np.sum((rates - rates.mean()) ** 2))
    fit = fitting.best_fit(ProfileMetric.DELAY, rates.tolist(), scattered(count, growth)[1].tolist())
    assert fit.function == function


@pytest.mark.parametrize(("errors", "expected"), [(5.5, False), (6.5, True), (-5.5, False), (-6.5, True)])
def test_a_point_that_is_six_standard_errors_off_stands_out(errors: float, *, expected: bool) -> None:
    rates, values = scattered(10, 2.0)
    fit = fitting.best_fit(ProfileMetric.DELAY, rates.tolist(), values.tolist())
    assert (fit.function, fit.standard_error) == ("linear", pytest.approx(1))
    assert fitting.stands_out(fit, rates.tolist(), values.tolist(), 11, 122 + errors) is expected


@pytest.mark.parametrize(("share", "expected"), [(0.1, False), (-0.1, False), (0.6, True)])
def test_where_noise_follows_the_value_a_point_stands_out_by_its_share(share: float, *, expected: bool) -> None:
    rates = np.arange(1.0, 21)
    values = 100 * rates * (1 + 0.04 * np.tile([1, -1, -1, 1], 5))
    fit = fitting.best_fit(ProfileMetric.DELAY, rates.tolist(), values.tolist())
    assert fitting.stands_out(fit, rates.tolist(), values.tolist(), 21, 2100 * (1 + share)) is expected


def test_there_is_no_prediction_behind_a_pole() -> None:
    values = BY_NAME["hyperbola with a pole"].value(MEMBERS["hyperbola with a pole"], RATES)
    fit = fitting.best_fit(ProfileMetric.DELAY, RATES.tolist(), values.tolist())
    assert fitting.value_of(fit, 3.2) == pytest.approx(4.1, rel=0.01)
    assert fitting.value_of(fit, 3.31) is None


measured = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0, 1e4).map(lambda value: round(value, 6))), min_size=0, max_size=15
)


@settings(deadline=None, max_examples=share(60))
@given(measured)
@example([(rate, 1 + (rate - 1.5) ** 2) for rate in RATES.tolist()])  # a bend that is not monotonic
def test_any_points_have_a_finite_monotonic_function_or_none(points: list[tuple[float, float]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fitting.best_fit(ProfileMetric.LOSS, [rate for rate, _ in points], [value for _, value in points])
    assert (fit is None) == (len({rate for rate, _ in points}) < fitting.FEWEST)
    if fit is not None:
        rates = np.linspace(fit.first_rate, fit.last_rate, 50).tolist()
        values = np.array([fitting.value_of(fit, rate) for rate in rates], dtype=float)
        slack = 1e-9 * max(1.0, float(np.abs(values).max()))
        assert np.isfinite(values).all()
        assert (np.diff(values) >= -slack).all() or (np.diff(values) <= slack).all()
        assert np.isfinite(fit.standard_error)

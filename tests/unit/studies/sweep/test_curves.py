"""The catalogue of curves: what is sampled from a curve comes back as that curve."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import f as f_test

from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME, CURVES
from resources.libraries.python.studies.sweep.analysis.fitting import (
    FEWEST,
    best_fit,
    describe,
    lay,
    noise_weights,
    stands_out,
    value_of,
)
from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.model.profile import Fit, ProfileMetric
from tests.unit.examples import share
from tests.unit.studies.sweep.synthetic_sweeps import BONSAI, printed_function

RATES = np.linspace(0.2, 3.0, 40)

MEMBERS: Mapping[str, Mapping[str, float]] = {
    "constant": {"a": 0.31},
    "linear": {"a": 0.98, "b": 0.02},
    "exponential": {"a": 2e-9, "b": 7.5},
    "excess": {"d": 0.9, "g": -0.75},
    "fixed capacity": {"d": 0.1},
    "logarithm": {"a": 4.0, "b": 1.5},
    "power": {"a": 0.3, "b": 2.6},
    "hyperbola": {"a": 2.0, "b": 0.7},
    "exponential over a base": {"a": 0.4, "b": 9.0, "c": 2.9},
    "exponential below a base": {"a": 5.0, "b": -1.6, "c": 1.1},
    "quadratic": {"a": 0.5, "b": 0.1, "c": 2.0},
    "power over a base": {"a": 1.5, "b": 0.02, "c": 5.5},
    "hyperbola with a pole": {"a": 0.1, "b": 0.4, "c": 3.3},
}


def fit_of(name: str, rates: Sequence[float] | Array, values: Sequence[float] | Array) -> Fit:
    """One curve of the catalogue through points, whether or not another one describes them better."""
    r, y = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    coefficients = lay(BY_NAME[name], r, y, noise_weights(r, y))
    assert coefficients is not None
    return describe(BY_NAME[name], coefficients, r, y)


def delays(values: Array) -> Fit:
    """The best curve through delays at `RATES`."""
    fit = best_fit(ProfileMetric.DELAY, RATES.tolist(), values.tolist())
    assert fit is not None
    return fit


@pytest.mark.parametrize("name", [curve.name for curve in CURVES])
@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_a_sampled_curve_comes_back_as_itself(name: str, noise: float) -> None:
    values = BY_NAME[name].value(MEMBERS[name], RATES)
    seen = values * (1 + noise * np.random.default_rng(3).standard_normal(len(RATES)))
    fit = best_fit(ProfileMetric.LOSS, RATES.tolist(), seen.tolist())
    assert fit.function == name
    assert fit.coefficients == pytest.approx(dict(MEMBERS[name]), rel=1e-3 if not noise else 0.05)
    assert fit.standard_error <= 3 * noise * np.abs(values).max() + 1e-6 * np.abs(values).max()


def test_few_noisy_losses_beyond_a_capacity_do_not_pass_for_a_constant() -> None:
    """A capacity of 1 with noise of 5 %: a constant is off by 12 points, the capacity by 4."""
    fit = fit_of("fixed capacity", [1.043, 1.173, 1.304, 1.434, 1.564], [11.1, 16.9, 17.8, 35.1, 32.7])
    assert fit.coefficients["d"] == pytest.approx(1.0, abs=0.05)


def test_a_small_value_among_few_gets_no_weight_that_only_chance_speaks_for() -> None:
    rates, lost = np.linspace(1.08, 1.62, 5), np.array([1.8, 15.1, 23.9, 45.4, 37.5])
    assert (noise_weights(rates, lost) == 1).all()
    many = np.linspace(0.2, 3.0, 40)
    following = np.exp(2 * many) * (1 + 0.05 * np.random.default_rng(1).standard_normal(40))
    assert np.ptp(noise_weights(many, following)) > 0


def test_the_excess_curve_is_zero_where_everything_gets_through() -> None:
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


def test_few_points_have_no_function_and_four_have_a_line() -> None:
    assert FEWEST == 4
    assert best_fit(ProfileMetric.DELAY, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) is None
    assert best_fit(ProfileMetric.DELAY, [1.0, 2.0, 3.0, 3.0], [1.0, 2.0, 3.0, 3.1]) is None
    assert best_fit(ProfileMetric.THROUGHPUT, [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.001]).function == "linear"
    squares = best_fit(ProfileMetric.DELAY, [1.0, 2.0, 3.0, 4.0], [1.0, 4.0, 9.0, 16.0])
    assert squares is not None and len(squares.coefficients) <= 2, "two rates for each coefficient"


def test_values_that_are_all_zero_are_the_constant_zero() -> None:
    fit = best_fit(ProfileMetric.LOSS, RATES.tolist(), [0.0] * len(RATES))
    assert (fit.function, fit.coefficients) == ("constant", {"a": 0.0})
    assert (fit.standard_error, fit.relative_error) == (0.0, None)


@pytest.mark.slow
def test_noise_around_a_line_earns_no_further_coefficient() -> None:
    noise = [np.random.default_rng(seed).standard_normal(len(RATES)) for seed in range(20)]
    assert {BY_NAME[delays((2 + 0.5 * RATES) * (1 + 0.01 * each)).function].parameters for each in noise} == {2}


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
def test_one_more_coefficient_is_earned_at_2_5_percent_with_four_points_and_0_3_with_ten(
    count: int, level: float, function: str
) -> None:
    """Levels of an F test of the slope of a line."""
    rates, _ = scattered(count, 0)
    growth = np.sqrt(f_test.isf(level, 1, count - 2) / np.sum((rates - rates.mean()) ** 2))
    fit = best_fit(ProfileMetric.DELAY, rates.tolist(), scattered(count, growth)[1].tolist())
    assert fit.function == function


@pytest.mark.parametrize(("errors", "expected"), [(5.5, False), (6.5, True), (-5.5, False), (-6.5, True)])
def test_a_point_that_is_six_standard_errors_off_stands_out(errors: float, *, expected: bool) -> None:
    rates, values = scattered(10, 2.0)
    fit = best_fit(ProfileMetric.DELAY, rates.tolist(), values.tolist())
    assert (fit.function, fit.standard_error) == ("linear", pytest.approx(1))
    assert stands_out(fit, rates.tolist(), values.tolist(), 11, 122 + errors) is expected


def test_there_is_no_prediction_behind_a_pole() -> None:
    fit = delays(BY_NAME["hyperbola with a pole"].value({"a": 0.1, "b": 0.4, "c": 3.3}, RATES))
    assert value_of(fit, 3.2) == pytest.approx(4.1, rel=0.01)
    assert value_of(fit, 3.31) is None


def test_a_point_of_another_region_stands_out_and_one_of_this_does_not() -> None:
    values = 2.2 + 1.3 * RATES
    fit = delays(values)
    assert stands_out(fit, RATES.tolist(), values.tolist(), 3.1, 1.4)
    assert not stands_out(fit, RATES.tolist(), values.tolist(), 3.1, 2.2 + 1.3 * 3.1)


measured = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0, 1e4).map(lambda value: round(value, 6))), min_size=0, max_size=15
)


@settings(deadline=None, max_examples=share(60))
@given(measured)
@example([(rate, 1 + (rate - 1.5) ** 2) for rate in RATES.tolist()])  # a bend that is not monotonic
def test_any_points_have_a_finite_monotonic_function_or_none(points: list[tuple[float, float]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = best_fit(ProfileMetric.LOSS, [rate for rate, _ in points], [value for _, value in points])
    assert (fit is None) == (len({rate for rate, _ in points}) < FEWEST)
    if fit is not None:
        seen = [value_of(fit, float(rate)) for rate in np.linspace(fit.first_rate, fit.last_rate, 50)]
        assert None not in seen
        values = np.array(seen, dtype=float)
        slack = 1e-9 * max(1.0, float(np.abs(values).max()))
        assert np.isfinite(values).all()
        assert (np.diff(values) >= -slack).all() or (np.diff(values) <= slack).all()
        assert np.isfinite(fit.standard_error)


@settings(deadline=None, max_examples=share(30))
@given(st.floats(-5, 5).filter(lambda a: abs(a) > 0.05), st.floats(6, 20), st.floats(0.1, 50))
def test_a_line_in_any_unit_comes_back_as_that_line(slope: float, base: float, unit: float) -> None:
    fit = delays(unit * (slope * RATES / 3 + base))
    assert fit.function == "linear"
    assert fit.coefficients["a"] == pytest.approx(unit * slope / 3, rel=1e-6)

"""Break-points of rows of points: found where a line bends, none where noise or a smooth curve only looks like one."""

from collections.abc import Callable

import numpy as np
import pytest

from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.analysis.saturation import curve_break_point, reaches

LAST = 3.5
SMOOTH: dict[str, Callable[[Array], Array]] = {
    "level from the first point on": lambda r: np.full_like(r, 0.6),
    "a parabola that is level at the last point": lambda r: 1 - (1 - r / LAST) ** 2,
    "an exponential that comes close to its limit": lambda r: 1 - np.exp(-r / 1.2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("points", "noise"), [(8, 0.05), (30, 0.05), (30, 0.15)])
def test_a_curve_without_a_break_point_has_one_in_one_of_twenty_rows_at_most(
    name: str, points: int, noise: float
) -> None:
    rates = np.linspace(LAST / points, LAST, points)
    seen = [
        SMOOTH[name](rates) * (1 + noise * np.random.default_rng(seed).standard_normal(points)) for seed in range(40)
    ]
    assert sum(curve_break_point(rates, row) is not None for row in seen) <= 2


@pytest.mark.slow
def test_a_plateau_is_found_in_most_rows_with_noise_of_a_twentieth() -> None:
    rates = np.linspace(LAST / 30, LAST, 30)
    found = [curve_break_point(rates, noisy(np.minimum(rates / 1.8, 1), 0.05, seed)) for seed in range(20)]
    assert sum(each is not None for each in found) >= 10


def noisy(values: Array, size: float, seed: int = 0) -> Array:
    return values + size * np.random.default_rng(seed).standard_normal(len(values))


@pytest.mark.parametrize(
    ("x_shift", "x_unit", "y_unit"), [(10.0, 1.0, 1.0), (0.0, 1e3, 1.0), (5.0, 1e-3, 1e4), (0.0, 1.0, 1e-6)]
)
def test_a_break_point_moves_with_the_points_whatever_their_units(x_shift: float, x_unit: float, y_unit: float) -> None:
    rates = np.linspace(0.1, LAST, 35)
    used = noisy(np.minimum(rates / 2.4, 1) + 0.03 * np.maximum(rates - 2.4, 0), 0.005)
    plain, moved = curve_break_point(rates, used), curve_break_point(x_shift + x_unit * rates, y_unit * used)
    assert moved.at == pytest.approx(x_shift + x_unit * plain.at)
    assert moved.level == pytest.approx(y_unit * plain.level)
    assert plain.at == pytest.approx(2.4, abs=0.1)
    assert plain.level == pytest.approx(1.0, abs=0.02)


def test_five_points_show_a_break_point_and_four_do_not() -> None:
    rates, used = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0, 3.0, 3.0])
    found = curve_break_point(rates, used)
    assert (found.at, found.level) == (pytest.approx(3.0), pytest.approx(3.0))
    assert curve_break_point(rates[:4], used[:4]) is None


@pytest.mark.parametrize("seed", range(4))
def test_growth_in_two_steps_ends_with_the_second(seed: int) -> None:
    rates = np.linspace(0.05, LAST, 70)
    used = np.interp(rates, [0, 0.8, 2.4, LAST], [0, 0.72, 1, 1])
    found = curve_break_point(rates, noisy(used, 0.004, seed))
    assert found.at == pytest.approx(2.4, abs=0.1)
    assert found.level == pytest.approx(1.0, abs=0.01)


def test_slow_growth_upon_a_high_base_goes_on_if_it_hardly_slows_down() -> None:
    rates = np.linspace(0.1, LAST, 35)
    used = noisy(10 + 0.1 * np.minimum(rates, 2) + 0.08 * np.maximum(rates - 2, 0), 1e-4)
    assert curve_break_point(rates, used) is None


@pytest.mark.parametrize(("behind", "breaks"), [(0.4, True), (0.6, False)])
def test_growth_ends_where_less_than_half_of_its_pace_is_left(behind: float, *, breaks: bool) -> None:
    rates = np.linspace(0.1, LAST, 35)
    used = noisy(100 + np.minimum(rates, 2) + behind * np.maximum(rates - 2, 0), 1e-3)
    found = curve_break_point(rates, used)
    assert (found is not None) is breaks
    assert found is None or found.at == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("last", "breaks"), [(1.04, True), (1.06, False)])
def test_what_grows_by_a_twentieth_of_its_level_behind_a_bend_grows_still(last: float, *, breaks: bool) -> None:
    rates = np.linspace(0.1, LAST, 35)
    used = noisy(np.interp(rates, [0, 2, LAST], [0, 1, last]), 1e-4)
    assert (curve_break_point(rates, used) is not None) is breaks


def test_the_end_of_a_fall_is_no_break_point() -> None:
    rates = np.linspace(0.1, LAST, 35)
    falls_then_grows = noisy(np.abs(rates - 1.5), 1e-3)
    assert curve_break_point(rates, falls_then_grows) is None
    falls_then_stays = noisy(np.maximum(1.5 - rates, 0.2), 1e-3)
    assert curve_break_point(rates, falls_then_stays) is None


def test_a_level_is_reached_at_two_loads_at_least() -> None:
    rates = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert reaches(rates, np.array([0.2, 0.4, 0.6, 1.0, 1.0]), 1.0) == 4.0
    assert reaches(rates, np.array([0.2, 0.4, 0.6, 0.8, 1.0]), 1.0) is None
    assert reaches(rates, np.array([0.2, 1.0, 0.5, 1.0, 1.0]), 1.0) == 4.0, "a single high point does not count"
    twice = np.array([1.0, 2.0, 3.0, 5.0, 5.0])
    assert reaches(twice, np.array([0.2, 0.4, 0.6, 1.0, 1.0]), 1.0) is None, "both are of one load"

"""The estimate of the threshold from trials that lost packets."""

import pytest

from resources.libraries.python.search.algorithms.laddersearch import LoadPoint, at_overload, crossing_pps


def capped(load_pps: float, capacity_pps: float = 1000.0) -> LoadPoint:
    return LoadPoint(load_pps, min(load_pps, capacity_pps), lossy=load_pps > capacity_pps)


@pytest.mark.parametrize(("loss_ratio", "expected_pps"), [(0.0, 1000.0), (0.2, 1250.0)])
def test_a_capacity_is_found_from_one_trial_and_from_several(loss_ratio: float, expected_pps: float) -> None:
    assert crossing_pps([capped(2000)], loss_ratio) == pytest.approx(expected_pps)
    assert crossing_pps([capped(900), capped(4000), capped(2000)], loss_ratio) == pytest.approx(expected_pps)
    assert at_overload([capped(2000), capped(900)], 2000, loss_ratio) == pytest.approx(expected_pps)


def test_the_secant_takes_the_two_lowest_loads_that_lose_too_much() -> None:
    """A system that loses a tenth of what is beyond 1000 pps, and everything beyond 3000 pps."""
    points = [LoadPoint(load, load - (load - 1000) / 10, lossy=True) for load in (1500, 2000)]
    assert crossing_pps([*points, LoadPoint(5000, 2800, lossy=True), capped(800)], 0.0) == pytest.approx(1000)
    assert crossing_pps([points[0], LoadPoint(1507, 1300, lossy=True)], 0.0) == pytest.approx(1500 - 50), "too close"
    assert crossing_pps([points[0], LoadPoint(1508, 1300, lossy=True)], 0.0) == pytest.approx(1500 - 50 * 8 / 158)


def test_a_secant_that_does_not_fall_is_not_followed() -> None:
    points = [LoadPoint(1500, 1400, lossy=True), LoadPoint(2000, 1950, lossy=True)]
    assert crossing_pps(points, 0.0) == pytest.approx(1400)


def test_where_no_trial_lost_too_much_there_is_no_crossing() -> None:
    points = [capped(900), LoadPoint(2000, 1990, lossy=True), LoadPoint(3000, 2900, lossy=False)]
    assert crossing_pps(points, 0.01) is None
    assert crossing_pps([], 0.0) is None
    assert at_overload(points, 4000, 0.0) is None


def test_a_crossing_is_never_negative() -> None:
    assert crossing_pps([LoadPoint(2000, 0, lossy=True)], 0.5) == 0.0
    assert crossing_pps([LoadPoint(1000, 100, lossy=True), LoadPoint(2000, 1000, lossy=True)], 0.0) == 0.0


def test_the_best_trial_in_overload_is_the_estimate() -> None:
    points = [capped(2000, capacity) for capacity in (800, 1000, 900)]
    assert at_overload([*points, capped(3000, 1100)], 2000, 0.2) == pytest.approx(1250)

"""The break-point: the load that saturates the CPUs of a service, from noisy points; and where rows of points bend."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation
from resources.libraries.python.studies.sweep.analysis.saturation import curve_break_point, find_break_point, reaches
from tests.unit.examples import share

LAST = 3.5
KNEE = 2.4
RATES = np.linspace(0.1, LAST, 35)

SHAPES: dict[str, tuple[Callable[[Array], Array], int]] = {
    "all of one CPU": (lambda r: np.minimum(1, 0.05 + 0.95 * r / KNEE), 1),
    "two of three CPUs": (lambda r: np.minimum(2, 0.1 + 1.9 * r / KNEE), 3),
    "begins to fall": (lambda r: np.where(r < KNEE, 0.1 + 0.7 * r / KNEE, 0.8 - 0.2 * (r - KNEE)), 1),
    "falls and stays low": (lambda r: np.where(r < KNEE, 0.8 * r / KNEE, np.maximum(0.6, 0.8 - 0.5 * (r - KNEE))), 1),
    "grows ever faster": (lambda r: np.minimum(1, (r / KNEE) ** 2), 1),
    "grows fast, then slowly, then not": (
        lambda r: np.minimum(1, np.where(r < 0.8, 0.6 * r, 0.48 + 0.325 * (r - 0.8))),
        1,
    ),
    "grows ever faster, to two of three CPUs": (lambda r: 2 * np.minimum(1, (r / KNEE) ** 2), 3),
}
GROWING: dict[str, Callable[[Array], Array]] = {
    "a line": lambda r: 0.05 + 0.25 * r,
    "a root": lambda r: 0.5 * np.sqrt(r),
    "slower from 1 on": lambda r: np.where(r < 1, 0.4 * r, 0.4 + 0.12 * (r - 1)),
}


def observed(cpu: dict[str, Array], rates: Array) -> list[LoadObservation]:
    return [
        LoadObservation(float(rate), {}, {vnf: (float(used[index]),) for vnf, used in cpu.items()})
        for index, rate in enumerate(rates)
    ]


def noisy(shape: Callable[[Array], Array], rates: Array, noise: float, most: float, seed: int) -> Array:
    return np.clip(shape(rates) * (1 + noise * np.random.default_rng(seed).standard_normal(len(rates))), 0, most)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("loads", "noise"), [(30, 0.01), (12, 0.01)])
def test_it_is_within_one_step_of_the_truth(name: str, loads: int, noise: float) -> None:
    shape, vcpus = SHAPES[name]
    rates = np.linspace(LAST / loads, LAST, loads)
    truth = int(np.searchsorted(rates, KNEE - 1e-9))
    for seed in range(6):
        point, notes = find_break_point(observed({"v": noisy(shape, rates, noise, vcpus, seed)}, rates), {"v": vcpus})
        assert point is not None, (name, seed)
        assert abs(int(np.searchsorted(rates, point.rate)) - truth) <= 1, (name, seed, point.rate)
        assert (point.vnf, point.cpus_there, notes) == ("v", vcpus, ())


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize(("loads", "noise"), [(30, 0.01), (12, 0.01), (6, 0.01)])
def test_a_growing_metric_has_no_break_point(name: str, loads: int, noise: float) -> None:
    rates = np.linspace(LAST / loads, LAST, loads)
    for seed in range(6):
        point, notes = find_break_point(observed({"v": noisy(GROWING[name], rates, noise, 1, seed)}, rates), {"v": 1})
        assert point is None, (name, seed, point)
        assert notes == ()


def test_the_reason_says_whether_all_cpus_are_used_and_else_how_busy_the_busiest_data_thread_is() -> None:
    full, _ = find_break_point(observed({"v": np.minimum(1.0, RATES / KNEE)}, RATES), {"v": 1})
    assert full.reason == "v uses all of its CPUs (1.00 of 1)"
    points = [LoadObservation(r, {}, {"v": (0.4 * min(1, r / KNEE), 0.8 * min(1, r / KNEE))}) for r in RATES.tolist()]
    some, _ = find_break_point(points, {"v": 3})
    assert some.cpus_used == pytest.approx(1.2)
    assert some.reason.startswith("v uses no more than 1.20 of 3 CPUs, whatever the load")
    assert some.reason.endswith("its busiest data thread runs 80 % of the time")


@pytest.mark.parametrize(("beyond", "steps"), [(0.0, 0), (0.05, 0), (0.5, 1), (0.9, 1)])
@pytest.mark.parametrize("place", [8, 20, 32])
def test_a_break_point_just_above_a_load_is_at_that_load_and_any_other_at_the_next_one(
    beyond: float, steps: int, place: int
) -> None:
    knee = RATES[place] + beyond * (RATES[1] - RATES[0])
    point, _ = find_break_point(observed({"v": np.minimum(1, RATES / knee)}, RATES), {"v": 1})
    assert point.rate == pytest.approx(knee, rel=1e-3)
    assert point.measured_rate == pytest.approx(RATES[place + steps])
    assert point.cpus_used == pytest.approx(min(1, point.measured_rate / knee))


@pytest.mark.parametrize(
    ("used", "vcpus", "full"),
    [
        ((0.3, 0.5, 0.9, 1.3, 2.0, 2.0), 2, 5),
        ((0.2, 0.4, 0.6, 0.8, 1.0, 1.0), 1, 5),
        ((0.3, 0.6, 1.0, 1.0), 1, 3),
        ((0.5, 0.98, 1.0, 0.99, 1.0), 1, 2),
    ],
)
def test_two_loads_that_use_all_cpus_are_enough(used: tuple[float, ...], vcpus: int, full: int) -> None:
    """Too few points for a knee: all CPUs in use are sign enough, whatever their number."""
    rates = np.arange(1.0, len(used) + 1)
    point, notes = find_break_point(observed({"v": np.array(used)}, rates), {"v": vcpus})
    assert (point.low, point.high, point.measured_rate, point.cpus_used) == (full - 1, full, full, used[full - 1])
    assert full - 1 < point.rate <= full
    assert (point.indicator, notes) == ("CPU", ())


def test_a_single_load_that_uses_all_cpus_is_named_and_no_break_point() -> None:
    rates = np.arange(1, 7) / 10
    point, notes = find_break_point(observed({"v": np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0])}, rates), {"v": 1})
    assert point is None
    assert notes == ("v uses all of its CPUs (1.00 of 1) at 0.6 Gbit/s only: a break-point needs two such loads",)


SATURATES_AT_1_5 = np.minimum(1, RATES / 1.5)


@pytest.mark.parametrize(
    ("other", "firewall", "vcpus"),
    [
        (np.minimum(1, RATES / 3), SATURATES_AT_1_5, {"other": 1, "firewall": 1}),
        (0.4 * np.minimum(1, RATES / 1.48), SATURATES_AT_1_5, {"other": 1, "firewall": 1}),
        (2 * SATURATES_AT_1_5, SATURATES_AT_1_5, {"other": 4, "firewall": 1}),
        (np.ones_like(RATES), SATURATES_AT_1_5, {"other": 1, "firewall": 1}),
        (None, SATURATES_AT_1_5, {"other": 1, "firewall": 1}),
    ],
    ids=["the other later", "the other waits for it", "the other has CPUs left", "the other polls", "unknown"],
)
def test_of_two_vnfs_the_one_that_saturates_the_service_is_named(
    other: Array | None, firewall: Array, vcpus: dict[str, int]
) -> None:
    cpu = {"firewall": firewall} if other is None else {"other": other, "firewall": firewall}
    point, _ = find_break_point(observed(cpu, RATES), vcpus)
    assert (point.vnf, point.cpus_there) == ("firewall", 1)
    assert point.rate == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize(
    ("loads", "note"),
    [
        ([], "the CPU of v is not known: it gives no break-point"),
        ([0, 1, 2], "the CPU of v is known at 3 loads only: it gives no break-point"),
        ([0] * 20, "the CPU of v is known at 1 load only: it gives no break-point"),
    ],
)
def test_an_unknown_cpu_gives_none_and_says_so(loads: list[int], note: str) -> None:
    points = observed({"v": RATES}, RATES)
    assert find_break_point([points[load] for load in loads], {"v": 4}) == (None, (note,))


def test_software_that_polls_gives_none_and_says_so() -> None:
    point, notes = find_break_point(observed({"v": np.full_like(RATES, 0.999)}, RATES), {"v": 1})
    assert point is None
    assert "does not follow the load (1.00 of 1 everywhere)" in notes[0]


@pytest.mark.parametrize(("growth", "follows"), [(0.04, False), (0.06, True)])
def test_a_cpu_that_varies_by_more_than_a_twentieth_follows_the_load(growth: float, *, follows: bool) -> None:
    cpu = np.minimum(1, RATES / KNEE)
    used = 0.9 * (1 - growth * (cpu.max() - cpu) / np.ptp(cpu))
    point, notes = find_break_point(observed({"v": used}, RATES), {"v": 2})
    assert (point is not None, notes == ()) == (follows, follows)
    assert point is None or point.rate == pytest.approx(KNEE, rel=1e-4)


@settings(deadline=None, max_examples=share(25))
@given(
    knee=st.floats(0.25, 0.8),
    used=st.floats(0.3, 3.0),
    spare=st.sampled_from([0, 1, 2]),
    loads=st.integers(12, 60),
    unit=st.floats(0.01, 100),
    seed=st.integers(0, 1000),
)
def test_any_plateau_is_found_within_one_step_in_any_unit(
    *, knee: float, used: float, spare: int, loads: int, unit: float, seed: int
) -> None:
    rates = unit * np.linspace(1 / loads, 1, loads)
    seen = noisy(lambda r: used * np.minimum(1, 0.05 + 0.95 * r / (knee * unit)), rates, 0.003, 99, seed)
    vcpus = int(np.ceil(used)) + spare
    point, _ = find_break_point(observed({"v": seen}, rates), {"v": vcpus})
    assert abs(int(np.searchsorted(rates, point.rate)) - int(np.searchsorted(rates, knee * unit))) <= 1


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
    seen = [noisy(SMOOTH[name], rates, noise, np.inf, seed) for seed in range(40)]
    assert sum(curve_break_point(rates, row) is not None for row in seen) <= 2


def shifted(values: Array, size: float, seed: int = 0) -> Array:
    return values + size * np.random.default_rng(seed).standard_normal(len(values))


@pytest.mark.parametrize(
    ("x_shift", "x_unit", "y_unit"), [(10.0, 1.0, 1.0), (0.0, 1e3, 1.0), (5.0, 1e-3, 1e4), (0.0, 1.0, 1e-6)]
)
def test_a_break_point_moves_with_the_points_whatever_their_units(x_shift: float, x_unit: float, y_unit: float) -> None:
    used = shifted(np.minimum(RATES / 2.4, 1) + 0.03 * np.maximum(RATES - 2.4, 0), 0.005)
    plain, moved = curve_break_point(RATES, used), curve_break_point(x_shift + x_unit * RATES, y_unit * used)
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
    found = curve_break_point(rates, shifted(used, 0.004, seed))
    assert found.at == pytest.approx(2.4, abs=0.1)
    assert found.level == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("behind", "breaks"), [(0.4, True), (0.6, False)])
def test_growth_ends_where_less_than_half_of_its_pace_is_left(behind: float, *, breaks: bool) -> None:
    used = shifted(100 + np.minimum(RATES, 2) + behind * np.maximum(RATES - 2, 0), 1e-3)
    found = curve_break_point(RATES, used)
    assert (found is not None) is breaks
    assert found is None or found.at == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("last", "breaks"), [(1.04, True), (1.06, False)])
def test_what_grows_by_a_twentieth_of_its_level_behind_a_bend_grows_still(last: float, *, breaks: bool) -> None:
    used = shifted(np.interp(RATES, [0, 2, LAST], [0, 1, last]), 1e-4)
    assert (curve_break_point(RATES, used) is not None) is breaks


def test_the_end_of_a_fall_is_no_break_point() -> None:
    falls_then_grows = shifted(np.abs(RATES - 1.5), 1e-3)
    assert curve_break_point(RATES, falls_then_grows) is None
    falls_then_stays = shifted(np.maximum(1.5 - RATES, 0.2), 1e-3)
    assert curve_break_point(RATES, falls_then_stays) is None


def test_a_level_is_reached_at_two_loads_at_least() -> None:
    rates = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert reaches(rates, np.array([0.2, 0.4, 0.6, 1.0, 1.0]), 1.0) == 4.0
    assert reaches(rates, np.array([0.2, 0.4, 0.6, 0.8, 1.0]), 1.0) is None
    assert reaches(rates, np.array([0.2, 1.0, 0.5, 1.0, 1.0]), 1.0) == 4.0, "a single high point does not count"
    twice = np.array([1.0, 2.0, 3.0, 5.0, 5.0])
    assert reaches(twice, np.array([0.2, 0.4, 0.6, 1.0, 1.0]), 1.0) is None, "both are of one load"

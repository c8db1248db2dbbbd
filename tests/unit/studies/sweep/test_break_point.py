"""Break-points: loads that saturate a service by its CPUs, throughput, loss or memory; one, two, or none."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, highest_rate, profile_of
from resources.libraries.python.studies.sweep.analysis.saturation import curve_break_point, find_break_point
from resources.libraries.python.studies.sweep.analysis.sentences import break_point_in_words, highest_in_words
from resources.libraries.python.studies.sweep.analysis.tables import coefficients
from resources.libraries.python.studies.sweep.model import Profile, ProfileMetric
from tests.unit.examples import share
from tests.unit.studies.sweep.synthetic_sweeps import Function, growing_to, plain_router, sweep_of

LAST = 3.5
KNEE = 2.4
RATES = np.linspace(0.1, LAST, 35)

SHAPES: dict[str, tuple[Callable[[Array], Array], int]] = {
    "all of one CPU": (lambda r: np.minimum(1, 0.05 + 0.95 * r / KNEE), 1),
    "two of three CPUs": (lambda r: np.minimum(2, 0.1 + 1.9 * r / KNEE), 3),
    "begins to fall": (lambda r: np.where(r < KNEE, 0.1 + 0.7 * r / KNEE, 0.8 - 0.2 * (r - KNEE)), 1),
    "falls and stays low": (lambda r: np.where(r < KNEE, 0.8 * r / KNEE, np.maximum(0.6, 0.8 - 0.5 * (r - KNEE))), 1),
    "grows ever faster": (lambda r: np.minimum(1, (r / KNEE) ** 2), 1),
    "then slowly, then not": (lambda r: np.minimum(1, np.where(r < 0.8, 0.6 * r, 0.48 + 0.325 * (r - 0.8))), 1),
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
@pytest.mark.parametrize("loads", [30, 12])
def test_it_is_within_one_step_of_the_truth(name: str, loads: int) -> None:
    shape, vcpus = SHAPES[name]
    rates = np.linspace(LAST / loads, LAST, loads)
    truth = int(np.searchsorted(rates, KNEE - 1e-9))
    for seed in range(6):
        point, notes = find_break_point(observed({"v": noisy(shape, rates, 0.01, vcpus, seed)}, rates), {"v": vcpus})
        assert abs(int(np.searchsorted(rates, point.rate)) - truth) <= 1, (name, seed, point.rate)
        assert (point.vnf, point.cpus_there, notes) == ("v", vcpus, ())


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("loads", [30, 12, 6])
def test_a_growing_metric_has_no_break_point(name: str, loads: int) -> None:
    rates = np.linspace(LAST / loads, LAST, loads)
    for seed in range(6):
        used = noisy(GROWING[name], rates, 0.01, 1, seed)
        assert find_break_point(observed({"v": used}, rates), {"v": 1}) == (None, ()), seed


def test_the_reason_says_whether_all_cpus_are_used_and_else_how_busy_the_busiest_data_thread_is() -> None:
    full, _ = find_break_point(observed({"v": np.minimum(1.0, RATES / KNEE)}, RATES), {"v": 1})
    assert full.reason == "v uses all of its CPUs (1.00 of 1)"
    points = [LoadObservation(r, {}, {"v": (0.4 * min(1, r / KNEE), 0.8 * min(1, r / KNEE))}) for r in RATES.tolist()]
    some, _ = find_break_point(points, {"v": 3})
    assert some.cpus_used == pytest.approx(1.2)
    assert "1.20 of 3 CPUs" in some.reason and "80 % of the time" in some.reason


@pytest.mark.parametrize(("beyond", "steps"), [(0.0, 0), (0.05, 0), (0.5, 1), (0.9, 1)])
@pytest.mark.parametrize("place", [8, 20, 32])
def test_a_break_point_is_at_the_load_just_below_it_or_the_next_one(beyond: float, steps: int, place: int) -> None:
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
        ((0.2, 1.0, 0.5, 1.0, 1.0), 1, 4),  # a single high load does not count
    ],
)
def test_two_loads_that_use_all_cpus_are_enough(used: tuple[float, ...], vcpus: int, full: int) -> None:
    """Too few points for a knee: all CPUs in use are sign enough, whatever their number."""
    rates = np.arange(1.0, len(used) + 1)
    point, notes = find_break_point(observed({"v": np.array(used)}, rates), {"v": vcpus})
    assert (point.low, point.high, point.measured_rate, point.cpus_used) == (full - 1, full, full, used[full - 1])
    assert full - 1 < point.rate <= full
    assert (point.indicator, notes) == ("CPU", ())


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
def test_of_two_vnfs_the_one_that_saturates_is_named(
    other: Array | None, firewall: Array, vcpus: dict[str, int]
) -> None:
    cpu = {"firewall": firewall} if other is None else {"other": other, "firewall": firewall}
    point, _ = find_break_point(observed(cpu, RATES), vcpus)
    assert (point.vnf, point.cpus_there) == ("firewall", 1)
    assert point.rate == pytest.approx(1.5, abs=0.1)


def test_loads_just_below_all_cpus_do_not_pull_the_break_point_down_where_one_is_cut_off_there() -> None:
    rates = np.arange(1.0, 13.0)
    used = np.append(rates[:7] / 8, [0.985, 1.0, 0.99, 0.988, 0.995])
    point, _ = find_break_point(observed({"v": used}, rates), {"v": 1})
    assert point.rate == pytest.approx(8, rel=0.005)


ONE_FULL_LOAD = observed({"v": np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0])}, np.arange(1, 7) / 10)
GROWS = observed({"v": RATES / 4}, RATES)


@pytest.mark.parametrize(
    ("points", "note"),
    [
        ([], "the CPU of v is not known"),
        (GROWS[:3], "the CPU of v is known at 3 loads only"),
        (GROWS[:1] * 20, "the CPU of v is known at 1 load only"),
        (observed({"v": np.full_like(RATES, 0.999)}, RATES), "does not follow the load (1.00 of 1 everywhere)"),
        (ONE_FULL_LOAD, "(1.00 of 1) at 0.6 Gbit/s only"),
    ],
)
def test_a_cpu_that_tells_nothing_gives_no_break_point_and_says_so(points: list[LoadObservation], note: str) -> None:
    """Not known, of software that polls, or full at a single load."""
    found, (said,) = find_break_point(points, {"v": 1})
    assert found is None and note in said


@pytest.mark.parametrize(("growth", "follows"), [(0.04, False), (0.06, True)])
def test_a_cpu_that_varies_by_more_than_a_twentieth_follows_the_load(growth: float, *, follows: bool) -> None:
    cpu = np.minimum(1, RATES / KNEE)
    used = 0.9 * (1 - growth * (cpu.max() - cpu) / np.ptp(cpu))
    point, notes = find_break_point(observed({"v": used}, RATES), {"v": 2})
    assert (point is not None, notes == ()) == (follows, follows)
    assert point is None or point.rate == pytest.approx(KNEE, rel=1e-4)


@settings(deadline=None, max_examples=share(25))
@given(
    knee=st.floats(0.25, 0.8), used=st.floats(0.3, 3.0), spare=st.sampled_from([0, 1, 2]), loads=st.integers(12, 60),
    unit=st.floats(0.01, 100), seed=st.integers(0, 1000),
)  # fmt: skip
def test_any_plateau_is_found_within_one_step_in_any_unit(
    *, knee: float, used: float, spare: int, loads: int, unit: float, seed: int
) -> None:
    rates = unit * np.linspace(1 / loads, 1, loads)
    seen = noisy(lambda r: used * np.minimum(1, 0.05 + 0.95 * r / (knee * unit)), rates, 0.003, 99, seed)
    vcpus = int(np.ceil(used)) + spare
    point, _ = find_break_point(observed({"v": seen}, rates), {"v": vcpus})
    assert abs(int(np.searchsorted(rates, point.rate)) - int(np.searchsorted(rates, knee * unit))) <= 1


def test_five_points_show_a_break_point_and_four_do_not() -> None:
    rates, used = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0, 3.0, 3.0])
    found = curve_break_point(rates, used)
    assert (found.at, found.level) == (pytest.approx(3.0), pytest.approx(3.0))
    assert curve_break_point(rates[:4], used[:4]) is None


@pytest.mark.parametrize(
    ("used", "noise", "at"),
    [
        (100 + np.minimum(RATES, 2) + 0.4 * np.maximum(RATES - 2, 0), 1e-3, 2.0),  # less than half of its pace is left
        (100 + np.minimum(RATES, 2) + 0.6 * np.maximum(RATES - 2, 0), 1e-3, None),
        (np.interp(RATES, [0, 2, LAST], [0, 1, 1.04]), 1e-4, 2.0),
        (np.interp(RATES, [0, 2, LAST], [0, 1, 1.06]), 1e-4, None),  # grows by a twentieth of its level behind the bend
        (np.abs(RATES - 1.5), 1e-3, None),  # the end of a fall
        (np.maximum(1.5 - RATES, 0.2), 1e-3, None),
    ],
)
def test_growth_ends_at_a_bend_behind_which_little_is_left_of_it(used: Array, noise: float, at: float | None) -> None:
    found = curve_break_point(RATES, used + noise * np.random.default_rng(0).standard_normal(len(used)))
    assert (found and found.at) == (at and pytest.approx(at, abs=0.05))


def profiled(  # noqa: PLR0917 - a system and how it is measured
    through: Function, used: Function | None, last: float = 3.2, loads: int = 30, noise: float = 0.002, seed: int = 0
) -> Profile:
    """Of a VNF that uses so much of its CPU; loss is exactly what does not get through."""
    functions, cpu = {**plain_router(99.0), ProfileMetric.THROUGHPUT: through}, {"v": (used,)} if used else {}
    points = sweep_of(np.linspace(last / loads, last, loads), functions, cpu, noise, seed)
    lost = (max(0.0, 1 - each.output_bps / each.input_bps) for each in points)
    lossy = [each.model_copy(update={"loss_ratio": ratio}) for each, ratio in zip(points, lost, strict=True)]
    return profile_of("v", lossy, {"v": 1} if used else {})


def halved_from_1_to_2(rates: np.ndarray) -> np.ndarray:
    return np.minimum(rates, np.minimum(0.5 + 0.5 * rates, 1.5))


@pytest.mark.parametrize("full", [1.0, 2.0])
def test_two_break_points_are_found_and_said_whichever_of_them_the_cpu_shows(full: float) -> None:
    profile = profiled(halved_from_1_to_2, growing_to(1.0, full))
    assert profile.break_point.rate == pytest.approx(full, rel=0.01)
    assert [each.rate for each in profile.break_points] == pytest.approx([1.0, 2.0], rel=0.02)
    assert "; another break-point is at " in break_point_in_words(profile)
    row = profile.of(ProfileMetric.THROUGHPUT)
    assert row.nonsat and row.sat and row.between.coefficients["a"] == pytest.approx(0.5, rel=0.1)
    assert not any("does not describe" in note for note in profile.notes)


def test_a_second_break_point_is_where_a_cpu_changes_its_growth_or_throughput_falls_behind() -> None:
    profile = profiled(lambda r: np.minimum(r, 2.0), lambda r: np.interp(r, [0, 1, 2, 4], [0.05, 0.7, 1, 1]))
    assert [each.rate for each in profile.break_points] == pytest.approx([1.0, 2.0], rel=0.02)
    assert profile.second.reason.startswith("the CPU of v changes by 0.3")
    second = profiled(halved_from_1_to_2, growing_to(1.0, 2.0), noise=0.05).second
    assert second.indicator == "throughput"
    assert second.rate == pytest.approx(1.0, rel=0.2)
    assert profiled(lambda r: np.minimum(0.9 * r, 1.8), growing_to(1.0, 2.0), noise=0.05).second is None


def test_functions_that_miss_the_points_are_named_with_their_error() -> None:
    """It bends at four loads."""
    through = lambda r: np.interp(r, [0, 0.6, 1.2, 1.8, 2.4, 3.2], [0, 0.6, 0.7, 1.2, 1.3, 1.3])  # noqa: E731
    notes = profiled(through, growing_to(1.0, 2.4), loads=60).notes
    assert any("does not describe this: throughput" in note and "% off on average" in note for note in notes)


def test_a_service_that_no_cpu_limits_saturates_by_throughput() -> None:
    point = profiled(lambda r: np.minimum(r, 1.3), growing_to(0.4, 4.0), seed=1).break_point
    assert (point.indicator, point.vnf, point.cpus_used) == ("throughput", None, None)
    assert point.low <= 1.3 <= point.high and point.rate == pytest.approx(1.3, rel=0.01)


@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_of_a_service_that_the_lowest_load_saturates_an_upper_bound_is_known_only(noise: float) -> None:
    """Loads from 2.1 Gbit/s on, of which 1.5 get through: nothing says that 2.1 is the break-point."""
    points = sweep_of(np.linspace(2.1, 3.2, 12), plain_router(1.5), {"v": (growing_to(1.0, 1.5),)}, noise)
    profile = profile_of("v", points, {"v": 1})
    assert (profile.break_point.low, profile.break_point.high) == (None, pytest.approx(2.1))
    assert break_point_in_words(profile).startswith("v saturates at 2.1 Gbit/s or below, ")
    few = profile_of("v", points[::-3][:4], {"v": 1})
    assert few.break_point is None
    assert any(" % of the packets are lost at 3.2 Gbit/s" in note for note in few.notes)


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_may_hide_a_second_break_point_a_note_says_so(seed: int) -> None:
    """A twentieth of what exceeds 1 Gbit/s is lost."""
    for noise, may_hide in ((0.05, True), (0.002, False)):
        profile = profiled(
            lambda r: np.minimum(r, np.minimum(0.05 + 0.95 * r, 1.95)), growing_to(1.0, 2.0), noise=noise, seed=seed
        )
        assert (profile.second is None) is may_hide
        assert any("may be hidden" in note for note in profile.notes) is may_hide


@pytest.mark.parametrize("capacity", [2.92, 2.95, 3.05, 3.15])
def test_where_the_last_load_alone_loses_packets_the_interval_reaches_up_to_it(capacity: float) -> None:
    point = profiled(lambda r: np.minimum(r, capacity), None, loads=11, noise=0.0).break_point
    assert point.low <= capacity <= point.high


def test_a_highest_rate_and_coefficients_have_intervals() -> None:
    """Loss of 0.5 % is at 0.0530/0.995 = 0.05327, where no load is."""
    profile = profiled(lambda r: np.minimum(r, 0.0530), growing_to(1.0, 0.0530), 0.086, 12, 0.001)
    found = highest_rate(profile, QualityBounds(loss_percent=0.5))
    assert found.rate == pytest.approx(0.05327, rel=0.005)
    assert found.low <= found.rate <= found.high < 1.02 * found.low
    assert "95 % interval" in highest_in_words(found)
    header, *rows = coefficients([profile])
    low, value, high = (header.index(name) for name in ("low", "value", "high"))
    known = [(row[low], row[value], row[high]) for row in rows if isinstance(row[low], float)]
    assert known
    assert all(row[0] <= row[1] <= row[2] for row in known)


LOADS = np.linspace(0.2, 3.2, 16)
CAPACITY = 1.63


def with_memory(memory_mib: Array, capacity: float = CAPACITY, cpu_full: float = 0.5) -> list[LoadObservation]:
    """Loads of a service that carries so much, with a CPU that is used in proportion up to there."""
    points = sweep_of(LOADS, plain_router(capacity), {"v": (growing_to(cpu_full, capacity),)}, 0.002)
    rows = zip(points, memory_mib.tolist(), strict=True)
    return list(observe([point.model_copy(update={"memory_mib": {"v": used}}) for point, used in rows])[0])


def grown_up_to(rate: float) -> Array:
    """Memory that grows with the load up to a rate."""
    return np.minimum(64.0, 16 + 48 * LOADS / rate)


def test_memory_that_ends_where_the_service_saturates_names_the_break_point() -> None:
    found, _ = find_break_point(with_memory(grown_up_to(CAPACITY)), {"v": 1})
    assert (found.indicator, found.vnf, found.cpus_used) == ("memory", "v", None)
    assert found.low <= CAPACITY * 1.001 and found.high >= CAPACITY * 0.999
    assert found.rate == pytest.approx(CAPACITY, rel=0.005) and "64 MiB" in found.reason


@pytest.mark.parametrize(
    ("memory_mib", "capacity", "cpu_full", "indicator", "note"),
    [
        (grown_up_to(CAPACITY), CAPACITY, 1.0, "CPU", None),
        (grown_up_to(0.7), CAPACITY, 0.5, "CPU", "where the service does not saturate"),
        (grown_up_to(0.7), CAPACITY, 1.0, "CPU", None),  # a full CPU is reason enough
        (np.where(LOADS > 0.7, 16.004, 16.0), CAPACITY, 0.5, "CPU", None),  # one page more
        (grown_up_to(CAPACITY), 99.0, 0.5, None, "the memory of v does not grow beyond 64 MiB"),
    ],
)
def test_memory_is_no_reason_where_a_cpu_is_full_it_hardly_grows_or_nothing_saturates_there(
    memory_mib: Array, capacity: float, cpu_full: float, indicator: str | None, note: str | None
) -> None:
    found, notes = find_break_point(with_memory(memory_mib, capacity, cpu_full), {"v": 1})
    assert (found and found.indicator) == indicator
    assert found is None or found.rate == pytest.approx(CAPACITY, rel=0.01)
    assert any(note in each for each in notes) if note else not notes


def test_memory_is_not_the_reason_where_the_only_busy_data_thread_can_do_no_more() -> None:
    of_two = [
        replace(each, cpu={"v": (*each.cpu["v"], 0.1)}) for each in with_memory(grown_up_to(CAPACITY), cpu_full=1.0)
    ]
    assert find_break_point(of_two, {"v": 2})[0].indicator == "CPU"

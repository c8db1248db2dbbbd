"""Services with two break-points, with none that a CPU shows, and what is said where a profile does not fit."""

from dataclasses import replace

import numpy as np
import pytest

from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, highest_rate, profile_of
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.sentences import break_point_in_words, highest_in_words
from resources.libraries.python.studies.sweep.analysis.tables import coefficients
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint
from tests.unit.studies.sweep.synthetic_sweeps import Function, growing_to, plain_router, sweep_of


def points_of(  # noqa: PLR0917 - a system and how it is measured
    through: Function, used: Function | None, last: float = 3.2, loads: int = 30, noise: float = 0.002, seed: int = 0
) -> tuple[SweepPoint, ...]:
    """Points of a VNF that uses so much of its CPU; loss is exactly what does not get through."""
    functions = {**plain_router(99.0), ProfileMetric.THROUGHPUT: through}
    cpu = {"v": (used,)} if used else {}
    return tuple(
        each.model_copy(update={"loss_ratio": max(0.0, 1 - each.output_bps / each.input_bps)})
        for each in sweep_of(np.linspace(last / loads, last, loads), functions, cpu, noise, seed)
    )


def profiled(through: Function, used: Function | None, *how: float, **more: float) -> Profile:
    """The profile of these points."""
    return profile_of("v", points_of(through, used, *how, **more), {"v": 1} if used else {})  # type: ignore[arg-type]


def halved_from_1_to_2(rates: np.ndarray) -> np.ndarray:
    return np.minimum(rates, np.minimum(0.5 + 0.5 * rates, 1.5))


@pytest.mark.parametrize("full", [1.0, 2.0])
def test_two_break_points_are_found_and_said_whichever_of_them_the_cpu_shows(full: float) -> None:
    profile = profiled(halved_from_1_to_2, growing_to(1.0, full))
    assert profile.break_point.rate == pytest.approx(full, rel=0.01)
    assert [each.rate for each in profile.break_points] == pytest.approx([1.0, 2.0], rel=0.02)
    assert "; another break-point is at " in break_point_in_words(profile)
    row = profile.of(ProfileMetric.THROUGHPUT)
    assert row is not None and row.nonsat is not None and row.between is not None and row.sat is not None
    assert row.between.coefficients["a"] == pytest.approx(0.5, rel=0.1)
    assert not any("does not describe" in note for note in profile.notes)


def test_a_change_of_the_growth_of_a_cpu_before_it_is_full_is_the_second_break_point() -> None:
    profile = profiled(lambda r: np.minimum(r, 2.0), lambda r: np.interp(r, [0, 1, 2, 4], [0.05, 0.7, 1, 1]))
    assert [each.rate for each in profile.break_points] == pytest.approx([1.0, 2.0], rel=0.02)
    assert profile.second is not None and profile.second.reason.startswith("the CPU of v changes by 0.3")


def test_under_noise_that_hides_other_bends_throughput_that_falls_behind_the_rate_is_one() -> None:
    second = profiled(halved_from_1_to_2, growing_to(1.0, 2.0), noise=0.05).second
    assert second.indicator == "throughput"
    assert second.rate == pytest.approx(1.0, rel=0.2)
    assert profiled(lambda r: np.minimum(0.9 * r, 1.8), growing_to(1.0, 2.0), noise=0.05).second is None


def test_functions_that_miss_the_points_are_named_with_their_error() -> None:
    """It bends at four loads."""
    through = lambda r: np.interp(r, [0, 0.6, 1.2, 1.8, 2.4, 3.2], [0, 0.6, 0.7, 1.2, 1.3, 1.3])  # noqa: E731
    notes = profiled(through, growing_to(1.0, 2.4), loads=60).notes
    assert any(
        "one break-point does not describe this: throughput" in note and "% off on average" in note for note in notes
    )


@pytest.mark.slow
def test_loss_that_is_exactly_what_throughput_leaves_over_does_not_contradict_it() -> None:
    for last in (2.2, 3.2, 8.0):
        notes = profiled(halved_from_1_to_2, growing_to(1.0, 1.0), last, noise=0.03).notes
        assert not any("contradict" in note for note in notes)


def test_a_service_that_no_cpu_limits_saturates_by_throughput() -> None:
    point = profiled(lambda r: np.minimum(r, 1.3), growing_to(0.4, 4.0), seed=1).break_point
    assert (point.indicator, point.vnf, point.cpus_used) == ("throughput", None, None)
    assert point.rate == pytest.approx(1.3, rel=0.01)
    assert point.low is not None and point.high is not None and point.low <= 1.3 <= point.high


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


def test_throughput_under_much_noise_is_read_with_nothing_getting_through_of_nothing() -> None:
    """Noise of 5 % on a capacity of 1: without that point a bent line describes the loads as well as a broken one."""
    through = (0.134, 0.26, 0.392, 0.468, 0.727, 0.846, 0.918, 1.039, 1.014, 0.972, 1.049, 0.984)
    rates = np.linspace(1.6 / 12, 1.6, 12)
    loads = [
        LoadObservation(rate, {ProfileMetric.THROUGHPUT: out}, {"v": (0.3 * rate,)})
        for rate, out in zip(rates.tolist(), through, strict=True)
    ]
    point, _ = find_break_point(loads, {"v": 1})
    assert point.indicator == "throughput"
    assert point.rate == pytest.approx(1, rel=0.1)
    assert point.low <= 1 <= point.high
    none, _ = find_break_point(loads[:4], {"v": 1})
    assert none is None, "that point is no load"


@pytest.mark.parametrize("seed", [6, 7])
def test_the_interval_by_loss_holds_a_capacity_that_differs_from_trial_to_trial(seed: int) -> None:
    """Nothing is lost where the capacity of a trial happens to be above the load."""
    capacities = 1.3 * (1 + 0.01 * np.random.default_rng(seed).standard_normal(12))
    point = profiled(
        lambda r: r - np.maximum(0, r - capacities) / 2, growing_to(0.4, 4.0), 2.1, 12, noise=0.0
    ).break_point
    assert point.indicator == "loss"
    assert 0.9 * 1.3 < point.low <= 1.3 <= point.high < 1.1 * 1.3


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


def test_the_interval_of_a_highest_rate_counts_that_the_capacity_may_change_with_the_load() -> None:
    profile = profiled(lambda r: np.minimum(r, 1.0), growing_to(1.0, 1.0), 1.6, 12, 0.03)
    row = profile.of(ProfileMetric.LOSS)
    assert {row.sat.function, row.sat.rival.function} == {"fixed capacity", "excess"}
    alone = row.model_copy(update={"sat": row.sat.model_copy(update={"rival": None})})
    others = tuple(alone if each.metric is ProfileMetric.LOSS else each for each in profile.metrics)
    found, certain = (
        highest_rate(each, QualityBounds(loss_percent=5.0))
        for each in (profile, profile.model_copy(update={"metrics": others}))
    )
    assert found.high - found.low > 1.05 * (certain.high - certain.low)


RATES = np.linspace(0.2, 3.2, 16)
CAPACITY = 1.63


def with_memory(memory_mib: Array, capacity: float = CAPACITY, cpu_full: float = 0.5) -> list[LoadObservation]:
    """Loads of a service that carries so much, with a CPU that is used in proportion up to there."""
    points = sweep_of(RATES, plain_router(capacity), {"v": (growing_to(cpu_full, capacity),)}, 0.002)
    rows = zip(points, memory_mib.tolist(), strict=True)
    return list(observe([point.model_copy(update={"memory_mib": {"v": used}}) for point, used in rows])[0])


def grown_up_to(rate: float) -> Array:
    """Memory that grows with the load up to a rate."""
    return np.minimum(64.0, 16 + 48 * RATES / rate)


def test_memory_that_ends_where_the_service_saturates_names_the_break_point() -> None:
    found, _ = find_break_point(with_memory(grown_up_to(CAPACITY)), {"v": 1})
    assert (found.indicator, found.vnf, found.cpus_used) == ("memory", "v", None)
    assert found.low <= CAPACITY * 1.001 and found.high >= CAPACITY * 0.999
    assert found.rate == pytest.approx(CAPACITY, rel=0.005)
    assert "64 MiB" in found.reason


def test_memory_is_not_the_reason_where_a_cpu_is_full() -> None:
    loads = with_memory(grown_up_to(CAPACITY), cpu_full=1.0)
    assert find_break_point(loads, {"v": 1})[0].indicator == "CPU"
    of_two = [replace(each, cpu={"v": (*each.cpu["v"], 0.1)}) for each in loads]
    assert find_break_point(of_two, {"v": 2})[0].indicator == "CPU", "its only busy data thread can do no more"


@pytest.mark.parametrize("cpu_full", [0.5, 1.0])
def test_memory_that_is_full_before_the_service_saturates_is_named_and_no_break_point(cpu_full: float) -> None:
    found, notes = find_break_point(with_memory(grown_up_to(0.7), cpu_full=cpu_full), {"v": 1})
    assert found.indicator == "CPU"
    assert found.rate == pytest.approx(CAPACITY, rel=0.01)
    said = [note for note in notes if "where the service does not saturate" in note]
    assert len(said) == (cpu_full < 1), "a full CPU is reason enough"


def test_memory_that_hardly_changes_or_of_a_service_that_loses_nothing_gives_no_break_point() -> None:
    one_page_more = np.where(RATES > 0.7, 16.004, 16.0)
    assert find_break_point(with_memory(one_page_more), {"v": 1})[0].indicator == "CPU"
    found, notes = find_break_point(with_memory(grown_up_to(CAPACITY), capacity=99.0), {"v": 1})
    assert found is None
    assert any("the memory of v does not grow beyond 64 MiB" in note for note in notes)

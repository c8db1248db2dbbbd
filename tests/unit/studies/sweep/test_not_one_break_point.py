"""Services with two break-points, with none that a CPU shows, and sentences that say where a profile does not fit."""

from collections.abc import Callable

import numpy as np
import pytest

from resources.libraries.python.studies.sweep.analysis.points import LoadObservation
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, highest_rate, profile_of
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.sentences import break_point_in_words, highest_in_words
from resources.libraries.python.studies.sweep.analysis.tables import coefficients
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint
from tests.unit.studies.sweep.synthetic_sweeps import Function, growing_to, plain_router, sweep_of


def points_of(  # noqa: PLR0917 - a system and how it is measured
    through: Function,
    cpu: dict[str, tuple[Function, ...]],
    last: float = 3.2,
    loads: int = 30,
    noise: float = 0.002,
    seed: int = 0,
) -> tuple[SweepPoint, ...]:
    """Points whose loss is exactly what does not get through."""
    rates = np.linspace(last / loads, last, loads)
    functions = {
        ProfileMetric.THROUGHPUT: through,
        ProfileMetric.LOSS: lambda r: 0 * r,
        ProfileMetric.DELAY: lambda r: 0.2 + 0 * r,
    }
    return tuple(
        each.model_copy(update={"loss_ratio": max(0.0, 1 - each.output_bps / each.input_bps)})
        for each in sweep_of(rates, functions, cpu, noise, seed)
    )


def halved_from_1_to_2(rates: np.ndarray) -> np.ndarray:
    return np.minimum(rates, np.minimum(0.5 + 0.5 * rates, 1.5))


def two(cpu: Callable[[np.ndarray], np.ndarray]) -> Profile:
    return profile_of("service", points_of(halved_from_1_to_2, {"v": (cpu,)}), {"v": 1})


@pytest.mark.parametrize("full", [1.0, 2.0])
def test_two_break_points_are_found_and_said_whichever_of_them_the_cpu_shows(full: float) -> None:
    profile = two(growing_to(1.0, full))
    assert profile.break_point.rate == pytest.approx(full, rel=0.01)
    assert [each.rate for each in profile.break_points] == pytest.approx([1.0, 2.0], rel=0.02)
    assert "; another break-point is at " in break_point_in_words(profile)
    row = profile.of(ProfileMetric.THROUGHPUT)
    assert row is not None and row.nonsat is not None and row.between is not None and row.sat is not None
    assert row.between.coefficients["a"] == pytest.approx(0.5, rel=0.1)
    assert not any("does not describe" in note for note in profile.notes)


def test_a_change_of_the_growth_of_a_cpu_before_it_is_full_is_the_second_break_point() -> None:
    points = points_of(lambda r: np.minimum(r, 2.0), {"v": (lambda r: np.interp(r, [0, 1, 2, 4], [0.05, 0.7, 1, 1]),)})
    profile = profile_of("service", points, {"v": 1})
    assert [each.rate for each in profile.break_points] == pytest.approx([1.0, 2.0], rel=0.02)
    assert profile.second is not None and profile.second.reason.startswith("the CPU of v changes by 0.3")


def test_under_noise_that_hides_other_bends_throughput_that_falls_behind_the_rate_is_one() -> None:
    cpu = {"v": (growing_to(1.0, 2.0),)}
    second = profile_of("service", points_of(halved_from_1_to_2, cpu, noise=0.05), {"v": 1}).second
    assert second.indicator == "throughput"
    assert second.rate == pytest.approx(1.0, rel=0.2)
    straight = points_of(lambda r: np.minimum(0.9 * r, 1.8), cpu, noise=0.05)
    assert profile_of("service", straight, {"v": 1}).second is None


@pytest.mark.slow
def test_one_break_point_is_not_taken_for_two() -> None:
    for seed in range(3):
        rates = np.linspace(0.1, 3.2, 32)
        functions = {metric: (lambda r: np.minimum(r, 2.0)) for metric in ProfileMetric}
        points = sweep_of(rates, functions, {"v": (growing_to(1.0, 2.0),)}, 0.01, seed)
        assert profile_of("service", points, {"v": 1}).second is None


def test_functions_that_miss_the_points_are_named_with_their_error() -> None:
    """It bends at four loads."""
    through = lambda r: np.interp(r, [0, 0.6, 1.2, 1.8, 2.4, 3.2], [0, 0.6, 0.7, 1.2, 1.3, 1.3])  # noqa: E731
    profile = profile_of("service", points_of(through, {"v": (growing_to(1.0, 2.4),)}, loads=60), {"v": 1})
    assert any(
        "one break-point does not describe this: throughput" in note and "% off on average" in note
        for note in profile.notes
    )


@pytest.mark.slow
def test_loss_that_is_exactly_what_throughput_leaves_over_does_not_contradict_it() -> None:
    for last in (2.2, 3.2, 8.0):
        points = points_of(halved_from_1_to_2, {"v": (growing_to(1.0, 1.0),)}, last, noise=0.03)
        assert not any("contradict" in note for note in profile_of("service", points, {"v": 1}).notes)


@pytest.mark.parametrize("used", [(0.3, 0.6, 1.0, 1.0), (0.2, 0.4, 0.6, 0.8, 1.0, 1.0), (0.5, 0.98, 1.0, 0.99, 1.0)])
def test_two_loads_that_use_all_cpus_saturate_a_service(used: tuple[float, ...]) -> None:
    rates = np.arange(1, len(used) + 1) / 10
    functions = {metric: (lambda r: 0.1 * r) for metric in ProfileMetric}
    points = sweep_of(rates, functions, {"v": (lambda _: np.array(used),)})
    profile = profile_of("service", points, {"v": 1})
    point = profile.break_point
    assert point.indicator == "CPU"
    full = rates[np.array(used) >= 0.98][0]
    assert point.low <= point.rate <= point.high
    assert point.rate <= full + 0.01
    assert "no load is known" not in break_point_in_words(profile)


def test_a_single_load_that_uses_all_cpus_is_named() -> None:
    rates = np.arange(1, 7) / 10
    functions = {metric: (lambda r: r) for metric in ProfileMetric}
    points = sweep_of(rates, functions, {"v": (lambda _: np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0]),)})
    profile = profile_of("service", points, {"v": 1})
    assert profile.break_point is None
    assert "v uses all of its CPUs (1.00 of 1) at 0.6 Gbit/s only: a break-point needs two such loads" in profile.notes


def test_a_service_that_no_cpu_limits_saturates_by_throughput() -> None:
    points = points_of(lambda r: np.minimum(r, 1.3), {"v": (growing_to(0.4, 4.0),)}, seed=1)
    point = profile_of("service", points, {"v": 1}).break_point
    assert (point.indicator, point.vnf, point.cpus_used) == ("throughput", None, None)
    assert point.rate == pytest.approx(1.3, rel=0.01)
    assert point.low is not None and point.high is not None and point.low <= 1.3 <= point.high


@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_of_a_service_that_the_lowest_load_saturates_an_upper_bound_is_known_only(noise: float) -> None:
    """Loads from 2.1 Gbit/s on, of which 1.5 get through: nothing says that 2.1 is the break-point."""
    functions = plain_router(1.5)
    profile = profile_of(
        "v", sweep_of(np.linspace(2.1, 3.2, 12), functions, {"v": (growing_to(1.0, 1.5),)}, noise), {"v": 1}
    )
    point = profile.break_point
    assert point is not None and (point.low, point.high) == (None, pytest.approx(2.1))
    assert break_point_in_words(profile).startswith("v saturates at 2.1 Gbit/s or below, ")


def test_packets_lost_at_too_few_loads_are_said_where_no_break_point_is_known() -> None:
    points = sweep_of(np.linspace(2.1, 3.2, 4), plain_router(1.5), {"v": (growing_to(1.0, 1.5),)})
    profile = profile_of("v", points, {"v": 1})
    assert profile.break_point is None
    assert any("53.1 % of the packets are lost at 3.2 Gbit/s" in note for note in profile.notes)


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_may_hide_a_second_break_point_a_note_says_so(seed: int) -> None:
    """A twentieth of what exceeds 1 Gbit/s is lost."""

    def through(rates: np.ndarray) -> np.ndarray:
        return np.minimum(rates, np.minimum(0.05 + 0.95 * rates, 1.95))

    for noise, may_hide in ((0.05, True), (0.002, False)):
        points = points_of(through, {"v": (growing_to(1.0, 2.0),)}, noise=noise, seed=seed)
        profile = profile_of("v", points, {"v": 1})
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


def test_a_service_that_loses_a_part_from_a_load_on_saturates_by_loss() -> None:
    points = points_of(lambda r: np.minimum(r, 1.3 + 0.8 * (r - 1.3)), {"v": (growing_to(0.4, 4.0),)}, noise=0.0)
    point = profile_of("service", points, {"v": 1}).break_point
    assert point.indicator == "loss"
    assert point.rate == pytest.approx(1.3, rel=0.01)


@pytest.mark.parametrize("seed", [6, 7])
def test_the_interval_by_loss_holds_a_capacity_that_differs_from_trial_to_trial(seed: int) -> None:
    """Nothing is lost where the capacity of a trial happens to be above the load."""
    capacities = 1.3 * (1 + 0.01 * np.random.default_rng(seed).standard_normal(12))
    points = points_of(
        lambda r: r - np.maximum(0, r - capacities) / 2, {"v": (growing_to(0.4, 4.0),)}, 2.1, 12, noise=0.0
    )
    point = profile_of("service", points, {"v": 1}).break_point
    assert point.indicator == "loss"
    assert 0.9 * 1.3 < point.low <= 1.3 <= point.high < 1.1 * 1.3


@pytest.mark.parametrize("capacity", [2.92, 2.95, 3.05, 3.15])
def test_where_the_last_load_alone_loses_packets_the_interval_reaches_up_to_it(capacity: float) -> None:
    points = points_of(lambda r: np.minimum(r, capacity), {}, last=3.2, loads=11, noise=0.0)
    point = profile_of("path", points, {}).break_point
    assert point.low <= capacity <= point.high


def test_a_highest_rate_and_coefficients_have_intervals() -> None:
    """Loss of 0.5 % is at 0.0530/0.995 = 0.05327, where no load is."""
    points = points_of(lambda r: np.minimum(r, 0.0530), {"v": (growing_to(1.0, 0.0530),)}, 0.086, 12, 0.001)
    profile = profile_of("service", points, {"v": 1})
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
    points = points_of(lambda r: np.minimum(r, 1.0), {"v": (growing_to(1.0, 1.0),)}, 1.6, 12, 0.03)
    profile = profile_of("service", points, {"v": 1})
    row = profile.of(ProfileMetric.LOSS)
    assert {row.sat.function, row.sat.rival.function} == {"fixed capacity", "excess"}
    alone = row.model_copy(update={"sat": row.sat.model_copy(update={"rival": None})})
    others = tuple(alone if each.metric is ProfileMetric.LOSS else each for each in profile.metrics)
    found, certain = (
        highest_rate(each, QualityBounds(loss_percent=5.0))
        for each in (profile, profile.model_copy(update={"metrics": others}))
    )
    assert found.high - found.low > 1.05 * (certain.high - certain.low)

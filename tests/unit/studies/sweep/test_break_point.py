"""The break-point: the load that saturates the CPUs of a service, from noisy points."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.studies.sweep.analysis.points import Array, LoadObservation
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from tests.unit.examples import share

LAST = 3.5
KNEE = 2.4

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


MANY_LOADS = pytest.param(80, 0.005, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("loads", "noise"), [MANY_LOADS, (30, 0.01), (12, 0.01)])
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
@pytest.mark.parametrize(("loads", "noise"), [MANY_LOADS, (30, 0.01), (12, 0.01), (6, 0.01)])
def test_a_growing_metric_has_no_break_point(name: str, loads: int, noise: float) -> None:
    rates = np.linspace(LAST / loads, LAST, loads)
    for seed in range(6):
        point, notes = find_break_point(observed({"v": noisy(GROWING[name], rates, noise, 1, seed)}, rates), {"v": 1})
        assert point is None, (name, seed, point)
        assert notes == ()


def test_the_reason_says_whether_all_cpus_are_used() -> None:
    rates = np.linspace(0.1, LAST, 35)
    full, _ = find_break_point(observed({"v": SHAPES["all of one CPU"][0](rates)}, rates), {"v": 1})
    some, _ = find_break_point(observed({"v": SHAPES["two of three CPUs"][0](rates)}, rates), {"v": 3})
    assert full.reason == "v uses all of its CPUs (1.00 of 1)"
    assert some.reason == "v uses no more than 2.00 of 3 CPUs, whatever the load"
    assert some.cpus_used == pytest.approx(2.0)


def test_the_busiest_data_thread_is_named_where_cpus_stay_unused() -> None:
    rates = np.linspace(0.1, LAST, 35)
    used = np.minimum(1.0, rates / KNEE)
    points = [
        LoadObservation(float(r), {}, {"v": (0.4 * float(u), 0.8 * float(u))}) for r, u in zip(rates, used, strict=True)
    ]
    point, _ = find_break_point(points, {"v": 3})
    assert point.reason.endswith("its busiest data thread runs 80 % of the time")


@pytest.mark.parametrize(("beyond", "steps"), [(0.0, 0), (0.05, 0), (0.5, 1), (0.9, 1)])
@pytest.mark.parametrize("place", [8, 20, 32])
def test_a_break_point_just_above_a_load_is_at_that_load_and_any_other_at_the_next_one(
    beyond: float, steps: int, place: int
) -> None:
    rates = np.linspace(0.1, LAST, 35)
    knee = rates[place] + beyond * (rates[1] - rates[0])
    point, _ = find_break_point(observed({"v": np.minimum(1, rates / knee)}, rates), {"v": 1})
    assert point.rate == pytest.approx(knee, rel=1e-3)
    assert point.measured_rate == pytest.approx(rates[place + steps])
    assert point.cpus_used == pytest.approx(min(1, point.measured_rate / knee))


def test_cpus_that_are_full_at_the_last_two_loads_only_saturate_there() -> None:
    """Too few points for a knee: all CPUs in use are sign enough, whatever their number."""
    rates = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    point, _ = find_break_point(observed({"v": np.array([0.3, 0.5, 0.9, 1.3, 2.0, 2.0])}, rates), {"v": 2})
    assert (point.measured_rate, point.cpus_used) == (2.5, 2.0)
    assert (point.low, point.high) == (2.0, 2.5)
    assert 2.0 < point.rate <= 2.5


def test_the_vnf_that_saturates_first_is_named() -> None:
    rates = np.linspace(0.1, LAST, 35)
    cpu = {"router": np.minimum(1, rates / 3), "firewall": np.minimum(1, rates / 1.5)}
    point, _ = find_break_point(observed(cpu, rates), {"router": 1, "firewall": 1})
    assert point.vnf == "firewall"
    assert point.rate == pytest.approx(1.5, abs=0.1)


def test_a_vnf_that_only_waits_for_another_is_not_the_one() -> None:
    rates = np.linspace(0.1, LAST, 35)
    busy, waiting = np.minimum(1, rates / 1.52), 0.4 * np.minimum(1, rates / 1.48)
    point, _ = find_break_point(observed({"router": waiting, "firewall": busy}, rates), {"router": 1, "firewall": 1})
    assert point.vnf == "firewall"


def test_an_unknown_cpu_gives_none_and_says_so() -> None:
    rates = np.linspace(0.1, LAST, 35)
    point, notes = find_break_point(observed({}, rates), {"v": 1})
    assert point is None
    assert notes == ("the CPU of v is not known: it gives no break-point",)
    point, notes = find_break_point(observed({"v": rates}, rates)[:3], {"v": 4})
    assert point is None
    assert notes == ("the CPU of v is known at 3 loads only: it gives no break-point",)
    assert find_break_point(observed({"v": rates}, rates)[:2], {"v": 4})[1][0].startswith(
        "the CPU of v is known at 2 loads"
    )
    repeated = [observed({"v": rates}, rates)[0]] * 20
    assert find_break_point(repeated, {"v": 4})[1] == ("the CPU of v is known at 1 load only: it gives no break-point",)


def test_software_that_polls_gives_none_and_says_so() -> None:
    rates = np.linspace(0.1, LAST, 35)
    point, notes = find_break_point(observed({"v": np.full(35, 0.999)}, rates), {"v": 1})
    assert point is None
    assert "does not follow the load (1.00 of 1 everywhere)" in notes[0]


@pytest.mark.parametrize(("growth", "follows"), [(0.04, False), (0.06, True)])
def test_a_cpu_that_varies_by_more_than_a_twentieth_follows_the_load(growth: float, *, follows: bool) -> None:
    rates = np.linspace(0.1, LAST, 35)
    cpu = np.minimum(1, rates / KNEE)
    used = 0.9 * (1 - growth * (cpu.max() - cpu) / np.ptp(cpu))
    point, notes = find_break_point(observed({"v": used}, rates), {"v": 2})
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


@pytest.mark.parametrize("first", ["polls", "unknown"])
def test_a_vnf_without_an_answer_hides_none_that_comes_after_it(first: str) -> None:
    rates = np.linspace(0.1, LAST, 30)
    points = observed({"polls": np.ones_like(rates), "v": np.minimum(1, 0.05 + 0.95 * rates / KNEE)}, rates)
    if first == "unknown":
        points = [LoadObservation(each.rate, each.values, {"v": each.cpu["v"]}) for each in points]
    point, _ = find_break_point(points, {"polls": 1, "v": 1})
    assert point.vnf == "v"


def test_of_two_that_saturate_together_it_is_the_one_with_the_larger_share_of_its_cpus() -> None:
    rates = np.linspace(0.1, LAST, 30)
    shape = np.minimum(1, 0.05 + 0.95 * rates / KNEE)
    point, _ = find_break_point(observed({"wide": 2 * shape, "full": shape}, rates), {"wide": 4, "full": 1})
    assert (point.vnf, point.cpus_there) == ("full", 1)

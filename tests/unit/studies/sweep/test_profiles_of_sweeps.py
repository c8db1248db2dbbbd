"""A sweep becomes a profile: the published functions come back from noisy samples, also where VNFs share CPUs."""

from dataclasses import replace

import numpy as np
import pytest

from csit_utils.dataset.papers import paper
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.sweep.analysis.points import LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.profile import profile_of, profile_of_sweep, value_at
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model.profile import ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint
from tests.unit.csit_utils.characterization_records import FIREWALL
from tests.unit.csit_utils.characterization_records import sweep_of as firewall_of
from tests.unit.studies.sweep.synthetic_sweeps import (
    ADVA,
    BONSAI,
    PublishedRouter,
    growing_to,
    plain_router,
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


def test_the_printed_profile_of_adva_is_consistent_in_saturation() -> None:
    profile, _ = paper("troia").profiles
    for rate in np.linspace(2.6, 3.5, 10).tolist():
        through, lost = (value_at(profile, metric, rate) for metric in (ProfileMetric.THROUGHPUT, ProfileMetric.LOSS))
        assert abs(100 * (1 - through / rate) - lost) <= 0.7


def test_the_printed_profile_of_bonsai_contradicts_itself_below_saturation_and_a_note_says_so() -> None:
    profile = profile_of("router", printed_sweep(BONSAI, NOISE, 0), {"router": 1})
    assert any("loss and throughput contradict each other by up to 14" in note for note in profile.notes)


def router(
    capacity: float = 1.5, loads: int = 20, first: float = 0.1, last: float = 3.0, noise: float = 0.0
) -> list[SweepPoint]:
    """Points of a VNF whose CPU is full at its capacity."""
    cpu = {"v": (growing_to(1, capacity),)}
    return list(sweep_of(np.linspace(first, last, loads), plain_router(capacity), cpu, noise))


def test_a_consistent_sweep_has_no_notes() -> None:
    profile = profile_of("v", router(loads=30, noise=0.002), {"v": 1})
    assert profile.break_point is not None
    assert profile.notes == ()


def test_a_region_with_too_few_points_has_no_function_and_a_note() -> None:
    profile = profile_of("v", router(2.5, loads=15, first=0.2), {"v": 1})
    row = profile.of(ProfileMetric.DELAY)
    assert row.nonsat is not None
    assert row.sat is None
    assert "delay has no function from the break-point on: 3 loads there, 4 are needed" in profile.notes


def test_without_a_break_point_one_function_describes_all_loads() -> None:
    profile = profile_of("v", router(5, loads=12, last=1.0, noise=0.001), {"v": 1})
    assert profile.break_point is None
    assert all(row.nonsat is not None and row.sat is None for row in profile.metrics)


def test_unmeasured_values_are_reported_as_missing() -> None:
    profile = profile_of("v", [each.model_copy(update={"delay_s": None, "cpu": {}}) for each in router()], {"v": 1})
    delay = profile.of(ProfileMetric.DELAY)
    assert profile.break_point.indicator == "throughput"
    assert (delay.nonsat, delay.sat) == (None, None)
    assert "the CPU of v is not known: it gives no break-point" in profile.notes
    assert "delay was not measured" in profile.notes


def test_flagged_points_are_fitted_and_those_without_a_rate_are_not() -> None:
    points = router()
    points[3] = points[3].model_copy(update={"sender_pps": 0.5 * points[3].input_pps})
    points[4] = points[4].model_copy(update={"flagged": "40 % of what was asked"})
    points[5] = points[5].model_copy(update={"input_bps": 0.0, "input_pps": 0.0})
    profile = profile_of("v", points, {"v": 1})
    row = profile.of(ProfileMetric.THROUGHPUT)
    assert row.nonsat.points + row.sat.points == 18
    assert [note.split(":")[0] for note in profile.notes[:3]] == [
        "1 point in which nothing was sent",
        "1 point at which the sender's interface counted another rate",
        "1 point flagged",
    ]


@pytest.mark.parametrize(("counted", "known"), [(0.94, 19), (0.96, 20), (1.04, 20), (1.06, 19)])
def test_a_rate_is_doubtful_where_the_interface_counted_five_percent_more_or_less(counted: float, known: int) -> None:
    points = router()
    points[3] = points[3].model_copy(update={"sender_pps": counted * points[3].input_pps})
    assert len(observe(points)[0]) == known


@pytest.mark.parametrize(("loss_ratio", "contradicts"), [(0.009, False), (0.011, True)])
def test_loss_contradicts_throughput_from_one_percentage_point_on(loss_ratio: float, *, contradicts: bool) -> None:
    """All packets get through, and so much is said to be lost."""
    points = [
        each.model_copy(update={"loss_ratio": loss_ratio, "output_bps": each.input_bps})
        for each in router(loads=10, last=1.0)
    ]
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


RATES = (0.014, 0.029, 0.043, 0.057, 0.072, 0.086, 0.100, 0.115, 0.129, 0.143)
RUNNING = (0.168, 0.224, 0.231, 0.235, 0.249, 0.256, 0.267, 0.274, 0.257, 0.250)
WORKING = (0.174, 0.656, 0.871, 0.934, 0.921, 0.950, 0.965, 0.982, 0.985, 0.988)
"""Measured: a Linux router on a CPU that it shares with the vSwitch. It lost 4 % at 0.115 Gbit/s and 20 % at 0.129."""


def observed(working: tuple[float, ...] = WORKING) -> list[LoadObservation]:
    rows = zip(RATES, RUNNING, working, strict=True)
    return [LoadObservation(rate, {}, {"router": (cpu,)}, {"router": (busy,)}) for rate, cpu, busy in rows]


def test_the_break_point_is_where_losses_begin_and_says_that_cpus_are_shared() -> None:
    point, notes = find_break_point(observed(), {"router": 1})
    assert (point.measured_rate, point.vnf, point.cpus_used, notes) == (0.115, "router", 0.274, ())
    assert (point.low, point.high) == (0.100, 0.115)
    assert 0.100 < point.rate <= 0.115
    assert point.reason == "router has work all the time (0.98 of 1) and gets 0.27 of its CPUs, which it shares"


def test_the_hungriest_of_those_that_saturate_together_is_named() -> None:
    both = [
        replace(
            each,
            cpu={**each.cpu, "firewall": (1.4 * each.cpu["router"][0],)},
            busy={**each.busy, "firewall": each.busy["router"]},
        )
        for each in observed()
    ]
    point, _ = find_break_point(both, {"router": 1, "firewall": 1})
    assert point.vnf == "firewall"


@pytest.mark.parametrize("working", [tuple(0.9 * busy for busy in WORKING), (0.99,) * len(RATES)])
def test_where_no_load_or_every_one_saturates_there_is_no_break_point(working: tuple[float, ...]) -> None:
    assert find_break_point(observed(working), {"router": 1})[0] is None


def test_a_vnf_with_two_cpus_has_work_all_the_time_where_both_have() -> None:
    twice = [
        replace(each, cpu={"router": 2 * each.cpu["router"]}, busy={"router": 2 * each.busy["router"]})
        for each in observed()
    ]
    point, _ = find_break_point(twice, {"router": 2})
    assert (point.measured_rate, point.cpus_used, point.cpus_there) == (0.115, 2 * 0.274, 2)
    assert point.reason.startswith("router has work all the time (1.96 of 2)")


@pytest.mark.parametrize(
    ("waits", "reason"),
    [
        (0.04, "router uses all of its CPUs (1.92 of 2)"),
        (0.06, "router has work all the time (2.00 of 2) and gets 1.88 of its CPUs, which it shares"),
    ],
)
def test_a_vnf_that_waits_for_less_than_a_twentieth_of_the_time_has_its_cpus_for_itself(
    waits: float, reason: str
) -> None:
    """The share of the time is that on each of its two CPUs."""
    rates = np.linspace(0.1, 3.5, 35)
    points = [
        LoadObservation(float(rate), {}, {"router": (used, used)}, {"router": (used + waits, used + waits)})
        for rate, used in zip(rates, np.minimum(1 - waits, rates / 2.4).tolist(), strict=True)
    ]
    point, _ = find_break_point(points, {"router": 2})
    assert point.reason == reason

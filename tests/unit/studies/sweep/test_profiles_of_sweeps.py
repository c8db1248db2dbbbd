"""A sweep becomes a profile: the published functions come back from noisy samples, also where VNFs share CPUs."""

import numpy as np
import pytest

from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.fitting import describe
from resources.libraries.python.studies.sweep.analysis.points import LoadObservation
from resources.libraries.python.studies.sweep.analysis.profile import profile_of, profile_of_sweep, value_at
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model.profile import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
)
from resources.libraries.python.studies.sweep.model.record import Rates, Sweep, SweepPoint, SweepSpec, Vnf
from tests.unit.studies.sweep.curve_fits import fit_of
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
TESTBEDS = {"ADVA": ADVA, "BONSAI": BONSAI}
OFFSET_LOST = ("exponential over a base", BONSAI)
"""Its base is 7.15e-26 ms under at least 5e-3 ms: no double holds their sum, so a*exp(b*r) is the same function."""


@pytest.mark.parametrize("name", TESTBEDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_tables_iv_to_vi_come_back(name: str, seed: int) -> None:
    testbed = TESTBEDS[name]
    profile = profile_of("router", printed_sweep(testbed, NOISE, seed), {"router": 1})
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


def test_the_base_of_an_exponential_that_no_point_shows_is_found_to_be_next_to_nothing() -> None:
    rates = np.linspace(0.01625, 0.86, 53)
    values = printed_function(BONSAI, ProfileMetric.DELAY)(rates)
    fit = fit_of("exponential over a base", rates.tolist(), values.tolist())
    assert fit.coefficients["b"] == pytest.approx(8.999, rel=0.001)
    assert fit.coefficients["c"] == pytest.approx(0.595, rel=0.001)
    assert abs(fit.coefficients["a"]) < 1e-4


def printed_profile(testbed: PublishedRouter) -> Profile:
    """What the paper prints, as a profile."""
    rates = np.linspace(testbed.last_rate / 80, testbed.last_rate, 80)
    below, above = rates[rates < testbed.break_point], rates[rates >= testbed.break_point]
    metrics = []
    for metric, regions in testbed.metrics.items():
        fits = [
            describe(
                BY_NAME[printed.function],
                printed.coefficients,
                part,
                BY_NAME[printed.function].value(printed.coefficients, part),
            )
            for printed, part in zip(regions, (below, above), strict=True)
        ]
        metrics.append(MetricProfile(metric=metric, nonsat=fits[0], sat=fits[1]))
    point = BreakPoint(rate=testbed.break_point, vnf="router", cpus_used=1, cpus_there=1, reason="printed")
    return Profile(name="router", break_point=point, metrics=tuple(metrics))


def test_the_printed_profile_of_adva_is_consistent_in_saturation() -> None:
    profile = printed_profile(ADVA)
    for rate in np.linspace(2.6, 3.5, 10):
        through, lost = (
            value_at(profile, metric, float(rate)) for metric in (ProfileMetric.THROUGHPUT, ProfileMetric.LOSS)
        )
        assert abs(100 * (1 - through / rate) - lost) <= 0.7


def test_the_printed_profile_of_bonsai_contradicts_itself_below_saturation_and_a_note_says_so() -> None:
    profile = profile_of("router", printed_sweep(BONSAI, NOISE, 0), {"router": 1})
    assert any("loss and throughput contradict each other by up to 14" in note for note in profile.notes)


def test_a_consistent_sweep_has_no_notes() -> None:
    points = sweep_of(np.linspace(0.1, 3.0, 30), plain_router(1.5), {"v": (growing_to(1, 1.5),)}, 0.002)
    profile = profile_of("v", points, {"v": 1})
    assert profile.break_point is not None
    assert profile.notes == ()


def test_a_region_with_too_few_points_has_no_function_and_a_note() -> None:
    points = sweep_of(np.linspace(0.2, 3.0, 15), plain_router(2.5), {"v": (growing_to(1, 2.5),)})
    profile = profile_of("v", points, {"v": 1})
    row = profile.of(ProfileMetric.DELAY)
    assert row.nonsat is not None
    assert row.sat is None
    assert "delay has no function from the break-point on: 3 loads there, 4 are needed" in profile.notes


def test_without_a_break_point_one_function_describes_all_loads() -> None:
    points = sweep_of(np.linspace(0.1, 1.0, 12), plain_router(5), {"v": (growing_to(1, 5),)}, 0.001)
    profile = profile_of("v", points, {"v": 1})
    assert profile.break_point is None
    assert all(row.nonsat is not None and row.sat is None for row in profile.metrics)


def test_unmeasured_values_are_reported_as_missing() -> None:
    points = [
        point.model_copy(update={"delay_s": None, "cpu": {}})
        for point in sweep_of(np.linspace(0.1, 3.0, 20), plain_router(1.5), {"v": (growing_to(1, 1.5),)})
    ]
    profile = profile_of("v", points, {"v": 1})
    delay = profile.of(ProfileMetric.DELAY)
    assert profile.break_point.indicator == "throughput"
    assert (delay.nonsat, delay.sat) == (None, None)
    assert "the CPU of v is not known: it gives no break-point" in profile.notes
    assert "delay was not measured" in profile.notes


def test_points_of_a_doubtful_rate_are_left_out_and_flagged_ones_are_not() -> None:
    points = list(sweep_of(np.linspace(0.1, 3.0, 20), plain_router(1.5), {"v": (growing_to(1, 1.5),)}))
    points[3] = points[3].model_copy(update={"sender_pps": 0.5 * points[3].input_pps})
    points[4] = points[4].model_copy(update={"flagged": "40 % of what was asked"})
    points[5] = points[5].model_copy(update={"input_bps": 0.0, "input_pps": 0.0})
    profile = profile_of("v", points, {"v": 1})
    assert sum(fit.points for fit in fits_of(profile, ProfileMetric.THROUGHPUT)) == 18
    assert [note.split(":")[0] for note in profile.notes[:3]] == [
        "1 point in which nothing was sent",
        "1 point at which the sender's interface counted another rate",
        "1 point flagged",
    ]


@pytest.mark.parametrize(("counted", "known"), [(0.94, 19), (0.96, 20), (1.04, 20), (1.06, 19)])
def test_a_rate_is_doubtful_where_the_interface_counted_five_percent_more_or_less(counted: float, known: int) -> None:
    points = list(sweep_of(np.linspace(0.1, 3.0, 20), plain_router(1.5), {"v": (growing_to(1, 1.5),)}))
    points[3] = points[3].model_copy(update={"sender_pps": counted * points[3].input_pps})
    assert sum(fit.points for fit in fits_of(profile_of("v", points, {"v": 1}), ProfileMetric.THROUGHPUT)) == known


@pytest.mark.parametrize(("loss_ratio", "contradicts"), [(0.009, False), (0.011, True)])
def test_loss_contradicts_throughput_from_one_percentage_point_on(loss_ratio: float, *, contradicts: bool) -> None:
    """All packets get through, and so much is said to be lost."""
    points = [
        each.model_copy(update={"loss_ratio": loss_ratio, "output_bps": each.input_bps})
        for each in sweep_of(np.linspace(0.1, 1.0, 10), plain_router(1.5), {"v": (growing_to(1, 1.5),)})
    ]
    notes = profile_of("v", points, {"v": 1}).notes
    assert any("contradict each other by up to 1.1 percentage points" in note for note in notes) is contradicts


def fits_of(profile: Profile, metric: ProfileMetric) -> list[Fit]:
    row = profile.of(metric)
    return [] if row is None else [fit for fit in (row.nonsat, row.sat) if fit is not None]


def test_one_point_on_the_wrong_side_of_the_break_point_does_not_bend_the_function() -> None:
    """CPU is full one load before delay jumps."""
    functions = {**plain_router(1.55), ProfileMetric.DELAY: lambda r: np.where(r < 1.55, 0.2, 5 + r)}
    points = sweep_of(np.linspace(0.1, 3.0, 30), functions, {"v": (growing_to(1, 1.46),)}, 0.002)
    profile = profile_of("v", points, {"v": 1})
    delay = profile.of(ProfileMetric.DELAY)
    assert delay.sat.function == "linear"
    assert any(note.startswith("delay at 1.5 Gbit/s is an outlier") for note in profile.notes)


def test_a_sweep_knows_the_cpus_of_its_vnfs() -> None:
    points = sweep_of(
        np.linspace(0.1, 3.0, 30), plain_router(1.5), {"v": tuple(growing_to(2 / 3, 1.5) for _ in range(3))}
    )
    profile = profile_of_sweep(sweep_with(points))
    assert profile.name == "router"
    assert profile.break_point.cpus_there == 3
    assert profile.break_point.cpus_used == pytest.approx(2.0)


def sweep_with(points: tuple[SweepPoint, ...]) -> Sweep:
    return Sweep(
        name="router",
        cell=Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1),
        spec=SweepSpec(rates=Rates(start_pps=1, stop_pps=2, step_pps=1), frame=frame("512B")),
        vnfs=(Vnf(name="v", kind="linux_router", vcpus=3),),
        samples=(),
        points=points,
    )


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
        LoadObservation(each.rate, {}, {**each.cpu, "firewall": (1.4 * each.cpu["router"][0],)},
                 {**each.busy, "firewall": each.busy["router"]})
        for each in observed()
    ]  # fmt: skip
    point, _ = find_break_point(both, {"router": 1, "firewall": 1})
    assert point.vnf == "firewall"


def test_without_a_saturating_load_there_is_no_break_point() -> None:
    point, _ = find_break_point(observed(tuple(0.9 * busy for busy in WORKING)), {"router": 1})
    assert point is None


def test_what_every_load_saturates_has_no_break_point() -> None:
    point, _ = find_break_point(observed((0.99,) * len(RATES)), {"router": 1})
    assert point is None


def test_a_vnf_with_two_cpus_has_work_all_the_time_where_both_have() -> None:
    twice = [
        LoadObservation(each.rate, {}, {"router": 2 * each.cpu["router"]}, {"router": 2 * each.busy["router"]})
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

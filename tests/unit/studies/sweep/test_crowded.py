"""A VNF that shares its CPUs saturates where it has work all the time, however little it runs."""

import numpy as np
import pytest

from resources.libraries.python.studies.sweep.analysis.points import LoadObservation
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point

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

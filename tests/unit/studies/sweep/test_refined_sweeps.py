"""Further loads around a break-point, while its interval is wide."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.load_steps import (
    MAX_REFINING,
    LoadStep,
    MeasuredLoad,
    next_load,
    point,
    steps_of,
)
from resources.libraries.python.studies.sweep.model.profile import BreakPoint
from resources.libraries.python.studies.sweep.model.record import Rates, SweepPoint, SweepSample, SweepSpec

CAPACITY_PPS = 53_000.0
SPEC = SweepSpec(rates=Rates(start_pps=7e3, stop_pps=84e3, step_pps=7e3), duration_s=1, frame=frame("512B"))
LOADS = 12


def noisy_system(noise: float, seed: int = 0) -> Callable[[LoadStep], MeasuredLoad]:
    """Its CPU is full from its capacity on; what is read of it has relative noise."""
    random = np.random.default_rng(seed)

    def measure(load: LoadStep) -> MeasuredLoad:
        passed = min(load.rate_pps, CAPACITY_PPS)
        used = min(1.0, passed / CAPACITY_PPS) * (1 + noise * float(random.standard_normal()))
        sample = SweepSample(
            rate_pps=load.rate_pps,
            second=0,
            input_pps=load.rate_pps,
            output_pps=passed,
            loss_ratio=1 - passed / load.rate_pps,
            delay_s=1e-4,
            cpu={"v": (used,)},
        )
        return MeasuredLoad(samples=(sample,))

    return measure


def break_point(points: Sequence[SweepPoint]) -> BreakPoint | None:
    return find_break_point(observe(points)[0], {"v": 1})[0]


def measured(noise: float, width: float, seed: int = 0) -> list[SweepPoint]:
    """Points in the order of their measurement."""
    measure, points = noisy_system(noise, seed), list[SweepPoint]()
    for group in steps_of(SPEC, lambda: next_load(break_point(points), points, width)):
        points.extend(point(measure(load), SPEC) for load in group)
    return points


@pytest.mark.slow
def test_loads_are_added_around_the_break_point_until_its_interval_is_narrow_and_make_it_narrower() -> None:
    widths = []
    for seed in range(4):
        done = measured(0.01, 0.001, seed)
        before, after = break_point(done[:LOADS]), break_point(done)
        assert len(done) == LOADS + MAX_REFINING
        assert before is not None and before.width is not None
        assert after is not None and after.width is not None
        assert after.rate * 1e9 / (8 * 512) == pytest.approx(CAPACITY_PPS, rel=0.03)
        assert all(abs(each.rate_pps / CAPACITY_PPS - 1) < 0.1 for each in done[LOADS:])
        widths.append((before.width, after.width))
    assert sum(after for _, after in widths) < 0.8 * sum(before for before, _ in widths)


def test_four_loads_are_the_most() -> None:
    done = measured(0.05, 0.001)
    assert len(done) == LOADS + MAX_REFINING


@pytest.mark.parametrize(("noise", "width"), [(0.0, 0.02), (0.01, 0.2)])
def test_an_interval_that_is_narrow_enough_needs_no_load(noise: float, width: float) -> None:
    assert len(measured(noise, width)) == LOADS


def test_without_a_break_point_there_is_no_further_load() -> None:
    points = measured(0.01, 0.5)[:5]
    assert next_load(break_point(points), points, 0.02) is None


def test_the_middle_of_two_loads_around_a_shared_cpu_is_next() -> None:
    points = measured(0.0, 0.5)
    gbps = 8 * 512 / 1e9
    crowded = BreakPoint(
        rate=45e3 * gbps, low=42e3 * gbps, high=49e3 * gbps, vnf="v", cpus_used=0.3, cpus_there=1, reason=""
    )
    assert next_load(crowded, points, 0.02) == pytest.approx(45e3)

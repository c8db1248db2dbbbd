"""A sweep that was cut short resumes with its next load, also one that refines its break-point."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.studies.shared.progress import StepEnded
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
from resources.libraries.python.studies.sweep.model.record import (
    Bursts,
    Rates,
    Sweep,
    SweepPoint,
    SweepSample,
    SweepSpec,
)
from resources.libraries.python.studies.sweep.request import SweepRequest
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM
from tests.unit.studies.worlds import Killed

RATES = SweepRequest(
    name="router",
    cell=Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1, nf_kinds=(NfKind("linux_router"),)),
    frame=frame("64B"),
    flows=1,
    protocol=Protocol.IP,
    duration_s=1,
    rates=Rates(start_pps=1000, stop_pps=5000, step_pps=1000),
    width=None,
)
BURSTS = RATES.model_copy(update={"rates": None, "bursts": Bursts(rate_pps=1000, on_s=1, off_s=1), "duration_s": 5})


def run(asked: SweepRequest, journal: Path, killed_after: int = 0) -> tuple[Sweep, ServiceSweep, list[StepEnded]]:
    """A sweep with a journal; it may be killed after a load."""
    seen: list[StepEnded] = []

    def ended(step: StepEnded) -> None:
        seen.append(step)
        if step.number == killed_after:
            raise Killed

    world = SimulatedTestbed(SIM)
    sweep = ServiceSweep(SIM, world, asked, world.environment(), ended)
    sweep.plan()
    with sweep.journal()(journal, sweep.digest()) as opened:
        sweep.resume(opened)
        try:
            return sweep.run(), sweep, seen
        finally:
            sweep.remove()


@pytest.mark.parametrize("asked", [RATES, BURSTS], ids=["loads", "bursts"])
def test_a_resumed_sweep_has_every_second_once_and_a_warning(tmp_path: Path, asked: SweepRequest) -> None:
    with pytest.raises(Killed):
        run(asked, tmp_path / "cut.jsonl", killed_after=3)
    found, sweep, _ = run(asked, tmp_path / "cut.jsonl")
    assert len({(row.rate_pps, row.second) for row in found.samples}) == len(found.samples) == 5
    assert len(found.points) == (0 if asked.bursts else 5)
    assert any("3 loads were measured before the run was resumed" in text for text in sweep.draft.warnings)


def test_a_load_in_which_a_part_dies_is_measured_again_on_a_new_deployment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    states = iter([(), ("nf-1-1 has died",)])
    monkeypatch.setattr(CellUnderTest, "problems", lambda _: next(states, ()))
    found, sweep, seen = run(RATES, tmp_path / "sweep.jsonl")
    assert len(found.points) == len(seen) == 5 and not any(step.failed for step in seen)
    assert [text for text in sweep.draft.warnings if text.endswith("measured once more: nf-1-1 has died")]


def test_rates_that_were_found_out_stay(tmp_path: Path) -> None:
    asked = RATES.model_copy(update={"rates": None})
    with pytest.raises(Killed):
        run(asked, tmp_path / "sweep.jsonl", killed_after=2)
    text = (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")
    start_pps = float(text.split('"start_pps":')[1].split(",")[0])
    found, _, _ = run(asked, tmp_path / "sweep.jsonl")
    assert found.spec.rates is not None and found.spec.rates.start_pps == start_pps
    assert text in (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")


def test_a_sweep_ends_early_where_loads_lose_too_much(tmp_path: Path) -> None:
    asked = RATES.model_copy(update={"rates": Rates(start_pps=1e6, stop_pps=9e6, step_pps=1e6), "stop_loss_ratio": 0.2})
    found, _, seen = run(asked, tmp_path / "sweep.jsonl")
    assert 3 <= len(found.points) < 9 and len(seen) == len(found.points)


def test_another_plan_or_other_rates_begin_anew(tmp_path: Path) -> None:
    run(RATES, tmp_path / "sweep.jsonl")
    for other in (RATES.model_copy(update={"flows": 2}), RATES.model_copy(update={"duration_s": 2})):
        assert all(step.work for step in run(other, tmp_path / "sweep.jsonl")[2])


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
        assert LOADS < len(done) <= LOADS + MAX_REFINING, "no more where each end of the interval has a load"
        assert before is not None and before.width is not None
        assert after is not None and after.width is not None
        assert after.rate * 1e9 / (8 * 512) == pytest.approx(CAPACITY_PPS, rel=0.03)
        assert all(abs(each.rate_pps / CAPACITY_PPS - 1) < 0.1 for each in done[LOADS:])
        widths.append((before.width, after.width))
    assert sum(after for _, after in widths) < 0.9 * sum(before for before, _ in widths)


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

"""A sweep on the simulated testbed: resumed, refined, ended early, of a service that runs out of memory."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from csit_utils.studies.sweep.figures import sweep_figures
from resources.libraries.python.drivers.sim.impairment import BufferPool
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.sentences import headline
from resources.libraries.python.studies.sweep.analysis.tables import all_samples
from resources.libraries.python.studies.sweep.load_steps import MAX_REFINING, next_load, steps_of
from resources.libraries.python.studies.sweep.model.profile import BreakPoint
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates, Sweep, SweepPoint, SweepSpec
from resources.libraries.python.studies.sweep.request import SweepRequest
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import NOWHERE, SIM
from tests.unit.csit_utils.characterization_records import record
from tests.unit.studies.sweep.synthetic_sweeps import PACKET_BITS, growing_to, plain_router, sweep_of
from tests.unit.studies.worlds import ROUTER_SWEEP, Killed

BURSTS = ROUTER_SWEEP.model_copy(
    update={"rates": None, "bursts": Bursts(rate_pps=1000, on_s=1, off_s=1), "duration_s": 5}
)


def run(
    asked: SweepRequest, journal: Path, killed_after: int = 0, topology: Topology = SIM
) -> tuple[Sweep, ServiceSweep, list[StepEnded]]:
    """A sweep with a journal; it may be killed after a load."""
    seen: list[StepEnded] = []

    def ended(step: StepEnded) -> None:
        seen.append(step)
        if step.number == killed_after:
            raise Killed

    sweep = ServiceSweep(topology, SimulatedTestbed(topology), asked, NOWHERE, ended)
    sweep.plan()
    with sweep.journal()(journal, sweep.digest()) as opened:
        sweep.resume(opened)
        try:
            return sweep.run(), sweep, seen
        finally:
            sweep.remove()


def test_resumed_bursts_have_every_second_once_and_a_warning(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(BURSTS, tmp_path / "cut.jsonl", killed_after=3)
    found, sweep, _ = run(BURSTS, tmp_path / "cut.jsonl")
    assert [row.second for row in found.samples] == list(range(5))
    assert found.points == ()
    assert any("3 loads were measured before the run was resumed" in text for text in sweep.draft.warnings)


def test_a_load_in_which_a_part_dies_is_measured_again_on_a_new_deployment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    states = iter([(), ("nf-1-1 has died",)])
    monkeypatch.setattr(CellUnderTest, "problems", lambda _: next(states, ()))
    found, sweep, seen = run(ROUTER_SWEEP, tmp_path / "sweep.jsonl")
    assert len(found.points) == len(seen) == 5 and not any(step.failed for step in seen)
    assert [text for text in sweep.draft.warnings if text.endswith("measured once more: nf-1-1 has died")]


def test_rates_that_were_found_out_stay(tmp_path: Path) -> None:
    asked = ROUTER_SWEEP.model_copy(update={"rates": None})
    with pytest.raises(Killed):
        run(asked, tmp_path / "sweep.jsonl", killed_after=2)
    text = (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")
    start_pps = float(text.split('"start_pps":')[1].split(",")[0])
    found, _, _ = run(asked, tmp_path / "sweep.jsonl")
    assert found.spec.rates is not None and found.spec.rates.start_pps == start_pps
    assert text in (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")


def test_a_sweep_ends_early_where_loads_lose_too_much(tmp_path: Path) -> None:
    asked = ROUTER_SWEEP.model_copy(
        update={"rates": Rates(start_pps=1e6, stop_pps=9e6, step_pps=1e6), "stop_loss_ratio": 0.2}
    )
    found, _, seen = run(asked, tmp_path / "sweep.jsonl")
    assert 3 <= len(found.points) < 9 and len(seen) == len(found.points)


def test_another_plan_or_other_rates_begin_anew(tmp_path: Path) -> None:
    run(ROUTER_SWEEP, tmp_path / "sweep.jsonl")
    for other in (ROUTER_SWEEP.model_copy(update={"flows": 2}), ROUTER_SWEEP.model_copy(update={"duration_s": 2})):
        assert all(step.work for step in run(other, tmp_path / "sweep.jsonl")[2])


CAPACITY = 0.22
"""Gbit/s."""
GBPS = PACKET_BITS / 1e9
"""For each packet of a second."""
FIRST = Rates(start_pps=CAPACITY / 8 / GBPS, stop_pps=1.5 * CAPACITY / GBPS, step_pps=CAPACITY / 8 / GBPS)
LOADS = 12


def break_point(points: Sequence[SweepPoint]) -> BreakPoint | None:
    return find_break_point(observe(points)[0], {"v": 1})[0]


def refined(noise: float, width: float, seed: int = 0) -> list[SweepPoint]:
    """Points in the order of their measurement, of a service whose CPU is full from its capacity on."""
    points = list[SweepPoint]()
    spec = SweepSpec(rates=FIRST, duration_s=1, frame=frame("1518B"))
    for group in steps_of(spec, lambda: next_load(break_point(points), points, width)):
        for load in group:
            cpu = {"v": (growing_to(1.0, CAPACITY),)}
            rates = np.array([load.rate_pps * GBPS])
            points.extend(sweep_of(rates, plain_router(CAPACITY), cpu, noise, 1000 * seed + len(points)))
    return points


@pytest.mark.slow
def test_loads_are_added_around_the_break_point_until_its_interval_is_narrow_and_make_it_narrower() -> None:
    widths = []
    for seed in range(4):
        done = refined(0.01, 0.001, seed)
        before, after = break_point(done[:LOADS]), break_point(done)
        assert LOADS < len(done) <= LOADS + MAX_REFINING, "no more where each end of the interval has a load"
        assert before is not None and before.width is not None
        assert after is not None and after.width is not None
        assert after.rate == pytest.approx(CAPACITY, rel=0.03)
        assert all(abs(each.rate_pps * GBPS / CAPACITY - 1) < 0.1 for each in done[LOADS:])
        widths.append((before.width, after.width))
    assert sum(after for _, after in widths) < 0.9 * sum(before for before, _ in widths)


@pytest.mark.parametrize(("noise", "width", "more"), [(0.05, 0.001, MAX_REFINING), (0.01, 0.2, 0), (0.0, 0.02, 0)])
def test_four_loads_are_the_most_and_an_interval_that_is_narrow_enough_needs_none(
    noise: float, width: float, more: int
) -> None:
    assert len(refined(noise, width)) == LOADS + more


def test_the_middle_of_two_loads_around_a_shared_cpu_is_next_and_none_without_a_break_point() -> None:
    points = refined(0.0, 0.5)
    crowded = BreakPoint(
        rate=0.84 * CAPACITY,
        low=0.75 * CAPACITY,
        high=0.875 * CAPACITY,
        vnf="v",
        cpus_used=0.3,
        cpus_there=1,
        reason="",
    )
    assert next_load(crowded, points, 0.02) == pytest.approx(0.84 * CAPACITY / GBPS)
    assert next_load(break_point(points[:5]), points[:5], 0.02) is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_simulated_nf_that_runs_out_of_buffers_saturates_by_memory_at_the_known_load(
    seed: int, tmp_path: Path
) -> None:
    """Buffers end at half of what its CPU can do; those in use follow Erlang's formula, which is no broken line."""
    pool = BufferPool(buffers=1500, buffer_bytes=16_384, hold_s=0.005)
    simulation = {"seed": seed, "buffer_pools": {"linux_router": pool.model_dump()}}
    first = pool.capacity_pps / 2 / 8.3
    rates = Rates(start_pps=first, stop_pps=13 * first, step_pps=first)
    asked = ROUTER_SWEEP.model_copy(update={"duration_s": 2, "rates": rates})
    found, sweep, _ = run(asked, tmp_path / "s.jsonl", topology=SIM.model_copy(update={"simulation": simulation}))
    profile, truth = sweep.draft.profile, pool.capacity_pps / 2 * 512 / 1e9
    point = profile.break_point
    assert (point.indicator, point.vnf) == ("memory", "nf-1-1")
    assert point.rate == pytest.approx(truth, rel=0.03)
    assert point.low <= 1.01 * truth and 0.99 * truth <= point.high <= 1.15 * point.low
    words = headline(record("sweep", "Router", sweep=found, profile=profile))
    assert "95 % interval" in words and "by memory: the memory of nf-1-1 does not grow beyond" in words
    assert "nf-1-1_memory_mib" in all_samples(found.samples)[0]
    with_memory, without = (
        {figure.identity for figure in sweep_figures("a", record("sweep", "x", sweep=each, profile=None))}
        for each in (found, found.model_copy(update={"points": tuple(map(of_unknown_memory, found.points))}))
    )
    assert with_memory - without == {"a-memory"}


def of_unknown_memory(point: SweepPoint) -> SweepPoint:
    return point.model_copy(update={"memory_mib": {}, "available_mib": None})

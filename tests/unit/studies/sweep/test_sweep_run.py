"""A sweep on the simulated testbed: resumed, refined, ended early, out of memory; and what SMT adds to a service."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from csit_utils.studies.sweep.figures import sweep_figures
from resources.libraries.python.drivers.sim.impairment import BufferPool
from resources.libraries.python.errors import ConfigError, CsitError, PlanError
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.sweep import model
from resources.libraries.python.studies.sweep.analysis.flavors import smt_gains
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.profile import profile_of
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.sentences import headline, title
from resources.libraries.python.studies.sweep.analysis.tables import all_samples, smt_rows
from resources.libraries.python.studies.sweep.load_steps import MAX_REFINING, next_load, steps_of
from resources.libraries.python.studies.sweep.model import BreakPoint, Profile, Rates, Sweep, SweepRecord
from resources.libraries.python.studies.sweep.planning import SweepRequest
from resources.libraries.python.studies.sweep.run import ProfileStore, ServiceSweep
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import NOWHERE, SIM
from tests.unit.csit_utils.characterization_records import FIREWALL, record, swept
from tests.unit.csit_utils.characterization_records import sweep_of as firewall_of
from tests.unit.planning.labs import lab
from tests.unit.studies.sweep.synthetic_sweeps import PACKET_BITS, growing_to, known_profile, plain_router, sweep_of
from tests.unit.studies.worlds import ROUTER_SWEEP, Killed

BURSTS = ROUTER_SWEEP.model_copy(
    update={"rates": None, "bursts": model.Bursts(rate_pps=1000, on_s=1, off_s=1), "duration_s": 5}
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


def test_a_load_in_which_a_part_dies_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert found.spec.rates.start_pps == start_pps
    assert text in (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")


def test_a_sweep_ends_early_where_loads_lose_too_much(tmp_path: Path) -> None:
    asked = ROUTER_SWEEP.model_copy(
        update={"rates": Rates(start_pps=1e6, stop_pps=9e6, step_pps=1e6), "stop_loss_ratio": 0.2}
    )
    found, _, seen = run(asked, tmp_path / "sweep.jsonl")
    assert 3 <= len(found.points) < 9 and len(seen) == len(found.points)


def test_another_plan_or_other_rates_begin_anew_and_smt_as_it_is_does_not(tmp_path: Path) -> None:
    """Runs that were begun before are resumed; what differs is in the plan."""
    run(ROUTER_SWEEP, tmp_path / "sweep.jsonl")
    for other in (ROUTER_SWEEP.model_copy(update={"flows": 2}), ROUTER_SWEEP.model_copy(update={"duration_s": 2})):
        assert all(step.work for step in run(other, tmp_path / "sweep.jsonl")[2])
    usual, on, off = (planned(smt).digest() for smt in (None, True, False))
    assert usual == on != off


CAPACITY = 0.22
"""Gbit/s."""
GBPS = PACKET_BITS / 1e9
"""For each packet of a second."""
FIRST = Rates(start_pps=CAPACITY / 8 / GBPS, stop_pps=1.5 * CAPACITY / GBPS, step_pps=CAPACITY / 8 / GBPS)
LOADS = 12


def break_point(points: Sequence[model.SweepPoint]) -> BreakPoint | None:
    return find_break_point(observe(points)[0], {"v": 1})[0]


def refined(noise: float, width: float, seed: int = 0) -> list[model.SweepPoint]:
    """Points in the order of their measurement, of a service whose CPU is full from its capacity on."""
    points = list[model.SweepPoint]()
    spec = model.SweepSpec(rates=FIRST, duration_s=1, frame=frame("1518B"))
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
        assert after.rate == pytest.approx(CAPACITY, rel=0.03)
        assert all(abs(each.rate_pps * GBPS / CAPACITY - 1) < 0.1 for each in done[LOADS:])
        widths.append((before.width, after.width))
    assert sum(after for _, after in widths) < 0.9 * sum(before for before, _ in widths)


@pytest.mark.parametrize(("noise", "width", "more"), [(0.05, 0.001, MAX_REFINING), (0.01, 0.2, 0), (0.0, 0.02, 0)])
def test_four_loads_are_the_most_and_a_narrow_interval_needs_none(noise: float, width: float, more: int) -> None:
    assert len(refined(noise, width)) == LOADS + more


def test_the_middle_of_two_loads_around_a_shared_cpu_is_next_and_none_without_a_break_point() -> None:
    points = refined(0.0, 0.5)
    place = {"rate": 0.84 * CAPACITY, "low": 0.75 * CAPACITY, "high": 0.875 * CAPACITY}
    crowded = BreakPoint(vnf="v", cpus_used=0.3, cpus_there=1, reason="", **place)
    assert next_load(crowded, points, 0.02) == pytest.approx(0.84 * CAPACITY / GBPS)
    assert next_load(break_point(points[:5]), points[:5], 0.02) is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_nf_that_runs_out_of_buffers_saturates_by_memory_at_the_known_load(seed: int, tmp_path: Path) -> None:
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
    drawn = record("sweep", "Router", sweep=found, profile=profile)
    assert "by memory: the memory of nf-1-1 does not grow beyond" in headline(drawn)
    assert "nf-1-1_memory_mib" in all_samples(found.samples)[0]
    for each, has_memory in ((drawn, True), (swept("Firewall", firewall_of("firewall", FIREWALL)), False)):
        assert ("a-memory" in [figure.identity for figure in sweep_figures("a", each)]) is has_memory


def test_known_capacities_are_compared_and_what_one_of_both_lacks_is_left_out() -> None:
    rows = smt_gains(known_profile("nf", 1.3), known_profile("nf", 1.0))
    assert [row.quantity for row in rows] == ["break-point", "saturated throughput"]
    for row in rows:
        assert (row.gain.value, row.smt_on.value, row.smt_off.value) == (pytest.approx(0.3), 1.3, 1.0)
        assert (row.gain.low, row.gain.high, row.smt_on.low) == (None, None, None)
    assert smt_gains(known_profile("nf", None), known_profile("nf", 1.0)) == ()
    unfitted = known_profile("nf", 1.0)
    rows = tuple(row.model_copy(update={"sat": None}) for row in unfitted.metrics)
    (row,) = smt_gains(known_profile("nf", 1.3), unfitted.model_copy(update={"metrics": rows}))
    assert row.quantity == "break-point"


def measured(capacity: float, vcpus: int, noise: float = 0.002, seed: int = 0) -> Profile:
    rates = np.linspace(0.1, 1.6, 16) * capacity
    threads = (growing_to(1.0, capacity),) * vcpus
    points = sweep_of(rates, plain_router(capacity), {"nf-1-1": threads}, noise=noise, seed=seed)
    return profile_of("nf", points, {"nf-1-1": vcpus})


def test_a_gain_is_a_row_of_percentages() -> None:
    on, off, gain = (
        model.SmtEstimate(value=value, low=low, high=high)
        for value, low, high in ((0.26, 0.25, 0.27), (0.2, 0.19, 0.21), (0.3, 0.224, 0.381))
    )
    columns, row = smt_rows("nat", [model.SmtGain(quantity="break-point", smt_on=on, smt_off=off, gain=gain)])
    assert row[2:] == pytest.approx((0.26, 0.25, 0.27, 0.2, 0.19, 0.21, 30.0, 22.4, 38.1))
    assert columns[2:5] == ("smt_on_gbps", "smt_on_low_gbps", "smt_on_high_gbps") and columns[8] == "gain_percent"


def store(*records: SweepRecord) -> ProfileStore:
    made = ProfileStore(World.LOCAL, "local")
    for each in records:
        made.put(each)
    return made


def firewall(smt: bool | None, capacity_pps: float = 2e5) -> SweepRecord:
    sweep = firewall_of("firewall", FIREWALL, capacity_pps=capacity_pps)
    return swept("Firewall", sweep, plan=make_plan(SIM, sweep.cell, {}, smt=smt), smt_off=smt is False)


def test_the_profile_with_smt_is_that_of_the_same_service_and_traffic() -> None:
    on, off = firewall(smt=None), firewall(smt=False, capacity_pps=1.5e5)
    profiles = store(on, off)
    assert profiles.with_smt(off.sweep) == on.profile
    assert profiles.profile("firewall", "64B") == on.profile, "parts of chains are never those without SMT"
    other = off.sweep.model_copy(update={"spec": off.sweep.spec.model_copy(update={"flows": 2})})
    with pytest.raises(ConfigError, match=r"firewall .* SMT and 64B frames on testbed local; .* smt=on"):
        profiles.with_smt(other)
    cores = on.plan.cores.model_copy(update={"smt": False})
    bare = on.model_copy(update={"plan": on.plan.model_copy(update={"cores": cores})})
    with pytest.raises(ConfigError, match="has not been measured with SMT"):
        store(bare).with_smt(on.sweep)  # of a machine without SMT


def test_titles_and_records_say_that_smt_was_off() -> None:
    on, off = firewall(smt=True), firewall(smt=False)
    assert (title(on), title(off)) == ("firewall, 64B, 1c", "firewall, 64B, 1c, SMT off")
    assert SweepRecord.model_validate_json(off.model_dump_json()).smt_off


def planned(
    smt: bool | None, kind: str = "linux_firewall", topology: Topology = SIM, world: Any = None,
    environment: Environment = NOWHERE,
) -> ServiceSweep:  # fmt: skip
    asked = ROUTER_SWEEP.model_copy(
        update={"name": "firewall", "cell": firewall_of("firewall", (NfKind(kind),)).cell, "duration_s": 2, "smt": smt}
    )
    service = ServiceSweep(topology, world or SimulatedTestbed(SIM), asked, environment)
    service.plan()
    return service


def test_only_a_profiled_sweep_without_smt_is_compared() -> None:
    service = planned(smt=True)
    with pytest.raises(CsitError, match="nothing to compare: the service has no profile"):
        service.compare_smt(store())
    on = firewall(smt=None)
    service.draft.sweep, service.draft.profile = on.sweep, on.profile
    with pytest.raises(ConfigError, match="firewall was measured with SMT: compare the sweep that has smt=off"):
        service.compare_smt(store(on))
    without, off = planned(smt=False), firewall(smt=False, capacity_pps=1.5e5)
    without.draft.sweep, without.draft.profile = off.sweep, off.profile
    break_point, _ = without.compare_smt(store(on))
    assert break_point.gain.value == pytest.approx(1 / 3, abs=0.01)
    assert without.draft.smt_gains[0] == break_point


@pytest.mark.parametrize("state", ["off", "forceoff", "notsupported", "notimplemented", None])
def test_a_machine_whose_kernel_cannot_switch_it_is_refused_before_anything_starts(state: str | None) -> None:
    control = "/sys/devices/system/cpu/smt/control"
    unable = NOWHERE.model_copy(update={"settings": {} if state is None else {control: state}})
    able = NOWHERE.model_copy(update={"settings": {control: "on"}})
    in_lab = partial(
        planned, kind="vpp", topology=lab(2, smt=True), world=SimpleNamespace(layout={}, drivers={}, simulation=None)
    )
    says = f"{control} says {state}" if state else f"there is no {control}"
    for smt in (True, False):
        with pytest.raises(PlanError, match=f"on DUT1: {says}"):
            in_lab(smt, environment=unable.model_copy(update={"nodes": {"DUT2": able}}))
        with pytest.raises(PlanError, match="cannot be compared on DUT2"):
            in_lab(smt, environment=able.model_copy(update={"nodes": {"DUT2": unable}}))
    assert in_lab(smt=False, environment=able.model_copy(update={"nodes": {"DUT2": able}})).draft.smt_off
    assert not in_lab(smt=None, environment=unable).draft.smt_off


@pytest.mark.slow
def test_intervals_hold_the_truth() -> None:
    """Noise of 1 % in everything but the rate; see the methodology for what intervals of break-points hold."""
    held = {"break-point": 0, "saturated throughput": 0}
    rounds = 40
    for seed in range(rounds):
        for row in smt_gains(measured(1.3, 2, 0.01, seed), measured(1.0, 1, 0.01, 1000 + seed)):
            held[row.quantity] += row.gain.low <= 0.3 <= row.gain.high
    assert min(held.values()) >= 0.8 * rounds, held

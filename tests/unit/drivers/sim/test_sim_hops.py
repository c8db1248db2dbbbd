"""Delays by part on a simulated system: where its latency arises, of which not a nanosecond is lost."""

from statistics import fmean

import pytest

from resources.libraries.python.drivers.sim.probes import SimHopTimer
from resources.libraries.python.model.measurements.delays import LINK
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.request.kinds import NfKind
from tests.builders import plan_of
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed

KINDS = (NfKind("linux_router"),) * 3
PLAN = plan_of("sim", "CSC", 1, 3, TOPOLOGY.dut.layout, nf_kinds=KINDS)
OWNERS = {"vswitch", "nf-1-1", "nf-1-2", "nf-1-3", LINK}


def timed(bed: Bed, load_share: float = 0.0) -> tuple[dict[str, float], TrialResult]:
    """Mean of both directions of each part, and the trial."""
    hops = SimHopTimer(bed.system)
    hops.start()
    result = bed.run(load_share * bed.system.capacity_pps(SMALL), probe_pps=200.0)
    rows = hops.stop()
    assert hops.stop() == ()
    for each in result.latency:
        assert each.mean_ns is not None
        of_way = [row for row in rows if row.direction is each.direction]
        assert sum(row.mean_s for row in of_way) == pytest.approx(each.mean_ns / 1e9, abs=2e-9)
        assert {row.packets for row in of_way} == {each.received}
    return {owner: fmean(row.mean_s for row in rows if row.owner == owner) for owner in OWNERS}, result


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"noise": 0.2},
        {"host_gap_hz": 50.0, "host_gap_us": 800.0},
        {"power": {"platform_w": 80.0, "sleep_us": 60.0}},
        {"impaired": [{"chain": KINDS, "nf": "nf-1-2", "loss_ratio": 0.3, "delay_s": 0.001}]},
    ],
    ids=["plain", "noise", "gaps", "sleep", "faults"],
)
@pytest.mark.parametrize("load_share", [0.0, 0.8])
def test_parts_add_up_to_the_simulated_latency(parameters: dict[str, object], load_share: float) -> None:
    parts, _ = timed(Bed(PLAN, **parameters), load_share)
    assert all(mean_s > 0 for mean_s in parts.values())


@pytest.mark.parametrize("nf", ["nf-1-1", "nf-1-3"])
@pytest.mark.parametrize("delay_s", [20e-6, 500e-6])
def test_a_delay_is_that_of_the_impaired_nf(nf: str, delay_s: float) -> None:
    before, _ = timed(Bed(PLAN))
    after, _ = timed(Bed(PLAN, impaired=[{"chain": KINDS, "nf": nf, "delay_s": delay_s}]))
    more = {owner: after[owner] - before[owner] for owner in OWNERS}
    assert more[nf] == pytest.approx(delay_s, rel=0.05)
    assert all(abs(each) < 0.02 * delay_s + 1e-6 for owner, each in more.items() if owner != nf)


@pytest.mark.parametrize("limit", ["vswitch", "nf-1-2"])
def test_packets_wait_at_the_limit_and_nowhere_else(limit: str) -> None:
    bed = Bed(PLAN, limited_by=limit)
    idle, busy = timed(bed)[0], timed(bed, 0.9)[0]
    more = {owner: busy[owner] - idle[owner] for owner in OWNERS}
    assert more[limit] > 2e-6
    assert all(abs(each) < 1e-6 for owner, each in more.items() if owner != limit)


def test_noise_changes_the_parts_and_not_the_latency() -> None:
    quiet, same = timed(Bed(PLAN, noise=0.0))
    noisy, result = timed(Bed(PLAN, noise=0.3))
    assert [row.mean_ns for row in result.latency] == [row.mean_ns for row in same.latency]
    assert all(0 < abs(noisy[owner] / quiet[owner] - 1) < 0.2 for owner in OWNERS)


def test_a_path_that_is_broken_has_no_delays() -> None:
    bed = Bed(PLAN, drop_at=["nf-1-2"])
    hops = SimHopTimer(bed.system)
    hops.start()
    bed.run(0.0, probe_pps=200.0)
    assert hops.stop() == ()

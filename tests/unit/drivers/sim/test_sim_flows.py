"""Flows of simulated systems: the shape of latency, delays by hop, and copies for passive NFs."""

from statistics import fmean

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim import flows
from resources.libraries.python.drivers.sim.probes import SimHopTimer, SimSampler
from resources.libraries.python.drivers.sim.truth import capacity_pps, one_pps
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.delays import LINK
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency, TrialResult
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap, TestType
from resources.libraries.python.model.request.function import Limits, UserProgram
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from resources.libraries.python.studies.sweep.analysis.seconds import work
from tests.builders import cell_of, plan_of
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed

CAPACITY = 6e6


def shape_of(crossings: int, functions: int) -> flows.FlowShape:
    return flows.FlowShape((flows.PORT_NS, *[flows.CROSSING_NS] * crossings, *[flows.NF_NS] * functions, flows.PORT_NS))


def latency(load_pps: float, *, crossings: int = 2, functions: int = 1, sent: int = 5000) -> FlowLatency:
    shape = shape_of(crossings, functions)
    pairs, mean_ns = flows.simulate_latency(shape, load_pps, CAPACITY, sent=sent, received=sent)
    return flows.flow_latency(1, Direction.FORWARD, sent, pairs, mean_ns)


def p99(row: FlowLatency) -> int:
    assert row.p99_ns is not None
    return row.p99_ns


def test_latency_grows_with_load_and_hops() -> None:
    loads = [p99(latency(share * CAPACITY)) for share in (0.0, 0.1, 0.5, 0.9)]
    assert loads == sorted(set(loads))
    assert p99(latency(0.0, crossings=11, functions=10)) > 4 * p99(latency(0.0))


@given(st.floats(0.0, 2e7), st.integers(1, 20000))
def test_figures_ascend_and_count_every_frame(load_pps: float, sent: int) -> None:
    row = latency(load_pps, sent=sent)
    assert row.received == sent
    figures = [row.min_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns]
    known = [figure for figure in figures if figure is not None]
    assert len(known) == len(figures)
    assert known == sorted(known)
    assert row.mean_ns is not None
    assert known[0] - 1 <= row.mean_ns <= known[-1] + 1


def test_the_histogram_decodes_to_the_same_figures() -> None:
    row = latency(0.9 * CAPACITY)
    assert row.histogram is not None
    assert row.histogram.startswith("HISTF")
    histogram = HdrHistogram.decode(row.histogram)
    assert histogram.get_total_count() == row.received
    for percent, figure in ((50, row.p50_ns), (90, row.p90_ns), (99, row.p99_ns), (99.9, row.p999_ns)):
        assert histogram.get_value_at_percentile(percent) == pytest.approx(figure, rel=0.002)
    assert histogram.get_mean_value() == pytest.approx(row.mean_ns, rel=0.002)


def test_waiting_is_that_of_the_queue() -> None:
    """Mean waiting of M/D/1 at 80 %: 2 service times, of a vector of 32 packets."""
    shape = shape_of(0, 0)
    _, idle_ns = flows.simulate_latency(shape, 0.0, CAPACITY, sent=100_000, received=100_000)
    _, busy_ns = flows.simulate_latency(shape, 0.8 * CAPACITY, CAPACITY, sent=100_000, received=100_000)
    assert idle_ns is not None
    assert busy_ns is not None
    assert busy_ns - idle_ns == pytest.approx(2 * 32 / CAPACITY * 1e9, rel=0.1)


@pytest.mark.parametrize(("sent", "received"), [(0, 0), (100, 0)])
def test_lost_packets_have_no_latency(sent: int, received: int) -> None:
    pairs, mean_ns = flows.simulate_latency(shape_of(2, 1), 1e6, CAPACITY, sent=sent, received=received)
    row = flows.flow_latency(1, Direction.REVERSE, sent, pairs, mean_ns)
    assert (row.sent, row.received) == (sent, 0)
    assert (row.min_ns, row.mean_ns, row.p50_ns, row.p999_ns, row.max_ns, row.histogram) == (None,) * 6


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


ROUTER, NGREP, TCPDUMP = NfKind("linux_router"), NfKind("ngrep"), NfKind("tcpdump")


def chain(*kinds: NfKind, taps: tuple[Tap, ...] = (), limits: tuple[Limits, ...] = ()) -> Cell:
    return cell_of("CSC", 1, len(kinds), nf_kinds=kinds, taps=taps, limits=limits)


def beside(*kinds: NfKind) -> Cell:
    return Cell(service_type=ServiceType.CSC, nf_chains=len(kinds), nf_nodes=1, instance_kinds=kinds)


def bed(asked: Cell, **parameters: object) -> Bed:
    return Bed(make_plan(TOPOLOGY, asked, TOPOLOGY.dut.layout), TestType.NDRPDR, model="sharp", **parameters)


def test_a_tap_gets_both_ways_of_its_segment() -> None:
    running = bed(chain(ROUTER, taps=(Tap(position=1, kind=TCPDUMP), Tap(position=2, kind=TCPDUMP))))
    done = running.run(1000.0)
    assert done.loss_ratio == 0
    counts = running.counters()
    for number in (1, 2):
        assert counts[f"csn1t{number}"] == InterfaceCounters(1000, 0, 0, 0)
        assert counts[f"csv1t{number}"] == InterfaceCounters(0, 1000, 0, 0)


def test_a_slow_tap_loses_alone() -> None:
    running = bed(chain(ROUTER, taps=(Tap(position=2, kind=NGREP),)))
    most = one_pps(NGREP, 1.0)
    done = running.run(2 * most)
    assert done.loss_ratio == 0
    here = running.counters()
    assert here["csn1t1"].rx_packets == pytest.approx(most, rel=1e-6)
    assert here["csv1t1"].tx_dropped == pytest.approx(most, rel=1e-6)
    assert here["csv1x1i2"].tx_dropped == here["csv1p2"].tx_dropped == 0


def test_what_an_nf_loses_its_taps_behind_do_not_see() -> None:
    running = bed(chain(NfKind("linux_firewall"), taps=(Tap(position=1, kind=TCPDUMP), Tap(position=2, kind=TCPDUMP))))
    load = 1.25 * running.system.capacity_pps(SMALL)
    done = running.run(load)
    assert done.loss_ratio == pytest.approx(0.2, abs=1e-5)
    counts = {number: running.counters()[f"csv1t{number}"] for number in (1, 2)}
    got = {number: row.tx_packets + row.tx_dropped for number, row in counts.items()}
    # Each way half of the load: before the NF all of it, behind it what is left.
    assert got[1] == pytest.approx(got[2], rel=1e-3)
    assert got[1] == pytest.approx(load / 2 + 0.8 * load / 2, rel=1e-3)


def test_copies_cost_the_vswitch_alone() -> None:
    plain, watched = chain(NfKind("sim")), chain(NfKind("sim"), taps=(Tap(position=1, kind=NfKind("sim")),) * 4)
    assert capacity_pps(watched, SMALL) < capacity_pps(plain, SMALL)
    router = chain(ROUTER, taps=(Tap(position=1, kind=NGREP),))
    assert bed(router).system.capacity_pps(SMALL) == capacity_pps(chain(ROUTER), SMALL)


def test_a_tap_is_as_busy_as_its_own_capacity_says_and_not_the_port_towards_it() -> None:
    running = bed(chain(ROUTER, taps=(Tap(position=1, kind=NGREP),)))
    sampler = SimSampler(running.system)
    before = sampler.read()
    running.run(0.5 * one_pps(NGREP, 1.0))
    after = sampler.read()
    assert after.threads["csn1t1"].running_ns - before.threads["csn1t1"].running_ns == pytest.approx(0.5e9)
    assert after.threads["csv1t1"].running_ns == 0


def test_a_limited_nf_does_less_and_uses_no_more_than_its_limit() -> None:
    """The planted fault: the truth that an analysis has to find."""
    free, limited = chain(ROUTER, ROUTER), chain(ROUTER, ROUTER, limits=(Limits(), Limits(cpu=0.5)))
    running = bed(limited)
    capacity = running.system.capacity_pps(SMALL)
    assert capacity == pytest.approx(capacity_pps(free, SMALL) / 4)  # 0.5 of the two CPUs of a core
    assert running.system.limit_owners(SMALL) == {"nf-1-2"}
    running.run(3 * capacity)
    assert running.system.used_s()["nf-1-2"] == pytest.approx(0.5)
    assert running.system.used_s()["nf-1-1"] > 0.5


def test_each_of_them_is_as_busy_as_its_own_capacity_says() -> None:
    running = bed(beside(ROUTER, NGREP, NGREP), pressure={ROUTER: 0, NGREP: 0})
    sampler = SimSampler(running.system)
    before = sampler.read()
    load = 3 * 0.5 * one_pps(NGREP, 1.0)
    running.run(load)
    cpu = work(running.plan, before, sampler.read(), 1.0).cpu
    assert cpu["nf-2-1"] == cpu["nf-3-1"] == pytest.approx([0.5, 0.5])
    assert cpu["nf-1-1"] == pytest.approx([load / 3 / one_pps(ROUTER, 1.0)] * 2)


@pytest.mark.parametrize("kind", [kind for kind in TOPOLOGY.dut.offered if kind != "sim"])
def test_every_kind_lets_packets_through_at_a_capacity_of_its_own(kind: NfKind) -> None:
    programs = (UserProgram(start=("cat",)),) if kind == "process" else ()
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_kinds=(kind,), programs=programs)
    running = bed(cell)
    assert running.system.capacity_pps(SMALL) == one_pps(kind, 1.0) < one_pps(NfKind("sim"), 1.0)
    before = running.counters()
    result = running.generator.run(connectivity_trial(running.plan, SMALL))
    assert diagnose(running.plan, result, before, running.counters()) == ()

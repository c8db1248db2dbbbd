"""Flows of simulated systems: the shape of latency, delays by hop, and copies for passive NFs."""

from collections.abc import Mapping
from random import Random
from statistics import fmean

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim import flows
from resources.libraries.python.drivers.sim.impairment import BufferPool, PacketLosses, flow_losses
from resources.libraries.python.drivers.sim.probes import SimHopTimer, SimSampler
from resources.libraries.python.drivers.sim.truth import capacity_pps, one_pps
from resources.libraries.python.model.measurements.features import LINK
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency, FlowLosses, TrialResult
from resources.libraries.python.model.request.cell import Cell, Tap
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.search.losses import LossPattern, loss_loads, losses_in_words, pattern_of
from resources.libraries.python.studies.chains.model import ChainRun
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, Mode, VnfSpec, Workload
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, cell_of, flow_of, plan_of
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed, sharp_bed
from tests.unit.examples import share

CAPACITY = 6e6


def latency(load_pps: float, hops: int = 3, *, sent: int = 5000, received: int | None = None) -> FlowLatency:
    shape = flows.FlowShape((flows.PORT_NS, *[flows.CROSSING_NS] * hops, flows.PORT_NS))
    came = sent if received is None else received
    pairs, mean_ns = flows.simulate_latency(shape, load_pps, CAPACITY, sent=sent, received=came)
    return flows.flow_latency(1, Direction.FORWARD, sent, pairs, mean_ns)


@given(st.floats(0.0, 2e7), st.integers(1, 20000))
def test_figures_ascend_and_count_every_frame(load_pps: float, sent: int) -> None:
    row = latency(load_pps, sent=sent)
    assert row.received == HdrHistogram.decode(row.histogram).get_total_count() == sent
    figures = [row.min_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns]
    assert figures == sorted(figures)
    assert figures[0] - 1 <= row.mean_ns <= figures[-1] + 1


def test_waiting_is_that_of_the_queue() -> None:
    """Mean waiting of M/D/1 at 80 %: 2 service times, of a vector of 32 packets."""
    idle, busy = (latency(share * CAPACITY, hops=0, sent=100_000) for share in (0.0, 0.8))
    assert busy.mean_ns - idle.mean_ns == pytest.approx(2 * 32 / CAPACITY * 1e9, rel=0.1)


@pytest.mark.parametrize("sent", [0, 100])
def test_lost_packets_have_no_latency(sent: int) -> None:
    row = latency(1e6, sent=sent, received=0)
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
        of_way = [row for row in rows if row.direction is each.direction]
        assert sum(row.mean_s for row in of_way) == pytest.approx(each.mean_ns / 1e9, abs=2e-9)
        assert {row.packets for row in of_way} == {each.received}
    return {owner: fmean(row.mean_s for row in rows if row.owner == owner) for owner in OWNERS}, result


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise": 0.2},
        {"host_gap_hz": 50.0, "host_gap_us": 800.0},
        {"power": {"platform_w": 80.0, "sleep_us": 60.0}},
        {"impaired": [{"chain": KINDS, "nf": "nf-1-2", "loss_ratio": 0.3, "delay_s": 0.001}]},
    ],
)
def test_parts_add_up_to_the_simulated_latency(parameters: dict[str, object]) -> None:
    for load_share in (0.0, 0.8):
        assert min(timed(Bed(PLAN, **parameters), load_share)[0].values()) > 0


@pytest.mark.parametrize(("nf", "delay_s"), [("nf-1-1", 20e-6), ("nf-1-3", 20e-6), ("nf-1-3", 500e-6)])
def test_a_delay_is_that_of_the_impaired_nf(nf: str, delay_s: float) -> None:
    before, _ = timed(Bed(PLAN))
    after, _ = timed(Bed(PLAN, impaired=[{"chain": KINDS, "nf": nf, "delay_s": delay_s}]))
    more = {owner: after[owner] - before[owner] for owner in OWNERS}
    assert more.pop(nf) == pytest.approx(delay_s, rel=0.05)
    assert max(map(abs, more.values())) < 0.02 * delay_s + 1e-6


@pytest.mark.parametrize("limit", ["vswitch", "nf-1-2"])
def test_packets_wait_at_the_limit_and_nowhere_else(limit: str) -> None:
    bed = Bed(PLAN, limited_by=limit)
    idle, busy = timed(bed)[0], timed(bed, 0.9)[0]
    more = {owner: busy[owner] - idle[owner] for owner in OWNERS}
    assert more.pop(limit) > 2e-6
    assert max(map(abs, more.values())) < 1e-6


def test_a_path_that_is_broken_has_no_delays() -> None:
    bed = Bed(PLAN, drop_at=["nf-1-2"])
    hops = SimHopTimer(bed.system)
    hops.start()
    bed.run(0.0, probe_pps=200.0)
    assert hops.stop() == ()


ROUTER, NGREP, TCPDUMP = NfKind("linux_router"), NfKind("ngrep"), NfKind("tcpdump")


def chain(*kinds: NfKind, taps: tuple[Tap, ...] = (), limits: tuple[Limits, ...] = ()) -> Cell:
    return cell_of("CSC", 1, len(kinds), nf_kinds=kinds, taps=taps, limits=limits)


def test_a_slow_tap_loses_alone_and_is_as_busy_as_its_capacity_says() -> None:
    running = sharp_bed(chain(ROUTER, taps=(Tap(position=2, kind=NGREP),)))
    sampler, most = SimSampler(running.system), one_pps(NGREP, 1.0)
    before = sampler.read()
    assert running.run(0.5 * most).loss_ratio == 0
    after = sampler.read()
    assert after.threads["csn1t1"].running_ns - before.threads["csn1t1"].running_ns == pytest.approx(0.5e9)
    assert after.threads["csv1t1"].running_ns == 0, "and not the port towards it"
    counted = running.counters()["csn1t1"].rx_packets
    assert running.run(2 * most).loss_ratio == 0
    here = running.counters()
    assert here["csn1t1"].rx_packets - counted == pytest.approx(most, rel=1e-6)
    assert here["csv1t1"].tx_dropped == pytest.approx(most, rel=1e-6)
    assert here["csv1x1i2"].tx_dropped == here["csv1p2"].tx_dropped == 0


def test_what_an_nf_loses_its_taps_behind_do_not_see() -> None:
    running = sharp_bed(
        chain(NfKind("linux_firewall"), taps=(Tap(position=1, kind=TCPDUMP), Tap(position=2, kind=TCPDUMP)))
    )
    load = 1.25 * running.system.capacity_pps(SMALL)
    assert running.run(load).loss_ratio == pytest.approx(0.2, abs=1e-5)
    rows = [running.counters()[f"csv1t{number}"] for number in (1, 2)]
    # Each way half of the load: before the NF all of it, behind it what is left.
    assert [row.tx_packets + row.tx_dropped for row in rows] == pytest.approx([0.9 * load] * 2, rel=1e-3)


def test_a_limited_nf_does_less_and_uses_no_more_than_its_limit() -> None:
    """The planted fault: the truth that an analysis has to find."""
    free, limited = chain(ROUTER, ROUTER), chain(ROUTER, ROUTER, limits=(Limits(), Limits(cpu=0.5)))
    running = sharp_bed(limited)
    capacity = running.system.capacity_pps(SMALL)
    assert capacity == pytest.approx(capacity_pps(free, SMALL) / 4)  # 0.5 of the two CPUs of a core
    assert running.system.limit_owners(SMALL) == {"nf-1-2"}
    running.run(3 * capacity)
    assert running.system.used_s()["nf-1-2"] == pytest.approx(0.5)
    assert running.system.used_s()["nf-1-1"] > 0.5


@pytest.mark.parametrize("kind", [kind for kind in TOPOLOGY.dut.offered if kind != "sim"])
def test_every_kind_lets_packets_through_at_a_capacity_of_its_own(kind: NfKind) -> None:
    programs = (UserProgram(start=("cat",)),) if kind == "process" else ()
    running = sharp_bed(cell_of(nf_kinds=(kind,), programs=programs))
    assert running.system.capacity_pps(SMALL) == one_pps(kind, 1.0) < one_pps(NfKind("sim"), 1.0)
    assert running.complaints() == ()


Runs = Mapping[tuple[str, ...], ChainRun]
VNFS = (
    VnfSpec(name="gateway", kind=NfKind("linux_gateway")),
    VnfSpec(name="ips", kind=NfKind("suricata")),
    VnfSpec(name="monitor", kind=NfKind("tcpdump"), mode=Mode.PASSIVE),
)
SPEC = ChainStudySpec(
    name="study", vnfs=VNFS, workloads=(Workload(volume_bps=40e6, frame=frame("64B")),), lengths=(2, 3), duration_s=5
)
FAULTY = ("monitor", "ips", "gateway")
FAULTS = {"loss_ratio": 0.1, "queue_loss_ratio": 0.1, "stolen_ratio": 0.6, "delay_s": 50e-6}
CHAIN = ["tcpdump", "suricata", "linux_gateway"]


def measured(spec: ChainStudySpec = SPEC, *faults: dict[str, object]) -> Runs:
    impaired = [{"chain": CHAIN, "nf": "nf-1-1", **fault} for fault in faults]
    topology = SIM.model_copy(update={"simulation": {**SIM.simulation, "impaired": impaired}})
    world = SimulatedTestbed(topology)
    return {run.chain.order: run for run in ChainStudyTest(topology, world, spec, world.environment()).run().runs}


def feature(run: ChainRun, owner: str, name: str) -> float:
    (series,) = [each for each in run.series if (each.owner, each.feature) == (owner, name)]
    return fmean(value for value in series.values if value is not None)


@pytest.fixture(scope="module")
def healthy() -> Runs:
    return measured()


def test_a_fault_costs_its_chain_alone_and_shows_where_it_is(healthy: Runs) -> None:
    """Other chains and the NF alone are as they were."""
    assert healthy[FAULTY].loss_ratio == feature(healthy[FAULTY], "vswitch", "tx_dropped_pps") == 0
    assert feature(healthy[FAULTY], "ips", "waiting_percent") == 0
    rows = [measured(SPEC, {name: size}) for name, size in FAULTS.items()]
    assert all({order for order in found if found[order] != healthy[order]} == {FAULTY} for found in rows)
    inside, queue, stolen, delayed = (found[FAULTY] for found in rows)
    assert inside.loss_ratio == pytest.approx(0.1, rel=0.01)
    assert feature(inside, "vswitch", "tx_dropped_pps") == feature(inside, "ips", "rx_dropped_pps") == 0, "by no port"
    assert 0.02 < queue.loss_ratio < 0.06, "at some 42 % of what the slowest NF can"
    assert feature(queue, "vswitch", "tx_dropped_pps") > 0 < stolen.loss_ratio
    assert feature(stolen, "ips", "waiting_percent") > 40
    assert feature(stolen, "ips", "cpu_percent") == pytest.approx(80, rel=0.05), "40 % of two CPUs: it is saturated"
    assert delayed.latency_s - healthy[FAULTY].latency_s == pytest.approx(50e-6, rel=0.05)
    assert delayed.idle_latency_s - healthy[FAULTY].idle_latency_s == pytest.approx(50e-6, rel=0.05)


def test_without_memory_for_its_working_set_an_nf_reads_pages_again_and_slows_down(healthy: Runs) -> None:
    fault = Fault(chain=FAULTY, vnf="ips", limits=Limits(memory_mib=64))
    here = measured(SPEC.model_copy(update={"faults": (fault,)}))[FAULTY]
    assert feature(here, "ips", "memory_bytes") == pytest.approx(64 * 2**20, rel=0.05)
    assert feature(healthy[FAULTY], "ips", "memory_bytes") > 200 * 2**20
    assert feature(here, "ips", "read_bytes_per_s") > 2**20 > feature(healthy[FAULTY], "ips", "read_bytes_per_s")
    assert here.loss_ratio > 0.3


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([{"nf": "nf-1-9", "loss_ratio": 0.1}], "nf-1-9: the chain has nf-1-1, nf-1-2, tap-1-1"),
        ([{"delay_s": 1e-3}, {"loss_ratio": 0.1}], "nf-1-1: it has two faults"),
        ([{"nf": "tap-1-1", "loss_ratio": 0.1}], "tap-1-1: it is passive"),
    ],
)
def test_a_fault_that_changes_nothing_is_refused(faults: list[dict[str, object]], message: str) -> None:
    found = measured(SPEC.model_copy(update={"least_measured": 0.0}), *faults)
    (failed,) = {run.failed for run in found.values() if run.failed}
    assert message in failed


@settings(max_examples=share(25), deadline=None)
@given(
    st.builds(
        PacketLosses, queue=st.integers(1, 300), pause_every_s=st.just(0.02), pause_s=st.floats(0, 0.01),
        random_ratio=st.floats(0, 0.5), detour_ratio=st.floats(0, 0.5), detour_s=st.just(0.001),
    ),
    st.floats(0.1, 2),
    st.integers(1, 3000),
)  # fmt: skip
def test_every_mechanism_has_a_sentence(truth: PacketLosses, utilization: float, packets: int) -> None:
    load_pps = 100_000.0
    found = flow_losses(
        truth, flow_of(), Random(1), packets=packets, load_pps=load_pps, capacity_pps=load_pps / utilization,
        begin_ns=10**18,
    )  # fmt: skip
    assert losses_in_words(found)
    assert (pattern_of(found) is LossPattern.NONE) is (found.received == found.sent)
    assert FlowLosses.model_validate_json(found.model_dump_json()) == found


def test_loads_are_ndr_pdr_and_an_overload() -> None:
    assert loss_loads(100.0, 110.0, 500.0) == (("NDR", 100.0), ("PDR", 110.0), ("OVERLOAD", 132.0))
    assert loss_loads(None, 100.0, 110.0) == (("PDR", 100.0), ("OVERLOAD", 110.0))
    assert loss_loads(100.0, 110.0, 110.0) == (("NDR", 100.0), ("PDR", 110.0))
    assert loss_loads(None, None, 110.0) == (("OVERLOAD", 110.0),)


POOL = BufferPool(buffers=500, buffer_bytes=2048, hold_s=0.01)


def erlang_b(servers: int, load: float) -> float:
    """The usual recursion."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.5, 4.0])
def test_packets_are_refused_as_erlangs_formula_says(share: float) -> None:
    assert POOL.refused_ratio(share * POOL.capacity_pps) == pytest.approx(erlang_b(500, share * 500), rel=1e-9)

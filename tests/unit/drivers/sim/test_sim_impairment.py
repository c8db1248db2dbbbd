"""Faults of one NF in one simulated chain: each changes what it should there, and nothing in other chains."""

from collections.abc import Mapping
from random import Random
from statistics import fmean
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.impairment import BufferPool, PacketLosses, flow_losses
from resources.libraries.python.model.measurements.trial import Direction, FlowLosses
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.losses import LossPattern, loss_loads, losses_in_words, pattern_of
from resources.libraries.python.studies.chains.model.record import ChainRun
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, Mode, VnfSpec, Workload
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed
from tests.unit.examples import share

VNFS = (
    VnfSpec(name="gateway", kind=NfKind("linux_gateway")),
    VnfSpec(name="ips", kind=NfKind("suricata")),
    VnfSpec(name="monitor", kind=NfKind("tcpdump"), mode=Mode.PASSIVE),
)
SPEC = ChainStudySpec(
    name="study", vnfs=VNFS, workloads=(Workload(volume_bps=40e6, frame=frame("64B")),), lengths=(2, 3), duration_s=5
)
FAULTY = ("monitor", "ips", "gateway")
KINDS = ["tcpdump", "suricata", "linux_gateway"]


def measured(spec: ChainStudySpec = SPEC, **impairment: float) -> Mapping[tuple[str, ...], ChainRun]:
    simulation = dict(SIM.simulation or {})
    if impairment:
        simulation["impaired"] = [{"chain": KINDS, "nf": "nf-1-1", **impairment}]
    topology = SIM.model_copy(update={"simulation": simulation})
    world = SimulatedTestbed(topology)
    study = ChainStudyTest(topology, world, spec, world.environment()).run()
    return {run.chain.order: run for run in study.runs}


def feature(run: ChainRun, owner: str, name: str) -> float:
    (series,) = [each for each in run.series if (each.owner, each.feature) == (owner, name)]
    return fmean(value for value in series.values if value is not None)


@pytest.fixture(scope="module")
def healthy() -> Mapping[tuple[str, ...], ChainRun]:
    return measured()


def test_losses_inside_an_nf_are_counted_by_no_port(healthy: Mapping[tuple[str, ...], ChainRun]) -> None:
    here = measured(loss_ratio=0.1)[FAULTY]
    assert here.loss_ratio == pytest.approx(0.1, rel=0.01)
    assert healthy[FAULTY].loss_ratio == 0
    for name in ("rx_dropped_pps", "tx_dropped_pps"):
        assert feature(here, "ips", name) == feature(here, "vswitch", name) == 0
    assert feature(here, "gateway", "tx_pps") < feature(healthy[FAULTY], "gateway", "tx_pps")


def test_what_a_short_queue_drops_is_counted_and_grows_with_the_load(
    healthy: Mapping[tuple[str, ...], ChainRun],
) -> None:
    here = measured(queue_loss_ratio=0.1)[FAULTY]
    assert here.loss_ratio is not None
    assert 0.02 < here.loss_ratio < 0.06  # at some 42 % of what the slowest NF can
    assert feature(here, "vswitch", "tx_dropped_pps") > 0
    assert feature(healthy[FAULTY], "vswitch", "tx_dropped_pps") == 0


def test_a_delay_is_in_the_latency_with_and_without_load(healthy: Mapping[tuple[str, ...], ChainRun]) -> None:
    here, other = measured(delay_s=50e-6)[FAULTY], healthy[FAULTY]
    for name in ("latency_s", "idle_latency_s"):
        assert getattr(here, name) - getattr(other, name) == pytest.approx(50e-6, rel=0.05)


def test_a_co_located_load_makes_an_nf_wait_and_halves_its_capacity(
    healthy: Mapping[tuple[str, ...], ChainRun],
) -> None:
    here = measured(stolen_ratio=0.6)[FAULTY]
    assert feature(here, "ips", "waiting_percent") > 40
    assert feature(healthy[FAULTY], "ips", "waiting_percent") == 0
    assert feature(here, "ips", "cpu_percent") == pytest.approx(80, rel=0.05)  # 40 % of two CPUs: it is saturated
    assert here.loss_ratio is not None
    assert here.loss_ratio > 0


def test_without_memory_for_its_working_set_an_nf_reads_pages_again_and_slows_down(
    healthy: Mapping[tuple[str, ...], ChainRun],
) -> None:
    fault = Fault(chain=FAULTY, vnf="ips", limits=Limits(memory_mib=64))
    here = measured(SPEC.model_copy(update={"faults": (fault,)}))[FAULTY]
    assert feature(here, "ips", "memory_bytes") == pytest.approx(64 * 2**20, rel=0.05)
    assert feature(healthy[FAULTY], "ips", "memory_bytes") > 200 * 2**20
    assert feature(here, "ips", "read_bytes_per_s") > 2**20 > feature(healthy[FAULTY], "ips", "read_bytes_per_s")
    assert here.loss_ratio is not None
    assert here.loss_ratio > 0.3


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([{"nf": "nf-1-9", "loss_ratio": 0.1}], "nf-1-9: the chain has nf-1-1, nf-1-2, tap-1-1"),
        ([{"nf": "nf-1-1", "delay_s": 1e-3}, {"nf": "nf-1-1", "loss_ratio": 0.1}], "nf-1-1: it has two faults"),
        ([{"nf": "tap-1-1", "loss_ratio": 0.1}], "tap-1-1: it is passive"),
    ],
)
def test_a_fault_that_changes_nothing_is_refused(faults: list[dict[str, object]], message: str) -> None:
    simulation = {**(SIM.simulation or {}), "impaired": [{"chain": KINDS, **fault} for fault in faults]}
    topology = SIM.model_copy(update={"simulation": simulation})
    world = SimulatedTestbed(topology)
    spec = SPEC.model_copy(update={"least_measured": 0.0})
    found = ChainStudyTest(topology, world, spec, world.environment()).run()
    (failed,) = {run.failed for run in found.runs if run.failed}
    assert failed is not None and message in failed


@pytest.mark.parametrize("impairment", [{"loss_ratio": 0.1}, {"delay_s": 1e-3}, {"stolen_ratio": 0.9}])
def test_other_chains_and_the_nf_alone_are_as_they_were(
    healthy: Mapping[tuple[str, ...], ChainRun], impairment: dict[str, float]
) -> None:
    found = measured(**impairment)
    assert {order for order in found if found[order] != healthy[order]} == {FAULTY}


FLOW = cast(Any, SimpleNamespace(instance=1, direction=Direction.FORWARD))
LOAD_PPS = 100_000.0


def lost_by(truth: PacketLosses, *, utilization: float = 0.5, packets: int = 100_000, seed: int = 1) -> FlowLosses:
    return flow_losses(
        truth,
        FLOW,
        Random(seed),
        packets=packets,
        load_pps=LOAD_PPS,
        capacity_pps=LOAD_PPS / utilization,
        begin_ns=10**18,
    )


@settings(max_examples=share(25), deadline=None)
@given(
    st.integers(1, 300),
    st.floats(0, 0.01),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
    st.floats(0.1, 2),
    st.integers(1, 3000),
)
def test_every_mechanism_has_a_sentence(  # noqa: PLR0917 - drawn
    queue: int, pause_s: float, random_ratio: float, detour_ratio: float, utilization: float, packets: int
) -> None:
    truth = PacketLosses(
        queue=queue,
        pause_every_s=0.02,
        pause_s=pause_s,
        random_ratio=random_ratio,
        detour_ratio=detour_ratio,
        detour_s=0.001,
    )
    found = lost_by(truth, utilization=utilization, packets=packets)
    assert losses_in_words(found)
    assert (pattern_of(found) is LossPattern.NONE) is (found.received == found.sent)
    assert FlowLosses.model_validate_json(found.model_dump_json()) == found


def test_loads_are_ndr_pdr_and_an_overload() -> None:
    assert loss_loads(100.0, 110.0, 500.0) == (("NDR", 100.0), ("PDR", 110.0), ("OVERLOAD", 132.0))
    assert loss_loads(None, 100.0, 110.0) == (("PDR", 100.0), ("OVERLOAD", 110.0))
    assert loss_loads(100.0, 110.0, 110.0) == (("NDR", 100.0), ("PDR", 110.0))
    assert loss_loads(None, None, 110.0) == (("OVERLOAD", 110.0),)


FIREWALL = NfKind("linux_firewall")
POOL = BufferPool(buffers=500, buffer_bytes=2048, hold_s=0.01)
MIB = 2**20


def erlang_b(servers: int, load: float) -> float:
    """The usual recursion."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.5, 4.0])
def test_packets_are_refused_as_erlangs_formula_says(share: float) -> None:
    assert POOL.refused_ratio(share * POOL.capacity_pps) == pytest.approx(erlang_b(500, share * 500), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 1.5])
def test_buffers_in_use_have_the_mean_of_what_is_not_refused_and_never_more_than_there_are(share: float) -> None:
    load_pps, rng = share * POOL.capacity_pps, Random(1)
    drawn = [POOL.draw_bytes(load_pps, rng) / POOL.buffer_bytes for _ in range(300)]
    taken = share * 500 * (1 - POOL.refused_ratio(load_pps))
    assert fmean(drawn) == pytest.approx(taken, rel=0.01, abs=0.1)
    assert max(drawn) <= 500


def bed(**parameters: object) -> Bed:
    cell = Cell(service_type=ServiceType.CSP, nf_chains=2, nf_nodes=2, nf_kinds=(NfKind("linux_router"), FIREWALL))
    return Bed(make_plan(TOPOLOGY, cell, TOPOLOGY.dut.layout), model="sharp", **parameters)


def test_an_nf_with_a_pool_loses_what_finds_no_buffer_and_its_memory_ends_there() -> None:
    made = bed(buffer_pools={FIREWALL: POOL})
    empty = made.system.sample().memory_bytes
    low, high = 2 * 0.5 * POOL.capacity_pps, 2 * 2 * POOL.capacity_pps  # of two services
    assert made.run(low).loss_ratio == 0
    some = made.system.sample().memory_bytes
    result = made.run(high)
    full = made.system.sample().memory_bytes
    assert high < made.system.capacity_pps(SMALL), "the CPUs can do more"
    assert result.loss_ratio == pytest.approx(POOL.refused_ratio(high / 2), rel=1e-3)
    for name in ("nf-1-2", "nf-2-2"):
        assert empty[name] < some[name] < full[name] <= empty[name] + POOL.buffers * POOL.buffer_bytes
    assert {name: used for name, used in full.items() if name.endswith("-1")} == {
        name: used for name, used in empty.items() if name.endswith("-1")
    }, "routers have none"


def test_packets_that_are_refused_cost_no_cpu_time() -> None:
    without, limited = bed(), bed(buffer_pools={FIREWALL: POOL})
    for made in (without, limited):
        made.run(2 * 2 * POOL.capacity_pps)
    ratio = limited.system.used_s()["nf-1-2"] / without.system.used_s()["nf-1-2"]
    assert ratio == pytest.approx(0.5, rel=0.02)

"""Faults of one NF in one simulated chain: each changes what it should there, and nothing in other chains."""

from collections.abc import Mapping
from statistics import fmean

import pytest

from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.chains.model.record import ChainRun
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, Mode, VnfSpec, Workload
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM

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

"""A sweep with real packets: a firewall alone, the path without it, and bursts; nothing is left behind."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.sweep.model import SweepRecord
from tests.integration.robot_runs import LOCAL, SUITES, network_state, run_robot, wait_for_network_state
from tests.loaded import load

pytestmark = pytest.mark.root


def records(output: Path) -> dict[str, SweepRecord]:
    return {item.record.test_name: item.record for item in load([output / "output.xml"]).characterizations}


def test_a_sweep_and_bursts_through_a_real_firewall(tmp_path: Path) -> None:
    before = network_state()
    # A tenth of what one core forwards, and far more than it can: both ends hold on a loaded machine as well.
    options = ("-v", "SWEEP_RATES:5000-405000/200000", "-v", "SWEEP_DURATION:1", "-v", "FRAME:128B-ip6")
    tests = ("--test", "Firewall", "--test", "Bursts Below Saturation", "--test", "Path Alone")
    sources = [SUITES / name for name in ("sweep.robot", "bursts.robot", "chain.robot")]
    run_robot(tmp_path, *LOCAL, *options, *tests, sources=sources)
    wait_for_network_state(before)
    found = records(tmp_path)

    firewall = found["Firewall"]
    assert not firewall.simulated
    assert firewall.sweep is not None
    assert all(":" in function.left.address for function in firewall.plan.functions), "of IPv6"
    low, *_, high = firewall.sweep.points
    assert low.loss_ratio is not None and high.loss_ratio is not None
    assert low.loss_ratio < 0.1
    assert high.loss_ratio > 0.3
    assert low.sender_pps == pytest.approx(low.input_pps, rel=0.05), "the interface has seen what the generator counted"
    assert low.delay_s is not None and high.delay_s is not None
    assert 1e-6 < low.delay_s < high.delay_s < 10
    assert 0 < low.cpu["nf-1-1"][0] < high.busy["nf-1-1"][0] <= 1
    assert high.busy["nf-1-1"][0] > 0.9, "far above what it forwards it has work all the time"
    assert firewall.profile is not None
    assert low.memory_mib == {}, "a firewall of the kernel has none of its own"
    assert low.available_mib is not None and low.available_mib > 0

    path = found["Path Alone"].sweep
    assert path is not None
    assert path.vnfs == ()
    assert path.points[0].delay_s is not None
    assert 1e-6 < path.points[0].delay_s < 0.1
    assert path.points[0].loss_ratio is not None
    assert path.points[0].loss_ratio < 0.1

    bursts = found["Bursts Below Saturation"]
    assert bursts.sweep is not None
    on = [sample for sample in bursts.sweep.samples if sample.rate_pps]
    off = [sample for sample in bursts.sweep.samples if not sample.rate_pps]
    assert (len(on), len(off)) == (6, 4)
    assert all(sample.input_pps == 0 and sample.delay_s is not None for sample in off), "probes go on"
    assert min(sample.cpu["nf-1-1"][0] for sample in on) > max(sample.cpu["nf-1-1"][0] for sample in off)


@pytest.mark.skipif(bool(vm_missing()), reason="; ".join(map(str, vm_missing())))
@pytest.mark.skipif(path_of("nft") is None, reason="nftables is not installed")
def test_a_sweep_of_a_virtual_machine_has_the_cpu_time_of_its_threads_where_all_share_cpus_too(tmp_path: Path) -> None:
    options = ("-v", "FIREWALL:qemu_firewall", "-v", "SWEEP_RATES:200-1000/800", "-v", "SWEEP_DURATION:1")
    run_robot(tmp_path, *LOCAL, *options, "--test", "Firewall With 2 Cores", sources=[SUITES / "sweep.robot"])
    (record,) = records(tmp_path).values()
    assert record.sweep is not None
    (vnf,) = record.sweep.vnfs
    assert (vnf.kind, vnf.vcpus) == (NfKind("qemu_firewall"), len(record.plan.cores.cpus("nf-1-1")))
    low, high = record.sweep.points
    assert len(low.cpu["nf-1-1"]) == vnf.vcpus
    assert all(32 < point.memory_mib["nf-1-1"] < 4096 for point in (low, high)), "resident memory of QEMU"
    # An emulated guest that has just started uses more CPU time than such loads cost.
    assert all(0.005 < sum(point.cpu["nf-1-1"]) <= vnf.vcpus for point in (low, high))

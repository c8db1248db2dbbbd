"""A study of interference with real packets: alone, beside each other, with a guarantee, and nothing is left behind."""

import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.functions.nginx.driver import missing as nginx_missing
from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.studies.interference.model import ColocationMeasurement, Interference, Resource
from tests.integration.robot_runs import (
    PROJECT,
    network_state,
    run_robot,
    small_suite,
    study_record,
    wait_for_network_state,
)

NO_GUESTS = "; ".join(map(str, (*vm_missing(), *nginx_missing())))
NO_NFT = "; ".join(map(str, nft_missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT)]
SPEC = """
name: small
frame: 512B
duration_s: 0.3
repetitions: 1
guarantee: true
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: router, type: II, kind: linux_router}
"""
VM = """
name: machines
frame: 512B
load_pps: 100
duration_s: 2
repetitions: 1
contenders: [{name: proxy, type: IV, kind: qemu_nginx_proxy}]
"""


def run(folder: Path, spec: str) -> subprocess.CompletedProcess[str]:
    """A run of one study; what it wrote is in `out`."""
    # On a busy machine that emulates the guests' CPUs, two of them boot for minutes.
    topology = (PROJECT / "topologies" / "local.yaml").read_text()
    (folder / "local.yaml").write_text(topology.replace("    vms: ", "    vm: {boot_within_s: 300}\n    vms: "))
    suite = small_suite(folder, "interference", spec)
    return run_robot(folder / "out", "-v", f"TOPOLOGY:{folder / 'local.yaml'}", sources=[suite], check=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Interference:
    """What came of one run."""
    folder, before = tmp_path_factory.mktemp("interference"), network_state()
    done = run(folder, SPEC)
    assert done.returncode == 0, done.stdout + done.stderr
    wait_for_network_state(before)
    found: Interference = study_record(folder / "out").interference
    assert (folder / "out" / "characterization" / "Small" / "interference_matrix.csv").exists()
    return found


def of(study: Interference, target: str, *against: str, guaranteed: bool = False) -> ColocationMeasurement:
    return next(
        each
        for each in study.measurements
        if (each.target, each.against, each.guaranteed) == (target, against, guaranteed)
    )


def test_all_combinations_were_measured_with_and_without_a_guarantee(study: Interference) -> None:
    assert len(study.measurements) == 10, "alone once: the baseline has no limit"
    assert len(study.matrix) == len(study.guaranteed) == 4
    for row in study.matrix:
        assert 0.05 < row.mean < 1.5
    for each in study.measurements:
        assert each.throughput_pps > 100
        assert each.response_s and 1e-6 < each.response_s < 1
        assert each.loss_ratio is not None and 0 <= each.loss_ratio < 1
        assert each.cpu and 0.001 < each.cpu < 2.2, "the threads of the kernel that work for its ports"


def test_beside_others_each_gets_its_share_and_no_more_and_alone_all_that_it_can(study: Interference) -> None:
    share_pps = of(study, "gateway", "router", guaranteed=True).limit_pps
    assert share_pps is not None and share_pps >= 0.999 * study.measurements[0].load_pps / 1.2 / 2
    for name in ("gateway", "router"):
        alone = of(study, name)
        assert alone.limit_pps is None
        for other in ("gateway", "router"):
            held = of(study, name, other, guaranteed=True)
            # What the bucket holds at the beginning comes on top: 10 ms of 300.
            assert held.limit_pps == share_pps
            assert 0.3 * share_pps < held.throughput_pps < 1.06 * share_pps
        too_little = [note for note in study.notes if note.startswith(f"{name} is excluded from the share")]
        assert len(too_little) == (share_pps < alone.throughput_pps)
    assert study.findings is not None
    of_network = [
        each for each in study.findings.shares if each.resource is Resource.NETWORK and not each.target and each.share
    ]
    is_held = [share_pps < of(study, name).throughput_pps for name in ("gateway", "router")]
    assert bool(of_network) != all(is_held)


def test_hardware_counters_are_there_or_their_absence_is_noted_once(study: Interference) -> None:
    counted = all(each.cache_misses is not None for each in study.measurements)
    said = [note for note in study.notes if note.startswith("cache misses were not counted: ")]
    assert len(said) == (0 if counted else 1)


@pytest.mark.skipif(bool(NO_GUESTS), reason=NO_GUESTS)
def test_nginx_in_a_virtual_machine_meets_its_like(tmp_path: Path) -> None:
    before = network_state()
    done = run(tmp_path, VM)
    assert done.returncode == 0, done.stdout + done.stderr
    wait_for_network_state(before)
    found = study_record(tmp_path / "out").interference
    assert sorted(each.against for each in found.measurements) == [(), ("proxy",)]
    assert [(row.target, row.against) for row in found.matrix] == [("proxy", ("proxy",))]
    for each in found.measurements:
        assert 10 < each.throughput_pps < 101, found.notes
        assert each.cpu and each.cpu > 0.01, "QEMU with all its vCPUs, and the threads of its ports"
        assert each.memory_bytes and each.memory_bytes > 100 << 20, "of the guest"


@pytest.mark.parallel
def test_a_kind_that_the_testbed_lacks_is_skipped_in_one_sentence(tmp_path: Path) -> None:
    before = network_state()
    done = run(tmp_path, SPEC.replace("kind: linux_router", "kind: testpmd"))
    assert done.returncode == 0 and "1 skipped" in done.stdout, done.stdout
    assert "testpmd" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    wait_for_network_state(before)

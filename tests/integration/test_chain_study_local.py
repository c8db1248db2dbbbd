"""A study of chains with real packets: the throttled NF is found, what it does is sampled, nothing is left behind."""

import csv
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.functions.nginx.driver import missing as nginx_missing
from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.drivers.host.cpu.thread_scheduling import hold_back, is_held_back
from resources.libraries.python.model.measurements.features import HOST, VSWITCH
from resources.libraries.python.studies.chains.model import ChainRun, ChainStudy
from resources.libraries.python.studies.chains.planning import LEAD_S
from tests.integration.lab_runs import RT_LIMIT
from tests.integration.robot_runs import (
    LOCAL,
    network_state,
    run_robot,
    small_suite,
    study_record,
    wait_for_network_state,
)

NO_GUESTS = "; ".join(map(str, (*vm_missing(), *nginx_missing())))
NO_NFT = "; ".join(map(str, nft_missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT)]
RING = 256
"""Packets that wait at a veth port at most."""
SPEC = """
name: small
vnfs:
  - {name: router, kind: linux_router}
  - {name: nat, kind: linux_nat}
  - {name: monitor, kind: tcpdump, mode: passive}
policies: [monitor > nat, monitor | router]
lengths: [2]
workloads: {protocols: [UDP], volumes_mbps: [4], sessions: [4], frames: [64B]}
duration_s: 1
faults:
  - {chain: [nat, router], vnf: nat, limits: {cpu: 0.02}}
"""
SLOWED = """
name: slowed
vnfs:
  - {name: router, kind: linux_router}
  - {name: gateway, kind: linux_gateway}
  - {name: nat, kind: linux_nat}
policies: [router > gateway]
lengths: [2]
workloads: {protocols: [UDP], volumes_mbps: [4], sessions: [4], frames: [64B]}
duration_s: 1
faults:
  - {vnf: nat, limits: {cpu: 0.02}}
"""
LOSSY = """
name: lossy
vnfs:
  - {{name: router, kind: linux_router}}
  - {{name: gateway, kind: linux_gateway}}
  - {{name: meter, kind: process, program: {{start: [sh, {script}, "{{left}}"]}}}}
lengths: [2]
workloads: {{protocols: [UDP], volumes_mbps: [4], sessions: [4], frames: [64B]}}
duration_s: 1
"""
LOSES = """
nft -f - <<END
table ip loses {
    chain here {
        type filter hook prerouting priority 0
        iifname $1 ip ttl < 64 numgen inc mod 250 == 0 drop
    }
}
END
exec sleep 3600
"""
"""A program that loses one of 250 packets that come from the left and have been forwarded before."""
VM = """
name: machine
vnfs: [{name: machine, kind: qemu}]
workloads: {protocols: [UDP], volumes_mbps: [1], sessions: [4], frames: [64B]}
duration_s: 1
faults: [{chain: [machine], vnf: machine, limits: {cpu: 0.1}}]
"""
GUESTS = """
name: guests
vnfs:
  - {name: wall, kind: qemu_firewall}
  - {name: proxy, kind: qemu_nginx_proxy}
policies: [wall & proxy, wall > proxy]
lengths: [2]
workloads: {protocols: [UDP], volumes_mbps: [0.2], sessions: [4], frames: [64B]}
duration_s: 1
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run."""
    return studied(tmp_path_factory.mktemp("chains"), SPEC, "Study Should Rank Planted Faults First")


def studied(folder: Path, spec: str, then: str = "No Operation") -> Path:
    before = network_state()
    run_robot(folder / "out", *LOCAL, sources=[small_suite(folder, "chains", spec, then)])
    wait_for_network_state(before)
    return folder / "out"


@pytest.fixture(scope="module")
def study(output: Path) -> ChainStudy:
    """What came of it."""
    return study_in(output)


def study_in(output: Path) -> ChainStudy:
    found: ChainStudy = study_record(output).chain_study
    return found


def values(run: ChainRun, owner: str, feature: str) -> tuple[float | None, ...]:
    return next(row.values for row in run.series if (row.owner, row.feature) == (owner, feature))


def of(study: ChainStudy, *order: str) -> ChainRun:
    return max((run for run in study.runs if run.chain.order == order), key=lambda run: run.offered_bps)


def test_the_throttled_nf_is_found_first(study: ChainStudy) -> None:
    first = study.suspects[0]
    assert first.chain.order == ("nat", "router")
    assert first.planted == "nat is limited to 0.02 CPUs"
    assert all(run.failed is None for run in study.runs)
    throttled, free = of(study, "nat", "router"), of(study, "router", "nat")
    assert throttled.share and free.share
    assert throttled.share < 0.8 * free.share
    assert sum(map(float, filter(None, values(throttled, "nat", "cpu_percent")))) < 4
    assert all(value is not None and value > 50 for value in values(throttled, "nat", "throttled_percent"))
    assert values(free, "nat", "throttled_percent") == (0.0,)


@pytest.mark.parametrize("_study", range(3))
def test_an_nf_that_is_slowed_in_all_chains_with_it_is_named(_study: int, tmp_path: Path) -> None:
    slowed = study_in(studied(tmp_path, SLOWED))
    first = slowed.causes[0]
    assert (first.owner, first.what, first.others) == ("nat", "every chain with nat", 0)
    with_nat = {run.chain for run in slowed.runs if len(run.chain.members) > 1 and "nat" in run.chain.order}
    assert set(first.chains) == with_nat
    assert with_nat <= {suspect.chain for suspect in slowed.suspects if suspect.worse}
    assert len(with_nat) == 4


def test_two_of_a_thousand_packets_that_one_part_loses_behind_others_are_found_there(tmp_path: Path) -> None:
    script = tmp_path / "loses.sh"
    script.write_text(LOSES)
    lossy = study_in(studied(tmp_path, LOSSY.format(script=script)))
    first = lossy.causes[0]
    assert (first.owner, first.feature) == ("meter", "loss_ratio")
    assert {chain.order for chain in first.chains} == {("router", "meter"), ("gateway", "meter")}
    assert first.excess == pytest.approx(0.002, abs=0.0005)


def test_the_study_counts_what_its_own_steps_take_of_a_cpu(study: ChainStudy) -> None:
    costs = {each.step: each for each in study.costs}
    traced = any(run.graphs for run in study.runs)
    assert list(costs) == ["deploy and remove", "sample features", *(["read kernel events"] * traced), "analyse"]
    for each in study.costs:
        assert 0 < each.cpu_s < 2 * each.lasted_s, each
    watched_s = len(study.runs) * (study.spec.duration_s + LEAD_S)
    assert costs["sample features"].lasted_s >= watched_s
    assert costs["sample features"].cpu_s < 0.2 * watched_s, "the sampler takes little of a CPU"


def test_work_of_the_kernel_is_charged_to_the_nf_that_it_serves(study: ChainStudy) -> None:
    run = of(study, "router", "nat")
    for owner in ("router", "nat", VSWITCH):
        assert values(run, owner, "helper_percent")[0], f"the napi threads of {owner} had work"
    received = values(run, "nat", "rx_pps")[0]
    assert received == pytest.approx(2 * 4e6 / 8 / 64, rel=0.1), "both directions cross it"
    assert values(run, HOST, "all_switches")[0]


def test_packets_wait_behind_the_vswitch_where_an_nf_is_throttled(study: ChainStudy) -> None:
    (waiting,) = values(of(study, "nat", "router"), VSWITCH, "queued_packets")
    (none,) = values(of(study, "router", "nat"), VSWITCH, "queued_packets")
    assert waiting is not None and none is not None
    assert none < 64 < waiting <= 2 * RING, "both ways have a ring into the throttled NF"


@pytest.mark.skipif(bool(vm_missing()), reason="; ".join(map(str, vm_missing())))
def test_what_a_virtual_machine_does_is_charged_to_it_and_may_be_limited(tmp_path: Path) -> None:
    (run,) = study_in(studied(tmp_path, VM)).runs
    assert run.failed is None
    assert values(run, "machine", "rx_pps")[0] == pytest.approx(2 * 1e6 / 8 / 64, rel=0.1)
    (guest,), (helpers,) = values(run, "machine", "guest_cpu_percent"), values(run, "machine", "helper_percent")
    (whole,) = values(run, "machine", "cpu_percent")
    assert guest and helpers and whole, "its vCPUs, the threads of the kernel that work for it, all of QEMU"
    assert helpers < whole < 25, "it would take 31 % without its quota"
    assert values(run, "machine", "throttled_percent")[0], "it stands still for most of the time"
    assert [graph.owner for graph in run.graphs] == ["machine"]


@pytest.mark.skipif(bool(NO_GUESTS), reason=NO_GUESTS)
def test_a_chain_of_nftables_and_nginx_in_virtual_machines_is_measured_and_its_parts_alone(tmp_path: Path) -> None:
    study = study_in(studied(tmp_path, GUESTS))
    assert {run.chain.order for run in study.runs} == {("wall",), ("proxy",), ("wall", "proxy")}
    for run in study.runs:
        assert run.failed is None
        assert run.share and run.share > 0.8
        assert run.latency_s and 1e-6 < run.latency_s < 10
        for owner in run.chain.order:
            (received,), (memory,) = values(run, owner, "rx_pps"), values(run, owner, "memory_bytes")
            assert received == pytest.approx(2 * 0.2e6 / 8 / 64, rel=0.2), "both directions cross it"
            (guest,), (whole,) = values(run, owner, "guest_cpu_percent"), values(run, owner, "cpu_percent")
            assert guest and whole and guest > 0.2
            assert memory and memory > 100 << 20, "of the guest"


def test_a_passive_nf_gets_copies_of_both_directions_and_its_process_is_seen(study: ChainStudy) -> None:
    run = of(study, "monitor", "nat")
    assert values(run, "monitor", "rx_pps")[0] == pytest.approx(2 * 4e6 / 8 / 64, rel=0.1)
    assert values(run, "monitor", "tx_pps")[0] == pytest.approx(0, abs=20)
    assert values(run, "monitor", "memory_bytes")[0]


def test_latency_is_measured_without_and_with_load(study: ChainStudy) -> None:
    for run in study.runs:
        assert run.idle_latency_s and 1e-6 < run.idle_latency_s < 0.1
        assert run.latency_s and 1e-6 < run.latency_s < 10


def test_every_second_of_every_feature_is_in_a_table(output: Path, study: ChainStudy) -> None:
    with (output / "characterization" / "Small" / "samples.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(row.values) for run in study.runs for row in run.series)


@pytest.fixture
def _real_time_without_limit() -> Iterator[None]:
    before = RT_LIMIT.read_text(encoding="ascii")
    RT_LIMIT.write_text("-1", encoding="ascii")
    yield
    RT_LIMIT.write_text(before, encoding="ascii")


@pytest.mark.usefixtures("_real_time_without_limit")
def test_a_thread_that_is_held_back_gets_no_more_than_its_share() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            os.sched_setaffinity(busy.pid, {min(os.sched_getaffinity(0))})
            assert not is_held_back(busy.pid)
            hold_back(busy.pid, 0.05)
            assert is_held_back(busy.pid)
            account = Path(f"/proc/{busy.pid}/schedstat")
            begin, before = time.monotonic(), int(account.read_text().split()[0])
            time.sleep(1.0)
            share = (int(account.read_text().split()[0]) - before) / 1e9 / (time.monotonic() - begin)
            assert 0.03 < share < 0.07
        finally:
            busy.kill()

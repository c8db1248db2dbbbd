"""The suites on this machine: real packets, and nothing left behind, whatever happens to the run."""

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest, VerdictKind
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import shipped
from tests.integration.robot_runs import (
    PROJECT,
    argv,
    environment,
    going_on,
    held_in_a_trial,
    network_state,
    results,
    run_robot,
    variables,
    wait_for_network_state,
)

pytestmark = [pytest.mark.parallel, pytest.mark.root]

LOCAL = variables("TOPOLOGY:topologies/local.yaml NF_SIZES:1c SEARCH:quick,width=0.2,sum=0.6,latency=0.4")
NOISE = ("-v", "NOISE_FLOOR:0.1")
IDLE = "/dev/cpu_dma_latency"
LONG = ("-v", "SEARCH:quick,sum=300,time=600", "--suite", "csc-ndrpdr")
"""A run that goes on until it is ended, in short trials: between them others get the processor."""


def test_a_search_on_real_packets_leaves_the_machine_as_it_was(tmp_path: Path) -> None:
    before = network_state()
    run_robot(tmp_path, *LOCAL, "-v", "CELLS:1x2", "-v", "BACK_TO_BACK:3", *NOISE, "--suite", "csc-ndrpdr")
    wait_for_network_state(before)
    (row,) = results(tmp_path)
    assert not row.simulated
    assert row.back_to_back and len(row.back_to_back.frames) == 3 and row.back_to_back.mean_frames >= 16
    assert row.pdr and row.pdr.lower_pps and row.pdr.lower_pps > 1000
    assert all(each.actual_cpus == (each.planned_cpu,) for each in row.affinity)
    assert row.environment.settings["/proc/sys/kernel/sched_rt_runtime_us"] == "-1"
    assert row.environment.settings.get(IDLE, "0") == "0"
    assert row.noise and all(each.real_time and each.observed_s == 0.1 and each.interrupts for each in row.noise)
    probes = [flow for each in row.latency for flow in each.flows if flow.received]
    assert {(flow.instance, flow.direction) for flow in probes} == {(1, "forward"), (1, "reverse")}
    assert all(flow.p50_ns and 1_000 < flow.p50_ns < 100_000_000 for flow in probes)


def test_after_kill_9_in_a_trial_the_next_run_cleans_up_and_goes_on(tmp_path: Path) -> None:
    before = network_state()
    options = (*LOCAL, "-v", "CELLS:2x2")
    with going_on(tmp_path / "killed", *options, *LONG) as victim:
        with held_in_a_trial(victim, tmp_path / "killed", "CSC 2R2C"):
            assert fingerprint().settings.get(IDLE, "0") == "0"
            victim.send_signal(signal.SIGKILL)
        victim.communicate()
    assert network_state()["namespaces"] > before["namespaces"]
    wait_until("leave to sleep", lambda: "still" if fingerprint().settings.get(IDLE) == "0" else "", 60.0, pause_s=0.1)
    done = run_robot(tmp_path / "next", *LOCAL, "-v", "CELLS:1x1", "--suite", "csc-mrr")
    assert "removed network namespace csit-nf-2-2" in done.stdout + done.stderr
    wait_for_network_state(before)


def test_a_second_run_is_refused_with_the_holder_named_and_ctrl_c_leaves_the_machine_as_it_was(tmp_path: Path) -> None:
    before = network_state()
    with going_on(tmp_path / "first", *LOCAL, "-v", "CELLS:1x1", *LONG) as first:
        with held_in_a_trial(first, tmp_path / "first", "CSC 1R1C"):  # and leaves the processors to the second
            second = run_robot(tmp_path / "second", *LOCAL, "-v", "CELLS:1x1", "--suite", "csc-mrr", check=False)
        assert second.returncode != 0
        assert f"this machine is in use by pid {first.pid}" in second.stdout
        with held_in_a_trial(first, tmp_path / "first", "CSC 1R1C"):
            first.send_signal(signal.SIGINT)
        first.communicate(timeout=600)
    wait_for_network_state(before)
    (row,) = results(tmp_path / "first")
    assert not row.passed
    assert "failed" in row.verdict.kinds


def without_rights(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as root without what root may do."""
    return subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command],
        cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def test_without_the_rights_of_root_one_sentence_says_so_and_doctor_names_the_fix(tmp_path: Path) -> None:
    done = without_rights(*argv(tmp_path / "out", *LOCAL, "-v", "CELLS:1x1", "--suite", "csc-mrr"))
    assert done.returncode != 0
    assert done.stderr.count("CAP_NET_ADMIN") == 1, done.stderr
    assert "run as root" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    told = without_rights(sys.executable, "-m", "csit_utils", "doctor")
    assert told.returncode == 1
    assert "CAP_NET_ADMIN" in told.stdout and "run as root" in told.stdout


def test_too_little_space_for_results_is_reported_before_anything_starts(tmp_path: Path) -> None:
    before = network_state()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)], check=True)
    try:
        done = run_robot(tmp_path, *LOCAL, "-v", "CELLS:1x1", "--suite", "csc-mrr", check=False)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)
    assert done.returncode != 0
    assert "MB of disk space for results, 50.0 MB needed" in done.stdout
    wait_for_network_state(before)


def test_a_broken_path_is_reported_with_the_last_hop_that_saw_packets() -> None:
    """An NF's port goes down behind the generator's back: real counters of real packets name the place."""
    topology, cell = shipped("local"), Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=2)
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=profile("quick"))
    with closing(make_testbed(topology)) as world:
        world.open()
        experiment = DensityTest(topology, world, asked, fingerprint())
        experiment.deploy()
        try:
            experiment.verify_traffic()
            subprocess.run(["ip", "-n", "csit-nf-2-1", "route", "del", "20.2.0.0/16"], check=True)
            with pytest.raises(CsitError, match=r"no traffic: CSC instance 2 forward: 200 sent") as caught:
                experiment.verify_traffic()
        finally:
            assert experiment.remove() is None
    assert "last seen at nf-2-1 csn2x1i1 rx (200), not at nf-2-1 csn2x1i2 tx" in str(caught.value)
    assert "instance 1" not in str(caught.value)
    assert "reverse" not in str(caught.value)
    assert experiment.draft.verdict is not None
    assert experiment.draft.verdict.kinds[0] is VerdictKind.NO_TRAFFIC

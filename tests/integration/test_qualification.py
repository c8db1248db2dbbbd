"""Qualification of the built-in generator on real packets, beside trafgen, and what a run does with it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin.arrivals import ArrivalRing, gap_report
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.measurements.qualification import Qualification
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.quantities import rates
from tests.benchmarks import generator as bench
from tests.integration.lab import Lab
from tests.integration.lab_runs import needs_lab, options, state, topology_of, wait_for_state
from tests.integration.robot_runs import (
    LOCAL,
    PROJECT,
    csit,
    network_state,
    results,
    run_robot,
    variables,
    wait_for_network_state,
)
from tests.veth_pair import veth_pair

pytestmark = pytest.mark.root
LAB = {"cables": 4}
_TRAFGEN = shutil.which("trafgen")
needs_trafgen = pytest.mark.skipif(_TRAFGEN is None, reason="trafgen (netsniff-ng) is not installed")
needs_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a loop-back sends and receives on two CPUs")
BRIEF = ("--brief", "--frames", "64B", "--format", "json")
PACKETS, GAP_US = 2_000, 500
LOW_PPS = 500.0
NEVER_REACHED_PPS = 1e9
MIN_PPS = 20_000
"""What the generator reaches on any machine; that it sends more than trafgen is measured by `./csit bench`."""


@needs_trafgen
def test_arrivals_are_those_that_trafgen_counts_and_spaces() -> None:
    def ring() -> ArrivalRing:
        enter_namespace(bench.NAMESPACE)
        return ArrivalRing(bench.PORTS[1])

    with ExitStack() as stack:
        stack.enter_context(veth_pair(bench.NAMESPACE, bench.PORTS, napi=True))
        frames = stack.enter_context(bench.trafgen_frames())
        with closing(aside(ring)) as arrivals:
            argv = ("ip", "netns", "exec", bench.NAMESPACE, str(_TRAFGEN), "-P", "1", "-n", str(PACKETS))
            done = subprocess.run(
                [*argv, "-t", f"{GAP_US}us", "-i", str(frames), "-o", bench.PORTS[0]],
                capture_output=True, text=True, timeout=600, check=True,
            )  # fmt: skip
            stamps = arrivals.stamps_ns()
    assert f"{PACKETS} packets outgoing" in done.stdout + done.stderr
    assert len(stamps) == PACKETS
    found = gap_report(stamps)
    assert found is not None and found.packets == PACKETS
    assert GAP_US * 1e3 <= found.p50_ns <= 1.5 * GAP_US * 1e3
    assert np.all(np.diff(stamps) >= 0)


@needs_cpus
def test_a_loop_back_is_qualified_by_rates_gaps_and_latency_and_the_result_is_kept(tmp_path: Path) -> None:
    before = network_state()
    done = csit("qualify", "topologies/local.yaml", *BRIEF, "--flows", "1", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    wait_for_network_state(before)
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert MIN_PPS < row["received_pps"] <= 1.01 * row["offered_pps"]
    # Beside a machine's other work every trial may lose something, or be short.
    highest_pps, loss_free_pps, error = row["highest_pps"], row["loss_free_pps"], row["rate_error"]
    assert highest_pps is None or 0 < highest_pps <= 1.01 * row["offered_pps"]
    assert loss_free_pps is None or loss_free_pps <= highest_pps
    assert error is None or 0 <= error < 0.01
    # A sender that had to wait for its CPU catches up: most gaps are then shorter, and none of that makes them longer.
    assert 0 < row["gap_p50_ns"] <= 1.3 * 1e9 / row["gap_load_pps"]
    assert row["gap_p50_ns"] <= row["gap_p99_ns"] <= row["gap_p999_ns"]
    assert 500 < row["floor_ns"] <= row["floor_p50_ns"] < 1e6
    again = csit("qualify", "topologies/local.yaml", "--show", "--format", "json", "--folder", str(tmp_path))
    assert again.returncode == 0 and again.stdout == done.stdout, "it is kept"


@needs_cpus
def test_the_ring_is_qualified_as_itself(tmp_path: Path) -> None:
    said = (PROJECT / "topologies" / "local.yaml").read_text().replace("driver: auto", "driver: ring")
    (tmp_path / "ring.yaml").write_text(said)
    done = csit("qualify", str(tmp_path / "ring.yaml"), *BRIEF, "--flows", "2", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["key_generator"], row["sending"], row["key_nic"]) == ("ring", "AF_PACKET TX ring", "veth")
    assert row["highest_pps"] and row["highest_pps"] > MIN_PPS


def plant_low_rates(file: Path) -> None:
    """Have a kept qualification say that a rate arrived at most which any NF is above."""
    found = Qualification.model_validate_json(file.read_bytes())
    # A trial above the rate without loss that loses nothing would have the generator qualified again.
    points = tuple(
        point.model_copy(update={"received_pps": LOW_PPS, "loss_free_pps": NEVER_REACHED_PPS}) for point in found.points
    )
    file.write_text(found.model_copy(update={"points": points}).model_dump_json())


@needs_cpus
def test_a_run_qualifies_once_and_keeps_it_in_its_records(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir()
    options = (*LOCAL, *variables(f"NF_SIZES:1c CELLS:1x1 QUALIFY:{kept} SEARCH:quick,mrr=1,mrr_trial=0.1"))
    first = run_robot(tmp_path / "first", *options, "--suite", "csc-mrr")
    assert "qualifying the generator, once for this machine" in first.stdout
    (file,) = kept.iterdir()
    plant_low_rates(file)
    second = run_robot(tmp_path / "second", *options, "--suite", "csc-mrr")
    assert "qualifying the generator" not in second.stdout
    ((row,), (again,)) = results(tmp_path / "first"), results(tmp_path / "second")
    assert again.verdict and VerdictKind.UNQUALIFIED in again.verdict.of("MRR"), again.verdict
    assert again.mrr and " is beyond ".join(rates(again.mrr.mean_pps, LOW_PPS)) in " ".join(again.verdict.evidence)
    assert row.qualification is not None and not row.qualification.simulated
    assert [point.frame.name for point in row.qualification.points] == ["64B", "1518B"]
    assert again.qualification == Qualification.model_validate_json(file.read_bytes()) != row.qualification


def arrived(lab: Lab) -> dict[str, int]:
    """Packets that the TG's ports have received, by name of the port."""
    rows = lab.nodes["TG"].run("sh", "-c", "grep . /sys/class/net/*/statistics/rx_packets").splitlines()
    return {name.split("/")[4]: int(count) for name, _, count in (row.partition(":") for row in rows)}


@needs_lab
def test_the_generator_of_a_lab_is_looped_back_on_its_machine(tmp_path: Path) -> None:
    with Lab(used=True) as lab:
        before = state(lab)
        topology = topology_of(lab, tmp_path)
        done = csit("qualify", str(topology), *BRIEF, "--flows", "2", "--folder", str(tmp_path / "kept"))
        assert done.returncode == 0, done.stderr
        wait_for_state(lab, before)
        row = json.loads(done.stdout)
        assert row["highest_pps"] and row["floor_ns"] and row["key_nic"] == "veth"
        assert done.stderr.startswith("looped back over virtual ports, not NICs: no cable joins two of TG's ports")
        words = options(topology, "-v", f"QUALIFY:{tmp_path / 'kept'}", "-v", "CELLS:1x1", "--suite", "csc-mrr")
        run = run_robot(tmp_path / "out", *words)
        assert "the generator is not qualified: no cable joins two of TG's ports" in run.stdout
        assert all(each.qualification is None for each in results(tmp_path / "out"))


@needs_lab
def test_a_cable_between_ports_of_the_generator_qualifies_it_on_its_nics(tmp_path: Path) -> None:
    with Lab(cables=2, loops=1, used=True) as lab:
        before, passed = state(lab), arrived(lab)
        topology = topology_of(lab, tmp_path)
        done = csit("qualify", str(topology), *BRIEF, "--folder", str(kept := tmp_path / "kept"))
        assert done.returncode == 0, done.stderr
        wait_for_state(lab, before)
        row = json.loads(done.stdout)
        assert row["key_nic"] == "veth by the kernel" and row["flows"] == 2
        assert row["highest_pps"] and row["floor_ns"]
        now = arrived(lab)
        assert min(now[port] - passed[port] for port in ("cab3", "cab4")) > 1000
        assert max(now[port] - passed[port] for port in ("cab1", "cab2")) < 100
        (file,) = kept.iterdir()
        words = options(topology, "-v", f"QUALIFY:{kept}", "-v", "CELLS:1x1", "--suite", "csc-mrr")
        run = run_robot(tmp_path / "out", *words)
        assert "qualif" not in run.stdout, run.stdout + run.stderr
        (used,) = results(tmp_path / "out")
        assert used.qualification == Qualification.model_validate_json(file.read_bytes())
        plant_low_rates(file)
        run = run_robot(tmp_path / "low", *words, check=False)
        (marked,) = results(tmp_path / "low")
        assert marked.verdict and VerdictKind.UNQUALIFIED in marked.verdict.of("MRR"), marked.verdict
        wait_for_state(lab, before)
        refused = csit("qualify", str(topology), *BRIEF, "--flows", "4", "--folder", str(kept))
        assert (
            "4 flows; each cable has one each way, so 1 cable from TG to itself: an even number to 2" in refused.stderr
        )


@pytest.mark.parallel
def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    for arguments, said in (
        (("topologies/local.yaml", "--flows", "0"), "--flows '0': a number from 1 to 64"),
        (("topologies/local.yaml", "--frames", "1B"), "1B"),
        (("topologies/local-otg.yaml",), "cannot be looped back over a veth pair by this project"),
        (("topologies/sim.yaml", "--show", "--folder", str(tmp_path)), "no qualification of sim"),
    ):
        done = csit("qualify", *arguments)
        assert done.returncode in {1, 2} and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parallel
def test_one_that_is_terminated_removes_its_loop_back(tmp_path: Path) -> None:
    before = network_state()
    argv = [sys.executable, "-m", "csit_utils", "qualify", "topologies/local.yaml", *BRIEF, "--folder", str(tmp_path)]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        wait_until("a loop-back", lambda: "" if network_state() != before else "nothing made", 60.0, pause_s=0.05)
        run.terminate()
        stdout, stderr = run.communicate(timeout=600)
    assert run.returncode == 128 + signal.SIGTERM, stderr
    assert not stdout and "Traceback" not in stderr
    wait_for_network_state(before)
    assert not list(tmp_path.iterdir()), "nothing half measured is kept"

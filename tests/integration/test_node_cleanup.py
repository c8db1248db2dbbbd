"""What a run that was killed has left on a node is listed and removed, unless somebody has a right to the node."""

import subprocess
import sys
from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.testbed.maintenance import doctor
from tests.integration import lab as labs
from tests.integration.robot_runs import PROJECT, csit

pytestmark = [pytest.mark.parallel, pytest.mark.root, pytest.mark.skipif(bool(labs.missing()), reason=labs.missing())]

RUN = """
import os, signal, subprocess, sys, time
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
with MachineLock() as lock:
    lock.claim_namespaces(["csit-left"])
    subprocess.run(["ip", "netns", "add", "csit-left"], check=True)
    lock.confirm_namespaces(["csit-left"])
    worker = subprocess.Popen(["sleep", "1234"], start_new_session=True)
    lock.claim_process(worker.pid)
    lock.set_for_run("net/ipv4/ip_default_ttl", "99")
    print("made", flush=True)
    time.sleep(120)
"""
RUNTIMES = "/var/tmp/csit-density"  # noqa: S108 - the node's own
TTL = "/proc/sys/net/ipv4/ip_default_ttl"
LAB = {"cables": 2}


def test_cleanup_after_a_run_was_killed(lab: labs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, node = str(lab.topology(tmp_path)), lab.nodes["DUT1"]
    ttl = node.read(TTL)
    run = subprocess.Popen(node.inside(sys.executable, "-c", RUN), cwd=PROJECT, stdout=subprocess.PIPE)
    try:
        assert run.stdout is not None and run.stdout.readline() == b"made\n"
        alive = csit("cleanup", path, "--yes", "--wait", "1s")
        assert alive.returncode == 1 and f"DUT1: a run is alive there, pid {run.pid} of " in alive.stderr
    finally:
        run.kill()
        run.wait()
        assert run.stdout is not None
        run.stdout.close()
    listed = csit("cleanup", path)
    assert listed.returncode == 0 and "TG: no leftovers" in listed.stdout
    for what in ("(sleep 1234)", "network namespace csit-left", "setting net/ipv4/ip_default_ttl, which was "):
        assert [line for line in listed.stdout.splitlines() if line.startswith("DUT1: ") and what in line], what
    monkeypatch.setattr(doctor, "_NOISE_S", 0.02)  # observers of noise stop all that runs beside this test
    found = [str(finding) for finding in doctor.examine(load_topology(Path(path)))]
    assert any("3 things of a run that was killed" in text for text in found), found
    _, _, token = csit("reserve", path, "--reason", "somebody at work").stdout.strip().partition("=")
    strange = csit("cleanup", path, "--yes")
    assert strange.returncode == 1 and "'somebody at work'" in strange.stderr
    assert node.read(TTL) != ttl, "listing and refusing must not change anything"
    removed = csit("cleanup", path, "--yes", token=token)
    assert removed.returncode == 0, removed.stderr
    for what in ("killed worker process", "removed network namespace csit-left", "set net/ipv4/ip_default_ttl back"):
        assert what in removed.stdout
    assert node.read(TTL) == ttl
    assert "csit-left" not in node.run("ls", "/run/netns")
    assert not [line for line in node.processes().values() if line.startswith("sleep 1234")]
    assert csit("release", path, token=token).returncode == 0
    everything = csit("cleanup", path, "--yes", "--runtimes")
    assert "DUT1: removed 2 folders of agent runtimes" in everything.stdout
    assert node.run("ls", "-A", RUNTIMES) == ""
    assert csit("status", path).stdout == "TG: free\nDUT1: free\n"

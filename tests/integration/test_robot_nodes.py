"""Robot's keywords for nodes on the lab in namespaces: SSHLibrary over connections that have been checked."""

from pathlib import Path

import pytest

from tests.integration.lab import Lab, missing
from tests.integration.robot_runs import PROJECT, run_robot

pytestmark = [pytest.mark.parallel, pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]
SUITE = PROJECT / "tests" / "integration" / "robot" / "nodes.robot"
LAB = {"cables": 2}


def test_facts_and_logs_come_over_connections_that_were_checked(lab: Lab, tmp_path: Path) -> None:
    run = run_robot(tmp_path, "-v", f"TOPOLOGY:{lab.topology(tmp_path)}", sources=[SUITE], check=False)
    assert "3 tests, 2 passed, 1 failed" in run.stdout, run.stdout
    for node in lab.nodes:
        assert {path.stem for path in (tmp_path / "nodes" / node).iterdir()} >= {"kernel", "links", "processes"}
        assert "cab1" in (tmp_path / "nodes" / node / "links.log").read_text(encoding="utf-8")
        assert lab.nodes[node].read("/run/sshd.log").count("Accepted publickey for root") == 3


def test_a_changed_host_key_is_refused(lab: Lab, tmp_path: Path) -> None:
    lab.nodes["DUT1"].swap_host_key()
    run = run_robot(tmp_path, "-v", f"TOPOLOGY:{lab.topology(tmp_path)}", sources=[SUITE], check=False)
    lab.trust()
    assert "3 tests, 0 passed, 3 failed" in run.stdout
    assert "shows another host key than before" in run.stdout
    assert not (tmp_path / "nodes").exists()


def test_nothing_is_connected_where_there_is_no_lab(tmp_path: Path) -> None:
    run = run_robot(tmp_path, "-v", f"TOPOLOGY:{PROJECT / 'topologies' / 'sim.yaml'}", sources=[SUITE], check=False)
    assert "3 tests, 2 passed, 1 failed" in run.stdout
    assert not (tmp_path / "nodes").exists()

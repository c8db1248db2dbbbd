"""The commands on the page of a test run that test again, with the same plan."""

import subprocess
import sys
from pathlib import Path

import pytest

from csit_utils.report.details.capsule import command
from tests.integration.robot_runs import PROJECT, environment, results, run_robot

pytestmark = pytest.mark.parallel


def test_the_command_of_a_test_makes_the_same_plan(tmp_path: Path) -> None:
    chosen = ("TOPOLOGY:topologies/sim.yaml", "CELLS:1x1,2x1", "NF_SIZES:1c,0.5c", "SEARCH:quick")
    options = [word for each in chosen for word in ("-v", each)]
    run_robot(tmp_path / "first", *options, "--suite", "csc-mrr", check=False)
    first = next(one for one in results(tmp_path / "first") if one.cell.size_name == "0.5c" and one.cell.nf_chains == 2)
    assert first.rerun is not None
    assert (first.rerun.suite, first.rerun.topology) == ("tests/density/csc-mrr.robot", "topologies/sim.yaml")
    argv = command(first)
    assert argv[:2] == ["./csit", "robot"]
    subprocess.run(
        [sys.executable, "-m", "csit_utils", "robot", "-d", str(tmp_path / "again"), *argv[2:]],
        cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    (again,) = results(tmp_path / "again")
    assert (again.test_name, again.asked) == (first.test_name, first.asked)
    assert again.plan_digest == first.plan_digest is not None
    assert again.rerun is not None
    assert again.rerun.topology_digest == first.rerun.topology_digest

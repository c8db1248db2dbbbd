"""NFs in containers on the DUT of a lab, over SSH: the same driver, in an agent."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.containers.engine_choice import missing
from resources.libraries.python.model.testbed.nodes import Container
from tests.integration.lab import Lab
from tests.integration.lab_runs import TG_CPUS, needs_lab, options, state, wait_for_state
from tests.integration.robot_runs import results, run_robot

LACKING = "; ".join(map(str, missing(Container(engine="podman"))))
pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab, pytest.mark.skipif(bool(LACKING), reason=LACKING)]


def test_nfs_of_a_node_run_in_containers_there(tmp_path: Path) -> None:
    with Lab(used=True) as lab:
        before = state(lab)
        nodes = {"TG": {"cpus": TG_CPUS}, "DUT1": {"container": {"engine": "podman"}}}
        topology = lab.topology(tmp_path, numa=False, nodes=nodes)
        done = run_robot(tmp_path / "out", *options(topology, "-v", "CELLS:1x1", "--suite", "csc-mrr"))
        assert "nodes.DUT1: no port says its numa_node, so NUMA 0 is assumed" in done.stdout
        (row,) = results(tmp_path / "out")
        assert row.passed
        assert row.facts["functions"]["containers"].startswith("podman ")
        wait_for_state(lab, before)

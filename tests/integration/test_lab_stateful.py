"""A study of stateful density over SSH: tables are emptied and counted on the DUT's node while the TG's node sends."""

from pathlib import Path

import pytest

from tests.integration.lab import Lab
from tests.integration.lab_runs import needs_lab, options, state, topology_of, wait_for_state
from tests.integration.robot_runs import run_robot, study_record, study_suite

pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab]
SPEC = """
name: small
kind: linux_nat
instances: [2]
frame: 64B
search: quick,width=0.4,trial=0.1,sum=0.3,time=120
tear_downs: 1
connections: 1000
capacity: false
"""


def test_connections_are_counted_on_their_node_while_another_one_sends(tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "stateful/nat.yaml", SPEC)
    with Lab(used=True) as lab:
        before = state(lab)
        topology = topology_of(lab, tmp_path, DUT1={"containers": ["linux_nat"]})
        run_robot(tmp_path / "out", *options(topology), "-i", "NAT", sources=[suite])
        wait_for_state(lab, before)
    record = study_record(tmp_path / "out")
    assert record.world.value == "lab"
    (found,) = record.stateful.cells
    assert list(found.tables) == ["nf-1-1", "nf-2-1"]
    assert found.rate.lower_cps > 0
    assert [each.entries for each in found.tear_downs] == [(1000, 1000)]

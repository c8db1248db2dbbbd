"""TRex and VPP on nodes over SSH: the programs themselves, on a lab in namespaces, in software mode.

They are looked for where the environment variables CSIT_TREX and CSIT_VPP_PREFIX say; without these nothing is run.
"""

import os
from pathlib import Path

import pytest

from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.lab import Lab
from tests.integration.lab_runs import TG_CPUS, needs_lab, options, state, wait_for_state
from tests.integration.robot_runs import results, run_robot

TREX, VPP = (os.environ.get(name) for name in ("CSIT_TREX", "CSIT_VPP_PREFIX"))
pytestmark = [pytest.mark.root, needs_lab, pytest.mark.skipif(not TREX, reason="CSIT_TREX does not say where TRex is")]
needs_vpp = pytest.mark.skipif(not VPP, reason="CSIT_VPP_PREFIX does not say where VPP is")
TG = {"cpus": TG_CPUS, "generator": {"driver": "trex"}, "trex": {"directory": TREX, "ports": "af_packet"}}
DUT = {"vswitch": "vpp", "containers": ["vpp"], "vpp": {"prefix": VPP}}
LAB = {"used": True}


@needs_vpp
@pytest.mark.parametrize("discriminator", ["link", "mac", "vlan"])
def test_instances_have_their_own_packets_by_any_discriminator(lab: Lab, tmp_path: Path, discriminator: str) -> None:
    row = measured(lab, tmp_path, discriminator, "2x1")
    assert row.mrr and row.mrr.mean_pps > 1000
    # The first trial has few packets: all of them come back to their instance, and are counted there.
    flows = row.trials[0].flows
    assert [(flow.instance, flow.direction.value) for flow in flows] == [
        (1, "forward"), (1, "reverse"), (2, "forward"), (2, "reverse"),
    ]  # fmt: skip
    assert all(0.9 * flow.sent <= flow.received <= flow.sent and flow.sent > 150 for flow in flows)
    # Where packets were lost is a sum of differences along their way: a counter of somebody else's would show.
    assert row.located
    lost = row.located.sent - row.located.received
    assert sum(hop.lost for hop in row.located.hops) <= 1.05 * lost + 100
    assert row.facts["generator"]["generator"].startswith("TRex v")
    assert row.facts["vswitch"]["vswitch"].startswith("VPP ")
    assert row.facts["functions"]["vpp"].startswith("VPP ")


@needs_vpp
def test_a_service_crosses_two_systems_under_test(tmp_path: Path) -> None:
    with Lab(duts=2, used=True) as three:
        row = measured(three, tmp_path, "link", "1x1")
    assert row.plan and set(row.plan.machines.values()) == {"TG", "DUT1", "DUT2"}
    assert row.mrr and row.mrr.mean_pps > 1000


def measured(lab: Lab, folder: Path, discriminator: str, cells: str) -> DensityRecord:
    """The record of a cell; the nodes are afterwards as they were."""
    before = state(lab)
    duts = {name: DUT for name in lab.nodes if name != "TG"}
    topology = lab.topology(folder, discriminator=discriminator, nodes={"TG": TG, **duts})
    run_robot(folder / "out", *options(topology, "-v", f"CELLS:{cells}", "--suite", "csc-mrr"))
    wait_for_state(lab, before)
    (row,) = results(folder / "out")
    assert row.passed and not row.simulated
    return row

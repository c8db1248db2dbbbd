"""Two testbeds of PCI ports, alike but for what was changed on one: it is named, and it alone."""

import json
from pathlib import Path

import pytest

from tests.integration.emulated import RING, Emulated, started
from tests.integration.robot_runs import csit, results

pytestmark = [pytest.mark.root, pytest.mark.emulated]


def test_rings_that_one_of_two_testbeds_has_otherwise_are_the_facts_that_differ(
    emulated: Emulated, tmp_path: Path
) -> None:
    with started(name="twin") as other:
        other.shell("DUT1", "ethtool -G enp65s0 rx 512 tx 128")
        topologies = []
        for side, testbed in (("a", emulated), ("b", other)):
            (tmp_path / side).mkdir()
            topologies.append(str(testbed.write_topology(tmp_path / side, nodes={"TG": RING})))
        options = ("--minutes", "1", "--cells", "1x1", "--format", "json", "-o", str(tmp_path / "runs"))
        done = csit("twin", *topologies, *options)
    # Rates of emulated machines differ by themselves: each verdict is possible.
    assert done.returncode in {0, 3, 4}, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] >= 3 and [each["cell"] for each in found["cells"]] == ["CSC 1x1 64B"]
    (record,) = results(tmp_path / "runs" / "1-B")
    known = {name.partition(" of ")[0] for name in record.environment.settings}
    assert {"NIC", "driver", "ring sizes"} <= known, "of ports of real PCI drivers"
    (rings,) = (each for each in found["facts"] if "ring sizes" in each["fact"])
    assert rings["fact"].startswith("settings.ring sizes of ") and "512" in rings["b"] and "512" not in rings["a"]
    assert rings["changes"] == "loss of bursts, and latency"
    assert [each["fact"] for each in found["facts"]] == [rings["fact"]], "the testbeds are the same otherwise"

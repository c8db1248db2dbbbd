"""One testbed now and as a stored run has it, on PCI ports: what was changed in between is named, and it alone."""

import json
from pathlib import Path

import pytest

from tests.integration.emulated import Emulated
from tests.integration.robot_runs import csit, results, run_robot

pytestmark = [pytest.mark.root, pytest.mark.emulated]
RING = {"generator": {"driver": "ring", "cores": 1}}
RINGS = "ethtool -G enp65s0 rx {} tx {}"


def test_rings_that_were_changed_since_a_stored_run_are_the_facts_that_differ(
    emulated: Emulated, tmp_path: Path
) -> None:
    topology, stored = emulated.write_topology(tmp_path, nodes={"TG": RING}), tmp_path / "stored"
    words = (f"TOPOLOGY:{topology}", "CELLS:1x1", "NF_SIZES:1c", "SEARCH:quick,mrr=1", "NOISE_FLOOR:0.1", "QUALIFY:off")
    options = [word for each in words for word in ("-v", each)]
    run = run_robot(stored, *options, "--suite", "csc-mrr")
    assert run.returncode == 0, run.stdout
    (record,) = results(stored)
    known = {name.partition(" of ")[0] for name in record.environment.settings}
    assert {"NIC", "driver", "ring sizes"} <= known, "of ports of real PCI drivers"
    emulated.shell("DUT1", RINGS.format(512, 128))
    try:
        twin = ("twin", str(topology), str(stored / "output.xml"), "--minutes", "1", "--format", "json")
        done = csit(*twin, "-o", str(tmp_path / "twin"))
    finally:
        emulated.shell("DUT1", RINGS.format(1024, 256))
    # Rates of emulated machines differ by themselves: each verdict is possible.
    assert done.returncode in {0, 3, 4}, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] >= 3 and [each["cell"] for each in found["cells"]] == ["CSC 1x1 64B"]
    (rings,) = (each for each in found["facts"] if "ring sizes" in each["fact"])
    assert rings["fact"].startswith("settings.ring sizes of ") and "512" in rings["a"] and "512" not in rings["b"]
    assert rings["changes"] == "loss of bursts, and latency"
    assert [each["fact"] for each in found["facts"]] == [rings["fact"]], "the same machines otherwise"

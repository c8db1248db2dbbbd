"""The twin check of simulated testbeds: a planted difference, none, and a stored run."""

import json
from pathlib import Path

import pytest

from tests.simulated.in_process import SIM, csit, topology_with

BRIEF = ("--minutes", "0.1", "--cells", "1x1", "--format", "json")
LOST = 0.1


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A testbed with a tenth less capacity."""
    return topology_with(tmp_path_factory.mktemp("twin") / "slower.yaml", seed=7, capacity_scale=1 - LOST)


def test_a_slower_testbed_differs_and_a_testbed_is_its_own_twin(tmp_path: Path, slower: Path) -> None:
    found = csit("twin", SIM, slower, *BRIEF, "-o", tmp_path / "unlike")
    assert found.status == 3, found.stderr
    said = json.loads(found.stdout)
    assert said["verdict"] == "different" and said["simulated"] and said["rounds"] >= 3
    (cell,) = said["cells"]
    assert cell["low"] <= cell["change"] <= cell["high"] < 0
    assert cell["change"] == pytest.approx(-LOST, abs=0.02)
    same = csit("twin", SIM, SIM, *BRIEF, "-o", tmp_path / "same")
    assert same.status == 0 and json.loads(same.stdout)["verdict"] == "same", same.stderr
    stored = csit("twin", slower, tmp_path / "same" / "1-A" / "output.xml", *BRIEF, "-o", tmp_path / "stored")
    assert stored.status == 3, stored.stderr


def test_cells_that_cannot_be_compared_are_refused_before_anything_runs(tmp_path: Path) -> None:
    refused = csit("twin", SIM, SIM, "--cells", "1x1,2x1,2x2,4x4", "-o", tmp_path / "runs")
    assert refused.status == 2 and "4 cells" in refused.stderr and not (tmp_path / "runs").exists()

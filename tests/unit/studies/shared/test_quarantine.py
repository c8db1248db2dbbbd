"""A cell that breaks again and again is quarantined in journal and record; what failed otherwise is repeated."""

import json
from pathlib import Path
from typing import Any

import pytest
from robot.run import run_cli

from resources.libraries.python.errors import SystemBroken
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Disconnection

ROOT = Path(__file__).parents[4]
REASON = "nf-1-1 has died"


SIM = ("-v", f"TOPOLOGY:{ROOT / 'topologies' / 'sim.yaml'}", "--log", "NONE", "--report", "NONE", "--console", "none")
DENSITY = ("-v", "CELLS:1x1", "-v", "NF_SIZES:1c", str(ROOT / "tests/density/csc-mrr.robot"))
SWEEP = ("-v", "SWEEP_RATES:10000-30000/10000", "-t", "Firewall", str(ROOT / "tests/characterization/sweep.robot"))


def run(folder: Path, *words: str) -> int:
    """Run one test on the simulated testbed; return the number of tests that failed."""
    return int(run_cli(["-d", str(folder), *SIM, *words], exit=False))


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()[1:]]


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Deployments that were tried; each of them breaks the service."""
    tried: list[object] = []

    def deploy(_: CellUnderTest, plan: object) -> None:
        tried.append(plan)
        raise SystemBroken(REASON)

    monkeypatch.setattr(CellUnderTest, "deploy", deploy)
    return tried


def test_a_cell_that_breaks_twice_is_journaled_as_quarantined_and_not_tried_again(
    deployments: list[object], tmp_path: Path
) -> None:
    assert run(tmp_path, *DENSITY) == 1
    assert [event["event"] for event in events(tmp_path)] == [
        "started", "broken", "started", "broken", "quarantined", "ended",
    ]  # fmt: skip
    quarantined = events(tmp_path)[4]
    assert (quarantined["status"], quarantined["reason"]) == ("FAIL", REASON)
    path = tmp_path / "results" / quarantined["record"]
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["quarantined"], record["broken"]) == (REASON, [REASON, REASON])
    assert record["verdict"]["kinds"][0] == "quarantined"

    written = path.read_bytes()
    assert run(tmp_path, "-v", f"RESUME:{tmp_path}", *DENSITY) == 1
    assert len(deployments) == 2
    assert path.read_bytes() == written


def test_a_sweep_that_failed_otherwise_is_tried_again_when_the_run_is_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CellUnderTest, "connectivity", lambda *_: Disconnection(("nothing arrived",), False))
        assert run(tmp_path, *SWEEP) == 1
    assert [event["event"] for event in events(tmp_path)] == ["started", "finished", "ended"]
    assert run(tmp_path, "-v", f"RESUME:{tmp_path}", *SWEEP) == 0

"""A sweep whose service breaks again and again is quarantined, in the journal and in its record, and stays so."""

import json
from pathlib import Path
from typing import Any

import pytest
from robot.run import run_cli

from resources.libraries.python.errors import SystemBroken
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Disconnection

ROOT = Path(__file__).parents[4]
REASON = "nf-1-1 has died"


def sweep(folder: Path, *options: str) -> int:
    """Sweep a firewall on the simulated testbed; return the number of tests that failed."""
    suite = ROOT / "tests" / "characterization" / "sweep.robot"
    chosen = ("-v", f"TOPOLOGY:{ROOT / 'topologies' / 'sim.yaml'}", "-v", "SWEEP_RATES:10000-30000/10000")
    pages = ("--log", "NONE", "--report", "NONE", "--console", "none")
    return int(run_cli(["-d", str(folder), *chosen, "-t", "Firewall", *pages, *options, str(suite)], exit=False))


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


def test_a_sweep_that_breaks_twice_is_journaled_as_quarantined_and_not_tried_again(
    deployments: list[object], tmp_path: Path
) -> None:
    assert sweep(tmp_path) == 1
    assert [event["event"] for event in events(tmp_path)] == [
        "started", "broken", "started", "broken", "quarantined", "ended",
    ]  # fmt: skip
    quarantined = events(tmp_path)[4]
    assert (quarantined["status"], quarantined["reason"]) == ("FAIL", REASON)
    path = tmp_path / "results" / quarantined["record"]
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["quarantined"], record["broken"]) == (REASON, [REASON, REASON])
    assert record["verdict"]["kinds"] == ["quarantined"]

    written = path.read_bytes()
    assert sweep(tmp_path, "-v", f"RESUME:{tmp_path}") == 1
    assert len(deployments) == 2
    assert path.read_bytes() == written


def test_a_sweep_that_failed_otherwise_is_tried_again_when_the_run_is_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CellUnderTest, "connectivity", lambda *_: Disconnection(("nothing arrived",), False))
        assert sweep(tmp_path) == 1
    assert [event["event"] for event in events(tmp_path)] == ["started", "finished", "ended"]
    assert sweep(tmp_path, "-v", f"RESUME:{tmp_path}") == 0

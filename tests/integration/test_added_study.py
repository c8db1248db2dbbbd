"""The study of docs/how-to/add-a-study.md sends real packets, and resumes after a kill."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.how_to_study import SUITE, csit_in, finished_in, project_with_study
from tests.integration.robot_runs import network_state, wait_for_network_state

pytestmark = [pytest.mark.parallel, pytest.mark.root]


def starts(folder: Path) -> list[dict[str, Any]]:
    """Complete lines of the journal of the firewall's deployments, without the heading."""
    path = folder / "characterization" / "Firewall" / "warmup.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True)[1:] if line.endswith("}\n")]


def test_the_study_of_the_page_sends_real_packets_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    before = network_state()
    project = project_with_study(tmp_path)
    folder = project / "results" / "local"
    options = ("-v", "TOPOLOGY:topologies/local.yaml", "-d", str(folder), SUITE)
    with csit_in(project, "robot", *options) as run:
        try:
            wait_until("second deployment of the firewall", lambda: "" if len(starts(folder)) > 1 else "none", 300)
        finally:
            run.send_signal(signal.SIGKILL)
    assert run.returncode == -signal.SIGKILL
    kept = starts(folder)
    assert 2 <= len(kept) < 5, "killed in the middle"

    said = finished_in(project, "robot", "--resume", str(folder))
    wait_for_network_state(before)
    assert "router: carried over" in said
    assert "2 tests, 2 passed, 0 failed" in said
    assert [row["row"]["number"] for row in starts(folder)] == [1, 2, 3, 4, 5]
    assert starts(folder)[: len(kept)] == kept
    record = json.loads((folder / "results" / "warmup-Firewall.json").read_text(encoding="utf-8"))
    assert not record["simulated"]
    found = record["warmup"]["starts"]
    assert [start["number"] for start in found] == [1, 2, 3, 4, 5]
    # A pause of the machine may lose packets at any time; a service that forwards delivers most of them in some window.
    assert all(any((ratio or 0) < 0.5 for _, ratio in start["losses"]) for start in found)
    assert "warm-up firewall (Firewall): " in finished_in(project, "show", str(folder / "output.xml"))

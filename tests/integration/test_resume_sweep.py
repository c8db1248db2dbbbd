"""A characterization that was killed goes on where it stopped: nothing that was measured is measured again."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.studies.sweep.model import SweepRecord
from tests.integration.pauses import KEEPING, Moment, Paused
from tests.integration.robot_runs import PROJECT, environment

pytestmark = pytest.mark.parallel

CHAIN = PROJECT / "tests" / "characterization" / "chain.robot"
TESTS = ("-t", "Path Alone", "-t", "Router Alone", "-t", "Firewall Alone", "-t", "Router And Firewall")
OPTIONS = ("-v", "TOPOLOGY:topologies/sim.yaml", "-v", "SWEEP_RATES:3000-450000/3000", *TESTS)
"""Many loads, each on disk before the next."""
EACH_ONCE = [3000.0 * number for number in range(1, 151)]


def csit(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "csit_utils", "robot", *arguments],
        cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finished(*arguments: str) -> tuple[int, str]:
    with csit(*arguments) as run:
        text, _ = run.communicate(timeout=600)
        return run.returncode, text


def lines(folder: Path, test: str) -> list[dict[str, Any]]:
    """Of a test's journal, complete ones, without the heading."""
    path = folder / "characterization" / test / "sweep.jsonl"
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True)[1:] if line.endswith("}\n")]


def rates(folder: Path, test: str) -> list[float]:
    return [row["row"]["samples"][0]["rate_pps"] for row in lines(folder, test) if row["line"] == "step"]


def record(folder: Path, name: str) -> SweepRecord:
    return SweepRecord.model_validate_json((folder / "results" / name).read_bytes())


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed in the sweep of its second test, and whose last line is torn."""
    folder = tmp_path_factory.mktemp("killed")
    moment = Moment(KEEPING, "Chain.Router Alone", call=30)
    paused = Paused(tmp_path_factory.mktemp("pauses"), [moment])
    with csit(*OPTIONS, *paused.options, "-d", str(folder), str(CHAIN)) as run:
        try:
            with paused.at(moment, run):
                run.kill()
        finally:
            run.kill()
    assert run.returncode == -signal.SIGKILL
    paused.none()  # the run is resumed with all options it had
    there = rates(folder, "Router_Alone")
    assert 20 < len(there) < len(EACH_ONCE), "killed in the middle"
    assert not (folder / "results" / "sweep-Router_Alone.json").exists()
    journal = folder / "characterization" / "Router_Alone" / "sweep.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    return folder


@pytest.fixture(scope="module")
def resumed(killed: Path) -> tuple[Path, list[float], str]:
    """The same after it went on; what was there before; what it said."""
    before = rates(killed, "Router_Alone")
    status, said = finished("--resume", str(killed))
    assert status == 0, said
    return killed, before, said


def test_a_killed_sweep_goes_on_with_its_next_load(resumed: tuple[Path, list[float], str]) -> None:
    folder, before, said = resumed
    assert rates(folder, "Router_Alone") == EACH_ONCE
    assert re.search(r"sweep.jsonl: line \d+ is incomplete, its writing was interrupted", said)
    router = record(folder, "sweep-Router_Alone.json")
    assert router.passed
    assert router.profile is not None
    assert router.sweep is not None
    assert [point.rate_pps for point in router.sweep.points] == EACH_ONCE
    kept = [row["row"]["samples"] for row in lines(folder, "Router_Alone") if row["line"] == "step"]
    assert [sample.model_dump(mode="json") for sample in router.sweep.samples] == [row for part in kept for row in part]
    remark = f"{len(before)} loads were measured before the run was resumed"
    assert any(line.startswith(remark) for line in router.warnings)


def test_tests_that_had_passed_are_carried_over_and_their_profiles_are_used(
    resumed: tuple[Path, list[float], str],
) -> None:
    folder, _, said = resumed
    assert "path: carried over" in said
    assert rates(folder, "Path_Alone") == EACH_ONCE
    (prediction,) = record(folder, "chain-Router_And_Firewall.json").predictions
    assert (prediction.parts, prediction.path) == (("router", "firewall"), "path")
    output = (folder / "output.xml").read_text("utf-8")
    assert "carried over; measured from" in output
    assert (folder / "output-1.xml").exists(), "what Robot wrote of the part before is kept"

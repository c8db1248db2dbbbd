"""A characterization that was killed goes on where it stopped: nothing that was measured is measured again."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.studies.sweep.model import SweepRecord
from tests.integration.pauses import KEEPING, Moment, Paused
from tests.integration.robot_runs import SIM, SUITES, csit, csit_going_on

pytestmark = pytest.mark.parallel

TESTS = ("-t", "Path Alone", "-t", "Router Alone", "-t", "Firewall Alone", "-t", "Router And Firewall")
OPTIONS = (*SIM, "-v", "SWEEP_RATES:3000-450000/3000", *TESTS)
"""Many loads, each on disk before the next."""
EACH_ONCE = [3000.0 * number for number in range(1, 151)]


def steps(folder: Path, test: str) -> list[list[dict[str, Any]]]:
    """Samples of each load in a test's journal, of complete lines."""
    text = (folder / "characterization" / test / "sweep.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines(keepends=True)[1:] if line.endswith("}\n")]
    return [row["row"]["samples"] for row in rows if row["line"] == "step"]


def rates(folder: Path, test: str) -> list[float]:
    return [samples[0]["rate_pps"] for samples in steps(folder, test)]


def record(folder: Path, name: str) -> SweepRecord:
    return SweepRecord.model_validate_json((folder / "results" / name).read_bytes())


def test_a_killed_sweep_goes_on_with_its_next_load_and_uses_profiles_of_tests_that_had_passed(tmp_path: Path) -> None:
    """It is killed in the sweep of its second test, and its last line is torn."""
    folder, moment = tmp_path / "run", Moment(KEEPING, "Chain.Router Alone", call=30)
    paused = Paused(tmp_path, [moment])
    words = ("robot", *OPTIONS, *paused.options, "-d", str(folder), str(SUITES / "chain.robot"))
    with csit_going_on(*words) as run, paused.at(moment, run):
        run.kill()
    assert run.returncode == -signal.SIGKILL
    paused.none()  # the run is resumed with all options it had
    assert 20 < len(rates(folder, "Router_Alone")) < len(EACH_ONCE), "killed in the middle"
    assert not (folder / "results" / "sweep-Router_Alone.json").exists()
    journal = folder / "characterization" / "Router_Alone" / "sweep.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    before = rates(folder, "Router_Alone")
    done = csit("robot", "--resume", str(folder))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert rates(folder, "Router_Alone") == EACH_ONCE
    assert re.search(r"sweep.jsonl: line \d+ is incomplete, its writing was interrupted", said)
    router = record(folder, "sweep-Router_Alone.json")
    assert router.passed
    assert router.profile is not None and router.sweep is not None
    assert [point.rate_pps for point in router.sweep.points] == EACH_ONCE
    kept = [sample for samples in steps(folder, "Router_Alone") for sample in samples]
    assert [sample.model_dump(mode="json") for sample in router.sweep.samples] == kept
    remark = f"{len(before)} loads were measured before the run was resumed"
    assert any(line.startswith(remark) for line in router.warnings)
    assert "path: carried over" in said
    assert rates(folder, "Path_Alone") == EACH_ONCE
    (prediction,) = record(folder, "chain-Router_And_Firewall.json").predictions
    assert (prediction.parts, prediction.path) == (("router", "firewall"), "path")
    assert "carried over; measured from" in (folder / "output.xml").read_text("utf-8")
    assert (folder / "output-1.xml").exists(), "what Robot wrote of the part before is kept"

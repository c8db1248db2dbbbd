"""Nights within a time limit: on the simulated testbed killed and resumed, and on the local one with real packets."""

import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from csit_utils.night import CHOICES_FILE, NOT_BEGUN, NightChoices, NightJournal, TestOfNight
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.load import load_json
from tests.integration.robot_runs import PROJECT, csit, environment, results


def argv(output: Path, topology: str, *options: str) -> list[str]:
    """The command line of a night without stored results."""
    (nothing := output.with_name("none")).mkdir(exist_ok=True)
    words = ["night", f"topologies/{topology}.yaml", "-o", str(output), "--data", str(nothing), *options]
    return [sys.executable, "-m", "csit_utils", *words]


def rows_of(output: Path) -> list[TestOfNight]:
    """Lines of the journal of a night, whose last one may be torn."""
    text = (output / NightJournal.FILE).read_text(encoding="utf-8") if (output / NightJournal.FILE).exists() else ""
    return [NightJournal.ROWS.validate_json(line) for line in re.findall(r'^\{"run":.*\}$', text, re.MULTILINE)]


def ended(output: Path) -> list[tuple[str, str]]:
    """Run and name of each test that has ended."""
    return [(row.run, row.test) for row in rows_of(output) if row.has_ended]


@pytest.mark.parallel
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_night_that_was_cut_short_continues_with_what_it_lacks(tmp_path: Path, end: signal.Signals) -> None:
    output = tmp_path / "night"
    choices = ("--hours", "0.2", "--cells", "1x1", "--search", "quick", "--within", "50%")
    choices += ("--studies", "OUTAGEANDFIREWALLS")
    with subprocess.Popen(
        argv(output, "sim", *choices), cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, text=True
    ) as night:
        wait_until(
            "three tests have ended", lambda: "" if len(ended(output)) >= 3 else f"{len(ended(output))} of 3", 300, 0.05
        )
        night.send_signal(end)
        said, _ = night.communicate(timeout=600)
    before = ended(output)
    if end is signal.SIGTERM:
        assert night.returncode in {3, 143}  # between two runs nothing has to be removed
        assert night.returncode == 143 or f"continue with ./csit night --resume {output}" in said
    again = csit("night", "--resume", str(output))
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(ended(output)) == len(set(ended(output)))  # none twice
    assert ended(output)[: len(before)] == before
    assert {(row.run, row.test) for row in rows_of(output)} == set(ended(output))
    assert "Nothing: no step is suspected" in (output / "night.html").read_text(encoding="utf-8")
    assert csit("night", "--resume", str(output), "--hours", "3").returncode == 2


@pytest.mark.root
def test_a_night_on_this_machine_ends_in_time(tmp_path: Path) -> None:
    output = tmp_path / "night"
    options = ("--hours", "0.0075", "--types", "CSC", "--cells", "1x1,2x1", "--tests", "MRR", "--search", "quick,mrr=1")
    options += ("-v", "NOISE_FLOOR:0")
    done = subprocess.run(
        argv(output, "local", *options), cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode in {0, 4}, done.stdout + done.stderr
    assert len(ended(output)) >= 2
    budget_s = load_json(output / CHOICES_FILE, NightChoices).hours * 3600
    rows = [row for row in rows_of(output) if row.status != "PLANNED"]
    for before, row in pairwise(rows):  # each that was begun fitted into the time that was left
        assert row.status == NOT_BEGUN or before.elapsed_s + row.seconds <= budget_s
    assert "unseen: never measured" in done.stdout
    wrong = csit("night", str(PROJECT / "topologies" / "local.yaml"), "-v", "NOISE_FLOOR:11")
    assert wrong.returncode == 2 and wrong.stderr.startswith("NOISE_FLOOR '11': expected 0 to 10 seconds")
    records = [record for run in output.glob("*/results") for record in results(run.parent)]
    assert len(records) >= 2 and not any(record.noise for record in records)
    assert (output / "density.html").exists() and (output / "night.html").exists()

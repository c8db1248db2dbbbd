"""A finished run that is resumed measures nothing, and a killed one that is resumed ends as one that was not killed."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from resources.libraries.python.paths import PROJECT
from tests.loaded import contents
from tests.simulated.conftest import MATRIX
from tests.simulated.in_process import DENSITY, QUIETLY, SIM, STUDIES, csit, journal, passed, robot_words

CHAINS = ("-v", "SET:duration_s=3", "--suite", "chains")
DEADLINE_S = 300


def killed(output: Path, file: str, text: str, lines: int, *words: str) -> None:
    """Start a run that kills itself at its next message after a journal has so many lines with this text."""
    command = [sys.executable, "-m", "tests.simulated.killed_run", str(output / file), text, str(lines), *words[1:]]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert run.returncode == -signal.SIGKILL, run.stdout + run.stderr


def count(output: Path, event: str) -> int:
    return sum(row["event"] == event for row in journal(output))


def test_a_finished_run_that_is_resumed_measures_nothing_again(density: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    shutil.copytree(density, output)
    before = contents(output)
    started, files = count(output, "started"), {path.name for path in (output / "results").iterdir()}
    passed("robot", "--resume", output)
    assert contents(output) == before
    assert count(output, "started") == started == len(before)
    assert {path.name for path in (output / "results").iterdir()} == files


def test_a_killed_matrix_that_is_resumed_ends_as_one_that_was_not_killed(density: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    whole = count(density, "finished")
    killed(output, "journal.jsonl", '"event":"started"', 7, *robot_words(output, SIM, *MATRIX))
    assert (count(output, "started"), count(output, "finished")) == (7, 6)
    assert csit("outcome", output).status != 0
    passed("robot", "--resume", output)
    assert (count(output, "started"), count(output, "finished")) == (whole + 1, whole)  # the seventh twice
    assert contents(output) == contents(density)
    passed("outcome", output)


def test_a_killed_run_with_a_json_output_is_resumed_with_all_its_tests(density: Path, tmp_path: Path) -> None:
    output, suite = tmp_path / "run", DENSITY / "csc-ndrpdr.robot"
    words = robot_words(output, SIM, *MATRIX, "--output", "out.json", sources=[suite])
    killed(output, "journal.jsonl", '"event":"started"', 2, *words)
    assert "truncated or damaged JSON" in csit("show", output / "out.json").stderr
    assert csit("outcome", output).status != 0
    passed("robot", "--resume", output)
    assert (output / "out-1.json").exists(), "the output of the interrupted part is kept"
    of_suite = {each for each in contents(density) if "Csc-Ndrpdr." in str(each)}
    assert len(of_suite) == count(output, "finished")
    assert set(contents(output, "out.json")) == {
        tuple(text.replace("Density.Csc", "Csc") for text in each) for each in of_suite
    }
    passed("outcome", output)


def test_killed_in_the_middle_of_a_study_a_run_keeps_the_steps_that_were_done(tmp_path: Path) -> None:
    whole, output = tmp_path / "whole", tmp_path / "run"
    steps = "characterization/Four_Network_Functions_With_A_Planted_Fault/chains.jsonl"
    words = robot_words(whole, SIM, *CHAINS, sources=[STUDIES])
    passed(*words)
    killed(output, steps, '{"line":"step"', 6, *robot_words(output, SIM, *CHAINS, sources=[STUDIES]))
    done = (output / steps).read_bytes()
    passed("robot", "--resume", output)
    resumed = (output / steps).read_bytes()
    assert resumed.startswith(done), "what was measured before is not measured again"
    assert resumed.count(b"\n") == (whole / steps).read_bytes().count(b"\n")
    assert contents(output) == contents(whole)


def test_a_run_is_not_resumed_with_other_choices(density: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    shutil.copytree(density, output)
    before = (output / "journal.jsonl").read_bytes()
    ended = csit("robot", "--resume", output, *QUIETLY, "-v", "SEARCH:rfc2544", DENSITY)
    assert ended.status != 0
    assert "cannot be resumed" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert (output / "journal.jsonl").read_bytes() == before

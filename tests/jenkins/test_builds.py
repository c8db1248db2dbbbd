"""Steps of builds with the commands themselves, on the simulated testbed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = ("prepare", "reserve", "measure", "release", "report", "gate")
PROGRAM = f"""#!/bin/sh
[ "$1" = setup ] || exec {sys.executable} -m csit_utils "$@"
"""
ARGS = (
    "-v CELLS:1-3x1 -v NF_SIZES:1c -v SEARCH:quick -v 'SET:outage.repetitions=1;outage.rate_pps=2000' "
    "--include CSCANDMRR --include ROUTERSANDOUTAGE tests/density tests/characterization"
)
JOURNAL = Path("results/one/journal.jsonl")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A checkout whose testbed `one` is simulated."""
    for name in ("jenkins", "resources", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "csit").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "csit").chmod(0o755)
    (tmp_path / "topologies").mkdir()
    text = (ROOT / "topologies" / "sim.yaml").read_text(encoding="utf-8")
    (tmp_path / "topologies" / "one.yaml").write_text(text.replace("name: sim", "name: one"), encoding="utf-8")
    return tmp_path


def step(workspace: Path, name: str, **values: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CSIT_HISTORY": "history", "REASON": "a; $(test)\n'one'"}
    env |= {"TOPOLOGY": "topologies/one.yaml", "ARGS": ARGS, **values}
    return subprocess.Popen(["jenkins/build", name], cwd=workspace, env=env, process_group=0)


def events(workspace: Path, kind: str) -> int:
    file = workspace / JOURNAL
    rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return sum(f'"event":"{kind}"' in row for row in rows)


def kill_robot(build: subprocess.Popen[bytes]) -> None:
    """Kill what a step is running, and not the step."""
    children = Path(f"/proc/{build.pid}/task/{build.pid}/children").read_text(encoding="utf-8").split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)


def test_a_killed_run_of_two_studies_is_resumed_reported_and_judged(workspace: Path) -> None:
    for name in STEPS:
        build = step(workspace, name)
        if name == "measure":
            deadline = time.monotonic() + 300
            while not events(workspace, "finished") and build.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            kill_robot(build)
        assert build.wait(600) == 0, name
    results = workspace / "results/one"
    assert (results / "output-1.xml").exists() and not (results / "output-2.xml").exists(), "resumed once"
    assert events(workspace, "finished") == 4, "three cells and an outage"
    assert {"index.html", "message.md"} <= {path.name for path in (results / "site").iterdir()}
    assert json.loads((results / "trend.json").read_text(encoding="utf-8")) == []
    assert (results / "xunit.xml").exists() and (results / "gate.xml").exists() and (workspace / "history").is_dir()
    assert (results / "reservation").read_text(encoding="utf-8").startswith("CSIT_RESERVATION=")
    assert step(workspace, "clean").wait(60) == 0
    assert not results.exists()


@pytest.mark.parametrize(
    "wrong", ["-v CELS:1x1 tests/density", "-v CELLS:1xx1 tests/density", "tests/density; id", "'"]
)
def test_wrong_arguments_end_a_build_before_it_reserves(workspace: Path, wrong: str) -> None:
    assert step(workspace, "prepare", ARGS=wrong).wait(600) == 2


def test_an_aborted_build_begins_nothing_else(workspace: Path) -> None:
    for name in ("prepare", "reserve"):
        assert step(workspace, name).wait(600) == 0
    build = step(workspace, "measure")
    while not events(workspace, "finished") and build.poll() is None:
        time.sleep(0.01)
    os.killpg(build.pid, signal.SIGTERM)
    assert build.wait(600) == 143
    assert not (workspace / "results/one/output-1.xml").exists(), "not resumed"
    assert step(workspace, "release").wait(600) == 0


def test_a_night_with_a_budget_is_measured_and_reported(workspace: Path) -> None:
    night = {"BUDGET": "0.01", "ARGS": "--types CSC --tests MRR --cells 1x1 --search quick"}
    for name in STEPS:
        assert step(workspace, name, **night).wait(600) == 0, name
    assert len(list((workspace / "results/one/uti").iterdir())) == 2, "as often as a test is planned"

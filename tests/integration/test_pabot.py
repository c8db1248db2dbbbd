"""Several testbeds from one runner: Pabot, as docs/how-to/run-nightly.md says it. Simulated, so it takes seconds."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.integration.pauses import BETWEEN, Moment, Paused
from tests.integration.robot_runs import PROJECT, events
from tests.loaded import load

pytestmark = pytest.mark.parallel

PAGE = PROJECT / "docs" / "how-to" / "run-nightly.md"
OPTIONS = ("-v", "SEARCH:quick", "-v", "NF_SIZES:1c", "--include", "CSCANDMRR", "--include", "CSPANDMRR")
TESTBEDS = ("one", "two")


def pabot_of_the_page() -> list[str]:
    """Pabot's options in the page, up to the files that name testbeds."""
    text = re.sub(r"\\\n\s*", "", PAGE.read_text(encoding="utf-8"))
    line = next(line for line in text.splitlines() if line.startswith(".venv/bin/pabot"))
    return shlex.split(line.split("--ordering")[0])[1:]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with two testbeds and Pabot's files."""
    for name in ("csit", "resources", "tests"):
        (tmp_path / name).symlink_to(PROJECT / name)
    sim = (PROJECT / "topologies" / "sim.yaml").read_text(encoding="utf-8")
    for name in TESTBEDS:
        (tmp_path / f"{name}.yaml").write_text(sim.replace("name: sim", f"name: {name}"), encoding="utf-8")
        (tmp_path / f"{name}.args").write_text(f"--variable TOPOLOGY:{name}.yaml\n", encoding="utf-8")
    (tmp_path / "whole.order").write_text("--suite Density\n", encoding="utf-8")
    return tmp_path


def pabot(workspace: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start it on both testbeds."""
    files = ["--ordering", "whole.order", "--argumentfile1", "one.args", "--argumentfile2", "two.args"]
    choice = ["--outputdir", "night", *OPTIONS, *options, "tests/density"]
    return subprocess.Popen(
        [sys.executable, "-m", "pabot.pabot", *pabot_of_the_page(), *files, *choice],
        cwd=workspace,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def csit(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [sys.executable, "-m", "csit_utils", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=False)


def test_two_testbeds_are_measured_side_by_side_and_reported_together(workspace: Path) -> None:
    assert pabot(workspace, "-v", "CELLS:1x1,2x1").wait(600) == 0
    runs = sorted((workspace / "night" / "pabot_results").glob("[12]/*/journal.jsonl"))
    assert [run.parent.parent.name for run in runs] == ["1", "2"]  # one run for each testbed, with all its suites
    for name, run in zip(TESTBEDS, runs, strict=True):
        header, *rest = events(run.parent)
        assert header["choices"]["topology"].endswith(f"/{name}.yaml")
        assert [row["event"] for row in rest].count("finished") == 4
    log = (workspace / "night" / "pabot_results" / "pabot_manager.log").read_text(encoding="utf-8")
    assert re.findall(r"EXECUTING|PASSED", log) == ["EXECUTING", "EXECUTING", "PASSED", "PASSED"]  # side by side

    joined = load([workspace / "night" / "output.xml"])
    assert not joined.problems
    assert not joined.unrecorded
    assert len(joined.recorded) == 8
    assert csit(workspace, "outcome", *(str(run.parent) for run in runs)).returncode == 0
    assert csit(workspace, "report", "night/output.xml", "-o", "night/density.html").returncode == 0
    page = (workspace / "night" / "density.html").read_text(encoding="utf-8")
    assert all(name in page for name in TESTBEDS)


def test_a_run_that_was_killed_is_resumed_and_reported_with_the_other(workspace: Path) -> None:
    paused = Paused(workspace, [Moment(BETWEEN, call=3)])
    with (workspace / "one.args").open("a", encoding="utf-8") as arguments:
        arguments.write(" ".join(paused.options) + "\n")
    process = pabot(workspace, "-v", "CELLS:1-6x1")
    try:
        wait_until("a run stands still", lambda: "" if stopped(workspace) else "none does", 120, 0.01)
        (victim,) = stopped(workspace)
        os.kill(victim, signal.SIGKILL)
        assert process.wait(600) != 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(600)
    runs = [run.parent for run in sorted((workspace / "night" / "pabot_results").glob("[12]/*/journal.jsonl"))]
    said = csit(workspace, "outcome", *map(str, runs))
    assert said.returncode == 3
    assert {line.split(":")[0] for line in said.stdout.splitlines() if "interrupted" in line} == {str(runs[0])}

    paused.none()
    assert csit(workspace, "robot", "--resume", str(runs[0])).returncode == 0
    assert csit(workspace, "outcome", *map(str, runs)).returncode == 0
    both = load([run / "output.xml" for run in runs])
    assert (len(both.recorded), both.problems) == (24, [])


def stopped(workspace: Path) -> list[int]:
    """Processes of runs in the workspace that stand still."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if is_stopped(pid) and working_folder(pid) == workspace]


def is_stopped(pid: int) -> bool:
    """Whether a process stands still; a process that is gone does not."""
    try:
        return ") T " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def working_folder(pid: int) -> Path | None:
    """Where a process runs; None where it is gone."""
    try:
        return Path(f"/proc/{pid}/cwd").resolve()
    except OSError:
        return None

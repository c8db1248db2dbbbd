"""Parts are killed in the middle of a trial, on real packets: nothing is left, and the night goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.model.result import Result
from tests.integration.robot_runs import (
    PROJECT,
    argv,
    environment,
    events,
    network_state,
    results,
    run_robot,
    wait_for_network_state,
    wait_for_traffic,
)

pytestmark = pytest.mark.root

LOCAL = ("-v", "TOPOLOGY:topologies/local.yaml", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick,sum=1,time=10,mrr=5")
MRR = (*LOCAL, "-v", "CELLS:1x1,2x1", "--suite", "csc-mrr")
RT_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")
OWNER = Path("/run/csit-density/owner.json")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=60)


def workers() -> list[dict[str, Any]]:
    """Processes that the run has on the machine's record."""
    found: list[dict[str, Any]] = json.loads(OWNER.read_text(encoding="utf-8"))["workers"]
    return found


def generator_gets(number: signal.Signals) -> None:
    for worker in workers():
        if "drivers.generator" in worker["command"]:
            os.kill(worker["pid"], number)


def kill_one(program: str) -> None:
    """Kill -9 one of the run's processes."""
    running = {worker["pid"]: Path(f"/proc/{worker['pid']}/cmdline").read_bytes().decode() for worker in workers()}
    pids = [pid for pid, command in running.items() if program in command]
    assert pids, running
    os.kill(pids[0], signal.SIGKILL)


def bridge_is_deleted() -> None:
    ip("-n", "csit-vswitch", "link", "del", "csb1x1")


def generator_is_killed() -> None:
    generator_gets(signal.SIGKILL)


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "1R1C": (bridge_is_deleted, "bridge csb1x1"),
    "1R2C": (lambda: ip("-n", "csit-vswitch", "link", "del", "csv1p1"), "csv1p1"),
    "2R1C": (lambda: ip("-n", "csit-nf-1-1", "link", "del", "csn1x1i1"), "csn1x1i1 is gone"),
    "2R2C": (generator_is_killed, "ended with -9"),
    "3R1C": (lambda: generator_gets(signal.SIGSTOP), "not ready after"),
}
"""What is done in the middle of a trial of a cell, and a word that the reason must have."""


@pytest.fixture(autouse=True)
def _machine_stays_as_it_was() -> Iterator[None]:
    before, limit = network_state(), RT_LIMIT.read_text(encoding="ascii")
    yield
    wait_for_network_state(before)
    assert RT_LIMIT.read_text(encoding="ascii") == limit
    assert not OWNER.exists()


def wait_for_attempt(run: "subprocess.Popen[str]", output: Path, test: str, attempt: int, seconds: float = 120) -> None:
    """Wait until an attempt has begun and sends."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and run.poll() is None:
        last: dict[str, Any] = next((each for each in reversed(events(output)) if each["event"] != "resumed"), {})
        if last.get("event") == "started" and last["test"].startswith(test) and last["attempt"] == attempt:
            wait_for_traffic(seconds)
            return
        time.sleep(0.02)
    said = run.communicate()[0] if run.poll() is not None else "it goes on"
    raise AssertionError(f"no attempt {attempt} of {test} within {seconds} s: {said}; {events(output)[1:]}")


@contextmanager
def robot(output: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """A run that goes on beside the test."""
    with subprocess.Popen(
        argv(output, *options), cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    ) as run:  # fmt: skip
        try:
            yield run
        finally:
            if run.poll() is None:
                run.send_signal(signal.SIGTERM)
                run.communicate(timeout=120)


def by_cell(output: Path) -> dict[str, Result]:
    return {f"{row.cell.locator}": row for row in results(output)}


def test_a_cell_that_breaks_once_is_measured_once_more_and_the_next_is_clean(tmp_path: Path) -> None:
    cells = ",".join(f"{name[0]}x{name[2]}" for name in (*FAULTS, "3R2C"))
    with robot(tmp_path, *LOCAL, "-v", f"CELLS:{cells}", "--suite", "csc-mrr") as run:
        for name, (inject, _) in FAULTS.items():
            wait_for_attempt(run, tmp_path, f"CSC {name}", 1)
            inject()
        stdout, _ = run.communicate(timeout=240)
    assert run.returncode == 0, stdout
    rows = by_cell(tmp_path)
    assert list(rows) == [*FAULTS, "3R2C"]
    for name, (_, word) in FAULTS.items():
        (reason,) = rows[name].broken
        assert word in reason
    assert rows["3R2C"].broken == ()
    assert all(row.mrr and row.mrr.mean_pps > 1000 for row in rows.values())
    assert stdout.count("once more") == len(FAULTS)


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("ovs-vswitchd", ["-v", "TOPOLOGY:topologies/local-ovs.yaml", "--suite", "csc-mrr"]),
        ("dpdk-testpmd", ["-v", "TOPOLOGY:topologies/local-ovs.yaml", "-v", "NF_KINDS:testpmd", "--suite", "csc-mrr"]),
        ("qemu-system", ["-v", "TOPOLOGY:topologies/local.yaml", "--suite", "vsc-mrr"]),
    ],
)
def test_a_process_that_is_killed_is_named_and_replaced(tmp_path: Path, program: str, options: list[str]) -> None:
    if not shutil.which("qemu-system-x86_64" if program == "qemu-system" else program):
        pytest.skip(f"{program} is not installed")
    common = ("-v", "NF_SIZES:1c", "-v", "SEARCH:quick,sum=1,time=10,mrr=5", "-v", "CELLS:1x1")
    with robot(tmp_path, *common, *options) as run:
        wait_for_attempt(run, tmp_path, options[-1][:3].upper(), 1, seconds=180)
        kill_one(program)
        stdout, _ = run.communicate(timeout=240)
    assert run.returncode == 0, stdout
    rows = by_cell(tmp_path)
    (reason,) = rows["1R1C"].broken
    assert program.removesuffix("-system") in reason or "nf-1-1" in reason, reason
    assert rows["1R1C"].mrr and rows["1R1C"].mrr.mean_pps > 0


def test_a_cell_that_breaks_twice_goes_into_quarantine_and_the_next_is_clean(tmp_path: Path) -> None:
    options = ("-v", "CELLS:1x1,2x1", "-v", "FRAMES:64B,128B", "--suite", "csc-mrr")
    with robot(tmp_path, *LOCAL, *options) as run:
        for attempt, inject in ((1, bridge_is_deleted), (2, generator_is_killed)):
            wait_for_attempt(run, tmp_path, "CSC 1R1C", attempt)
            inject()
        stdout, _ = run.communicate(timeout=240)
    assert run.returncode == 1, stdout  # one failed test; its cell's other test is skipped
    assert "2 tests passed, 1 failed, 1 skipped" in stdout or "4 tests, 2 passed, 1 failed, 1 skipped" in stdout
    rows = {(row.cell.locator, row.asked.frame.name): row for row in results(tmp_path)}
    assert set(rows) == {("1R1C", "64B"), ("2R1C", "64B"), ("2R1C", "128B")}
    broken = rows["1R1C", "64B"]
    assert not broken.passed
    assert broken.verdict.kinds[0] == "quarantined"
    assert "bridge csb1x1" in broken.broken[0]
    assert "ended with -9" in broken.broken[1]
    assert broken.quarantined == broken.broken[1]
    assert all(row.passed and not row.broken for key, row in rows.items() if key[0] == "2R1C")
    lines = [line for line in show(tmp_path) if line.startswith("CSC 1x1")]
    assert len(lines) == 2
    assert all("quarantined" in line and "ended with -9" in line for line in lines)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all space there is."""
    file = folder / "somebody-elses"
    with file.open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
    return file


def test_a_full_disk_ends_the_run_with_one_sentence_and_it_resumes(tmp_path: Path) -> None:
    with small_disk(tmp_path, 80):
        with robot(tmp_path, *MRR) as run:
            wait_for_attempt(run, tmp_path, "CSC 2R1C", 1)
            file = fill(tmp_path)
            stdout, _ = run.communicate(timeout=120)
        assert run.returncode == 1, stdout
        assert "Traceback" not in stdout
        assert "No space left on device; mend that, then resume the run" in stdout
        assert [each["event"] for each in events(tmp_path)][-3:] == ["finished", "started", "stopped"]
        before = results(tmp_path)
        shown = show(tmp_path)
        assert "No space left on device" in shown[-1]
        file.unlink()
        done = run_robot(tmp_path, "-v", f"RESUME:{tmp_path}", "--suite", "csc-mrr")
        assert done.returncode == 0, done.stdout + done.stderr
        rows = results(tmp_path)
        assert rows[:1] == before
        assert [row.cell.locator for row in rows] == ["1R1C", "2R1C"]


def show(output: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "csit_utils", "show", str(output / "output.xml")],
        cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_run_that_was_ended_in_a_trial_resumes_to_the_same_tests(tmp_path: Path) -> None:
    again = ("-v", f"RESUME:{tmp_path}", "--suite", "csc-mrr")
    for ending, options in ((signal.SIGKILL, MRR), (signal.SIGTERM, again)):
        with robot(tmp_path, *options) as run:
            wait_for_attempt(run, tmp_path, "CSC 2R1C", 1)
            run.send_signal(ending)
            run.communicate(timeout=120)
    before = by_cell(tmp_path)["1R1C"]
    done = run_robot(tmp_path, *again)
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = [each["event"] for each in events(tmp_path)]
    assert [kind for kind in kinds if kind != "run"] == [
        "started", "finished", "started",  # until it was killed
        "resumed", "started", "interrupted",
        "resumed", "started", "finished", "ended",
    ]  # fmt: skip
    rows = by_cell(tmp_path)
    assert rows["1R1C"] == before
    assert rows["2R1C"].passed and not rows["2R1C"].broken
    assert [line.split("\t")[0] for line in show(tmp_path)[1:]] == ["CSC 1x1 NF-1c", "CSC 2x1 NF-1c"]

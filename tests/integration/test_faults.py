"""Parts are killed in the middle of a trial, on real packets: nothing is left, and the night goes on."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.disks import small_disk
from tests.integration.local_faults import (
    OWNER,
    bridge_is_deleted,
    container_is_killed,
    container_is_stopped,
    generator_gets,
    generator_is_killed,
    killed,
    link_goes_down,
    nf_loses_its_port,
    stopped,
)
from tests.integration.robot_runs import (
    csit,
    events,
    going_on,
    held_in_a_trial,
    network_state,
    results,
    run_robot,
    wait_for_network_state,
)

pytestmark = pytest.mark.root

BRIEF = ("-v", "NF_SIZES:1c", "-v", "SEARCH:quick,sum=1,time=10,mrr=1,mrr_trial=0.1")
LOCAL = (*BRIEF, "-v", "TOPOLOGY:topologies/local.yaml")
MRR = (*LOCAL, "-v", "CELLS:1x1,2x1", "--suite", "csc-mrr")
RT_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "1R1C": (bridge_is_deleted, "bridge csb1x1"),
    "1R2C": (link_goes_down, "csv1p1"),
    "2R1C": (nf_loses_its_port, "csn1x1i1 is gone"),
    "2R2C": (generator_is_killed, "was killed by SIGKILL"),
    "3R1C": (lambda: generator_gets(signal.SIGSTOP), "is stopped"),
}
"""What is done in the middle of a trial of a cell, and a word that the reason must have."""


@pytest.fixture(autouse=True)
def _machine_stays_as_it_was() -> Iterator[None]:
    before, limit = network_state(), RT_LIMIT.read_text(encoding="ascii")
    yield
    wait_for_network_state(before)
    assert RT_LIMIT.read_text(encoding="ascii") == limit
    assert not OWNER.exists()


def by_cell(output: Path) -> dict[str, DensityRecord]:
    return {f"{row.cell.locator}": row for row in results(output)}


def test_a_cell_that_breaks_once_is_measured_once_more_and_the_next_is_clean(tmp_path: Path) -> None:
    cells = ",".join(f"{name[0]}x{name[2]}" for name in (*FAULTS, "3R2C"))
    with going_on(tmp_path, *LOCAL, "-v", f"CELLS:{cells}", "--suite", "csc-mrr") as run:
        for name, (inject, _) in FAULTS.items():
            with held_in_a_trial(run, tmp_path, f"CSC {name}"):
                inject()
        stdout, _ = run.communicate(timeout=600)
    assert run.returncode == 0, stdout
    rows = by_cell(tmp_path)
    assert list(rows) == [*FAULTS, "3R2C"]
    for name, (_, word) in FAULTS.items():
        (reason,) = rows[name].broken
        assert word in reason
    assert rows["3R2C"].broken == ()
    assert all(row.mrr and row.mrr.mean_pps > 1000 for row in rows.values())
    assert stdout.count("; trying again") == len(FAULTS)


WORLDS: dict[str, tuple[str, tuple[str, ...], dict[str, tuple[Callable[[], None], str]]]] = {
    "user space": (
        "dpdk-testpmd",
        ("-v", "TOPOLOGY:topologies/local-ovs.yaml", "-v", "NF_KINDS:testpmd", "--suite", "csc-mrr"),
        {
            "CSC 1R1C NF-1c vSwitch-1c testpmd 128B": (killed("ovs-vswitchd"), "ovs-vswitchd was killed by SIGKILL"),
            "CSC 1R1C NF-1c vSwitch-1c testpmd 129B": (killed("dpdk-testpmd"), "nf-1-1 was killed by SIGKILL"),
            "CSC 1R1C NF-1c vSwitch-1c testpmd 130B": (stopped("ovs-vswitchd"), "ovs-vswitchd is stopped"),
            "CSC 1R1C NF-1c vSwitch-1c testpmd 131B": (stopped("dpdk-testpmd"), "nf-1-1 is stopped"),
        },
    ),
    "guests": (
        "qemu-system-x86_64",
        ("-v", "TOPOLOGY:topologies/local.yaml", "--suite", "vsc-mrr"),
        {
            "VSC 1R1C NF-1c vSwitch-1c 128B": (killed("qemu-system"), "machine of nf-1-1 was killed by SIGKILL"),
            "VSC 1R1C NF-1c vSwitch-1c 129B": (stopped("qemu-system"), "machine of nf-1-1 is stopped"),
        },
    ),
    "containers": (
        "podman",
        ("-v", "TOPOLOGY:topologies/local-podman.yaml", "--suite", "csc-mrr"),
        {
            "CSC 1R1C NF-1c vSwitch-1c 128B": (container_is_killed, "the container of nf-1-1 has ended"),
            "CSC 1R1C NF-1c vSwitch-1c 129B": (container_is_stopped, "the container of nf-1-1 is stopped"),
        },
    ),
}
"""What must be installed, options, and by test what is done in its trial, and words that the reason must have."""


@pytest.mark.parametrize("world", WORLDS)
def test_a_part_that_is_killed_or_stopped_is_named_and_replaced(tmp_path: Path, world: str) -> None:
    program, options, cases = WORLDS[world]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    frames = [test.split()[-1] for test in cases]
    with going_on(tmp_path, *BRIEF, "-v", "CELLS:1x1", "-v", f"FRAMES:{','.join(frames)}", *options) as run:
        for test, (inject, _) in cases.items():
            with held_in_a_trial(run, tmp_path, test):
                inject()
        stdout, _ = run.communicate(timeout=600)
    assert run.returncode == 0, stdout
    rows = {row.asked.frame.name: row for row in results(tmp_path)}
    assert list(rows) == frames
    for row, (_, words) in zip(rows.values(), cases.values(), strict=True):
        (reason,) = row.broken
        assert words in reason
        assert row.mrr and row.mrr.mean_pps > 0


def test_a_cell_that_breaks_twice_goes_into_quarantine_and_the_next_is_clean(tmp_path: Path) -> None:
    options = ("-v", "CELLS:1x1,2x1", "-v", "FRAMES:64B,128B", "--suite", "csc-mrr")
    with going_on(tmp_path, *LOCAL, *options) as run:
        for attempt, inject in ((1, bridge_is_deleted), (2, generator_is_killed)):
            with held_in_a_trial(run, tmp_path, "CSC 1R1C", attempt=attempt):
                inject()
        stdout, _ = run.communicate(timeout=600)
    assert run.returncode == 1, stdout  # one failed test; its cell's other test is skipped
    assert "2 tests passed, 1 failed, 1 skipped" in stdout or "4 tests, 2 passed, 1 failed, 1 skipped" in stdout
    rows = {(row.cell.locator, row.asked.frame.name): row for row in results(tmp_path)}
    assert set(rows) == {("1R1C", "64B"), ("2R1C", "64B"), ("2R1C", "128B")}
    broken = rows["1R1C", "64B"]
    assert not broken.passed
    assert broken.verdict.kinds[0] == "quarantined"
    assert "bridge csb1x1" in broken.broken[0]
    assert "was killed by SIGKILL" in broken.broken[1]
    assert broken.quarantined == broken.broken[1]
    assert all(row.passed and not row.broken for key, row in rows.items() if key[0] == "2R1C")
    lines = [line for line in show(tmp_path) if line.startswith("CSC 1x1")]
    assert len(lines) == 2
    assert all("quarantined" in line and "was killed by SIGKILL" in line for line in lines)


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


def show(output: Path) -> list[str]:
    done = csit("show", str(output / "output.xml"))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_run_that_ends_in_a_trial_resumes_to_the_same_tests_however_often(tmp_path: Path) -> None:
    """A full disk ends it, a kill, a request to end: in the second of two tests, and once more in the same."""
    again = ("-v", f"RESUME:{tmp_path}", "--suite", "csc-mrr")
    with small_disk(tmp_path, 80):
        with going_on(tmp_path, *MRR, "--log", "log.html", "--report", "report.html") as run:
            with held_in_a_trial(run, tmp_path, "CSC 2R1C"):
                file = fill(tmp_path)
            stdout, _ = run.communicate(timeout=600)
        assert run.returncode == 1, stdout
        assert "Traceback" not in stdout
        assert "No space left on device; fix that, then resume the run" in stdout
        (before,) = results(tmp_path)
        assert "No space left on device" in show(tmp_path)[-1]
        file.unlink()
        for ending in (signal.SIGKILL, signal.SIGTERM):
            with going_on(tmp_path, *again) as run:
                with held_in_a_trial(run, tmp_path, "CSC 2R1C"):
                    run.send_signal(ending)
                run.communicate(timeout=600)
        run_robot(tmp_path, *again)
        kinds = [each["event"] for each in events(tmp_path)]
        assert [kind for kind in kinds if kind != "run"] == [
            "started", "finished", "started", "stopped",
            "resumed", "started",  # until it was killed
            "resumed", "started", "interrupted",
            "resumed", "started", "finished", "ended",
        ]  # fmt: skip
        rows = by_cell(tmp_path)
        assert rows["1R1C"] == before
        assert rows["2R1C"].passed and not rows["2R1C"].broken
        assert [line.split("\t")[0] for line in show(tmp_path)[1:]] == ["CSC 1x1 NF-1c", "CSC 2x1 NF-1c"]

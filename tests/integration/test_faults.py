"""Parts break while a cell is deployed, loaded or removed, on real packets: nothing is left, and the night goes on."""

import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.disks import filled, small_disk
from tests.integration.lab_runs import RT_LIMIT
from tests.integration.local_faults import (
    OWNER,
    TINY,
    Fault,
    bridge_is_deleted,
    container_is_killed,
    container_is_paused,
    container_is_stopped,
    generator_has_no_memory,
    generator_is_killed,
    generator_is_stopped,
    killed,
    link_goes_down,
    loses_port,
    nf_loses_its_port,
    stopped,
)
from tests.integration.pauses import DEPLOYED, DEPLOYING, REMOVING, SENDING, STEPS, Moment, Paused
from tests.integration.robot_runs import (
    LOCAL,
    SUITES,
    broke_once,
    csit,
    events,
    going_on,
    held_in_a_trial,
    network_state,
    reasons_to_repeat,
    results,
    run_robot,
    study_suite,
    variables,
    wait_for_network_state,
)
from tests.loaded import load

pytestmark = pytest.mark.root
BRIEF = variables("NF_SIZES:1c SEARCH:quick,sum=1,time=10,mrr=1,mrr_trial=0.1")
MRR = (*BRIEF, *LOCAL, "-v", "CELLS:1x1,2x1", "--suite", "csc-mrr")


@pytest.fixture(autouse=True)
def _machine_stays_as_it_was() -> Iterator[None]:
    before, limit = network_state(), RT_LIMIT.read_text(encoding="ascii")
    yield
    wait_for_network_state(before)
    if TINY.is_dir():
        TINY.rmdir()
    assert RT_LIMIT.read_text(encoding="ascii") == limit
    assert not OWNER.exists()


@dataclass(frozen=True)
class Case:
    """What is done in a test and words that its reason must have, and what is done when the next attempt is removed."""

    at: str
    fault: Fault
    words: str
    removed: Fault | None = None
    call: int = 1


@dataclass(frozen=True)
class World:
    """What is deployed, and the cases, one in each test."""

    topology: str
    programs: tuple[str, ...]
    """That it needs."""
    cases: tuple[Case, ...]
    kinds: str = ""
    """Of the NFs; empty for the topology's first."""
    suite: str = "csc-mrr"
    cell: str = "1x1"


LOADED = 2
"""The call of a measurement after the one that verifies the path."""
IN_A_TRIAL = ""
"""Its generator sends; other moments are calls."""
WORLDS: Mapping[str, World] = {
    "kernel": World(
        "local.yaml",
        (),
        (
            Case(DEPLOYING, bridge_is_deleted, "csb1x1", bridge_is_deleted),
            Case(DEPLOYING, nf_loses_its_port, "csn1x1i1", nf_loses_its_port),
            Case(DEPLOYING, link_goes_down, "csv1p1", link_goes_down),
            Case(DEPLOYED, generator_is_killed, "was killed by SIGKILL", generator_is_killed),
            Case(DEPLOYED, generator_is_stopped, "is stopped", generator_is_stopped),
            Case(SENDING, generator_has_no_memory, "was killed by SIGKILL", call=LOADED),
            Case(IN_A_TRIAL, bridge_is_deleted, "bridge csb1x1"),
            Case(IN_A_TRIAL, link_goes_down, "csv1p1"),
            Case(IN_A_TRIAL, nf_loses_its_port, "csn1x1i1 is gone"),
            Case(IN_A_TRIAL, generator_is_killed, "was killed by SIGKILL"),
            Case(IN_A_TRIAL, generator_is_stopped, "is stopped"),
        ),
    ),
    "kernel 2x2": World(
        "local.yaml",
        (),
        (
            Case(IN_A_TRIAL, generator_is_killed, "was killed by SIGKILL"),
            Case(IN_A_TRIAL, loses_port("nf-1-2", "csn1x2i1"), "csn1x2i1 is gone"),
            Case(IN_A_TRIAL, loses_port("nf-2-2", "csn2x2i2"), "csn2x2i2 is gone"),
        ),
        cell="2x2",
    ),
    "user space": World(
        "local-ovs.yaml",
        ("ovs-vswitchd", "dpdk-testpmd"),
        (
            Case(DEPLOYING, killed("ovs-vswitchd"), "ovs-vswitchd", killed("testpmd")),
            Case(DEPLOYING, killed("testpmd"), "nf-1-1", killed("ovs-vswitchd")),
            Case(DEPLOYED, stopped("ovs-vswitchd"), "ovs-vswitchd is stopped", stopped("testpmd")),
            Case(DEPLOYED, stopped("testpmd"), "testpmd of nf-1-1 is stopped", stopped("ovs-vswitchd")),
            Case(IN_A_TRIAL, killed("ovs-vswitchd"), "ovs-vswitchd was killed by SIGKILL"),
            Case(IN_A_TRIAL, killed("testpmd"), "nf-1-1 was killed by SIGKILL"),
            Case(IN_A_TRIAL, stopped("ovs-vswitchd"), "ovs-vswitchd is stopped"),
            Case(IN_A_TRIAL, stopped("testpmd"), "nf-1-1 is stopped"),
        ),
        kinds="testpmd",
    ),
    "user space 2x2": World(
        "local-ovs.yaml",
        ("ovs-vswitchd", "dpdk-testpmd"),
        (
            Case(DEPLOYED, killed("=nf-1-2"), "nf-1-2 was killed by SIGKILL"),
            Case(IN_A_TRIAL, killed("=nf-2-1"), "nf-2-1 was killed by SIGKILL"),
        ),
        kinds="testpmd",
        cell="2x2",
    ),
    "guests": World(
        "local.yaml",
        ("qemu-system-x86_64",),
        (
            Case(DEPLOYED, stopped("qemu-system"), "is stopped", killed("qemu-system")),
            Case(DEPLOYED, killed("qemu-system"), "was killed by SIGKILL", stopped("qemu-system")),
            Case(IN_A_TRIAL, killed("qemu-system"), "machine of nf-1-1 was killed by SIGKILL"),
            Case(IN_A_TRIAL, stopped("qemu-system"), "machine of nf-1-1 is stopped"),
        ),
        suite="vsc-mrr",
    ),
    "containers": World(
        "local-podman.yaml",
        ("podman",),
        (
            Case(DEPLOYED, container_is_killed, "the container of nf-1-1 has ended", container_is_stopped),
            Case(DEPLOYED, container_is_stopped, "the container of nf-1-1 is stopped", container_is_killed),
            Case(DEPLOYED, container_is_paused, "the container of nf-1-1 is paused", container_is_paused),
            Case(IN_A_TRIAL, container_is_killed, "the container of nf-1-1 has ended"),
            Case(IN_A_TRIAL, container_is_stopped, "the container of nf-1-1 is stopped"),
        ),
    ),
}
MIN_FRAME = 128


@pytest.mark.parametrize("world", WORLDS)
def test_a_part_that_breaks_at_any_moment_is_replaced(tmp_path: Path, world: str) -> None:
    """A small cell with a frame size for each case: larger ones share CPUs, and lose packets without faults."""
    asked = WORLDS[world]
    if missing := [name for name in asked.programs if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    cases = {f"{MIN_FRAME + number}B": case for number, case in enumerate(asked.cases)}
    faults: list[tuple[Moment | str, Fault]] = []
    locator = f"{asked.cell[0]}R{asked.cell[-1]}C"
    for frame, case in cases.items():
        test = " ".join(filter(None, (asked.suite[:3].upper(), f"{locator} NF-1c vSwitch-1c", asked.kinds, frame)))
        faults.append((Moment(case.at, test, case.call) if case.at else test, case.fault))
        if case.removed is not None:
            faults.append((Moment(REMOVING, test, attempt=2), case.removed))
    output, frames = tmp_path / "out", [*cases, "256B"]
    paused = Paused(tmp_path, [moment for moment, _ in faults if isinstance(moment, Moment)])
    words = variables(f"TOPOLOGY:topologies/{asked.topology} CELLS:{asked.cell} FRAMES:{','.join(frames)}")
    words += ("-v", f"NF_KINDS:{asked.kinds}") if asked.kinds else ()
    with going_on(output, *BRIEF, *words, "--suite", asked.suite, *paused.options) as run:
        for moment, fault in faults:
            with paused.at(moment, run) if isinstance(moment, Moment) else held_in_a_trial(run, output, moment):
                fault()
        said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    broke_once(output, {frame: case.words for frame, case in cases.items()} | {"256B": ""})  # the next one is clean
    assert said.count("; trying again") == len(cases)


CHAINS = """
name: two
vnfs:
  - {name: router, kind: linux_router}
  - {name: gateway, kind: linux_gateway}
lengths: [1]
workloads: {protocols: [UDP], volumes_mbps: [2], sessions: [4], frames: [64B]}
duration_s: 1
"""
STATEFUL = """
name: small
kind: linux_nat
instances: [1]
nodes: [1, 2]
frame: 64B
search: quick,width=0.4,trial=0.1,sum=0.3
tear_downs: 1
connections: 1000
capacity: false
"""
SWEEP = ("-v", "SWEEP_RATES:2000-4000/2000", "-v", "SWEEP_DURATION:1", "-t", "Path Alone", "-t", "Router Alone")
STUDIES: Mapping[str, tuple[str, str, tuple[str, ...], tuple[Fault, Fault]]] = {
    "sweep": ("chain.robot", "", SWEEP, (generator_is_killed, nf_loses_its_port)),
    "chains": ("chains/four-vnfs.yaml", CHAINS, (), (nf_loses_its_port, generator_is_killed)),
    "stateful": ("stateful/nat.yaml", STATEFUL, ("-i", "NAT"), (nf_loses_its_port, generator_is_killed)),
}
"""By study: its suite or the specification that is replaced there, options, and what is done after the first and the
third deployment."""
REASONS = {generator_is_killed: "was killed by SIGKILL", nf_loses_its_port: "csn1x1i1"}
"""By what was done: words of the reason."""


@pytest.mark.parametrize("study", STUDIES)
def test_a_step_of_a_study_that_breaks_is_measured_once_more(tmp_path: Path, study: str) -> None:
    """A step breaks and is deployed anew; the next one breaks too, and is deployed anew."""
    name, text, options, faults = STUDIES[study]
    source = study_suite(tmp_path, name, text) if text else SUITES / name
    moments = [Moment(STEPS, call=1, after=True), Moment(STEPS, call=3, after=True)]
    paused, output = Paused(tmp_path, moments), tmp_path / "out"
    with going_on(output, *LOCAL, *options, *paused.options, sources=[source]) as run:
        for moment, fault in zip(moments, faults, strict=True):
            with paused.at(moment, run):
                fault()
        said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    records = load([output / "output.xml"]).characterizations
    for row in records:
        record = row.record
        assert record.passed
        runs = record.chain_study.runs if study == "chains" else ()
        assert all(each.failed is None for each in runs)
        assert study != "stateful" or [cell.name for cell in record.stateful.cells] == ["1x1", "1x2"]
    reasons = reasons_to_repeat(output)
    for fault in faults:
        assert any(REASONS[fault] in reason for reason in reasons), (fault, reasons)


def test_a_cell_that_breaks_twice_goes_into_quarantine_and_the_next_is_clean(tmp_path: Path) -> None:
    with going_on(tmp_path, *MRR, "-v", "FRAMES:64B,128B") as run:
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


def show(output: Path) -> list[str]:
    done = csit("show", str(output / "output.xml"))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_run_that_ends_in_a_trial_resumes_to_the_same_tests_however_often(tmp_path: Path) -> None:
    """A full disk ends it, a kill, a request to end: in the second of two tests, and once more in the same."""
    again = ("-v", f"RESUME:{tmp_path}", "--suite", "csc-mrr")
    with small_disk(tmp_path, 80):
        options = (*MRR, "--log", "log.html", "--report", "report.html")
        with going_on(tmp_path, *options) as run, ExitStack() as full:
            with held_in_a_trial(run, tmp_path, "CSC 2R1C"):
                full.enter_context(filled(tmp_path))
            stdout, _ = run.communicate(timeout=600)
            shown = show(tmp_path)
        assert run.returncode == 1, stdout
        assert "Traceback" not in stdout
        assert "No space left on device; fix that, then resume the run" in stdout
        (before,) = results(tmp_path)
        assert "No space left on device" in shown[-1]
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
        rows = {f"{row.cell.locator}": row for row in results(tmp_path)}
        assert rows["1R1C"] == before
        assert rows["2R1C"].passed and not rows["2R1C"].broken
        assert [line.split("\t")[0] for line in show(tmp_path)[1:]] == ["CSC 1x1 NF-1c", "CSC 2x1 NF-1c"]

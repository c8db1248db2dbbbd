"""Parts break while a cell is deployed, loaded or removed, on real packets: nothing is left, and the run continues."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.local_faults import (
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
    nf_loses_its_port,
    stopped,
)
from tests.integration.pauses import DEPLOYED, DEPLOYING, REMOVING, SENDING, STEPS, Moment, Paused
from tests.integration.robot_runs import (
    PROJECT,
    going_on,
    network_state,
    reasons_to_repeat,
    results,
    wait_for_network_state,
)
from tests.loaded import load

pytestmark = pytest.mark.root


BRIEF = ("-v", "NF_SIZES:1c", "-v", "SEARCH:quick,sum=1,time=10,mrr=1,mrr_trial=0.1")


@pytest.fixture(autouse=True)
def _machine_stays_as_it_was() -> Iterator[None]:
    before = network_state()
    yield
    wait_for_network_state(before)
    if TINY.is_dir():
        TINY.rmdir()
    assert not Path("/run/csit-density/owner.json").exists()


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


LOADED = 2
"""The call of a measurement after the one that verifies the path."""
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
        ),
    ),
    "user space": World(
        "local-ovs.yaml",
        ("ovs-vswitchd", "dpdk-testpmd"),
        (
            Case(DEPLOYING, killed("ovs-vswitchd"), "ovs-vswitchd", killed("testpmd")),
            Case(DEPLOYING, killed("testpmd"), "nf-1-1", killed("ovs-vswitchd")),
            Case(DEPLOYED, stopped("ovs-vswitchd"), "ovs-vswitchd is stopped", stopped("testpmd")),
            Case(DEPLOYED, stopped("testpmd"), "testpmd of nf-1-1 is stopped", stopped("ovs-vswitchd")),
        ),
        kinds="testpmd",
    ),
    "guests": World(
        "local.yaml",
        ("qemu-system-x86_64",),
        (
            Case(DEPLOYED, stopped("qemu-system"), "is stopped", killed("qemu-system")),
            Case(DEPLOYED, killed("qemu-system"), "was killed by SIGKILL", stopped("qemu-system")),
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
        ),
    ),
}
MIN_FRAME = 128


@pytest.mark.parametrize("world", WORLDS)
def test_a_part_that_breaks_at_any_moment_is_replaced(tmp_path: Path, world: str) -> None:
    """The smallest cell with a frame size for each case: larger ones share CPUs, and lose packets without faults."""
    asked = WORLDS[world]
    if missing := [name for name in asked.programs if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    cases = {f"{MIN_FRAME + number}B": case for number, case in enumerate(asked.cases)}
    faults: list[tuple[Moment, Fault]] = []
    for frame, case in cases.items():
        test = " ".join(filter(None, (asked.suite[:3].upper(), "1R1C NF-1c vSwitch-1c", asked.kinds, frame)))
        faults.append((Moment(case.at, test, case.call), case.fault))
        if case.removed is not None:
            faults.append((Moment(REMOVING, test, attempt=2), case.removed))
    paused, output = Paused(tmp_path, [moment for moment, _ in faults]), tmp_path / "out"
    words = ["-v", f"TOPOLOGY:topologies/{asked.topology}", "-v", "CELLS:1x1", "-v", f"FRAMES:{','.join(cases)}"]
    words += ["-v", f"NF_KINDS:{asked.kinds}"] if asked.kinds else []
    with going_on(output, *BRIEF, *words, "--suite", asked.suite, *paused.options) as run:
        for moment, fault in faults:
            with paused.at(moment, run):
                fault()
        said, _ = run.communicate(timeout=600)
    rows = {row.asked.frame.name: row for row in results(output)}
    assert run.returncode == 0, said
    assert list(rows) == list(cases)
    for frame, case in cases.items():
        (reason,) = rows[frame].broken
        assert case.words in reason
        mrr = rows[frame].mrr
        assert rows[frame].passed
        assert mrr is not None
        assert mrr.mean_pps > 0


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
    source = PROJECT / "tests" / "characterization" / (f"{study}.robot" if text else name)
    if text:
        (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
        suite = source.read_text(encoding="utf-8").replace(name, str(tmp_path / "spec.yaml"))
        suite = suite.replace("[Template]    Planted Fault Should Be Found", "[Template]    Run Study")
        (source := tmp_path / "small.robot").write_text(suite, encoding="utf-8")
    moments = [Moment(STEPS, call=1, after=True), Moment(STEPS, call=3, after=True)]
    paused, output = Paused(tmp_path, moments), tmp_path / "out"
    words = ("-v", "TOPOLOGY:topologies/local.yaml", *options, *paused.options)
    with going_on(output, *words, sources=[source]) as run:
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

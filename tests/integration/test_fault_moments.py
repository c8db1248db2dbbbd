"""Parts break while a cell is deployed, loaded or removed, on real packets: nothing is left, and the run continues."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from csit_utils.dataset.load import load
from resources.libraries.python.testbed.deployment.deployment import Deployment
from tests.integration.local_faults import (
    TINY,
    Fault,
    bridge_is_deleted,
    generator_has_no_memory,
    generator_is_killed,
    generator_is_stopped,
    killed,
    link_goes_down,
    nf_loses_its_port,
)
from tests.integration.pauses import DEPLOYED, DEPLOYING, REMOVING, SENDING, Moment, Paused
from tests.integration.robot_runs import PROJECT, SUITE, going_on, network_state, results, wait_for_network_state
from tests.realtime import LOSS, realtime

pytestmark = pytest.mark.root


BRIEF = ("-v", "NF_SIZES:1c", "-v", "SEARCH:quick,sum=1,time=10,mrr=1")


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
    """What is done in a cell, and words that its reason must have; none where its test has been measured already."""

    at: str
    fault: Fault
    words: str = ""
    call: int = 1


LOADED = 2
"""The call of a measurement after the one that verifies the path."""
WORLDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[Case, ...]]] = {
    "kernel": (
        (),
        ("-v", "TOPOLOGY:topologies/local.yaml", "--suite", "csc-mrr"),
        (
            Case(DEPLOYING, bridge_is_deleted, "csb1x1"),
            Case(DEPLOYING, nf_loses_its_port, "csn1x1i1"),
            Case(DEPLOYING, link_goes_down, "csv1p1"),
            Case(DEPLOYED, generator_is_killed, "ended with -9"),
            Case(DEPLOYED, generator_is_stopped, "is stopped"),
            Case(SENDING, generator_has_no_memory, "ended with -9", LOADED),
            Case(REMOVING, bridge_is_deleted),
            Case(REMOVING, nf_loses_its_port),
            Case(REMOVING, link_goes_down),
            Case(REMOVING, generator_is_killed),
            Case(REMOVING, generator_is_stopped),
        ),
    ),
    "user space": (
        ("ovs-vswitchd", "dpdk-testpmd"),
        ("-v", "TOPOLOGY:topologies/local-ovs.yaml", "-v", "NF_KINDS:testpmd", "--suite", "csc-mrr"),
        (
            Case(DEPLOYING, killed("ovs-vswitchd"), "ovs-vswitchd"),
            Case(DEPLOYING, killed("testpmd"), "nf-1-1"),
        ),
    ),
}
"""By what is deployed: programs that it needs, options, and a case for each cell."""


@realtime(LOSS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_part_that_breaks_at_any_moment_is_replaced(tmp_path: Path, world: str) -> None:
    programs, options, cases = WORLDS[world]
    if missing := [name for name in programs if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    names = [f"{number}R1C" for number in range(1, len(cases) + 1)]
    moments = [
        Moment(case.at, f"{options[-1][:3].upper()} {name}", case.call) for name, case in zip(names, cases, strict=True)
    ]
    paused, output = Paused(tmp_path, moments), tmp_path / "out"
    cells = ("-v", f"CELLS:1-{len(names)}x1")
    with going_on(output, *BRIEF, *options, *cells, *paused.options) as run:
        for moment, case in zip(moments, cases, strict=True):
            with paused.at(moment, run):
                case.fault()
        said, _ = run.communicate(timeout=240)
    rows = {row.cell.locator: row for row in results(output)}
    assert run.returncode == 0, said
    assert list(rows) == names
    for name, case in zip(names, cases, strict=True):
        assert len(rows[name].broken) == bool(case.words), name
        assert case.words in "".join(rows[name].broken)
        mrr = rows[name].mrr
        assert rows[name].passed
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
SWEEP = ("-v", "SWEEP_RATES:2000-4000/2000", "-v", "SWEEP_DURATION:1", "-t", "Path Alone", "-t", "Router Alone")
STEPS = f"{Deployment.__module__}:Deployment.__enter__"
STUDIES: Mapping[str, tuple[str, str, tuple[str, ...], tuple[Fault, Fault]]] = {
    "sweep": ("", "", SWEEP, (generator_is_killed, nf_loses_its_port)),
    "chains": ("Chains Should Be Compared", CHAINS, (), (nf_loses_its_port, generator_is_killed)),
}
"""By study: keyword and specification, options, and what is done after the first and the third deployment."""


@realtime(LOSS)
@pytest.mark.parametrize("study", STUDIES)
def test_a_step_of_a_study_that_breaks_is_measured_once_more(tmp_path: Path, study: str) -> None:
    """A step breaks and is deployed anew; the next one breaks too, and is deployed anew."""
    keyword, text, options, faults = STUDIES[study]
    source = PROJECT / "tests" / "characterization" / "chain.robot"
    if text:
        (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
        resource = PROJECT / "resources" / "libraries" / "robot" / f"{study}.resource"
        suite = SUITE.format(resource=resource, spec=tmp_path / "spec.yaml")
        suite = suite.replace("Interference Should Be Measured", keyword)
        suite = suite.replace("Close Interference", "Close Chain Study")
        (source := tmp_path / "small.robot").write_text(suite, encoding="utf-8")
    moments = [Moment(STEPS, call=1, after=True), Moment(STEPS, call=3, after=True)]
    paused, output = Paused(tmp_path, moments), tmp_path / "out"
    words = ("-v", "TOPOLOGY:topologies/local.yaml", *options, *paused.options)
    with going_on(output, *words, sources=[source]) as run:
        for moment, fault in zip(moments, faults, strict=True):
            with paused.at(moment, run):
                fault()
        said, _ = run.communicate(timeout=240)
    assert run.returncode == 0, said
    records = load([output / "output.xml"]).characterizations
    for row in records:
        record = row.record
        assert record.passed
        runs = record.chain_study.runs if study == "chains" else ()
        assert all(each.failed is None for each in runs)
        assert len(getattr(record, "broken", ())) == (study == "sweep")

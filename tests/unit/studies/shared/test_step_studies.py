"""What all studies of several steps do alike: resume, repeat what breaks the system under test, end after failures."""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python import errors
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.service.load import load_sizing
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT, specification_file
from resources.libraries.python.studies.chains.model.spec import load_chains
from resources.libraries.python.studies.chains.planning import generate
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.interference.model import Contender, InterferenceSpec, NfType, Resource
from resources.libraries.python.studies.interference.planning import cost as interference_cost
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.outage.model import OutageSpec
from resources.libraries.python.studies.outage.run import OutageTest
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.sizing.run import ServiceSizing
from resources.libraries.python.studies.stateful.model import StatefulSpec
from resources.libraries.python.studies.stateful.run import StatefulTest
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.deployment.health import clean_up
from tests.builders import Altered, raising
from tests.unit.studies.chains.chain_runs import VNFS, four_vnfs
from tests.unit.studies.worlds import LOST, ROUTER_SWEEP, SIM, Killed, World

AnyStudy = StepStudy[Any, Any, Any, Any]
SMALL: dict[type[AnyStudy], Any] = {
    ChainStudyTest: four_vnfs(
        vnfs=VNFS[::2], lengths=(), workloads=[{"volume_bps": 2e6, "frame": frame("64B")}], duration_s=2
    ),
    InterferenceTest: InterferenceSpec(
        name="pairs", frame=frame("512B"), duration_s=0.4, repetitions=1,
        contenders=(
            Contender(name="gateway", type=NfType.GATEWAY, kind=NfKind("linux_gateway")),
            Contender(name="monitor", type=NfType.MONITOR, kind=NfKind("pktstat")),
        ),
    ),
    OutageTest: OutageSpec.model_validate({
        **{"name": "outage", "instances": 2, "nf_kinds": ["linux_router"], "frame": frame("64B"), "rate_pps": 2000},
        **{"repetitions": 2, "before_s": 0.2, "after_s": 0.3},
        "events": [{"event": "kill", "target": "nf-1-1"}, {"event": "restart", "target": "vswitch"}],
    }),
    StatefulTest: StatefulSpec.model_validate({
        **{"name": "tables", "kind": "linux_nat", "instances": [1, 2], "nodes": [1, 2], "frame": frame("64B")},
        **{"search": "quick,width=0.2,trial=0.1,sum=0.1", "tear_downs": 1, "connections": 500, "capacity": False},
    }),
}  # fmt: skip
"""A specification of a few steps for each study that deploys one cell for each step."""
WITHOUT_CELLS: dict[type[AnyStudy], Any] = {
    ServiceSizing: load_sizing(specification_file("clearwater/scaling.json"), {"workload": "clearwater/invite.json"}),
    ServiceSweep: ROUTER_SWEEP,
}
"""The same for those that deploy no cells, or one for all steps."""
QUICK = [ChainStudyTest, InterferenceTest, OutageTest]
EACH = pytest.mark.parametrize("kind", [*QUICK, pytest.param(StatefulTest, marks=pytest.mark.slow)])


def run(
    kind: type[AnyStudy], world: World, journal: Path | None = None, topology: Topology = SIM,
    on_step: Callable[[StepEnded], None] = lambda _: None, **changes: object,
) -> AnyStudy:  # fmt: skip
    spec = (SMALL | WITHOUT_CELLS)[kind]
    study = kind(topology, world, spec.model_copy(update=changes) if changes else spec, world.environment(), on_step)
    study.plan()
    if journal is None:
        study.run()
        return study
    with study.journal()(journal, study.digest()) as opened:
        study.resume(opened)
        try:
            study.run()
        finally:
            study.remove()
    return study


@cache
def whole(kind: type[AnyStudy]) -> tuple[int, AnyStudy]:
    """How often a study that nothing interrupts is deployed, and the study."""
    world = World()
    study = run(kind, world)
    return world.deployed, study


def record(study: AnyStudy) -> str:
    """What becomes of a study, but for when."""
    study.draft.started_at = ""
    made = study.draft.finish(test_id="t", test_name="t", tags=(), passed=True, message="")
    return made.model_copy(update={"finished_at": ""}).model_dump_json()


@pytest.mark.parametrize(
    ("names", "changes"),
    [
        (1, {}), (3, {"repetitions": 2, "guarantee": (Resource.NETWORK,)}), (2, {"repetitions": 2, "together": 3}),
        (2, {"guarantee": (Resource.NETWORK,), "frames": (frame("512B"), frame("64B"))}),
    ],
)  # fmt: skip
def test_a_study_of_interference_does_what_its_preview_counts(names: int, changes: dict[str, Any]) -> None:
    kinds = map(NfKind, ("linux_gateway", "linux_nat", "linux_router")[:names])
    contenders, world = tuple(Contender(name=kind, type=NfType.NAT, kind=kind) for kind in kinds), World()
    study = run(InterferenceTest, world, contenders=contenders, duration_s=0.3, **changes)
    counted, measured = interference_cost(study.spec), study.result().measurements
    assert counted == study.cost and counted.runs == len(measured)
    counts, combinations = counted.counts(), {(each.target, each.against) for each in measured}
    assert (counts["combinations"], counts["measurements"]) == (len(combinations), len(measured))
    assert counts["deployments"] == world.deployed


IDENTITY = {"target", "against", "repetition", "number", "event", "chain", "instances", "nodes"}
"""Fields that say which step a row is of."""


def rows(study: AnyStudy) -> list[dict[str, object]]:
    return [row.model_dump(include=IDENTITY) for row in study.rows]


def test_every_study_of_steps_is_among_these() -> None:
    for path in (PROJECT / "resources/libraries/python/studies").glob("*/run.py"):
        import_module(f"resources.libraries.python.studies.{path.parent.name}.run")
    assert set(StepStudy.__subclasses__()) == {*SMALL, *WITHOUT_CELLS}


def steps_in(journal: Path) -> list[str]:
    """Names of the steps in a journal, in the order in which they were measured."""
    lines = map(json.loads, journal.read_text("utf-8").splitlines())
    return [line["step"] for line in lines if line.get("line") == "step"]


def test_every_shipped_specification_has_something_to_measure() -> None:
    models = {"interference": InterferenceSpec, "outage": OutageSpec, "stateful": StatefulSpec}
    for path in (PROJECT / "tests" / "characterization" / "specs").glob("*/*.yaml"):
        model = models.get(path.parent.name)
        assert load_yaml(path, model) if model else generate(load_chains(path)).count > 1


@pytest.mark.parametrize("kind", [OutageTest, ServiceSweep, pytest.param(ServiceSizing, marks=pytest.mark.slow)])
def test_what_is_in_the_journal_of_a_killed_study_is_not_measured_again(tmp_path: Path, kind: type[AnyStudy]) -> None:
    uncut, path = tmp_path / "uncut" / "journal.jsonl", tmp_path / "killed" / "journal.jsonl"

    def kill(step: StepEnded) -> None:
        if step.number == 3:
            raise Killed

    for journal in (uncut, path):
        journal.parent.mkdir()
    run(kind, World(), uncut)
    with pytest.raises(Killed):
        run(kind, World(), path, on_step=kill)
    before = path.read_bytes()
    found = run(kind, World(), path)
    assert path.read_bytes().startswith(before) and 0 < before.count(b'"line":"step"') < len(steps_in(uncut))
    assert steps_in(path) == steps_in(uncut)
    assert found.remark and len(found.rows) == len(steps_in(uncut))


@EACH
def test_a_killed_study_resumes_and_ends_as_one_that_was_not(tmp_path: Path, kind: type[AnyStudy]) -> None:
    (deployed, expected), path, seen = whole(kind), tmp_path / "journal.jsonl", list[StepEnded]()
    with pytest.raises(Killed):
        run(kind, World(killed_before=deployed - 2), path)
    world = World()
    found = run(kind, world, path, on_step=seen.append)
    assert world.deployed == 2
    assert rows(found) == rows(expected)
    if kind is not StatefulTest:  # whose simulated noise goes on from trial to trial
        assert record(found) == record(expected)
    assert [step.work for step in seen] == [0.0] * (len(seen) - 2) + [1.0] * 2
    assert {(step.number, step.of) for step in seen} == {(number, len(seen)) for number in range(1, len(seen) + 1)}
    assert found.remark and found.remark.startswith(f"{len(seen) - 2} ")
    assert rows(run(kind, again := World(), path)) == rows(expected)
    assert again.deployed == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUICK)
def test_a_study_that_is_killed_again_and_again_measures_nothing_twice(tmp_path: Path, kind: type[AnyStudy]) -> None:
    (deployed, expected), path, made = whole(kind), tmp_path / "journal.jsonl", 0
    for steps in range(1, deployed + 1):
        world = World(killed_before=steps if made else 3)  # the first one finds the load
        with suppress(Killed):
            found = run(kind, world, path)
        made += world.deployed
    assert made == deployed
    assert record(found) == record(expected)


@pytest.fixture(params=QUICK, scope="module")
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[type[AnyStudy], bytes]:
    """A study, and the journal of a run of it that nothing interrupted."""
    path = tmp_path_factory.mktemp("kept") / "journal.jsonl"
    run(request.param, World(), path)
    return request.param, path.read_bytes()


@pytest.mark.parametrize("share", [0.5, 0.999])
def test_wherever_a_journal_is_torn_the_study_resumes(
    tmp_path: Path, kept: tuple[type[AnyStudy], bytes], share: float
) -> None:
    (kind, data), path, world = kept, tmp_path / "journal.jsonl", World()
    deployed, expected = whole(kind)
    path.write_bytes(data[: int(share * len(data))])
    assert record(run(kind, world, path)) == record(expected)
    assert 0 < world.deployed < deployed or share > 0.9


def test_another_testbed_or_specification_begins_anew(tmp_path: Path, kept: tuple[type[AnyStudy], bytes]) -> None:
    (kind, data), path = kept, tmp_path / "journal.jsonl"
    path.write_bytes(data)
    other = SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), "seed": 2}})
    elsewhere, renamed = World(topology=other), World()
    run(kind, elsewhere, path, topology=other)
    run(kind, renamed, path, name="another")
    assert elsewhere.deployed == renamed.deployed == whole(kind)[0]


def test_what_was_measured_by_another_plan_is_measured_again_with_the_reason(
    tmp_path: Path, kept: tuple[type[AnyStudy], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    (kind, data), path, world = kept, tmp_path / "journal.jsonl", World()
    path.write_bytes(re.sub(rb'"plan":"\w{64}', b'"plan":"' + b"0" * 64, data, count=1))
    assert rows(run(kind, world, path)) == rows(whole(kind)[1])
    assert world.deployed == 1
    assert any("is measured again: its plan has changed" in row.message for row in caplog.records)


@EACH
@pytest.mark.parametrize(
    ("error", "recovered"), [(errors.ConnectionFailed(LOST), 2), (errors.CommandFailed(("worker",), -9, ""), 0)]
)
def test_a_step_that_breaks_is_measured_once_more_with_a_note(
    kind: type[AnyStudy], error: errors.CsitError, recovered: int
) -> None:
    (deployed, expected), world = whole(kind), World(breaks={2, 4}, error=error)
    found = run(kind, world)
    assert rows(found) == rows(expected)
    assert (world.deployed, world.recovered) == (deployed + 2, recovered)
    found.enough()
    assert len([note for note in found.notes if note.endswith(f": measured once more: {error}")]) == 2


@EACH
def test_a_step_that_breaks_it_twice_is_given_up_and_the_study_continues(kind: type[AnyStudy]) -> None:
    deployed, expected = whole(kind)
    world = World(breaks={deployed - 1, deployed}, error=errors.SystemBroken("the NF is gone"))
    study = run(kind, world)
    assert world.deployed == deployed + 1
    assert "the NF is gone" in record(study)
    assert len(study.rows) == len(expected.rows) - (kind is not ChainStudyTest), "a chain is there with the reason"
    if kind is not ChainStudyTest:  # whose last deployment is the path without network functions, which is not asked
        with pytest.raises(errors.CsitError, match=r"the specification requires all of them .* 1 x the NF is gone"):
            study.enough()


@pytest.mark.parametrize(
    ("error", "recovered"), [(errors.ConnectionFailed(LOST), 1), (errors.CommandFailed(("worker",), -9, ""), 0)]
)
def test_a_search_of_the_load_that_breaks_is_repeated(tmp_path: Path, error: errors.CsitError, recovered: int) -> None:
    changes = {"rate_pps": None, "search": "quick"}
    uncut = run(OutageTest, World(), tmp_path / "uncut.jsonl", **changes)
    world = World(breaks={1}, error=error)
    found = run(OutageTest, world, tmp_path / "journal.jsonl", **changes)
    assert found.load == uncut.load
    assert world.recovered == recovered
    # It stays a note of the study when that is resumed after its search.
    resumed = run(OutageTest, World(), tmp_path / "journal.jsonl", **changes)
    assert f"search of NDR: measured once more: {error}" in resumed.result().notes


def test_a_study_goes_on_at_the_load_that_it_began_with(tmp_path: Path) -> None:
    """The intrusion detection system does not start and has a stand-in."""
    path, (gateway, monitor) = tmp_path / "journal.jsonl", SMALL[InterferenceTest].contenders
    ids = Contender(name="ids", type=NfType.INSPECTION, kind=NfKind("suricata"), stand_in=NfKind("ngrep"))
    changes = {"contenders": (gateway, ids, monitor)}
    with pytest.raises(Killed):
        run(InterferenceTest, World(killed_before=6, lacks={"suricata"}), path, **changes)
    text = path.read_text("utf-8")
    load_pps = float(text.split('"loads_pps":[')[1].split("]")[0])
    path.write_text(text.replace(f"{load_pps}", "12345.0"), "utf-8")
    found = run(InterferenceTest, World(lacks={"suricata"}), path, **changes).result()
    assert {measurement.load_pps for measurement in found.measurements} == {12345.0}
    assert [one.kind for one in found.spec.contenders] == [gateway.kind, NfKind("ngrep"), monitor.kind]


def test_a_chain_that_failed_is_measured_again(tmp_path: Path) -> None:
    path, world = tmp_path / "journal.jsonl", World(lacks={"linux_nat"})
    first = run(ChainStudyTest, World(lacks={"linux_nat"}), path)
    failed = [each.chain.name for each in first.draft.chain_study.runs if each.failed]
    assert 0 < len(failed) < len(first.draft.chain_study.runs)
    assert record(run(ChainStudyTest, world, path)) == record(first)
    assert world.deployed == len(failed)


def test_results_of_a_chain_do_not_depend_on_what_was_measured_before_it() -> None:
    """Else a study that goes on would have other results than one that was not cut short."""
    runs = whole(ChainStudyTest)[1].draft.chain_study.runs
    turned = run(ChainStudyTest, World(), vnfs=SMALL[ChainStudyTest].vnfs[::-1]).draft.chain_study.runs
    assert [each.chain.name for each in turned] != [each.chain.name for each in runs]
    assert all(each in runs for each in turned) and len(turned) == len(runs)


def test_a_file_that_is_no_journal_of_this_study_is_refused_and_two_do_not_write_one(tmp_path: Path) -> None:
    path, kind = tmp_path / "journal.jsonl", OutageTest.journal()
    with ChainStudyTest.journal()(path, "a"):
        pass
    with (
        pytest.raises(errors.ConfigError, match="line 1 begins a journal of 'chains study', not of 'outage study'"),
        kind(path, "a"),
    ):
        pass
    path.unlink()
    with kind(path, "a"), pytest.raises(errors.CsitError, match="still active"), kind(path, "a"):
        pass
    path.write_text(path.read_text("utf-8") + '{"line":"step","at":"now"}\n', "utf-8")
    with pytest.raises(errors.ConfigError, match="line 2 is no entry of a journal of 'outage study'"), kind(path, "a"):
        pass


@pytest.mark.parametrize(("times", "ends"), [(1, False), (2, True)])
def test_a_node_that_is_lost_while_it_is_cleaned_is_waited_for_once(times: int, ends: bool) -> None:
    world, lost = World(), iter(range(times))

    def leftovers(_: object) -> tuple[str, ...]:
        world.lost = next(lost, None) is not None
        return raising(errors.ConnectionFailed(LOST))() if world.lost else ()

    cleaned: Any = Altered(world, leftovers=leftovers)
    stopped = pytest.raises(errors.RunStopped, match="cannot be cleaned: DUT1: the agent ended with 137")
    with stopped if ends else nullcontext():
        assert clean_up(cleaned, None) == ()
    assert world.recovered == 1


@pytest.mark.parametrize("kind", [InterferenceTest, OutageTest, pytest.param(StatefulTest, marks=pytest.mark.slow)])
def test_failures_in_a_row_end_a_study_and_what_was_measured_is_kept(kind: type[AnyStudy]) -> None:
    deployed, expected = whole(kind)
    first = deployed - len(expected.rows) + 1
    world = World(breaks=range(first + 1, 100), error=errors.SystemBroken("the NF is gone"))
    study = kind(SIM, world, SMALL[kind], world.environment())
    study.plan()
    with pytest.raises(errors.SystemBroken, match=r"3 .* in a row failed, the last one: the NF is gone"):
        study.run()
    assert study.result() and len(study.rows) == 1
    assert study.remove() is None

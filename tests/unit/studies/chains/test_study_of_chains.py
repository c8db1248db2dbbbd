"""A study of chains from specification to record, on simulated systems whose truth is known."""

import re
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csit_utils.studies.chains.study import stacks_of
from resources.libraries.python import errors
from resources.libraries.python.model.measurements.features import HOST, LINK, VSWITCH, HopDelay
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.chains import run as chain_study
from resources.libraries.python.studies.chains.analysis.classes import Workflow, portions
from resources.libraries.python.studies.chains.analysis.sentences import cause_in_words, headline, sentences
from resources.libraries.python.studies.chains.analysis.study import ANOTHER_ORDER, Analysis, reference
from resources.libraries.python.studies.chains.analysis.tables import STACKS, chain_tables
from resources.libraries.python.studies.chains.chain_trial import ChainUnderLoad
from resources.libraries.python.studies.chains.model import ChainRun, ChainStudy
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec
from resources.libraries.python.studies.chains.planning import cost, generate
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import NOWHERE, SIM, shipped
from tests.unit.studies.chains.chain_runs import FAULT, VNFS, chain, four_vnfs, workload
from tests.unit.studies.chains.chain_runs import run as run_of
from tests.unit.studies.worlds import Equipped, Killed, Probe, World


def study_of(asked: ChainStudySpec, world: SimulatedTestbed | None = None, topology: Topology = SIM) -> ChainStudyTest:
    return ChainStudyTest(topology, world or SimulatedTestbed(topology), asked, NOWHERE)


@pytest.fixture(scope="module")
def study() -> ChainStudyTest:
    made = study_of(four_vnfs(faults=(FAULT,), policies=("monitor > firewall",)))
    made.stacks_s = 60.0
    return made


@pytest.fixture(scope="module")
def measured(study: ChainStudyTest) -> ChainStudy:
    return study.run()


def test_the_chain_with_the_planted_fault_comes_first_and_without_one_none_does(
    study: ChainStudyTest, measured: ChainStudy
) -> None:
    """Whatever the noise and wherever it is planted: tests/truth/chains.py has hundreds."""
    first = measured.suspects[0]
    assert (first.chain.order, first.planted) == (FAULT.chain, "nat is limited to 0.02 CPUs")
    assert any("throttled" in reason for reason in first.reasons)
    study.faults_first()
    assert all(run.failed is None and run.latency_s and run.idle_latency_s for run in measured.runs)
    assert str(measured.coverage) == "30 of 30", "what policies drop costs nothing"
    healthy = study_of(four_vnfs())
    found = healthy.run()
    assert not found.suspects and not found.stacks and not any(run.planted for run in found.runs)
    assert str(found.coverage) == "32 of 32"
    healthy.enough()


def test_a_throttled_vnf_has_no_more_cpu_than_its_limit(measured: ChainStudy) -> None:
    run = next(run for run in measured.runs if run.planted and run.workload.volume_bps == 4e6)
    rows = {(series.owner, series.feature): series.values for series in run.series}
    assert {owner for owner, _ in rows} == {"nat", "gateway", HOST, VSWITCH}
    assert {len(values) for values in rows.values()} == {4}, "one value for each second"
    assert all(value == pytest.approx(2.0, rel=0.2) for value in rows["nat", "cpu_percent"])
    assert all(value is not None and value > 80 for value in rows["nat", "throttled_percent"])
    assert run.share < 0.9
    (graph,) = [graph for graph in run.graphs if graph.owner == "nat"]
    ratio = {each.workflow: each.time_ratio for each in portions(graph)}
    threads = 2  # of its core
    assert ratio[Workflow.HARD_SWITCH] == pytest.approx(1 - 0.02 / threads, abs=1e-3), "its limit kept it from its CPU"
    assert ratio[Workflow.IO] == pytest.approx(0.02 / threads, rel=0.05)


def test_tables_have_a_row_for_each_thing_that_was_measured(study: ChainStudyTest, measured: ChainStudy) -> None:
    record = study.draft.finish(test_id="t", test_name="t", tags=(), passed=True, message="")
    tables = dict(chain_tables(record))
    assert len(tables["runs"]) == 1 + len(measured.runs)
    assert len(tables["samples"]) == 1 + sum(len(row.values) for run in measured.runs for row in run.series)
    assert len(tables["statistics"]) == 1 + len(measured.statistics)
    assert len(tables["suspects"]) == 1 + sum(len(row.distances) + len(row.worse) for row in measured.suspects)
    assert all(len(row) == len(rows[0]) for rows in tables.values() for row in rows)
    edges = sum(len(graph.edges) for run in measured.runs for graph in run.graphs)
    assert len(tables["transitions"]) == 1 + edges > 1
    (rank, chain_name, *_, reference_name, _, relation) = tables["references"][1]
    assert (rank, chain_name, reference_name, relation) == (1, "nat > gateway", "gateway > nat", ANOTHER_ORDER)
    rows = [dict(zip(STACKS, row, strict=True)) for row in tables["stacks"][1:]]
    assert sum(row["samples"] for row in rows) == sum(each.stacks.total for each in measured.stacks if each.stacks)  # type: ignore[misc]
    assert {row["chain"] for row in rows} == {"nat > gateway", "gateway > nat"}


@pytest.mark.parametrize("sessions", [(1,), (1, 8)])
def test_a_study_does_what_its_preview_counts(sessions: tuple[int, ...]) -> None:
    load = {"volume_bps": 2e6, "frame": frame("64B")}
    vnfs = [vnf.model_copy(update={"memory_mib": (64, 128)}) for vnf in VNFS[:2]]
    spec = four_vnfs(vnfs=vnfs, lengths=(), workloads=[{**load, "sessions": count} for count in sessions], duration_s=1)
    world = World(topology=SIM)
    study = study_of(spec, world)
    found, previewed = study.run(), cost(generate(spec))
    measured = found.runs + found.path
    assert previewed == study.cost and previewed.runs == len(measured)
    assert len({run.chain for run in measured}) == previewed.counted["chains"] + 1
    assert previewed.counts() == {
        "chains": len(list(generate(spec))), "deployments": world.deployed, "measurements": len(measured),
        "seconds": world.deployed * 4.0 + len(measured) * (1 + 1),
    }  # fmt: skip


def test_suspects_have_fault_and_reference_and_no_suspects_are_claimed_of_what_cannot_be_judged(
    measured: ChainStudy,
) -> None:
    cause, first, *_ = lines = list(sentences(measured))
    assert cause.startswith("only nat > gateway has nat throttled ")
    assert "nat > gateway, mean Cook's distance " in first and "nat is limited to 0.02 CPUs" in first
    assert any("of gateway > nat (the same VNFs in another order)" in line for line in lines)
    alone, *others = measured.runs
    failing = alone.model_copy(update={"failed": "no traffic"})
    bare = measured.model_copy(update={"runs": (failing, *others), "suspects": (), "causes": ()})
    assert "no suspects; 11 chains are compared" in headline(bare)
    assert list(sentences(bare))[-1] == "not measured: gateway: no traffic"
    for runs in ((), (failing,), [run for run in measured.runs if len(run.chain.members) > 1]):
        assert not bare.model_copy(update={"runs": tuple(runs)}).is_judged
        assert "no suspects" not in headline(bare.model_copy(update={"runs": tuple(runs)}))


@pytest.mark.parametrize("feature", ["waiting_percent", "throttled_percent"])
def test_no_more_than_all_of_the_time_is_spent_waiting(measured: ChainStudy, feature: str) -> None:
    """Several threads of a VNF may wait for 180 % of the time."""
    (cause,) = measured.causes[:1]
    more = cause.model_copy(update={"feature": feature, "excess": 180.0, "smallest": 180.0, "low": -2.0, "high": 362.0})
    words = cause_in_words(more)
    assert "1.8 threads on average" in words and f"95 % interval {MINUS}2 % of the time to 3.62 threads" in words
    assert not re.search(r"[1-9]\d\d(\.\d+)? % of the time", words)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def without(*kinds: NfKind) -> Topology:
    kept = tuple(kind for kind in SIM.dut.offered if kind not in kinds)
    dut = SIM.dut.model_copy(update={"containers": kept, "containers_on_request": False})
    name = next(iter(SIM.duts))
    return SIM.model_copy(update={"nodes": {**SIM.nodes, name: dut}})


def test_a_kind_that_the_testbed_lacks_costs_its_chains_only_and_a_study_of_less_than_asked_fails() -> None:
    lacking = study_of(four_vnfs(), topology=without(NfKind("linux_nat")))
    found = lacking.run()
    failed = [run for run in found.runs if run.failed]
    assert {run.chain for run in failed} == {run.chain for run in found.runs if "nat" in run.chain.order}
    assert all("linux_nat" in run.failed for run in failed if run.failed)
    assert {(run.throughput_bps, run.offered_bps, run.share) for run in failed} == {(None, None, None)}
    assert all(run.throughput_bps for run in found.runs if not run.failed)
    assert any(row.chain.order == ("gateway", "monitor") for row in found.statistics)
    assert str(found.coverage) == "18 of 32"
    with pytest.raises(errors.CsitError, match=r"^18 of 32 .* linux_nat"):
        lacking.enough()
    lacking.spec = lacking.spec.model_copy(update={"least_measured": 0.5})
    lacking.enough()


def test_a_run_without_throughput_needs_a_reason(measured: ChainStudy) -> None:
    run = measured.runs[0].model_dump(mode="json")
    assert ChainRun.model_validate({**run, "throughput_bps": 0.0}).throughput_bps == 0.0, "nothing arrived"
    with pytest.raises(ValueError, match="needs a reason"):
        ChainRun.model_validate({**run, "throughput_bps": None})


def test_what_was_measured_while_a_part_died_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count(1)
    monkeypatch.setattr(CellUnderTest, "problems", lambda _: ["monitor has ended"] if next(looks) > 1 else [])
    study = study_of(four_vnfs(duration_s=1, lengths=(1,), vnfs=VNFS[:1]))
    with pytest.raises(errors.CsitError, match="no chain could be measured: monitor has ended"):
        study.run()
    assert [run.throughput_bps for run in study.draft.chain_study.runs] == [None] * 2


def test_a_workload_that_the_generator_does_not_send_is_refused_before_anything_starts() -> None:
    for load, reason in (
        ({"protocol": Protocol.ICMP}, r"study: workloads\.0: .* no ICMP"),
        ({"generator": "iperf3"}, "iperf3 instead of auto"),
    ):
        asked = four_vnfs(workloads=[{"volume_bps": 1e6, "frame": frame("64B"), **load}])
        with pytest.raises(errors.ConfigError, match=reason):
            study_of(asked, SimulatedTestbed(SIM), shipped("local"))


def test_a_fault_that_does_not_rank_first_is_reported_with_the_one_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = study_of(four_vnfs(faults=(FAULT,), duration_s=1))
    with pytest.raises(errors.CsitError, match="nothing was measured"):
        asked.faults_first()
    monkeypatch.setattr(chain_study, "analyse", lambda *_: Analysis((), (), (), (), (), (), ()))
    asked.run()
    with pytest.raises(errors.CsitError, match="planted in nat > gateway, and no chain is a suspect"):
        asked.faults_first()


PAIR = VNFS[:2]
AT = 1e8
SUSPECT = chain("a", "b", "c")


def test_parts_have_the_names_of_the_chain_and_add_up_to_its_latency_without_load() -> None:
    found = study_of(four_vnfs(vnfs=PAIR, duration_s=1)).run()
    assert not [note for note in found.notes if "delay" in note]
    for run in found.runs:
        assert {each.owner for each in run.delays} == {VSWITCH, LINK, *run.chain.order}
        assert sum(each.mean_s for each in run.delays) == pytest.approx(run.idle_latency_s, abs=2e-9)
        assert ChainRun.model_validate_json(run.model_dump_json()) == run


@pytest.mark.parametrize(
    ("kind", "probe", "note"),
    [
        ("hops", None, "not supported on this testbed"),
        ("hops", Probe(**{"delays by part": "no probe was seen"}), "no probe was seen"),
        ("hops", Probe(starts=errors.Unsupported("no port")), "no port"),
        ("hops", Probe(ends=errors.ConnectionFailed("DUT1 is lost")), "DUT1 is lost"),
        ("tracer", Probe(starts=errors.Unsupported("there is no tracefs")), "there is no tracefs"),
        ("tracer", Probe(events="no tracefs"), "events: no tracefs"),
    ],
)
def test_without_a_probe_all_else_is_measured_and_one_note_says_why(kind: str, probe: Probe | None, note: str) -> None:
    found = study_of(four_vnfs(vnfs=PAIR, duration_s=1), Equipped(**{kind: probe})).run()
    assert len([each for each in found.notes if each.endswith(note)]) == 1
    assert all(run.failed is None and run.idle_latency_s and run.series for run in found.runs)
    assert all((run.delays is None) == (kind == "hops") and bool(run.graphs) == (kind == "hops") for run in found.runs)
    assert kind == "tracer" or probe is None or not probe.running, "also one that did not start"


def test_directions_are_weighted_by_packets_and_times_of_machines_are_added() -> None:
    """Medians are half of the means, and the reverse direction has half of the packets."""
    seen = [
        HopDelay(owner=owner, direction=way, mean_s=mean_s, median_s=mean_s / 2, packets=packets // share)
        for owner, packets, *means_s in (
            ("vswitch", 60, 1e-3, 4e-3), ("vswitch-2", 58, 2e-3, 5e-3), ("nf-1-1", 60, 3e-3, 6e-3),
            ("vswitch-2 + nf-1-2", 60, 5e-3, 5e-3),
        )
        for way, mean_s, share in zip(Direction, means_s, (1, 2), strict=True)
    ]  # fmt: skip
    study = study_of(four_vnfs(vnfs=PAIR, duration_s=1), Equipped(hops=Probe(tuple(seen))))
    run = next(run for run in study.run().runs if len(run.chain.order) == 2)
    first, second = run.chain.order
    found = {each.owner: each for each in run.delays or ()}
    assert found.keys() == {VSWITCH, first, f"{VSWITCH} + {second}"}
    assert found[first].mean_s == pytest.approx((60 * 3e-3 + 30 * 6e-3) / 90)
    assert found[first].median_s == pytest.approx((1.5e-3 + 3e-3) / 2)
    assert found[VSWITCH].mean_s == pytest.approx((58 * 3e-3 + 29 * 9e-3) / 87)
    assert (found[first].packets, found[VSWITCH].packets) == (90, 87)


def test_a_system_that_breaks_while_it_is_timed_is_no_chain_without_delays() -> None:
    hops = Probe()

    def measure(_: object) -> SimpleNamespace:
        if hops.running:
            raise errors.SystemBroken("the vSwitch has ended")
        return SimpleNamespace(latency=(), intervals=())

    cell: Any = SimpleNamespace(measure=measure, deployment=SimpleNamespace(parts=SimpleNamespace(hops=hops)))
    with pytest.raises(errors.SystemBroken, match="the vSwitch has ended"):
        ChainUnderLoad(cell, SUSPECT, {}, "auto", None)._without_load(workload(AT))
    assert not hops.running


def of(*names: str, bps: float = AT, planted: str | None = None) -> ChainRun:
    return run_of(chain(*names), AT, bps, planted=planted)


@pytest.mark.parametrize(
    ("runs", "owner", "wanted", "relation"),
    [
        ([of("c", "b", "a", bps=5e7), of("b", "a", "c", bps=9e7), of("a", "b")], "a", ("b", "a", "c"), ANOTHER_ORDER),
        ([of("c", "b", "a", planted="x"), of("b", "a"), of("b", "c"), of("a", "c")], "a", ("a", "c"), "without b"),
        ([of("b", "c"), of("a", "b", bps=2e7)], None, ("b", "c"), "without a"),
        ([of("b"), of("a", bps=2e7)], "a", ("a",), "without b, c"),
    ],
)  # fmt: skip
def test_the_reference_is_the_nearest_chain_that_is_well(
    runs: list[ChainRun], owner: str | None, wanted: tuple[str, ...], relation: str
) -> None:
    found = reference(SUSPECT, workload(AT), owner, [of("a", "b", "c"), *runs], {SUSPECT})
    assert (found.chain.order, found.relation, found.workload) == (wanted, relation, workload(AT))


def test_other_suspects_other_workloads_and_other_resources_are_no_reference() -> None:
    suspect = chain("c", "b", "a")
    runs = [of("a", "b", "c"), of("c", "b", "a"), of("d"), run_of(suspect, 2 * AT, AT)]
    assert reference(SUSPECT, workload(AT), None, runs, {SUSPECT, suspect}) is None


class Hot(SimulatedTestbed):
    """A function of all VNFs takes three times as long in one chain: where the second kind comes first."""

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        kinds = [str(function.kind) for function in plan.functions]
        hot = kinds[1:] and kinds[0] == "linux_nat"
        self._simulation = self._simulation.model_copy(update={"hot": {"sim_filter": 3.0} if hot else {}})
        return super().parts(plan, asked)


def sampled_on(world: SimulatedTestbed, seconds: float) -> ChainStudyTest:
    test = study_of(four_vnfs(faults=(FAULT,), duration_s=1), world)
    test.stacks_s = seconds
    return test


def test_a_suspect_and_its_reference_are_sampled_after_all_chains(measured: ChainStudy) -> None:
    first = measured.suspects[0]
    assert first.reference.chain.order == FAULT.chain[::-1]
    a, b = measured.stacks_of(first)
    for each in (a.stacks, b.stacks):
        assert {stack.split(";")[0] for stack in each.counts} == {"nat", "gateway", "vswitch"}
        assert (each.trial_s, each.label) == (60.0, "4 Mbit/s") and each.nodes[0].event == "sim"
    at = first.reference.workload
    alone = next(each for each in measured.runs if (each.chain, each.workload) == (first.chain, at))
    assert b.throughput_bps == pytest.approx(alone.throughput_bps, rel=0.05)
    assert a.throughput_bps == pytest.approx(4e6, rel=0.01)


def test_a_function_that_is_slower_in_one_chain_is_named() -> None:
    study = sampled_on(Hot(SIM), 60.0).run()
    cell = stacks_of(study, study.suspects[0], simulated=True)
    rows = {(row.owner, row.function): row for row in cell.differences()}
    hot, before = rows["nat", "sim_filter"], rows["nat", "sim_receive"]
    assert hot.significant and hot.ns_b > 1.8 * hot.ns_a > 0
    assert not before.significant or (before.difference_ns or 0) < hot.difference_ns


@pytest.mark.slow
def test_a_study_that_is_cut_short_samples_only_what_is_missing(tmp_path: Path) -> None:
    def measured(world: World, journal: str) -> ChainStudy:
        test = sampled_on(world, 10.0)
        with test.journal()(tmp_path / journal, test.digest()) as opened:
            test.resume(opened)
            return test.run()

    whole, rest = World(topology=SIM), World(topology=SIM)
    expected = measured(whole, "whole.jsonl")
    with pytest.raises(Killed):
        measured(World(topology=SIM, killed_before=whole.deployed - 1), "chains.jsonl")
    assert measured(rest, "chains.jsonl") == expected
    assert rest.deployed == 1


def test_what_cannot_be_sampled_has_its_reason_and_the_study_is_whole() -> None:
    test = sampled_on(Equipped(stacks=Probe(starts=errors.NotReady("perf", 30.0, "nothing"))), 1.0)
    study = test.run()
    assert ["perf" in (each.failed or "") and each.stacks is None for each in study.stacks] == [True] * 2
    test.enough()
    assert stacks_of(study, study.suspects[0], simulated=True) is None
    assert any("call stacks: not sampled: " in line for line in sentences(study))

"""Call stacks of suspects and their references, on simulated systems whose truth is known."""

from dataclasses import replace
from pathlib import Path

import pytest

from csit_utils.report.stack_sides import CellStacks, grown
from csit_utils.studies.chains.study import stacks_of
from resources.libraries.python.drivers.sim.probes import shares
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.measurements.stacks import NodeStacks
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.studies.chains.analysis.sentences import sentences
from resources.libraries.python.studies.chains.analysis.study import ANOTHER_ORDER, reference
from resources.libraries.python.studies.chains.analysis.tables import STACKS, chain_tables
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainsRecord, ChainStudy
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM
from tests.unit.studies.chains.chain_runs import FAULT, chain, four_vnfs, run, workload
from tests.unit.studies.worlds import Killed, World

AT = 1e8
SUSPECT = chain("a", "b", "c")


def of(*names: str, bps: float = AT, planted: str | None = None) -> ChainRun:
    return run(chain(*names), AT, bps, planted=planted)


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
    assert found is not None and (found.chain.order, found.relation) == (wanted, relation)
    assert found.workload == workload(AT)


def test_other_suspects_other_workloads_and_other_resources_are_no_reference() -> None:
    other = run(chain("c", "b", "a"), 2 * AT, AT)
    assert reference(SUSPECT, workload(AT), None, [of("a", "b", "c"), of("c", "b", "a"), of("d"), other], {
        SUSPECT, chain("c", "b", "a"),
    }) is None  # fmt: skip


class Hot(SimulatedTestbed):
    """A function of all VNFs takes three times as long in one chain: where the second kind comes first."""

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        kinds = [str(function.kind) for function in plan.functions]
        hot = kinds[1:] and kinds[0] == "linux_nat"
        self._simulation = self._simulation.model_copy(update={"hot": {"sim_filter": 3.0} if hot else {}})
        return super().parts(plan, asked)


def study_on(world: SimulatedTestbed, seconds: float = 60.0) -> ChainStudyTest:
    asked = four_vnfs(faults=(FAULT,), duration_s=1)
    test = ChainStudyTest(SIM, world, asked, world.environment())
    test.stacks_s = seconds
    return test


@pytest.fixture(scope="module")
def sampled() -> ChainStudyTest:
    test = study_on(SimulatedTestbed(SIM))
    test.run()
    return test


def cell_of(study: ChainStudy) -> CellStacks:
    found = stacks_of(study, study.suspects[0], simulated=True)
    assert found is not None
    return found


def record_of(test: ChainStudyTest) -> ChainsRecord:
    return test.draft.finish(test_id="t", test_name="t", tags=(), passed=True, message="")


def test_a_suspect_and_its_reference_are_sampled_after_all_chains(sampled: ChainStudyTest) -> None:
    study = sampled.draft.chain_study
    first = study.suspects[0]
    assert first.reference is not None and first.reference.chain.order == FAULT.chain[::-1]
    a, b = study.stacks_of(first) or (None, None)
    assert a is not None and b is not None and a.stacks is not None and b.stacks is not None
    for each in (a.stacks, b.stacks):
        assert {stack.split(";")[0] for stack in each.counts} == {"nat", "gateway", "vswitch"}
        assert (each.trial_s, each.label) == (60.0, "4 Mbit/s") and each.nodes[0].event == "sim"
    at = first.reference.workload
    measured = next(each for each in study.runs if (each.chain, each.workload) == (first.chain, at))
    assert b.throughput_bps == pytest.approx(measured.throughput_bps, rel=0.05)
    assert a.throughput_bps == pytest.approx(4e6, rel=0.01)


def test_without_stacks_nothing_is_sampled_and_the_record_has_no_key_for_it() -> None:
    world = SimulatedTestbed(SIM)
    test = ChainStudyTest(SIM, world, four_vnfs(faults=(FAULT,), duration_s=1), world.environment())
    assert test.run().stacks == () and '"stacks"' not in record_of(test).model_dump_json()


def test_times_per_packet_are_those_of_the_simulation(sampled: ChainStudyTest) -> None:
    study = sampled.draft.chain_study
    assert study is not None
    cell = cell_of(study)
    truth = shares("nf-1-1", {})
    rows = {(row.owner, row.function): row for row in cell.differences()}
    whole = rows["nat", ""]
    for stack, share in truth.items():
        row = rows["nat", stack.split(";")[-1]]
        assert row.ns_a == pytest.approx(share * (whole.ns_a or 0), rel=0.25)
    # Packets that are dropped behind them cost the vSwitch and the gateway time, for fewer that come back.
    assert any("vswitch takes" in text or "gateway takes" in text for text in grown(cell))
    assert all("in the reference" in text for text in grown(cell))


def test_a_function_that_is_slower_in_one_chain_is_named() -> None:
    test = study_on(Hot(SIM))
    cell = cell_of(test.run())
    rows = {(row.owner, row.function): row for row in cell.differences()}
    hot, before = rows["nat", "sim_filter"], rows["nat", "sim_receive"]
    assert hot.significant and (hot.ns_b or 0) > 1.8 * (hot.ns_a or 0) > 0
    assert not before.significant or (before.difference_ns or 0) < (hot.difference_ns or 0)


@pytest.mark.slow
def test_a_study_that_is_cut_short_samples_only_what_is_missing(tmp_path: Path) -> None:
    def measured(world: World) -> ChainStudyTest:
        test = study_on(world, 10.0)
        with test.journal()(tmp_path / "chains.jsonl", test.digest()) as journal:
            test.resume(journal)
            test.run()
        return test

    whole = World(topology=SIM)
    first = study_on(whole, 10.0)
    first.run()
    with pytest.raises(Killed):
        measured(World(topology=SIM, killed_before=whole.deployed - 1))
    rest = World(topology=SIM)
    again = measured(rest)
    assert rest.deployed == 1
    assert again.draft.chain_study == first.draft.chain_study


class Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def start(self) -> None:
        raise self._error

    def stop(self) -> tuple[NodeStacks, ...]:
        return ()


class Unsampled(SimulatedTestbed):
    """No call stacks can be sampled."""

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        return replace(super().parts(plan, asked), stacks=Failing(NotReady("perf", 30.0, "nothing")))


def test_what_cannot_be_sampled_has_its_reason_and_the_study_is_whole() -> None:
    test = study_on(Unsampled(SIM), 1.0)
    study = test.run()
    assert len(study.stacks) == 2 and all(
        each.stacks is None and "perf" in (each.failed or "") for each in study.stacks
    )
    test.enough()
    assert stacks_of(study, study.suspects[0], simulated=True) is None
    assert any("call stacks: not sampled: " in line for line in sentences(study))


def test_tables_preview_and_log_say_what_is_sampled(sampled: ChainStudyTest) -> None:
    study = sampled.draft.chain_study
    tables = dict(chain_tables(record_of(sampled)))
    (rank, chain_name, *_, reference_name, _, relation) = tables["references"][1]
    assert (rank, chain_name, reference_name, relation) == (1, "nat > gateway", "gateway > nat", ANOTHER_ORDER)
    rows = [dict(zip(STACKS, row, strict=True)) for row in tables["stacks"][1:]]
    assert sum(row["samples"] for row in rows) == sum(each.stacks.total for each in study.stacks if each.stacks)  # type: ignore[misc]
    assert {row["chain"] for row in rows} == {"nat > gateway", "gateway > nat"}
    lines = list(sentences(study))
    assert any(line.startswith("    of gateway > nat (the same VNFs in another order): ") for line in lines)
    assert "then call stacks of the first 5 suspects and their references" in sampled.preview()

"""What probes add to a study of chains: delays by part, state graphs, call stacks of suspects and their references."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csit_utils.report.stack_sides import CellStacks, grown
from csit_utils.studies.chains.study import stacks_of
from resources.libraries.python.drivers.sim.probes import shares
from resources.libraries.python.errors import ConnectionFailed, CsitError, NotReady, SystemBroken, Unsupported
from resources.libraries.python.model.measurements.delays import LINK, HopDelay
from resources.libraries.python.model.measurements.features import VSWITCH
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.studies.chains.analysis.sentences import sentences
from resources.libraries.python.studies.chains.analysis.study import ANOTHER_ORDER, reference
from resources.libraries.python.studies.chains.analysis.tables import STACKS, chain_tables
from resources.libraries.python.studies.chains.chain_trial import ChainUnderLoad
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainsRecord, ChainStudy
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, raising
from tests.unit.studies.chains.chain_runs import FAULT, VNFS, chain, four_vnfs, workload
from tests.unit.studies.chains.chain_runs import run as run_of
from tests.unit.studies.worlds import Equipped, Killed, Probe, World

PAIR = VNFS[:2]
AT = 1e8
SUSPECT = chain("a", "b", "c")


def study_of(world: SimulatedTestbed | None = None, **changed: object) -> ChainStudy:
    """The two VNFs and their chains."""
    world = world or SimulatedTestbed(SIM)
    asked = four_vnfs(**{"vnfs": PAIR, "duration_s": 1, **changed})
    return ChainStudyTest(SIM, world, asked, world.environment()).run()


def both(owner: str, forward_s: float, reverse_s: float, packets: int = 60) -> tuple[HopDelay, ...]:
    """One part; medians are half of the means, and the reverse direction has half of the packets."""
    rows = ((Direction.FORWARD, forward_s, packets), (Direction.REVERSE, reverse_s, packets // 2))
    return tuple(
        HopDelay(owner=owner, direction=way, mean_s=mean_s, median_s=mean_s / 2, packets=count)
        for way, mean_s, count in rows
    )


def test_parts_have_the_names_of_the_chain_and_add_up_to_its_latency_without_load() -> None:
    found = study_of()
    assert not [note for note in found.notes if "delay" in note]
    for run in found.runs:
        assert run.delays is not None and run.idle_latency_s is not None
        assert {each.owner for each in run.delays} == {VSWITCH, LINK, *run.chain.order}
        assert sum(each.mean_s for each in run.delays) == pytest.approx(run.idle_latency_s, abs=2e-9)
        assert ChainRun.model_validate_json(run.model_dump_json()) == run


NO_PORT = Unsupported("no port is an interface of the kernel")
NO_TRACEFS = Unsupported("there is no tracefs")


@pytest.mark.parametrize(
    ("kind", "probe", "note"),
    [
        ("hops", None, "no delays by part: not supported on this testbed"),
        ("hops", Probe(**{"delays by part": "no probe was seen"}), "no delays by part: no probe was seen"),
        ("hops", Probe(starts=NO_PORT), "no delays by part: no port is an interface of the kernel"),
        ("hops", Probe(ends=ConnectionFailed("DUT1 is lost")), "no delays by part: DUT1 is lost"),
        ("tracer", Probe(starts=NO_TRACEFS), "nothing was traced: there is no tracefs"),
        ("tracer", Probe(events="no tracefs"), "no graphs of state transitions; events: no tracefs"),
    ],
)
def test_without_a_probe_all_else_is_measured_and_one_note_says_why(kind: str, probe: Probe | None, note: str) -> None:
    found = study_of(Equipped(**{kind: probe}))
    assert found.notes.count(note) == 1
    assert all(run.failed is None and run.idle_latency_s and run.series for run in found.runs)
    assert all((run.delays is None) == (kind == "hops") and bool(run.graphs) == (kind == "hops") for run in found.runs)
    assert probe is None or kind == "tracer" or not probe.running, (
        "also one that did not start: another machine's may run"
    )


def test_directions_are_weighted_by_packets_and_times_of_machines_are_added() -> None:
    seen = (
        *both("vswitch", 1e-3, 4e-3), *both("vswitch-2", 2e-3, 5e-3, packets=58), *both("nf-1-1", 3e-3, 6e-3),
        *both("vswitch-2 + nf-1-2", 5e-3, 5e-3),
    )  # fmt: skip
    run = next(run for run in study_of(Equipped(hops=Probe(seen))).runs if len(run.chain.order) == 2)
    first, second = run.chain.order
    found = {each.owner: each for each in run.delays or ()}
    assert found.keys() == {VSWITCH, first, f"{VSWITCH} + {second}"}
    assert found[first].mean_s == pytest.approx((60 * 3e-3 + 30 * 6e-3) / 90)
    assert found[first].median_s == pytest.approx((1.5e-3 + 3e-3) / 2)
    assert found[VSWITCH].mean_s == pytest.approx((58 * 3e-3 + 29 * 9e-3) / 87)
    assert (found[first].packets, found[VSWITCH].packets) == (90, 87)


@pytest.mark.parametrize(
    ("generator", "starts", "note"),
    [
        ("auto", None, None),
        ("iperf3", CsitError("it must not be started"), "no delays by part: iperf3 sends no numbered probes"),
    ],
)
def test_a_system_that_breaks_while_it_is_timed_is_no_chain_without_delays_and_a_generator_without_probes_is(
    generator: str, starts: CsitError | None, note: str | None
) -> None:
    hops, broken = Probe(starts=starts), SystemBroken("the vSwitch has ended")

    def measure(_: object) -> SimpleNamespace:
        return raising(broken)() if hops.running else SimpleNamespace(latency=(), intervals=())

    cell: Any = SimpleNamespace(measure=measure, deployment=SimpleNamespace(parts=SimpleNamespace(hops=hops)))
    under_load = ChainUnderLoad(cell, SUSPECT, {}, generator, None)
    if note is None:
        with pytest.raises(SystemBroken, match="the vSwitch has ended"):
            under_load._without_load(workload(AT))
    else:
        assert under_load._without_load(workload(AT)) == (None, None)
    assert under_load.notes == ([note] if note else [])
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
    assert found is not None and (found.chain.order, found.relation) == (wanted, relation)
    assert found.workload == workload(AT)


def test_other_suspects_other_workloads_and_other_resources_are_no_reference() -> None:
    other = run_of(chain("c", "b", "a"), 2 * AT, AT)
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


def sampled_on(world: SimulatedTestbed, seconds: float = 60.0) -> ChainStudyTest:
    asked = four_vnfs(faults=(FAULT,), duration_s=1)
    test = ChainStudyTest(SIM, world, asked, world.environment())
    test.stacks_s = seconds
    return test


@pytest.fixture(scope="module")
def sampled() -> ChainStudyTest:
    test = sampled_on(SimulatedTestbed(SIM))
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
    test = sampled_on(Hot(SIM))
    cell = cell_of(test.run())
    rows = {(row.owner, row.function): row for row in cell.differences()}
    hot, before = rows["nat", "sim_filter"], rows["nat", "sim_receive"]
    assert hot.significant and (hot.ns_b or 0) > 1.8 * (hot.ns_a or 0) > 0
    assert not before.significant or (before.difference_ns or 0) < (hot.difference_ns or 0)


@pytest.mark.slow
def test_a_study_that_is_cut_short_samples_only_what_is_missing(tmp_path: Path) -> None:
    def measured(world: World) -> ChainStudyTest:
        test = sampled_on(world, 10.0)
        with test.journal()(tmp_path / "chains.jsonl", test.digest()) as journal:
            test.resume(journal)
            test.run()
        return test

    whole = World(topology=SIM)
    first = sampled_on(whole, 10.0)
    first.run()
    with pytest.raises(Killed):
        measured(World(topology=SIM, killed_before=whole.deployed - 1))
    rest = World(topology=SIM)
    again = measured(rest)
    assert rest.deployed == 1
    assert again.draft.chain_study == first.draft.chain_study


def test_what_cannot_be_sampled_has_its_reason_and_the_study_is_whole() -> None:
    test = sampled_on(Equipped(stacks=Probe(starts=NotReady("perf", 30.0, "nothing"))), 1.0)
    study = test.run()
    assert ["perf" in (each.failed or "") and each.stacks is None for each in study.stacks] == [True] * 2
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

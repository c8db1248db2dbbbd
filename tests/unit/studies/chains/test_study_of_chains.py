"""A study of chains from specification to record, on simulated systems whose truth is known."""

from collections.abc import Callable
from itertools import count
from statistics import fmean

import pytest

from resources.libraries.python.drivers.sim.probes import IN_PROGRAM
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.measurements.features import HOST, VSWITCH, StateGraph
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.chains import run as chain_study
from resources.libraries.python.studies.chains.analysis.classes import Workflow, portions
from resources.libraries.python.studies.chains.analysis.study import Analysis
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, Workload
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, shipped
from tests.unit.studies.chains.chain_runs import FAULT, VNFS, four_vnfs


def seeded(seed: int) -> Topology:
    return SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), "seed": seed}})


def study_of(
    asked: ChainStudySpec, topology: Topology = SIM, on_progress: Callable[[StepEnded], None] = lambda _: None
) -> ChainStudyTest:
    world = SimulatedTestbed(topology)
    return ChainStudyTest(topology, world, asked, world.environment(), on_progress)


@pytest.fixture(scope="module")
def measured() -> ChainStudy:
    return study_of(four_vnfs(faults=(FAULT,))).run()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_the_chain_with_the_planted_fault_comes_first_whatever_the_noise(seed: int) -> None:
    asked = study_of(four_vnfs(faults=(FAULT,)), seeded(seed))
    found = asked.run()
    assert found.suspects[0].chain.order == FAULT.chain
    assert any("throttled" in reason for reason in found.suspects[0].reasons)
    asked.faults_first()


@pytest.mark.parametrize(
    ("order", "vnf", "cpu"), [("firewall gateway", "firewall", 0.015), ("gateway monitor", "monitor", 0.005)]
)
def test_a_fault_is_found_wherever_it_is_planted(order: str, vnf: str, cpu: float) -> None:
    fault = Fault(chain=tuple(order.split()), vnf=vnf, limits=Limits(cpu=cpu))
    asked = study_of(four_vnfs(faults=(fault,), duration_s=2))
    asked.run()
    asked.faults_first()


def test_without_a_fault_no_chain_is_suspected(measured: ChainStudy) -> None:
    found = study_of(four_vnfs()).run()
    assert all(run.planted is None for run in found.runs)
    assert [suspect.planted for suspect in measured.suspects[:1]] == ["nat is limited to 0.02 CPUs"]


def test_each_chain_is_measured_under_each_workload_and_vnfs_alone_too(measured: ChainStudy) -> None:
    assert len(measured.runs) == 2 * measured.chains == 2 * (4 + 12)
    assert all(run.failed is None and run.latency_s and run.idle_latency_s for run in measured.runs)
    assert {run.chain.order for run in measured.runs if len(run.chain.members) == 1} == {(vnf.name,) for vnf in VNFS}


def test_features_are_those_of_the_vnfs_of_the_chain_one_value_for_each_second(measured: ChainStudy) -> None:
    run = next(run for run in measured.runs if run.chain.order == ("monitor", "nat"))
    assert {series.owner for series in run.series} == {"monitor", "nat", HOST, VSWITCH}
    assert {len(series.values) for series in run.series} == {4}
    cpu = {series.owner: series.values[0] for series in run.series if series.feature == "cpu_percent"}
    assert cpu["nat"] and cpu["monitor"]


def test_a_throttled_vnf_has_no_more_cpu_than_its_limit(measured: ChainStudy) -> None:
    run = next(run for run in measured.runs if run.planted and run.workload.volume_bps == 4e6)
    rows = {(series.owner, series.feature): series.values for series in run.series}
    assert all(value == pytest.approx(2.0, rel=0.2) for value in rows["nat", "cpu_percent"])
    assert all(value is not None and value > 80 for value in rows["nat", "throttled_percent"])
    assert run.share < 0.9
    (graph,) = [graph for graph in run.graphs if graph.owner == "nat"]
    ratio = {each.workflow: each.time_ratio for each in portions(graph)}
    assert graph.source == "sim"
    threads = 2  # of its core
    assert ratio[Workflow.HARD_SWITCH] == pytest.approx(1 - 0.02 / threads, abs=1e-3), "its limit kept it from its CPU"
    assert ratio[Workflow.IO] == pytest.approx(0.02 / threads, rel=0.05)


def test_simulated_graphs_have_the_packets_and_the_idle_time_of_each_vnf(measured: ChainStudy) -> None:
    run = next(run for run in measured.runs if run.chain.order == ("gateway", "monitor"))
    rows = {
        (series.owner, series.feature): fmean(map(float, filter(None, series.values))) if any(series.values) else 0.0
        for series in run.series
    }
    assert measured.trace_source.startswith("events: simulated")
    assert [graph.owner for graph in run.graphs] == ["gateway", "monitor"]
    for graph in run.graphs:
        ratio = {each.workflow: each.time_ratio for each in portions(graph)}
        threads = sum(edge.seconds for edge in graph.edges) / graph.traced_s
        busy = rows[graph.owner, "cpu_percent"] / 100 / threads
        assert 1 - ratio[Workflow.IDLENESS] == pytest.approx(busy, rel=0.05)
        assert ratio[Workflow.COMPUTATION] == pytest.approx(
            IN_PROGRAM * busy if graph.owner == "monitor" else 0, rel=0.05
        )
    sent = next(edge.count for edge in run.graphs[0].edges if edge.after == "net_dev_xmit:sent")
    assert sent / run.graphs[0].traced_s == pytest.approx(rows["gateway", "tx_pps"], rel=0.05)


def test_two_studies_with_one_seed_are_the_same(measured: ChainStudy) -> None:
    assert study_of(four_vnfs(faults=(FAULT,))).run() == measured


def test_tables_have_a_row_for_each_thing_that_was_measured() -> None:
    asked = study_of(four_vnfs(faults=(FAULT,)))
    found = asked.run()
    record = asked.draft.finish(test_id="t", test_name="t", tags=(), passed=True, message="")
    tables = dict(chain_tables(record))
    assert len(tables["runs"]) == 1 + len(found.runs)
    assert len(tables["samples"]) == 1 + sum(len(row.values) for run in found.runs for row in run.series)
    assert len(tables["statistics"]) == 1 + len(found.statistics)
    assert len(tables["suspects"]) == 1 + sum(len(row.distances) + len(row.worse) for row in found.suspects)
    assert all(len(row) == len(rows[0]) for rows in tables.values() for row in rows)
    edges = sum(len(graph.edges) for run in found.runs for graph in run.graphs)
    assert len(tables["transitions"]) == 1 + edges > 1


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def without(*kinds: NfKind) -> Topology:
    kept = tuple(kind for kind in SIM.dut.offered if kind not in kinds)
    dut = SIM.dut.model_copy(update={"containers": kept, "containers_on_request": False})
    name = next(iter(SIM.duts))
    return SIM.model_copy(update={"nodes": {**SIM.nodes, name: dut}})


@pytest.mark.parametrize(("least", "enough"), [(1.0, False), (0.9, False), (0.5, True), (0.0, True)])
def test_a_study_that_measured_less_than_asked_fails_and_says_how_much_and_why(least: float, enough: bool) -> None:
    asked = study_of(four_vnfs(least_measured=least), without(NfKind("linux_nat")))
    found = asked.run()
    assert str(found.coverage) == "18 of 32"
    if enough:
        asked.enough()
        return
    with pytest.raises(
        CsitError, match=r"^18 of 32 chains and workloads were measured, the specification requires .* linux_nat"
    ):
        asked.enough()


def test_a_study_that_was_measured_as_a_whole_is_enough_and_policies_cost_nothing() -> None:
    asked = study_of(four_vnfs(policies=("gateway > nat",)))
    found = asked.run()
    assert found.dropped
    assert found.coverage.measured == found.coverage.asked
    asked.enough()


def test_a_kind_that_the_testbed_lacks_costs_its_chains_only() -> None:
    found = study_of(four_vnfs(), without(NfKind("linux_nat"))).run()
    failed = {run.chain.order for run in found.runs if run.failed}
    assert failed == {run.chain.order for run in found.runs if "nat" in run.chain.order}
    assert all("linux_nat" in run.failed for run in found.runs if run.failed)
    assert all(
        (run.throughput_bps, run.offered_bps, run.share) == (None, None, None) for run in found.runs if run.failed
    )
    assert all(run.throughput_bps for run in found.runs if not run.failed)
    assert any(row.chain.order == ("gateway", "monitor") for row in found.statistics)


def test_a_run_without_throughput_needs_a_reason(measured: ChainStudy) -> None:
    run = measured.runs[0].model_dump(mode="json")
    assert ChainRun.model_validate({**run, "throughput_bps": 0.0}).throughput_bps == 0.0, "nothing arrived"
    with pytest.raises(ValueError, match="needs a reason"):
        ChainRun.model_validate({**run, "throughput_bps": None})


def test_what_was_measured_while_a_part_died_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count(1)
    monkeypatch.setattr(CellUnderTest, "problems", lambda _: ["monitor has ended"] if next(looks) > 1 else [])
    study = study_of(four_vnfs(duration_s=1, lengths=(1,), vnfs=VNFS[:1]))
    with pytest.raises(CsitError, match="no chain could be measured: monitor has ended"):
        study.run()
    assert [run.throughput_bps for run in study.draft.chain_study.runs] == [None] * 2


class Blind:
    """A tracer on a machine without trace events."""

    cpu_s = None

    def start(self) -> None:
        """See Tracer."""
        raise Unsupported("there is no tracefs")

    def stop(self) -> tuple[StateGraph, ...]:
        """See Tracer."""
        return ()

    def facts(self) -> dict[str, str]:
        """See Tracer."""
        return {}


class Unable(Blind):
    """A tracer that knows beforehand that it cannot trace."""

    def start(self) -> None:
        """Nothing happens."""

    def facts(self) -> dict[str, str]:
        """Why."""
        return {"events": "there is no tracefs"}


@pytest.mark.parametrize(
    ("tracer", "note"),
    [
        (Blind, "nothing was traced: there is no tracefs"),
        (Unable, "no graphs of state transitions; events: there is no tracefs"),
    ],
)
def test_without_trace_events_the_rest_is_measured_and_one_note_says_so(
    tracer: type[Blind], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SimulatedTestbed.parts

    def parts(world: SimulatedTestbed, plan: Plan, asked: MeasurementRequest) -> Parts:
        made = plain(world, plan, asked)
        object.__setattr__(made, "tracer", tracer())
        return made

    monkeypatch.setattr(SimulatedTestbed, "parts", parts)
    found = study_of(four_vnfs(duration_s=1)).run()
    assert found.notes.count(note) == 1
    assert all(run.failed is None and run.series for run in found.runs)


def test_a_workload_that_the_generator_does_not_send_is_refused_before_anything_starts() -> None:
    topology = shipped("local")
    world = SimulatedTestbed(SIM)
    loads = (Workload(protocol=Protocol.ICMP, volume_bps=1e6, frame=frame("64B")),)
    with pytest.raises(ConfigError, match=r"study: workloads\.0: the generator auto sends .* and no ICMP"):
        ChainStudyTest(topology, world, four_vnfs(workloads=loads), world.environment())
    loads = (Workload(generator="iperf3", volume_bps=1e6, frame=frame("64B")),)
    with pytest.raises(ConfigError, match=r"needs the generator iperf3 instead of auto"):
        ChainStudyTest(topology, world, four_vnfs(workloads=loads), world.environment())


def test_a_fault_that_does_not_rank_first_is_reported_with_the_one_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = study_of(four_vnfs(faults=(FAULT,), duration_s=1))
    with pytest.raises(CsitError, match="nothing was measured"):
        asked.faults_first()
    monkeypatch.setattr(chain_study, "analyse", lambda *_: Analysis((), (), (), (), (), (), ()))
    asked.run()
    with pytest.raises(CsitError, match="planted in nat > gateway, and no chain is a suspect"):
        asked.faults_first()

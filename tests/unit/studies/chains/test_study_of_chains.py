"""A study of chains from specification to record, on simulated systems whose truth is known."""

import re
from itertools import count
from statistics import fmean

import pytest

from resources.libraries.python.drivers.sim.probes import IN_PROGRAM
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.measurements.features import HOST, VSWITCH
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.chains import run as chain_study
from resources.libraries.python.studies.chains.analysis.classes import Workflow, portions
from resources.libraries.python.studies.chains.analysis.sentences import cause_in_words, headline, sentences
from resources.libraries.python.studies.chains.analysis.study import Analysis
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, Workload
from resources.libraries.python.studies.chains.planning.chain_generation import cost, generate
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, shipped
from tests.unit.studies.chains.chain_runs import FAULT, VNFS, four_vnfs
from tests.unit.studies.worlds import World


def study_of(asked: ChainStudySpec, topology: Topology = SIM) -> ChainStudyTest:
    world = SimulatedTestbed(topology)
    return ChainStudyTest(topology, world, asked, world.environment())


@pytest.fixture(scope="module")
def study() -> ChainStudyTest:
    return study_of(four_vnfs(faults=(FAULT,), policies=("monitor > firewall",)))


@pytest.fixture(scope="module")
def measured(study: ChainStudyTest) -> ChainStudy:
    return study.run()


@pytest.mark.parametrize(
    ("order", "vnf", "cpu"),
    [("nat gateway", "nat", 0.02), ("firewall gateway", "firewall", 0.015), ("gateway monitor", "monitor", 0.005)],
)
def test_the_chain_with_the_planted_fault_comes_first_wherever_it_is_planted(order: str, vnf: str, cpu: float) -> None:
    """Whatever the noise; tests/truth/chains.py has hundreds."""
    fault = Fault(chain=tuple(order.split()), vnf=vnf, limits=Limits(cpu=cpu))
    asked = study_of(four_vnfs(faults=(fault,), duration_s=2))
    found = asked.run()
    assert found.suspects[0].chain.order == fault.chain
    assert any("throttled" in reason for reason in found.suspects[0].reasons)
    asked.faults_first()


def test_without_a_fault_no_chain_is_suspected_and_all_is_measured() -> None:
    asked = study_of(four_vnfs())
    found = asked.run()
    assert not found.suspects and not any(run.planted for run in found.runs)
    assert str(found.coverage) == "32 of 32"
    asked.enough()


def test_each_chain_is_measured_under_each_workload(study: ChainStudyTest, measured: ChainStudy) -> None:
    """What policies drop costs nothing."""
    assert len(measured.runs) == 2 * measured.chains == 2 * (4 + 11)
    assert all(run.failed is None and run.latency_s and run.idle_latency_s for run in measured.runs)
    assert {run.chain.order for run in measured.runs if len(run.chain.members) == 1} == {(vnf.name,) for vnf in VNFS}
    assert measured.coverage.measured == measured.coverage.asked == 30
    study.enough()


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
    assert study_of(measured.spec).run() == measured


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
    assert measured.stacks == () and '"stacks"' not in record.model_dump_json(), "nothing was sampled"


def test_the_preview_counts_chains_names_policies_and_planted_faults(study: ChainStudyTest) -> None:
    first, policy, more, fault = study.preview()
    assert first.startswith("15 chains (4 of 1, 11 of 2 VNFs) under 2 workloads of 4 s")
    assert "'monitor > firewall'" in policy
    assert more == "chains that deviate from their VNFs alone are measured again, 2 times, with those VNFs"
    assert fault == "planted fault: in nat > gateway nat is limited to 0.02 CPUs"


@pytest.mark.parametrize("sessions", [(1,), (1, 8)])
def test_a_study_does_what_its_preview_counts(sessions: tuple[int, ...]) -> None:
    spec = four_vnfs(
        vnfs=tuple(vnf.model_copy(update={"memory_mib": (64, 128)}) for vnf in VNFS[:2]),
        lengths=(),
        workloads=[
            Workload(volume_bps=volume, sessions=count, frame=frame("64B"))
            for count in sessions
            for volume in (2e6, 3e6)
        ],
        duration_s=1,
    )
    world = World(topology=SIM)
    study = ChainStudyTest(SIM, world, spec, world.environment())
    found, previewed = study.run(), cost(generate(spec))
    assert previewed == study.cost
    assert world.deployed == previewed.counted["deployments"]
    assert len(found.runs + found.path) == previewed.runs
    assert len({run.chain for run in found.runs + found.path}) == previewed.counted["chains"] + 1
    assert previewed.seconds == previewed.counted["deployments"] * 4.0 + previewed.runs * (1 + 1)
    assert previewed.counts() == {
        **previewed.counted,
        "chains": len(list(generate(spec))),
        "measurements": previewed.runs,
        "seconds": previewed.seconds,
    }


def test_suspects_come_with_rank_fault_and_reasons(measured: ChainStudy) -> None:
    cause, first, reason, *_ = sentences(measured)
    assert cause.startswith("only nat > gateway has nat throttled ")
    assert first.startswith("suspect 1 by mean distance and worse than predicted: nat > gateway, mean Cook's distance ")
    assert first.endswith("; a fault was planted: nat is limited to 0.02 CPUs")
    assert reason.startswith("    ")


def test_chains_that_were_not_measured_are_named_with_the_reason(measured: ChainStudy) -> None:
    run = measured.runs[0].model_copy(update={"failed": "no traffic"})
    bare = measured.model_copy(update={"runs": (run,), "suspects": (), "causes": ()})
    *_, failed = sentences(bare)
    assert "; no suspects; 11 chains are compared with what the VNFs alone predict, by repeated runs" in headline(bare)
    assert failed == "not measured: gateway: no traffic"
    assert headline(bare.model_copy(update={"judged": ()})).endswith("; no suspects")


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
    lacking = study_of(four_vnfs(), without(NfKind("linux_nat")))
    found = lacking.run()
    failed = [run for run in found.runs if run.failed]
    assert {run.chain for run in failed} == {run.chain for run in found.runs if "nat" in run.chain.order}
    assert all("linux_nat" in run.failed for run in failed if run.failed)
    assert {(run.throughput_bps, run.offered_bps, run.share) for run in failed} == {(None, None, None)}
    assert all(run.throughput_bps for run in found.runs if not run.failed)
    assert any(row.chain.order == ("gateway", "monitor") for row in found.statistics)
    assert str(found.coverage) == "18 of 32"
    with pytest.raises(CsitError, match=r"^18 of 32 chains and workloads were measured, .* requires .* linux_nat"):
        lacking.enough()
    for least in (0.5, 0.0):
        lacking.spec = lacking.spec.model_copy(update={"least_measured": least})
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
    with pytest.raises(CsitError, match="no chain could be measured: monitor has ended"):
        study.run()
    assert [run.throughput_bps for run in study.draft.chain_study.runs] == [None] * 2


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

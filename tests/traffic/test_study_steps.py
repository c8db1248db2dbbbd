"""One step of a sweep, of a chain study and of an interference study with real packets, at a few hundred per second."""

import pytest

from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.chains.model import ChainStudy
from resources.libraries.python.studies.interference.model import Interference
from resources.libraries.python.studies.sweep.model import SweepRecord
from tests.traffic.local_runs import ROUTER, SUITES, FinishedRun, finished, suite_with

pytestmark = pytest.mark.root

LOAD_PPS = 500
CHAINS = f"""
name: two routers
vnfs:
  - {{name: edge, kind: {ROUTER}}}
  - {{name: core, kind: {ROUTER}}}
policies: [edge > core]
lengths: [2]
workloads: {{protocols: [UDP], volumes_mbps: [0.2], sessions: [1], frames: [64B]}}
duration_s: 1
repetitions: 0
"""
"""A chain, and each of its parts alone."""
PARTS_AND_CHAIN = [("edge",), ("core",), ("edge", "core")]
INTERFERENCE = f"""
name: a router
frame: 64B
load_pps: {LOAD_PPS}
duration_s: 1
repetitions: 1
contenders: [{{name: router, type: I, kind: {ROUTER}}}]
"""
"""Alone, and beside another of its kind."""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """One load of one second, to a router."""
    options = ("-v", f"FIREWALL:{ROUTER}", "-v", f"SWEEP_RATES:{LOAD_PPS}", "-v", "SWEEP_DURATION:1")
    suite, output = SUITES / "sweep.robot", tmp_path_factory.mktemp("sweep")
    return finished(output, *options, "--test", "Firewall", sources=[suite])


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """One chain of two VNFs under one workload.

    The suite's own test also asks for a planted fault to be the first suspect, which a busy machine may delay.
    """
    folder = tmp_path_factory.mktemp("chains")
    changes = {
        "chains/four-vnfs.yaml": "{specification}",
        "[Template]    Planted Fault Should Be Found": "[Template]    Run Study",
    }
    return finished(folder / "out", sources=[suite_with(folder, "chains", changes, CHAINS)])


@pytest.fixture(scope="module")
def interference(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """One network function, alone and beside its like."""
    folder = tmp_path_factory.mktemp("interference")
    changes = {"interference/pairs.yaml": "{specification}"}
    suite = suite_with(folder, "interference", changes, INTERFERENCE)
    return finished(folder / "out", "--include", "PAIRS", sources=[suite])


def test_sweep_of_one_load_passes_with_a_record_of_real_packets(sweep: FinishedRun) -> None:
    sweep.assert_all_passed()
    record: SweepRecord = sweep.characterization()
    assert record.plan is not None
    assert [(function.name, function.kind) for function in record.plan.functions] == [("nf-1-1", NfKind(ROUTER))]


def test_packets_arrive_at_the_load_of_a_sweep(sweep: FinishedRun) -> None:
    record: SweepRecord = sweep.characterization()
    assert record.sweep is not None
    (point,) = record.sweep.points
    assert point.rate_pps == LOAD_PPS
    assert point.input_pps
    assert point.output_pps


def test_sweep_has_a_table_of_its_seconds_and_one_of_its_loads(sweep: FinishedRun) -> None:
    for name in ("S_allsamples", "S_statistics"):
        (row,) = sweep.table(name)
        assert float(row["rate_pps"]) == LOAD_PPS


def test_sweep_leaves_the_machine_as_it_was(sweep: FinishedRun) -> None:
    assert not sweep.left


def test_chain_study_passes_with_a_record_of_real_packets(chains: FinishedRun) -> None:
    chains.assert_all_passed()
    study: ChainStudy = chains.characterization().chain_study
    assert [run.chain.order for run in study.runs] == PARTS_AND_CHAIN
    assert {vnf.name: vnf.kind for vnf in study.spec.vnfs} == {"edge": NfKind(ROUTER), "core": NfKind(ROUTER)}


def test_packets_arrive_behind_the_chain_and_each_of_its_parts(chains: FinishedRun) -> None:
    study: ChainStudy = chains.characterization().chain_study
    assert {run.chain.order: run.failed for run in study.runs} == dict.fromkeys(PARTS_AND_CHAIN)
    assert all(run.offered_bps and run.throughput_bps for run in study.runs)


def test_chain_study_has_a_table_with_a_row_for_each_chain(chains: FinishedRun) -> None:
    assert [row["chain"] for row in chains.table("runs")] == [" > ".join(order) for order in PARTS_AND_CHAIN]


def test_chain_study_leaves_the_machine_as_it_was(chains: FinishedRun) -> None:
    assert not chains.left


def test_interference_study_passes_with_a_record_of_real_packets(interference: FinishedRun) -> None:
    interference.assert_all_passed()
    study: Interference = interference.characterization().interference
    assert sorted((each.target, each.against) for each in study.measurements) == [
        ("router", ()),
        ("router", ("router",)),
    ]
    assert [each.kind for each in study.spec.contenders] == [NfKind(ROUTER)]


def test_packets_arrive_behind_a_network_function_alone_and_beside_another(interference: FinishedRun) -> None:
    study: Interference = interference.characterization().interference
    assert all(each.load_pps == LOAD_PPS and each.throughput_pps for each in study.measurements)


def test_interference_study_has_tables_of_its_measurements_and_its_matrix(interference: FinishedRun) -> None:
    assert sorted(row["against"] for row in interference.table("interference_measurements")) == ["", "router"]
    (row,) = interference.table("interference_matrix")
    assert (row["target"], row["against"]) == ("router", "router")


def test_interference_study_leaves_the_machine_as_it_was(interference: FinishedRun) -> None:
    assert not interference.left

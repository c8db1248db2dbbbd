"""One step of a sweep, of a chain study and of an interference study with real packets, at a few hundred per second."""

from pathlib import Path

import pytest

from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.chains.model import ChainStudy
from resources.libraries.python.studies.interference.model import Interference
from resources.libraries.python.studies.sweep.model import SweepRecord
from tests.integration.robot_runs import SUITES, study_suite, variables
from tests.traffic.local_runs import ROUTER, finished

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


def test_packets_arrive_at_the_load_of_a_sweep(tmp_path: Path) -> None:
    """One load of one second, to a router."""
    options = variables(f"FIREWALL:{ROUTER} SWEEP_RATES:{LOAD_PPS} SWEEP_DURATION:1")
    sweep = finished(tmp_path, *options, "--test", "Firewall", sources=[SUITES / "sweep.robot"])
    sweep.assert_all_passed()
    record: SweepRecord = sweep.characterization()
    assert record.plan is not None and record.sweep is not None
    assert [(function.name, function.kind) for function in record.plan.functions] == [("nf-1-1", NfKind(ROUTER))]
    (point,) = record.sweep.points
    assert point.rate_pps == LOAD_PPS and point.input_pps and point.output_pps
    for name in ("S_allsamples", "S_statistics"):
        (row,) = sweep.table(name)
        assert float(row["rate_pps"]) == LOAD_PPS
    assert not sweep.left


def test_packets_arrive_behind_a_chain_and_each_of_its_parts(tmp_path: Path) -> None:
    """One chain of two VNFs under one workload, without a planted fault, which a busy machine may hide."""
    chains = finished(tmp_path / "out", sources=[study_suite(tmp_path, "chains/four-vnfs.yaml", CHAINS)])
    chains.assert_all_passed()
    study: ChainStudy = chains.characterization().chain_study
    assert {vnf.name: vnf.kind for vnf in study.spec.vnfs} == {"edge": NfKind(ROUTER), "core": NfKind(ROUTER)}
    assert [(run.chain.order, run.failed) for run in study.runs] == [(order, None) for order in PARTS_AND_CHAIN]
    assert all(run.offered_bps and run.throughput_bps for run in study.runs)
    assert [row["chain"] for row in chains.table("runs")] == [" > ".join(order) for order in PARTS_AND_CHAIN]
    assert not chains.left


def test_packets_arrive_behind_a_network_function_alone_and_beside_its_like(tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "interference/pairs.yaml", INTERFERENCE)
    interference = finished(tmp_path / "out", "--include", "PAIRS", sources=[suite])
    interference.assert_all_passed()
    study: Interference = interference.characterization().interference
    found = sorted((each.target, each.against) for each in study.measurements)
    assert found == [("router", ()), ("router", ("router",))]
    assert [each.kind for each in study.spec.contenders] == [NfKind(ROUTER)]
    assert all(each.load_pps == LOAD_PPS and each.throughput_pps for each in study.measurements)
    assert sorted(row["against"] for row in interference.table("interference_measurements")) == ["", "router"]
    (row,) = interference.table("interference_matrix")
    assert (row["target"], row["against"]) == ("router", "router")
    assert not interference.left

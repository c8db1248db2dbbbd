"""Records of all studies say simulated, fit the schema, and have the figures that the simulated system has."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from csit_utils.dataset.items import Status
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import Simulation, simulation_of
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, TestType
from resources.libraries.python.recording.records import RECORDS
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.sweep.model import ProfileMetric
from tests.loaded import Dataset, load
from tests.simulated.conftest import TABLE_ENTRIES
from tests.simulated.in_process import SIM, passed, robot_words

SIMULATION = simulation_of(load_topology(SIM))
DEVIATIONS = 3 * SIMULATION.noise
"""Three standard deviations of a capacity from trial to trial, relative."""
KINDS = {"sweep": 10, "chain": 2, "bursts": 2, "chains": 1, "interference": 1, "outage": 1, "sizing": 1, "stateful": 1}
SNORT_KPPS = 1 / 4.5e-3
"""Of `specs/snort/simulation.json`: one thread, 4.5 ms for each thousand packets."""
PAIRS = {("gateway", "inspection"): 0.854, ("monitor", "inspection"): 0.615, ("inspection", "monitor"): 0.645}
"""Normalized throughput that Zeng et al. publish, which the simulation has within 0.012."""


def capacity_pps(plan: Plan, frame: Frame) -> float:
    return SimulatedSystem(plan, SIMULATION, VirtualClock(), TestType.MRR).capacity_pps(frame)


def only(dataset: Dataset, kind: str, name: str = "") -> Any:
    """The record of a kind of test, and of this name where there are several."""
    (record,) = (
        item.record for item in dataset.characterizations if item.record.kind == kind and name in item.record.test_name
    )
    return record


@pytest.fixture(scope="module")
def published() -> dict[str, jsonschema.Draft202012Validator]:
    found = {study: jsonschema.Draft202012Validator(json.loads(passed("schema", study).stdout)) for study in RECORDS}
    for each in found.values():
        each.check_schema(each.schema)
    return found


def test_every_density_suite_has_a_passed_simulated_record_of_both_cells(matrix: Dataset) -> None:
    assert (matrix.problems, matrix.characterizations, matrix.unrecorded) == ([], [], [])
    count = Counter((row.record.cell.service_type, row.record.asked.test_type) for row in matrix.recorded)
    types = {(service, test) for service in ("CSC", "CSP", "VSC") for test in ("NDRPDR", "MRR", "LATENCY")}
    assert dict(count) == dict.fromkeys(types, 2)
    for row in matrix.recorded:
        record = row.record
        assert (row.status, record.passed, record.simulated, record.world) == (Status.PASS, True, True, "sim")
        assert record.verdict.kinds and record.verdict.evidence and not record.broken


def test_every_other_study_has_a_passed_simulated_record(studied: Dataset) -> None:
    assert (studied.problems, studied.of(DensityRecord)) == ([], [])
    assert {item.status for item in studied.unrecorded} == {Status.SKIP}
    counted = Counter(item.record.kind for item in studied.characterizations)
    assert {kind: counted[kind] for kind in KINDS} == KINDS
    for item in studied.characterizations:
        record = item.record
        assert (item.status, record.passed, record.simulated, record.world) == (Status.PASS, True, True, "sim")


@pytest.mark.parametrize("run", ["density", "studies"])
def test_record_files_fit_the_published_schema_and_equal_those_in_output_xml(
    run: str, published: dict[str, jsonschema.Draft202012Validator], request: pytest.FixtureRequest
) -> None:
    output: Path = request.getfixturevalue(run)
    read = request.getfixturevalue({"density": "matrix", "studies": "studied"}[run])
    records = {item.record.test_id: item.record for item in read.recorded}
    texts = [path.read_text(encoding="utf-8") for path in (output / "results").glob("*.json")]
    assert len(texts) == len(records)
    for text in texts:
        found = json.loads(text)
        published[found["study"]].validate(found)
        record = records[found["test_id"]]
        assert type(record).model_validate_json(text) == record, "packed in output.xml and plain in its file"


def test_ndr_is_at_most_pdr_and_both_and_the_rate_received_at_line_rate_are_the_capacity(matrix: Dataset) -> None:
    for record in (row.record for row in matrix.recorded if row.record.asked.test_type == "NDRPDR"):
        assert record.ndr.lower_pps <= record.pdr.lower_pps
        truth_pps = capacity_pps(record.plan, record.asked.frame)
        for found in (record.ndr, record.pdr):
            low, high = (truth_pps * (1 + sign * (DEVIATIONS + found.goal.relative_width)) for sign in (-1, 1))
            assert low <= found.lower_pps <= found.upper_pps <= high, record.test_name
    for record in (row.record for row in matrix.recorded if row.record.asked.test_type == "MRR"):
        truth_pps = capacity_pps(record.plan, record.asked.frame)
        assert record.mrr.mean_pps == pytest.approx(truth_pps, rel=DEVIATIONS), record.test_name


def test_a_soak_test_finds_a_load_below_the_capacity_that_it_keeps(tmp_path: Path) -> None:
    chosen = ("-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "-v", "SEARCH:soak", "--suite", "csp-ndrpdr")
    passed(*robot_words(tmp_path, SIM, *chosen))
    (row,) = load([tmp_path / "output.xml"]).recorded
    soak = row.record.soak
    assert "SOAK" in row.record.tags
    assert row.record.simulated and row.record.passed
    truth_pps = capacity_pps(row.record.plan, row.record.asked.frame)
    assert truth_pps * (1 - DEVIATIONS - soak.goal.relative_width) <= soak.lower_pps <= truth_pps


def test_latency_of_every_flow_grows_with_the_load(matrix: Dataset) -> None:
    for record in (row.record for row in matrix.recorded if row.record.asked.test_type != "MRR"):
        assert [each.label for each in record.latency] == ["PDR0", "PDR10", "PDR50", "PDR90"]
        for loads in zip(*(each.flows for each in record.latency), strict=True):
            means = [flow.mean_ns for flow in loads]
            assert means == sorted(means), record.test_name
            assert means[0] > 0
        flows = {(flow.instance, flow.direction) for flow in record.latency[0].flows}
        assert len(flows) == 2 * record.cell.nf_chains


def test_a_sweep_saturates_at_the_capacity_within_one_step(studied: Dataset) -> None:
    for record in (item.record for item in studied.characterizations if item.record.kind in {"sweep", "chain"}):
        if not record.sweep.vnfs:
            found = record.profile.break_point
            assert found is None or found.vnf is None, "a path without network functions saturates none of them"
            continue
        first, second, *_ = (point.input_bps for point in record.sweep.points)
        frame = record.sweep.spec.frame
        truth_bps = capacity_pps(record.plan, frame) / 2 * frame.mean_bytes * 8
        assert abs(record.profile.break_point.rate * 1e9 - truth_bps) <= second - first, record.test_name


def test_a_chain_is_predicted_from_its_parts(studied: Dataset) -> None:
    (prediction,) = only(studied, "chain", "Router And Firewall").predictions
    assert prediction.parts == ("router", "firewall")
    assert prediction.errors[ProfileMetric.THROUGHPUT] <= DEVIATIONS


def test_smt_adds_what_the_second_thread_of_a_simulated_core_does(studied: Dataset) -> None:
    record = only(studied, "sweep", "Service Without SMT")
    truth = 2 * SIMULATION.sibling_speed - 1
    assert record.smt_off and record.plan.cores.smt is False
    for row in record.smt_gains:
        assert row.gain.low < row.gain.value < row.gain.high
        assert row.gain.value == pytest.approx(truth, abs=2 * DEVIATIONS), row.quantity
    assert [row.quantity for row in record.smt_gains] == ["break-point", "saturated throughput"]


def test_bursts_lose_packets_above_the_capacity_only(studied: Dataset) -> None:
    for name, loses in (("Below", False), ("Above", True)):
        samples = only(studied, "bursts", name).sweep.samples
        assert [sample.rate_pps > 0 for sample in samples] == [True, True, True, False, False] * 2
        assert all((sample.loss_ratio > 0) == loses for sample in samples if sample.rate_pps)


def test_a_service_of_one_thread_gains_nothing_from_larger_sizes(studied: Dataset) -> None:
    sizing = only(studied, "sizing").sizing
    assert [row.name for row in sizing.sizes] == ["ids1s", "ids1m", "ids1l"]
    for row in sizing.sizes:
        # A load counts as carried where at least 90 % of it is, and loads are 10 kpps apart.
        assert row.capacity == pytest.approx(SNORT_KPPS / 0.9, abs=20)


def test_the_planted_fault_is_the_only_suspect(studied: Dataset) -> None:
    (suspect,) = only(studied, "chains").chain_study.suspects
    assert suspect.chain.order == ("nat", "gateway") and suspect.planted
    assert "throttled" in " ".join(suspect.reasons)


def test_network_functions_slow_each_other_down_as_published(studied: Dataset) -> None:
    found = only(studied, "interference").interference
    assert found.coverage.measured == found.coverage.asked
    assert len(found.matrix) == 25
    assert all(0 < row.mean < 1 for row in found.matrix)
    pairs = {(row.target, *row.against): row.mean for row in found.matrix}
    for pair, published in PAIRS.items():
        assert pairs[pair] == pytest.approx(published, abs=0.012 + published * DEVIATIONS), pair


def test_an_event_costs_what_it_hits_and_nothing_else(studied: Dataset) -> None:
    outage = only(studied, "outage").outage
    truth = Simulation().interruptions
    effects = {(row.event, row.instance): row for row in outage.effects}
    interrupted_s = {
        "no event": 0.0,
        "kill nf-1-1": outage.spec.after_s,
        "restart nf-1-1": truth.restart_s,
        "pause nf-1-1": 0.2 - truth.queue / outage.rate_pps,  # whose queue holds the rest
        "add nf-1-1": truth.add_s,
        "move nf-1-1": 0.0,  # all wait in the queue
        "restart vswitch": truth.restart_s,
    }
    assert {event for event, _ in effects} == interrupted_s.keys()
    for (event, instance), row in effects.items():
        hit = instance == 1 or event.endswith("vswitch")
        expected_s = interrupted_s[event] if hit else 0.0
        # The simulation varies interruptions by a tenth; a packet more or less is one of 2 kpps.
        assert row.outage_s.mean == pytest.approx(expected_s, rel=0.1, abs=0.001), (event, instance)
        assert row.lost.mean == pytest.approx(2 * outage.rate_pps * row.outage_s.mean, abs=2), "both directions"


def test_connections_are_as_many_as_tables_hold_and_threads_insert(studied: Dataset) -> None:
    study = only(studied, "stateful").stateful
    truth = Simulation().state_tables
    assert {cell.name for cell in study.cells} == {"1x1", "2x1", "1x2", "2x2"}
    for cell in study.cells:
        assert cell.is_valid, cell.checks
        assert cell.capacity.entries == TABLE_ENTRIES
        # Beside the insertion itself each walks along a chain of less than one entry; packets of the queue come on top.
        highest_cps = 1e9 / truth.insert_ns + truth.queue / 0.02
        lowest_cps = 1e9 / (truth.insert_ns + truth.link_ns)
        assert lowest_cps * 0.9 <= cell.rate.lower_cps / cell.instances <= highest_cps * 1.05, cell.name

"""Commands that query studies, preview specifications, and explain."""

from pathlib import Path

import pytest

from tests.loaded import Dataset, load
from tests.simulated.in_process import DENSITY, SIM, STUDIES, csit, passed, robot_words, topology_with

SPECS = STUDIES / "specs"
QUICKLY = ("-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick")


def test_a_profile_of_a_table_is_that_of_its_record(studies: Path, studied: Dataset) -> None:
    (record,) = (item.record for item in studied.characterizations if item.record.test_name == "Firewall Alone")
    table = studies / "characterization" / "Firewall_Alone" / "S_statistics.csv"
    rows = passed("profile", table, "--format", "json").objects
    for row in rows:
        assert row["break_point_gbps"] == pytest.approx(record.profile.break_point.rate)
    assert {row["metric"] for row in rows} >= {"throughput", "delay", "loss"}


def test_suspects_names_the_planted_fault_and_why_the_functions_beside_it(studies: Path) -> None:
    (row,) = passed("suspects", studies / "output.xml", "--format", "json").objects
    assert (row["chain"], row["simulated"]) == ("nat > gateway", True)
    assert row["planted"]
    reasons = passed("why", studies / "output.xml", "--format", "json").objects
    assert reasons
    assert all("nat > gateway" in each["cell"] and each["simulated"] for each in reasons)


def test_place_advises_by_the_measured_pairs(studies: Path, studied: Dataset) -> None:
    (record,) = (item.record for item in studied.characterizations if item.record.kind == "interference")
    rows = passed("place", studies / "output.xml", "--format", "json").objects
    pairs = {(row["target"], *row["against"]): row["mean"] for row in rows if row["object"] == "pair"}
    assert pairs == {(row.target, *row.against): row.mean for row in record.interference.matrix}
    least = min(record.interference.findings.sensitivity, key=lambda mean: mean.normalized.value)
    lost = {row["sensitivity"] for row in rows if row["object"] == "pair" and row["target"] == least.name}
    assert lost == {least.lost.value}
    empty = ("--server", "-", "--server", "-", "--server", "-")
    assert passed("place", studies / "output.xml", *empty, "--format", "json").objects


@pytest.fixture
def open_question(matrix: Dataset) -> tuple[float, float]:
    """A rate of each instance of CSC 2x2, and a p99 in microseconds, that were met at a load below and missed above."""
    (found,) = (
        each.record
        for each in matrix.recorded
        if (each.record.cell.service_type, each.record.cell.dimensions) == ("CSC", (2, 2)) and each.record.pdr
        if each.record.asked.test_type == "NDRPDR"
    )
    worst = {row.label: (row.load_pps, max(flow.p99_ns or 0 for flow in row.flows)) for row in found.latency}
    (low_pps, low_ns), (high_pps, high_ns) = worst["PDR50"], worst["PDR90"]
    return (low_pps + high_pps) / 4, (low_ns + high_ns) / 2e3


def test_an_open_answer_is_measured_at_the_rate_that_was_asked_for(
    density: Path, open_question: tuple[float, float], tmp_path: Path
) -> None:
    rate_pps, p99_us = open_question
    asked = ("--rate", f"{rate_pps:.0f}pps", "--p99", f"{p99_us:.1f}us", "--format", "json")

    def answers(*words: object) -> list[dict[str, object]]:
        rows = passed("answer", *words, *asked).objects
        return [row for row in rows if (row["service_type"], row["nf_nodes"]) == ("CSC", 2)]

    (before,) = answers(density / "output.xml")
    assert before["next_limit"] == "latency not measured at that load"
    assert before["trial_pps"] == pytest.approx(2 * rate_pps, rel=1e-5)
    (after,) = answers(density / "output.xml", "--measure", "-o", tmp_path / "trials")
    assert after["trial_pps"] is None
    assert after["instances"] == 2 or after["next_limit"] == "latency"
    trials = [load([path]).recorded[0].record for path in sorted((tmp_path / "trials").rglob("output.xml"))]
    decisive = [each for each in trials if (each.cell.service_type, each.cell.dimensions) == ("CSC", (2, 2))]
    assert [each.at_rate.load_pps for each in decisive if each.at_rate] == [pytest.approx(2 * rate_pps, rel=1e-5)]
    (latency,) = decisive[0].latency
    is_met = max(flow.p99_ns or 0 for flow in latency.flows) < p99_us * 1e3
    assert (after["instances"] == 2) is is_met


def test_trials_are_refused_on_a_testbed_that_has_changed(tmp_path: Path) -> None:
    topology = topology_with(tmp_path / "bed.yaml", noise=0.02)
    passed(*robot_words(tmp_path / "run", topology, *QUICKLY, sources=[DENSITY / "csc-ndrpdr.robot"]))
    topology_with(topology, noise=0.03)
    words = ("answer", tmp_path / "run" / "output.xml", "--measure", "-o", tmp_path / "no")
    assert "nothing was measured" in passed(*words, "--rate", "100Mpps").stderr
    refused = csit(*words, "--rate", "1kpps", "--p99", "22us")
    assert refused.status == 2
    assert "bed.yaml has changed since CSC 1x1 was measured" in refused.stderr
    assert not (tmp_path / "no").exists()


def test_plan_counts_the_tests_that_a_run_makes(matrix: Dataset) -> None:
    text = passed("plan", SIM, "-v", "CELLS:1x1,2x2", "-v", "NF_SIZES:1c").stdout
    (total,) = (line.split() for line in text.splitlines() if line.startswith("all\t"))
    assert int(total[1]) == len(matrix.recorded)

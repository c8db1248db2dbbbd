"""A dataset gives the figures of the files it was made of, and comparisons find a planted change and no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loaded import Dataset
from tests.simulated.conftest import SLOWER
from tests.simulated.in_process import Ended, csit, passed

ELSEWHERE = {"run", "label", "source"}
"""Keys of `show --format json` that differ between a dataset and its files."""


def figures(shown: Ended) -> dict[str, dict[str, Any]]:
    return {each["test_id"]: {k: v for k, v in each.items() if k not in ELSEWHERE} for each in shown.objects}


def test_a_dataset_shows_the_same_figures_as_output_xml(history: Path, shown: Ended) -> None:
    kept, read = figures(passed("show", history, "--format", "json")), figures(shown)
    recorded = {test: row for test, row in read.items() if row["study"] is not None}
    assert {test: row for test, row in kept.items() if row["study"] is not None} == recorded


def test_an_import_of_the_same_results_adds_nothing(history: Path, density: Path, studies: Path) -> None:
    before = sorted(path.name for path in history.rglob("*.parquet"))
    again = passed("import", density, studies, "-o", history, "--processes", "1", "--format", "json").objects[0]
    assert (again["tests"], again["problems"]) == (0, [])
    assert again["files"] == again["known"] > 0
    assert sorted(path.name for path in history.rglob("*.parquet")) == before


@pytest.mark.parametrize("words", [["answer", "--rate", "500kpps", "--format", "json"], ["regoal", "--format", "json"]])
def test_queries_of_a_dataset_answer_as_of_output_xml(history: Path, density: Path, words: list[str]) -> None:
    command, *options = words
    answers = [passed(command, place, *options).stdout for place in (history, density / "output.xml")]
    assert answers[0] == answers[1] != ""


def test_answers_are_instances_that_a_test_has_measured(density: Path, matrix: Dataset) -> None:
    rows = {
        (row.record.cell.service_type.value, row.record.cell.nf_chains): row.record.pdr
        for row in matrix.recorded
        if row.record.asked.test_type == "NDRPDR"
    }
    answered = passed("answer", density, "--rate", "1Mpps", "--format", "json").objects
    assert len(answered) == len(rows) == 6
    for each in answered:
        pdr = rows[each["service_type"], each["nf_nodes"]]  # cells 1x1 and 2x2
        assert each["simulated"]
        assert each["instances"] == each["nf_nodes"]
        assert pdr is not None and each["load_pps"] <= pdr.lower_pps
    beyond = passed("answer", density, "--rate", "20Mpps", "--format", "json").objects
    assert all(each["instances"] == 0 for each in beyond)


def test_a_trend_begins_with_the_figures_of_the_only_run(history: Path, matrix: Dataset) -> None:
    rows = passed("trend", history, "--all", "--format", "json").objects
    levels = sorted(row["level_pps"] for row in rows if row["metric"] in {"NDR", "MRR"})
    records = [row.record for row in matrix.recorded]
    goals = [record.ndr.lower_pps for record in records if record.ndr is not None]
    assert levels == sorted([*goals, *(record.mrr.mean_pps for record in records if record.mrr is not None)])
    assert {(row["simulated"], row["state"]) for row in rows} == {(True, "too few")}
    # The firewall alone is measured twice: as part of a chain, and with SMT on.
    assert {row["runs"] for row in rows if row["service_type"] != "firewall"} == {1}


@pytest.mark.parametrize("other", ["baseline", "repeated"])
def test_a_system_is_not_changed_by_itself_or_other_noise(
    other: str, baseline: Path, request: pytest.FixtureRequest
) -> None:
    candidate = request.getfixturevalue(other)
    rows = passed("compare", baseline, candidate, "--format", "json").objects
    assert len(rows) == 16
    assert {row["outcome"] for row in rows} == {"no change seen"}
    passed("gate", baseline, candidate)


def test_a_slower_system_fails_the_gate_in_every_cell(baseline: Path, slower: Path) -> None:
    rows = passed("compare", baseline, slower, "--format", "json").objects
    assert {row["outcome"] for row in rows} == {"regression"}
    for row in rows:
        assert row["simulated"]
        assert row["change_low"] <= SLOWER - 1 <= row["change_high"], row
    gate = csit("gate", baseline, slower)
    assert gate.status == 1 and "16 with a significant regression" in gate.stdout
    passed("gate", baseline, slower, "--tolerance", "50%")
    passed("gate", slower, baseline)  # faster is no regression


def test_the_function_that_takes_longer_is_found_and_no_other_one(baseline: Path, slower: Path) -> None:
    rows = [
        row for row in passed("why", baseline, slower, "--format", "json").objects if row["cell"].startswith("CSC 1x1")
    ]
    most = max(rows, key=lambda row: row["share_b"] - row["share_a"])
    assert (most["function"], most["part"]) == ("sim_filter", "nf-1-1")
    assert passed("why", baseline, baseline, "--format", "json").stdout == ""


def test_the_same_seed_gives_the_same_figures_in_every_run(baseline: Path, density: Path) -> None:
    """Also beside other cells: a cell does not depend on those that were measured before."""
    cells = {}
    for output in (baseline, density):
        for path in (output / "results").glob("CSC-*ndrpdr.json"):
            found = json.loads(path.read_text(encoding="utf-8"))
            cells.setdefault(found["test_name"], []).append((found["latency"][0], found["trials"][0]))
    same = [rows for rows in cells.values() if len(rows) == 2]
    assert len(same) == 2
    assert all(first == second for first, second in same)

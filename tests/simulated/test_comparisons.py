"""Datasets have the figures of their files; comparisons, trends and gates find planted changes and no other."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from csit_utils.bisection.spec import CALLED_STEPS, CalledStep
from tests.loaded import Dataset
from tests.planted_nights import write_nights
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


@pytest.mark.parametrize("words", [["answer", "--rate", "500kpps"], ["regoal"]])
def test_queries_of_a_dataset_answer_as_of_output_xml(history: Path, density: Path, words: list[str]) -> None:
    command, *options = (*words, "--format", "json")
    stored, read = (passed(command, place, *options).stdout for place in (history, density / "output.xml"))
    assert stored == read != ""


def test_answers_are_instances_that_a_test_has_measured(density: Path, matrix: Dataset) -> None:
    records = [row.record for row in matrix.recorded if row.record.asked.test_type == "NDRPDR"]
    rows = {(record.cell.service_type.value, record.cell.nf_chains): record.pdr for record in records}
    answered = passed("answer", density, "--rate", "1Mpps", "--format", "json").objects
    assert len(answered) == len(rows) == 6
    for each in answered:
        assert each["simulated"]
        assert each["instances"] == each["nf_nodes"], "cells 1x1 and 2x2"
        assert each["load_pps"] <= rows[each["service_type"], each["nf_nodes"]].lower_pps
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
    rows = passed("why", baseline, slower, "--format", "json").objects
    rows = [row for row in rows if row["cell"].startswith("CSC 1x1")]
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


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    write_nights(folder, 16, testbeds=1)
    return folder


BEFORE, AFTER = "night=2026-01-01..2026-01-03", "night=2026-01-07..2026-01-16"
"""The planted fall of CSC by 8 % is in night 6, from 0."""
THREE = {("CSC", metric) for metric in ("MRR", "NDR", "PDR")}


def test_trend_finds_the_planted_fall_and_nothing_else(nights: Path) -> None:
    found = passed("trend", nights, "--format", "json").objects
    assert [(each["service_type"], each["state"]) for each in found] == [("CSC", "regression")] * 3
    assert all(each["steps"][0]["since"].startswith("2026-01-07") and each["simulated"] for each in found)


def called(steps: Path, *words: object) -> tuple[CalledStep, ...]:
    passed("trend", *words, "--steps", steps)
    return tuple(CALLED_STEPS.validate_json(steps.read_bytes()))


def test_regressions_are_written_for_a_bisection_largest_first(nights: Path, tmp_path: Path) -> None:
    steps = called(tmp_path / "steps.json", nights)
    assert {(step.cell, step.metric) for step in steps} == {("CSC 1x1 1c vswitch-1c", metric) for _, metric in THREE}
    assert [step.change for step in steps] == sorted(step.change for step in steps)
    assert all(-0.12 < step.change < -0.04 for step in steps)


def test_a_regression_is_new_with_one_night_only(nights: Path, tmp_path: Path) -> None:
    """A trend needs ten figures, and the fall is confirmed by then."""
    files = sorted((nights / "sim-a").glob("*/output.xml"))
    new = {at: called(tmp_path / f"{at}.json", *files[:at], "--new-with", files[at - 1]) for at in (9, 10, 11)}
    assert {at: {("CSC", step.metric) for step in steps} for at, steps in new.items() if steps} == {10: THREE}


def test_compare_finds_the_fall_largest_first_and_no_other_where_there_is_none(nights: Path) -> None:
    found = passed("compare", BEFORE, AFTER, "--data", nights, "--format", "json").objects
    fell = {(each["service_type"], each["metric"]) for each in found if each["outcome"] == "regression"}
    assert fell == THREE
    assert [each["change"] for each in found] == sorted(each["change"] for each in found)
    several = passed("compare", BEFORE, BEFORE, AFTER, "--data", nights, "--format", "csv").stdout.splitlines()
    rows = list(csv.DictReader(several))
    assert {row["b"] for row in rows} == {BEFORE, AFTER}, "each is compared with the first"
    assert {float(row["change"]) for row in rows if row["b"] == BEFORE} == {0.0}


@pytest.mark.parametrize(
    ("options", "status"), [((), 1), (("--tolerance", "30%"), 0), (("--tolerance", "30%", "--require", "10"), 1)]
)
def test_the_gate_ends_with_its_status_and_writes_a_case_for_every_cell(
    nights: Path, tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    done = csit("gate", BEFORE, AFTER, "--data", nights, "--junit", tmp_path / "deep" / "gate.xml", *options)
    assert done.status == status and "9 cells judged" in done.stdout
    suite = ET.parse(tmp_path / "deep" / "gate.xml").getroot()  # noqa: S314 - of our own making
    fell = [case.get("name", "") for case in suite if case.find("failure") is not None]
    assert (suite.get("tests"), suite.get("skipped"), len(fell)) == ("9", "0", 0 if options else 3)
    assert all(name.startswith("CSC 1x1") for name in fell)


@pytest.mark.parametrize(
    ("count", "night", "status", "said"),
    [
        (5, 7, 1, "3 with a significant regression"),  # the planted fall is in that night
        (5, 3, 0, ""),
        (4, 16, 0, ""),  # those before it fell as well
        (5, 1, 0, "0 cells judged"),  # there is nothing to hold the first night against
    ],
)
def test_a_night_is_gated_against_the_runs_before_it(
    nights: Path, count: int, night: int, status: int, said: str
) -> None:
    file = nights / "sim-a" / f"2026-01-{night:02}" / "output.xml"
    done = csit("gate", f"before={count}", file, "--data", nights, "--require", "0")
    assert done.status == status and said in done.stdout

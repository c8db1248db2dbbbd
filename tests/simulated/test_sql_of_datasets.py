"""The questions of docs/how-to/query-a-dataset.md have answers over results of the simulated testbed."""

from pathlib import Path
from typing import Any

import pytest

from tests.loaded import Dataset
from tests.simulated.conftest import SLOWER
from tests.simulated.in_process import passed
from tests.sql_page import QUESTIONS


@pytest.fixture(scope="module")
def dataset(
    tmp_path_factory: pytest.TempPathFactory, density: Path, studies: Path, baseline: Path, slower: Path
) -> Path:
    folder = tmp_path_factory.mktemp("sql") / "history"
    passed("import", density, studies, baseline, slower, "-o", folder, "--processes", "1")
    return folder


def asked(dataset: Path, statement: str) -> list[dict[str, Any]]:
    return passed("query", dataset, statement, "--format", "json").objects


@pytest.mark.parametrize("title", QUESTIONS)
def test_every_question_of_the_page_has_an_answer(dataset: Path, title: str) -> None:
    rows = asked(dataset, QUESTIONS[title])
    assert rows
    unknown = [name for name in rows[0] if all(row[name] is None for row in rows)]
    assert set(unknown) <= {"nfs_4", "nfs_8"}, "cells of the run have one or two NFs"


def test_the_slower_system_fell_in_every_cell(dataset: Path) -> None:
    rows = asked(dataset, next(text for title, text in QUESTIONS.items() if "5 % below" in title))
    assert len({row["test_name"] for row in rows}) == 8
    assert all(abs(row["change_percent"] - 100 * (SLOWER - 1)) < 5 for row in rows)


def test_latency_and_matrix_are_those_of_the_records(dataset: Path, matrix: Dataset, studied: Dataset) -> None:
    record = next(each.record for each in matrix.recorded if any(at.label == "PDR50" for at in each.record.latency))
    flows = next(at.flows for at in record.latency if at.label == "PDR50")
    chosen = f"test_id = '{record.test_id}' AND started_at = '{record.started_at}'"
    (row,) = asked(dataset, f"SELECT pdr50_p99_ns FROM tests WHERE {chosen}")  # noqa: S608
    assert row["pdr50_p99_ns"] == max(flow.p99_ns for flow in flows if flow.p99_ns is not None)
    means = sorted(
        one.mean
        for item in studied.characterizations
        if item.record.kind == "interference"
        for one in item.record.interference.matrix
    )
    found = asked(
        dataset, "SELECT normalized FROM interference_matrix WHERE guaranteed_resource IS NULL ORDER BY normalized"
    )
    assert [row["normalized"] for row in found] == pytest.approx(means)


def test_measures_of_studies_are_those_that_a_trend_follows(dataset: Path) -> None:
    names = {row["measure"] for row in asked(dataset, "SELECT DISTINCT measure FROM measures")}
    followed = {row["metric"] for row in passed("trend", dataset, "--all", "--format", "json").objects}
    assert names == followed - {"NDR", "PDR", "SOAK", "MRR", "ORR"} != set()

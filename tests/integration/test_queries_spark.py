"""Spark answers the questions of docs/how-to/query-a-dataset.md as DuckDB does, and reads nothing else."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.simulated.in_process import csit, passed
from tests.sql_page import QUESTIONS
from tests.unit.csit_utils.datasets import history_of_studies

pytest.importorskip("pyspark", reason="pyspark is not installed (requirements-spark.txt)")
pytestmark = [
    pytest.mark.parallel,
    pytest.mark.filterwarnings("ignore"),
    # With root it was installed before; that it is missing then is a fault.
    pytest.mark.skipif(shutil.which("java") is None and os.geteuid() != 0, reason="needs Java 17 or newer"),
]
ON_SPARK = ("--engine", "spark", "--master", "local[1]")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history_of_studies(tmp_path_factory.mktemp("history"))


def asked(dataset: Path, statement: str, *engine: str) -> list[dict[str, Any]]:
    return passed("query", dataset, statement, "--format", "json", *engine).objects


@pytest.mark.parametrize("title", QUESTIONS)
def test_both_engines_give_the_same_answer(dataset: Path, title: str) -> None:
    here, there = (asked(dataset, QUESTIONS[title], *engine) for engine in ((), ON_SPARK))
    assert [list(row) for row in here] == [list(row) for row in there]
    for one, other in zip(here, there, strict=True):
        assert one == {name: _nearly(value) for name, value in other.items()}


def _nearly(value: object) -> object:
    """A mean may differ in its last digit, by the order of the sum."""
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def test_both_engines_have_the_same_views(dataset: Path) -> None:
    listed = passed("query", dataset, "--format", "json").objects
    for view in sorted({row["view"] for row in listed}):
        counts = [asked(dataset, f"SELECT count(*) AS found FROM {view}", *engine) for engine in ((), ON_SPARK)]  # noqa: S608
        assert counts[0] == counts[1], view


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM csv.`/etc/passwd`",
        'SELECT * FROM "csv"."/etc/passwd"',
        "SELECT reflect('java.lang.System', 'gc')",
    ],
)
def test_spark_is_asked_for_views_only(dataset: Path, statement: str) -> None:
    ended = csit("query", dataset, statement, *ON_SPARK)
    assert ended.status == 2
    assert ended.stderr.startswith("SQL")


def test_without_java_the_error_says_how_to_install_it(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ended = csit("query", dataset, "SELECT count(*) AS found FROM tests", *ON_SPARK)
    assert (ended.status, ended.stdout) == (2, "")
    assert "default-jre-headless" in ended.stderr

"""`./csit query` reads nothing but the views; other commands read of a dataset the runs and columns that they need."""

import json
import shutil
from pathlib import Path
from statistics import mean

import duckdb
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

from csit_utils.dataset.store.layout import TESTS, Layout
from csit_utils.dataset.store.sql import DuckDb, files_of
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.dataset.store.tables import TEST_NAMES
from resources.libraries.python.errors import ConfigError
from tests.simulated.in_process import csit
from tests.unit.csit_utils.datasets import history, invoked


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Three nights of two cells; the last night has a failure, and was imported twice, once cut short."""
    return history(tmp_path_factory.mktemp("history"))


def query(layout: Layout, *words: object) -> Result:
    return invoked("query", layout.folder, *words)


def test_a_test_of_two_files_is_one_row_and_other_readers_find_its_night(layout: Layout) -> None:
    done = query(layout, "SELECT count(*) AS tests, avg(ndr_lower_pps) AS mean FROM tests", "--format", "json")
    found = [row.ndr_lower_pps for row in Stored(layout).tests if row.ndr_lower_pps is not None]
    assert json.loads(done.stdout) == {"tests": len(Stored(layout).tests), "mean": pytest.approx(mean(found))}
    tests = duckdb.read_parquet(str(layout.folder / "tests" / "**" / "*.parquet"), hive_partitioning=True)
    nights = tests.filter("testbed IS NOT NULL").select("night").distinct().order("night").fetchall()
    assert [str(night) for (night,) in nights] == ["2026-11-01", "2026-11-02", "2026-11-03"]


def test_formats_have_the_same_rows_without_formulas_or_control_characters(layout: Layout, tmp_path: Path) -> None:
    statement = "SELECT test_name, nf_chains, ndr_lower_pps FROM tests ORDER BY started_at NULLS LAST, anchor"
    objects = [json.loads(line) for line in query(layout, statement, "--format", "json").stdout.splitlines()]
    assert query(layout, statement, "-o", tmp_path / "found.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "found.parquet").to_pylist() == objects
    rows = query(layout, statement, "--format", "csv").stdout.splitlines()
    assert (rows[0], len(rows)) == ("test_name,nf_chains,ndr_lower_pps", len(objects) + 1)
    statement, safe = "SELECT '=cmd()' AS text, '=head' AS \"=head\"", "text,'=head\n'=cmd(),'=head\n"
    assert query(layout, statement, "--format", "csv").stdout == safe
    query(layout, statement, "-o", tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_text(encoding="utf-8") == safe
    assert "\x1b" not in query(layout, "SELECT chr(27) || '[31m' AS text").stdout


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT nf_chains\nFROM tests WHERE", ["line 2"]), ("SELECT * FROM testz", ["testz", "'tests'"]),
        ("SELECT 1; SELECT 2", ["one SELECT statement"]), ("", ["one SELECT statement"]),
    ],
)  # fmt: skip
def test_a_wrong_statement_is_one_sentence_with_the_place(layout: Layout, statement: str, words: list[str]) -> None:
    found = query(layout, statement).exception
    assert isinstance(found, ConfigError)
    assert "\n" not in str(found)
    assert all(word in str(found) for word in words), str(found)


FORBIDDEN = (
    *("CREATE TABLE found AS SELECT 1", "COPY tests TO '{0}/found.csv'", "ATTACH '{0}/found.db'"),
    *("SET memory_limit = '100GB'", "SELECT * FROM read_csv('{0}/secret.csv')", "SELECT * FROM '{0}/secret.csv'"),
    *("SELECT * FROM read_text('{0}/secret.csv')", "SELECT * FROM glob('{0}/*')", "SELECT * FROM layout"),
)


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_statement_reads_only_the_dataset_and_changes_nothing(layout: Layout, tmp_path: Path, statement: str) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", encoding="ascii")
    engine = DuckDb(files_of(layout))
    with pytest.raises(ConfigError):
        list(engine.run(statement.format(tmp_path))[1])
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_duckdb_has_bounds_and_takes_a_relative_path(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(layout.folder.parent)
    engine = DuckDb(files_of(Layout(Path(layout.folder.name))))
    names = "'temp_directory', 'memory_limit'"
    _, batches = engine.run(f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})")  # noqa: S608
    settings = {row["name"]: row["value"] for batch in batches for row in batch.to_pylist()}
    assert settings == {"temp_directory": "", "memory_limit": "3.7 GiB"}, "it would write into the present folder"
    assert list(engine.run("SELECT 1 FROM tests")[1])


def test_a_dataset_without_tests_has_all_views(tmp_path: Path) -> None:
    layout = Layout.make(tmp_path / "d")
    for view in ("tests", "characterizations", "measures"):
        statement = f"SELECT count(*) AS found FROM {view}"  # noqa: S608
        assert query(layout, statement, "--format", "json").stdout == '{"found": 0}\n'


def test_a_damaged_file_is_left_out_and_named(folder: Path) -> None:
    statement = "SELECT count(*) AS found FROM tests WHERE ndr_lower_pps IS NOT NULL"
    done = query(Layout(folder), statement, "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"found": 4})
    assert FIRST in done.stderr


@pytest.mark.parametrize("words", ["--format parquet", "-o found.txt", "--master local[1]"])
def test_options_that_contradict_each_other_are_refused(layout: Layout, words: str) -> None:
    assert isinstance(query(layout, "SELECT 1", *words.split()).exception, ConfigError)


FIRST = "night=2026-11-01/"


@pytest.fixture(scope="module")
def folder(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with damaged rows of the first night."""
    copied = Layout(Path(shutil.copytree(layout.folder, tmp_path_factory.mktemp("damaged") / "dataset")))
    for part in (part for each in copied.imports() for part in each.parts if FIRST in part.path):
        copied.path(TESTS, part).write_bytes(b"PAR1")
    return copied.folder


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("show {0} --max-tests 1", True), ("answer {0} --rate 1kpps", True),
        ("gate before=1 night=2026-11-03 --data {0}", False),
        ("compare night=2026-11-03 night=2026-11-03 --data {0}", False),
    ],
)  # fmt: skip
def test_files_of_other_nights_are_not_opened(folder: Path, words: str, left_out: bool) -> None:
    done = csit(*words.format(folder).split())
    assert done.status != 70 and done.stdout
    assert (FIRST in done.stderr, " of 4 runs" in done.stderr) == (False, left_out)


@pytest.mark.parametrize(
    "words", ["show {0}", "answer {0} --rate 1kpps --max-tests 100", "gate before=2 night=2026-11-03 --data {0}"]
)
def test_damage_is_reported_where_it_is_read(folder: Path, words: str) -> None:
    assert FIRST in csit(*words.format(folder).split()).stderr


@pytest.mark.parametrize(
    "words",
    [
        "trend {0} --all --format json", "trend {0} --all --format json --new-with {1}/output-3.xml",
        "trend {0} --steps {1}/steps.json",
        "compare night=2026-11-01..2026-11-02 night=2026-11-03 --data {0} --format json",
        "gate before=2 {1}/output-3.xml --data {0} --junit {1}/gate.xml",
        "gate night=2026-11-01..2026-11-02 night=2026-11-03 --data {0} --steps {1}/steps.json",
    ],
)  # fmt: skip
def test_answers_are_those_of_all_columns(layout: Layout, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = words.format(layout.folder, layout.folder.parent).split()
    some = csit(*asked)
    for command in ("trend", "gate", "compare"):
        monkeypatch.setattr(f"csit_utils.commands.results.{command}.COMPARED", TEST_NAMES)
    assert some == csit(*asked)
    assert some.status != 70, "a defect: a column that it needs is not read"

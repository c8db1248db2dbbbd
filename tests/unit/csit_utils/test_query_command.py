"""`./csit query` answers with the rows of the views, reads nothing else, and says what is wrong with a statement."""

import json
from pathlib import Path
from statistics import mean

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from csit_utils.dataset.store.duckdb_engine import DuckDb
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.dataset.store.views import files_of
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.datasets import history


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Three nights of two cells; the last night has a failure, and was imported twice, once cut short."""
    return history(tmp_path_factory.mktemp("history"))


def query(layout: Layout, *words: str) -> Result:
    return CliRunner().invoke(make_app(["query"]), ["query", str(layout.folder), *words])


def test_a_test_of_two_files_is_one_row_and_figures_are_those_of_the_rows(layout: Layout) -> None:
    done = query(layout, "SELECT count(*) AS tests, avg(ndr_lower_pps) AS mean FROM tests", "--format", "json")
    found = [row.ndr_lower_pps for row in Stored(layout).tests if row.ndr_lower_pps is not None]
    assert json.loads(done.stdout) == {"tests": len(Stored(layout).tests), "mean": pytest.approx(mean(found))}


def test_formats_have_the_same_rows(layout: Layout, tmp_path: Path) -> None:
    statement = "SELECT test_name, nf_chains, ndr_lower_pps FROM tests ORDER BY started_at NULLS LAST, anchor"
    objects = [json.loads(line) for line in query(layout, statement, "--format", "json").stdout.splitlines()]
    assert query(layout, statement, "-o", str(tmp_path / "found.parquet")).exit_code == 0
    assert pq.read_table(tmp_path / "found.parquet").to_pylist() == objects
    rows = query(layout, statement, "--format", "csv").stdout.splitlines()
    assert (rows[0], len(rows)) == ("test_name,nf_chains,ndr_lower_pps", len(objects) + 1)


def test_csv_has_no_formulas(layout: Layout, tmp_path: Path) -> None:
    statement = "SELECT '=cmd()' AS text, '=head' AS \"=head\""
    assert query(layout, statement, "--format", "csv").stdout == "text,'=head\n'=cmd(),'=head\n"
    query(layout, statement, "-o", str(tmp_path / "found.csv"))
    assert (tmp_path / "found.csv").read_text(encoding="utf-8") == "text,'=head\n'=cmd(),'=head\n"


def test_a_table_escapes_control_characters(layout: Layout) -> None:
    assert "\x1b" not in query(layout, "SELECT chr(27) || '[31m' AS text").stdout


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT nf_chains\nFROM tests WHERE", ["line 2"]),
        ("SELECT * FROM testz", ["testz", "'tests'"]),
        ("SELECT ndr_lowr_pps FROM tests", ["ndr_lowr_pps", "'ndr_lower_pps'"]),
        ("SELECT 1; SELECT 2", ["one SELECT statement"]),
        ("", ["one SELECT statement"]),
        ("SELECT CAST(service_type AS INTEGER) FROM tests", ["CSC"]),
    ],
)
def test_a_wrong_statement_is_one_sentence_with_the_place(layout: Layout, statement: str, words: list[str]) -> None:
    found = query(layout, statement).exception
    assert isinstance(found, ConfigError)
    assert "\n" not in str(found)
    assert all(word in str(found) for word in words), str(found)


FORBIDDEN = (
    "CREATE TABLE found AS SELECT 1",
    "COPY tests TO '{0}/found.csv'",
    "ATTACH '{0}/found.db'",
    "SET memory_limit = '100GB'",
    "SELECT * FROM read_csv('{0}/secret.csv')",
    "SELECT * FROM '{0}/secret.csv'",
    "SELECT * FROM read_text('{0}/secret.csv')",
    "SELECT * FROM glob('{0}/*')",
    "SELECT * FROM layout",
)


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_statement_reads_nothing_but_the_dataset_and_changes_nothing(
    layout: Layout, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", encoding="ascii")
    engine = DuckDb(files_of(layout))
    with pytest.raises(ConfigError):
        list(engine.run(statement.format(tmp_path))[1])
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_duckdb_has_bounds_and_takes_a_relative_path(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(layout.folder.parent)
    engine = DuckDb(files_of(Layout(layout.folder.relative_to(layout.folder.parent))))
    _, batches = engine.run(
        "SELECT name, value FROM duckdb_settings() WHERE name IN ('temp_directory', 'memory_limit')"
    )
    settings = {row["name"]: row["value"] for batch in batches for row in batch.to_pylist()}
    assert settings == {"temp_directory": "", "memory_limit": "3.7 GiB"}, "it would write into the present folder"
    assert list(engine.run("SELECT 1 FROM tests")[1])


def test_a_dataset_without_tests_has_all_views(tmp_path: Path) -> None:
    layout = Layout.make(tmp_path / "d")
    for view in ("tests", "characterizations", "measures"):
        statement = f"SELECT count(*) AS found FROM {view}"  # noqa: S608
        assert query(layout, statement, "--format", "json").stdout == '{"found": 0}\n'


def test_a_damaged_file_is_left_out_and_named(layout: Layout, tmp_path: Path) -> None:
    import shutil

    copied = Layout(Path(shutil.copytree(layout.folder, tmp_path / "d")))
    part = next(path for path in (copied.folder / "tests").rglob("*.parquet") if "night=2026-11-01" in str(path))
    part.write_bytes(b"PAR1")
    done = query(copied, "SELECT count(*) AS found FROM tests WHERE ndr_lower_pps IS NOT NULL", "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"found": 4})
    assert "night=2026-11-01" in done.stderr


def test_other_readers_find_testbed_and_night_in_the_paths(layout: Layout) -> None:
    import duckdb

    tests = duckdb.read_parquet(str(layout.folder / "tests" / "**" / "*.parquet"), hive_partitioning=True)
    nights = tests.filter("testbed IS NOT NULL").select("night").distinct().order("night").fetchall()
    assert [str(night) for (night,) in nights] == ["2026-11-01", "2026-11-02", "2026-11-03"]


def test_options_that_contradict_each_other_are_refused(layout: Layout, tmp_path: Path) -> None:
    for words in (["--format", "parquet"], ["-o", str(tmp_path / "found.txt")], ["--master", "local[1]"]):
        assert isinstance(query(layout, "SELECT 1", *words).exception, ConfigError)

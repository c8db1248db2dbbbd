"""Queries of a dataset give the figures that its rows give."""

from pathlib import Path
from statistics import mean, stdev

import duckdb
import pytest

from csit_utils.dataset.store import queries
from csit_utils.dataset.store.batch import import_all
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from resources.libraries.python.recording.writer import write_record
from tests.unit.csit_utils.characterization_records import burst
from tests.unit.csit_utils.datasets import history

pytestmark = [  # of Ibis, about what DuckDB and pandas will drop some day
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Three nights of two cells; the last night has a failure, and was imported twice, once cut short."""
    return history(tmp_path_factory.mktemp("history"))


@pytest.mark.slow
def test_figures_by_cell_and_run_are_those_of_the_rows(layout: Layout) -> None:
    found = queries.by_cell_and_run(queries.on_duckdb(layout)).execute()
    ndr = found[found.metric == "NDR"]
    rows = [row for row in Stored(layout).tests if row.ndr_lower_pps is not None]
    assert len(rows) == 6, "a test that was imported twice counts once"
    assert sorted(ndr.mean_pps) == pytest.approx(sorted(row.ndr_lower_pps for row in rows))
    assert set(ndr["count"]) == {1}
    assert ndr.stdev_pps.isna().all(), "the deviation of one figure is unknown"


def test_a_trend_is_in_the_order_of_time(layout: Layout) -> None:
    found = queries.trend(queries.on_duckdb(layout), {"service_type": "CSC", "nf_chains": 2}, "PDR").execute()
    assert list(found.started_at.str[:10]) == ["2026-11-01", "2026-11-02", "2026-11-03"]


def test_the_latest_run_of_a_testbed(layout: Layout) -> None:
    found = queries.latest_runs(queries.on_duckdb(layout)).execute()
    assert list(found.started_at.str[:10]) == ["2026-11-03"]


def test_failures_have_their_cause(layout: Layout) -> None:
    found = queries.failures(queries.on_duckdb(layout)).execute()
    assert ("FAIL", "nf-1-1 is down", 1) in list(zip(found.status, found.message, found["count"], strict=True))


@pytest.mark.slow
def test_two_selections_of_runs_are_compared(layout: Layout) -> None:
    rows = [row for row in Stored(layout).tests if row.recorded]
    old = {row.run for row in rows if str(row.started_at) < "2026-11-03"}
    new = {row.run for row in rows} - old
    found = queries.comparison(queries.on_duckdb(layout), old, new).execute()
    (line,) = found[(found.nf_chains == 1) & (found.metric == "NDR")].to_dict("records")
    before = [row.ndr_lower_pps for row in rows if row.run in old and row.nf_chains == 1 and row.ndr_lower_pps]
    assert (line["count_before"], line["count_after"]) == (2, 1)
    assert line["mean_pps_before"] == pytest.approx(mean(before))
    assert line["stdev_pps_before"] == pytest.approx(stdev(before))


def test_readers_who_know_hive_partitions_find_testbed_and_night(layout: Layout) -> None:
    import duckdb

    tests = duckdb.read_parquet(str(layout.folder / "tests" / "**" / "*.parquet"), hive_partitioning=True)
    nights = tests.filter("testbed IS NOT NULL").select("night").distinct().order("night").fetchall()
    assert [str(night) for (night,) in nights] == ["2026-11-01", "2026-11-02", "2026-11-03"]


@pytest.mark.slow
def test_a_dataset_of_characterizations_alone_has_no_figures_of_the_matrix(tmp_path: Path) -> None:
    write_record(burst(), tmp_path)
    layout = Layout.make(tmp_path / "dataset")
    with layout.writing(lambda: None):
        list(import_all(layout, sorted((tmp_path / "results").iterdir()), None))
    assert len(Stored(layout).characterizations) == 1
    tests = queries.on_duckdb(layout)
    asked = [
        queries.figures(tests),
        queries.by_cell_and_run(tests),
        queries.latest_runs(tests),
        queries.trend(tests, {"testbed": "local"}, "NDR"),
        queries.failures(tests),
        queries.comparison(tests, ["a"], ["b"]),
    ]
    assert [len(each.execute()) for each in asked] == [0] * len(asked)


def test_duckdb_has_bounds_and_reads_parts_of_the_dataset_only(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(layout.folder.parent)
    tests = queries.on_duckdb(Layout(layout.folder.relative_to(layout.folder.parent)))
    assert tests.count().execute()
    connection = tests.get_backend().con  # type: ignore[attr-defined] # of DuckDB
    settings = dict(connection.sql("SELECT name, value FROM duckdb_settings()").fetchall())
    assert settings["temp_directory"] == "", "it would write into the present folder"
    assert settings["memory_limit"] == "3.7 GiB"
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", encoding="ascii")
    with pytest.raises(duckdb.PermissionException):
        connection.read_csv(str(tmp_path / "secret.csv"))
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        connection.sql("SET temp_directory = '/tmp'")

"""Spark gives the figures that DuckDB gives, of the same dataset."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from csit_utils.dataset.store import queries
from tests.unit.csit_utils.datasets import history

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (requirements-spark.txt)")
pytestmark = [
    pytest.mark.parallel,
    pytest.mark.filterwarnings("ignore"),
    # With root it was installed before; that it is missing then is a fault.
    pytest.mark.skipif(shutil.which("java") is None and os.geteuid() != 0, reason="needs Java 17 or newer"),
]


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # For a minute's work, compiling well takes longer than it saves.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    yield made
    made.stop()


def test_both_engines_give_the_same_figures(session: Any, tmp_path: Path) -> None:
    layout = history(tmp_path)
    duckdb, spark = queries.on_duckdb(layout), queries.on_spark(layout, session)
    runs = sorted(queries.by_cell_and_run(duckdb).execute().run.unique())
    asked = (
        queries.by_cell_and_run,
        queries.latest_runs,
        queries.failures,
        lambda tests: queries.trend(tests, {"nf_chains": 2}, "NDR"),
        lambda tests: queries.comparison(tests, runs[:2], runs[2:]),
    )
    for query in asked:
        one, other = _sorted(query(duckdb).execute()), _sorted(query(spark).execute())
        assert len(one) > 0
        pd.testing.assert_frame_equal(one, other, check_dtype=False, check_exact=False, rtol=1e-12)


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    plain = frame.astype(object).where(frame.notna(), None)
    keys = [name for name in frame.columns if not name.endswith("_pps")]
    places = sorted(range(len(plain)), key=lambda at: [str(value) for value in plain[keys].iloc[at]])
    return plain.iloc[places].reset_index(drop=True).infer_objects()

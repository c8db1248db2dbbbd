"""SQL over a dataset on a Spark cluster that sees its folder, for histories that one machine is too small for.

A statement goes there once DuckDB has found that it is one query of the views, so it means nothing that DuckDB does not
know: no file by its path, and no function that calls Java.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from csit_utils.dataset.store.tables import TEST_COLUMNS, record_columns
from csit_utils.dataset.store.views import RECORD_PARTS, TEST_PARTS, ViewedFiles, views
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import quoted_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMOTE = "SPARK_REMOTE"
_CONNECT = "sc://"
_SETTINGS = {
    # Names in double quotes are names, as in DuckDB; a wrong value is an error, and no unknown value.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
}


def run(files: ViewedFiles, statement: str, master: str | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns and the rows of a query that `DuckDb.check` has accepted.

    `files`: whose pages have been looked at; the cluster sees them under the same paths.
    `master`: URL of the cluster; None for that of SPARK_REMOTE.

    Raises:
        ConfigError: No cluster is named, or pyspark is not installed.
        CsitError: The cluster cannot be reached, or does not run the query.
    """
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - as large as all other packages together
    except ImportError as error:
        raise ConfigError(
            "--engine spark: pyspark is not installed; install it by ", "./csit setup requirements-spark"
        ) from error
    try:
        session = _session(master)
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        _make_views(session, files)
        table = session.sql(statement).toArrow()
    except PySparkException as error:
        raise CsitError(f"Spark: {quoted_reason(str(error).split(chr(10), 1)[0])}") from error
    return table.schema, iter(table.to_batches())


def _session(master: str | None) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    url = master or os.environ.get(_REMOTE)
    if not url:
        raise ConfigError(f"--engine spark: name the cluster by --master URL or the variable {_REMOTE}")
    if url.startswith(_CONNECT):
        return SparkSession.builder.remote(url).getOrCreate()
    # A session on this machine is asked one question: compiling well would take longer than it saves.
    quick: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return SparkSession.builder.master(url).config(map=quick).getOrCreate()


def _make_views(session: "SparkSession", files: ViewedFiles) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - as above

    tables = (
        (TEST_PARTS, TEST_COLUMNS, files.tests),
        (RECORD_PARTS, record_columns(), files.characterizations),
    )
    for name, schema, paths in tables:
        wanted = from_arrow_schema(schema)
        rows = session.read.schema(wanted).parquet(*paths) if paths else session.createDataFrame([], wanted)
        rows.createOrReplaceTempView(name)
    for view in views():
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.select.format(explode='explode')}")

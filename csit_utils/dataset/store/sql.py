"""SQL over a dataset: its views, and the engines that run queries.

A view has its name and its columns on every engine. `tests` has a row per test of the density suites,
`characterizations` one per test of another study; each table of a study that is kept in a dataset is a view of its own.

DuckDB is in this process, read-only, and without access to other files. A cluster of Spark sees the folder of the
dataset; it is for histories that one machine is too small for. A statement goes there once DuckDB has found that it is
one query of the views, so it means nothing that DuckDB does not know: no file by its path, and no function that calls
Java.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from csit_utils.dataset.items import Problem, ReadError
from csit_utils.dataset.store.bounded_files import check_pages
from csit_utils.dataset.store.layout import CHARACTERIZATIONS, TESTS, Layout
from csit_utils.dataset.store.tables import NEEDED_OF_RECORDS, OPTIONAL, TEST_COLUMNS, record_columns
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import MAX_QUERY_BYTES, quoted, quoted_reason
from resources.libraries.python.model.request.cell import Dimensions

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

_TEST_PARTS, _RECORD_PARTS = "_tests", "_characterizations"
"""Tables of all rows of all files, from which views are made."""
_GLOB = frozenset("*?[]{}")
_OF_RECORD = ("anchor", "name", "testbed", "started_at", "label", "simulated", "status")
"""Columns of a record beside each row of its tables."""
_OF_TEST = (
    "anchor", "test_name", "testbed", "started_at", "label", "simulated", "status", "service_type",
    *Dimensions(1, 1).columns, "nf_size", "vs_dtc", "frame",
)  # fmt: skip
"""The same of a density test."""
_ROW = "_row"
_SQL_TYPES = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}


@dataclass(frozen=True)
class DatasetView:
    """A view, the same on all engines."""

    name: str
    columns: pa.Schema
    select: str
    """Statement with `{explode}` for the function that makes rows of a list."""

    def types(self) -> Iterator[tuple[str, str]]:
        """Yield the names of the columns with their types in SQL."""
        yield from ((field.name, _SQL_TYPES[field.type]) for field in self.columns)


def views() -> tuple[DatasetView, ...]:
    """Return the views of every dataset, also of one in which some have no rows."""
    found = []
    for name, every, parts, order, beside in (
        (TESTS, TEST_COLUMNS, _TEST_PARTS, "run, source", _OF_TEST),
        (CHARACTERIZATIONS, record_columns(), _RECORD_PARTS, "source", _OF_RECORD),
    ):
        plain = pa.schema([field for field in every if not pa.types.is_list(field.type)])
        found.append(DatasetView(name, plain, _once(plain.names, parts, order)))
        of_record = ", ".join(beside)
        for field in every:
            if pa.types.is_list(field.type):
                row = list(field.type.value_type)
                own = pa.schema([*(plain.field(each) for each in beside), *row])
                values = ", ".join(f"{_ROW}.{each.name}" for each in row)
                once = _once([*beside, field.name], parts, order)
                rows = f"SELECT {of_record}, {{explode}}({field.name}) AS {_ROW} FROM ({once})"  # noqa: S608 - of declared names
                found.append(DatasetView(field.name, own, f"SELECT {of_record}, {values} FROM ({rows})"))  # noqa: S608
    return tuple(found)


def _once(names: Sequence[str], table: str, order: str) -> str:
    """Statement that counts a test that was imported from several files once, the same one as other readers."""
    place = f"row_number() OVER (PARTITION BY anchor ORDER BY {order}) AS _place"
    return f"SELECT {', '.join(names)} FROM (SELECT *, {place} FROM {table}) WHERE _place = 1"  # noqa: S608


@dataclass(frozen=True)
class ViewedFiles:
    """Files of a dataset whose pages have been looked at, so that an engine may open them by itself."""

    tests: tuple[str, ...]
    characterizations: tuple[str, ...]
    problems: tuple[Problem, ...]
    """Damaged files, and those that stand for more than they may, which are left out."""


def files_of(layout: Layout) -> ViewedFiles:
    """Return the files of a dataset, within the bounds of `bounded_files`.

    Raises:
        ConfigError: An engine would take the path of the dataset for a pattern.
    """
    if not _GLOB.isdisjoint(str(layout.folder)):
        raise ConfigError(f"{layout.folder}: a path with one of {' '.join(sorted(_GLOB))} cannot be queried; rename it")
    damaged: list[str] = []
    imports = layout.imports(damaged)
    problems = [Problem(str(layout.folder), text) for text in damaged]
    tests, records = [], []
    schema = record_columns()
    for each in imports:
        for part in each.parts:
            try:
                path = layout.path(TESTS, part)
                check_pages(path, TEST_COLUMNS, optional=OPTIONAL, rows=part.tests)
                tests.append(str(path))
            except ReadError as error:
                problems.append(_left_out(each.source, part.path, f"{part.tests} tests", error))
        if each.characterizations:
            try:
                path = layout.characterizations(each)
                optional = [name for name in schema.names if name not in NEEDED_OF_RECORDS]
                check_pages(path, schema, optional=optional, rows=each.characterizations)
                records.append(str(path))
            except ReadError as error:
                problems.append(_left_out(each.source, CHARACTERIZATIONS, f"{each.characterizations} records", error))
    return ViewedFiles(tuple(tests), tuple(records), tuple(problems))


def _left_out(source: str, path: str, lost: str, error: ReadError) -> Problem:
    return Problem(source, f"{path}: damaged, {lost} left out; import {source} again: {error}")


_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # It would take four fifths of the memory, and write what does not fit in it into the present folder.
    "memory_limit": f"{MAX_QUERY_BYTES}B",
    "temp_directory": "",
    # A name in a statement is a view, and no variable of this program.
    "python_enable_replacements": "false",
    # Unknown values have the same place as on Spark.
    "default_null_order": "nulls_first_on_asc_last_on_desc",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_Answer = TypeVar("_Answer")
_BATCH_ROWS = 8_192
_UNKNOWN_TABLE = re.compile(r"Table with name (.+?) does not exist")
_UNKNOWN_COLUMN = re.compile(r'column "(.+?)" not found(?:.*?Candidate bindings: "(.+?)")?', re.DOTALL)
_POSITION = re.compile(r"\n\nLINE (\d+): (.*)\n( *)\^", re.DOTALL)


class DuckDb:
    """The views of a dataset in DuckDB.

    `files`: whose pages have been looked at.
    """

    def __init__(self, files: ViewedFiles) -> None:
        import duckdb  # noqa: PLC0415 - costs time of a list of views

        self._connection = duckdb.connect(config=_SETTINGS)
        allowed = [*files.tests, *files.characterizations]
        self._connection.execute("SET allowed_paths = ?", [allowed])
        self._connection.execute("SET enable_external_access = false")
        self._make_table(_TEST_PARTS, TEST_COLUMNS, files.tests)
        self._make_table(_RECORD_PARTS, record_columns(), files.characterizations)
        for view in views():
            self._connection.execute(f"CREATE VIEW {view.name} AS {view.select.format(explode='unnest')}")
        self._connection.execute("SET lock_configuration = true")
        self._connection.execute("BEGIN TRANSACTION READ ONLY")

    def _make_table(self, name: str, schema: pa.Schema, paths: tuple[str, ...]) -> None:
        """Make a table of all rows of files; a column that the files lack is unknown."""
        self._connection.register("_columns", schema.empty_table())
        self._connection.execute(f"CREATE TABLE {name}_none AS SELECT * FROM _columns")  # noqa: S608 - of declared names
        self._connection.unregister("_columns")
        every = f"SELECT * FROM {name}_none"  # noqa: S608
        if paths:
            listed = ", ".join(f"'{path.replace(chr(39), 2 * chr(39))}'" for path in paths)
            every += (
                f" UNION ALL BY NAME SELECT * FROM read_parquet([{listed}], hive_partitioning = false, "  # noqa: S608
                "union_by_name = true)"
            )
        self._connection.execute(f"CREATE VIEW {name} AS {every}")

    def check(self, statement: str) -> "duckdb.DuckDBPyRelation":
        """Return a statement that is one query of the views, which has not run yet.

        Raises:
            ConfigError: It is not; the sentence has the place, or the nearest name.
        """
        found = _asked(lambda: self._connection.extract_statements(statement))
        if len(found) != 1 or found[0].type.name != "SELECT":
            kinds = ", ".join(each.type.name for each in found) or "none"
            raise ConfigError(f"SQL: expected one SELECT statement, found {kinds}; a dataset is only read")
        return _asked(lambda: self._connection.sql(statement))

    def run(self, statement: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns and the rows of a query.

        Raises:
            ConfigError: It is wrong, or needs too much memory; also while the rows are read.
        """
        bound = self.check(statement)
        reader = _asked(lambda: bound.to_arrow_reader(_BATCH_ROWS))
        return reader.schema, _batches(reader)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = _asked(reader.read_next_batch)
        except StopIteration:
            return
        yield batch


def _asked(ask: Callable[[], _Answer]) -> _Answer:
    import duckdb  # noqa: PLC0415 - as above

    try:
        return ask()
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise ConfigError(_sentence(str(error))) from error


def _sentence(text: str) -> str:
    """Return an error of DuckDB as a sentence with the place, or with the nearest name."""
    if unknown := _UNKNOWN_TABLE.search(text):
        names = [view.name for view in views()]
        near = get_close_matches(unknown[1].lower(), names, n=1, cutoff=0.5)
        advice = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(names)}"
        return f"SQL: no view '{quoted(unknown[1])}'; {advice}"
    if unknown := _UNKNOWN_COLUMN.search(text):
        advice = f"did you mean '{unknown[2]}'?" if unknown[2] else "./csit query DATASET lists the columns"
        return f"SQL: no column '{quoted(unknown[1])}'; {advice}"
    if "Out of Memory" in text:
        return f"SQL: the query takes more than {MAX_QUERY_BYTES / 1e9:g} GB; ask for fewer rows, or use --engine spark"
    place = ""
    if found := _POSITION.search(text):
        line, column = int(found[1]), len(found[3]) - len(f"LINE {found[1]}: ") + 1
        text, place = text[: found.start()], f", line {line}, column {column}"
    reason = text.split("\n", 1)[0].split("Error: ", 1)[-1]
    return f"SQL{place}: {quoted_reason(reason)}"


_REMOTE = "SPARK_REMOTE"
_CONNECT = "sc://"
_SPARK_SETTINGS = {
    # Names in double quotes are names, as in DuckDB; a wrong value is an error, and no unknown value.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
}


def run_on_spark(files: ViewedFiles, statement: str, master: str | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns and the rows of a query that `DuckDb.check` has accepted.

    `files`: whose pages have been looked at; the cluster sees them under the same paths.
    `master`: URL of the cluster; None for that of SPARK_REMOTE.

    Raises:
        ConfigError: No cluster is named, or pyspark or Java is not installed.
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
        for name, value in _SPARK_SETTINGS.items():
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
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise ConfigError(
            "--master: there is no Java; install version 17 or newer by ", "apt-get install default-jre-headless"
        )
    # A session on this machine is asked one question: compiling well would take longer than it saves.
    quick: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return SparkSession.builder.master(url).config(map=quick).getOrCreate()


def _make_views(session: "SparkSession", files: ViewedFiles) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - as above

    tables = ((_TEST_PARTS, TEST_COLUMNS, files.tests), (_RECORD_PARTS, record_columns(), files.characterizations))
    for name, schema, paths in tables:
        wanted = from_arrow_schema(schema)
        rows = session.read.schema(wanted).parquet(*paths) if paths else session.createDataFrame([], wanted)
        rows.createOrReplaceTempView(name)
    for view in views():
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.select.format(explode='explode')}")

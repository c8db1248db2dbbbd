"""`query`: SQL over a dataset."""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csit_utils.commands.results.inputs import refuse_no_dataset, report_problems
from csit_utils.commands.tables import TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.store.layout import Layout
from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.redaction import command_text, visible
from resources.libraries.python.whole_files import writing_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from csit_utils.dataset.store.sql import ViewedFiles

_SHOWN_ROWS = 1_000
"""Rows of a table on a terminal; other formats have all of them."""
_LISTED = ("view", "column", "type")
EXAMPLES = (
    "SELECT test_name, testbed, max(ndr_lower_pps) AS ndr_pps FROM tests GROUP BY ALL ORDER BY ALL",
    "SELECT substr(started_at, 1, 10) AS day, status, count(*) AS tests FROM tests GROUP BY ALL ORDER BY ALL",
    "SELECT kind, name, status, message FROM characterizations WHERE status <> 'PASS'",
)


class QueryEngine(StrEnum):
    """What runs a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"


class ResultFormat(StrEnum):
    """Format of the result of a query."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    """One object per line."""
    PARQUET = "parquet"


def query(
    dataset: Annotated[Path, typer.Argument(help="Dataset of ./csit import.")],
    statement: Annotated[
        str | None, typer.Argument(metavar="SQL", help="One SELECT statement; without it, list views and columns.")
    ] = None,
    engine: Annotated[
        QueryEngine, typer.Option(help="DuckDB in this process, or a Spark cluster.")
    ] = QueryEngine.DUCKDB,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark cluster, such as spark://host:7077, local[*] or sc://host.")
    ] = None,
    form: Annotated[
        ResultFormat | None, typer.Option("--format", help="Format of the result.", show_default="table, or as OUTPUT")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write the result to.")] = None,
) -> None:
    """Ask a dataset a question in SQL.

    The views are read-only, and the statement reads no other file. Spark runs the same statement on a cluster that sees
    the dataset under the same path; SPARK_REMOTE is its URL where --master is not given. Numbers in names of columns
    have their units; rates are aggregates of all instances and both directions. A table on a terminal has at most
    1,000 rows, and is tab-separated in a pipe.

    \b
    Examples:
    ./csit query history
    ./csit query history "SELECT status, count(*) FROM tests GROUP BY status"
    ./csit query history "$(cat question.sql)" -o answer.parquet
    """  # noqa: D301 - \b keeps the lines of the examples apart
    chosen = _format(form, output)
    if master is not None and engine is not QueryEngine.SPARK:
        raise ConfigError("--master is for --engine spark")
    refuse_no_dataset(dataset)
    if statement is None:
        _write(*_listed(), chosen, output)
        if chosen is ResultFormat.TABLE:
            for each in EXAMPLES:
                print_sentence("", command_text("./csit", "query", dataset, each))
        return
    from csit_utils.dataset.store.sql import files_of  # noqa: PLC0415 - pyarrow costs time of every --help

    files = files_of(Layout(dataset))
    _write(*_answer(files, statement, engine, master), chosen, output)
    report_problems(files.problems)


def _format(form: ResultFormat | None, output: Path | None) -> ResultFormat:
    """Return the format that the options select.

    Raises:
        ConfigError: They contradict each other, or the name of the file does not say its format.
    """
    if output is None:
        if form is ResultFormat.PARQUET:
            raise ConfigError("--format parquet: name a file by -o")
        return form or ResultFormat.TABLE
    ending = output.suffix.removeprefix(".").lower()
    in_files = [each for each in ResultFormat if each is not ResultFormat.TABLE]
    found = form or next((each for each in in_files if each == ending), None)
    if found not in in_files:
        raise ConfigError(f"-o {output}: choose a format of files by --format {', '.join(in_files)}")
    return found


def _listed() -> "tuple[pa.Schema, Iterator[pa.RecordBatch]]":
    """Columns of all views, as the result of a query."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    from csit_utils.dataset.store.sql import views  # noqa: PLC0415 - as above

    rows = [(view.name, *each) for view in views() for each in view.types()]
    schema = pa.schema(dict.fromkeys(_LISTED, pa.string()))
    return schema, iter([pa.record_batch([*map(list, zip(*rows, strict=True))], schema=schema)])


def _answer(
    files: "ViewedFiles", statement: str, engine: QueryEngine, master: str | None
) -> "tuple[pa.Schema, Iterator[pa.RecordBatch]]":
    from csit_utils.dataset.store.sql import DuckDb, run_on_spark  # noqa: PLC0415 - as above

    found = DuckDb(files)
    if engine is QueryEngine.DUCKDB:
        return found.run(statement)
    found.check(statement)
    return run_on_spark(files, statement, master)


def _write(schema: "pa.Schema", batches: "Iterator[pa.RecordBatch]", form: ResultFormat, output: Path | None) -> None:
    heads = list(schema.names)
    if form is ResultFormat.TABLE:
        _print_table(schema, batches)
    elif form is ResultFormat.PARQUET:
        assert output is not None  # noqa: S101 - checked with the options
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        with writing_whole(output) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        rows = (row for batch in batches for row in _rows(batch))
        texts = _csv(heads, rows) if form is ResultFormat.CSV else (_json(heads, row) for row in rows)
        if output is None:
            sys.stdout.writelines(map(visible, texts) if form is ResultFormat.CSV else texts)
        else:
            with writing_whole(output) as file:
                file.writelines(text.encode() for text in texts)


def _print_table(schema: "pa.Schema", batches: "Iterator[pa.RecordBatch]") -> None:
    import pyarrow as pa  # noqa: PLC0415 - as above

    heads = list(schema.names)
    lines: list[TableLine] = []
    count = 0
    most = _SHOWN_ROWS if sys.stdout.isatty() else math.inf
    for batch in batches:
        if count < most:
            lines += [TableLine(tuple(map(_text, row)), {}) for row in _rows(batch)]
        count += batch.num_rows
    left = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    shown = lines if count <= most else lines[:_SHOWN_ROWS]
    print_table(heads, shown, TableForm.TABLE, left)
    if count > len(shown):
        print_sentence(f"{len(shown):,} of {count:,} rows are shown; --format csv has all", err=True)


def _rows(batch: "pa.RecordBatch") -> Iterator[list[Any]]:
    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield [_plain(value) for value in row]


def _plain(value: object) -> object:
    """Return a value as JSON has it: exact sums are whole numbers, and what is no number is unknown."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [_plain(each) for each in value]
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case None | bool() | int() | str():
            return value
    return str(value)  # dates and times


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.10g}"
        case list() | dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _csv(heads: list[str], rows: Iterable[list[Any]]) -> Iterator[str]:
    for row in chain([heads], rows):
        yield csv_text([[_text(value) if isinstance(value, list | dict) else value for value in row]])


def _json(heads: list[str], row: list[Any]) -> str:
    return json.dumps(dict(zip(heads, row, strict=True))) + "\n"

"""FD.io CSIT's Parquet tables of results (csit.infra.etl): `trending`, `iterative_*` and `coverage_*`.

A row is one test: the fields of its `*.info.json`, nested ones by names joined with underscores. Tables of 2021 have
other names for four of them. `trending` has no tags, and older tables no hosts: the cell follows from the name of the
test, and the testbed from that of the job.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from csit_utils.dataset.foreign.csit import read_csit, tags_of_name
from csit_utils.dataset.items import ImportedTest, Problem, ReadError
from csit_utils.dataset.store.bounded_files import opened_table

NEEDED = ("test_id", "version", "start_time")
"""Columns that all of these tables have, besides results."""
_RENAMED = {"status": "passed", "test_name": "test_name_long", "result_type": "test_type"}
_PLAIN = (
    *("test_id", "test_name_long", "test_name_short", "test_type", "version", "start_time", "end_time", "passed"),
    *("dut_type", "dut_version", "tg_type", "tg_version", "hosts", "tags", "message"),
)
_FIGURES = re.compile(
    r"result_(?:(receive_rate)_(rate)_(avg|stdev|unit|values)|(ndr|pdr|critical_rate)_(lower|upper)_(rate)_(unit|value)"
    r"|(latency_(?:forward|reverse))_(pdr_(?:0|10|50|90))_(avg|hdrh|max|min|unit))"
)
"""Columns of results that are read; bandwidths are computed instead, as for files."""
_READ = {*_PLAIN, *_RENAMED, "job", "build"}
_RUNS = {"job", "build", "start_time", "duration"}
_TOGETHER = 256
"""Rows that become Python's at once."""
_MAX_FAULTS = 10
"""Rows with a problem of their own."""
_TESTBED = re.compile(r"-(\d+n\d?-\w+)$")


def read_table(content: bytes, source: str) -> Iterator[ImportedTest | Problem]:
    """Yield the tests of a Parquet file, and a problem for each of the first rows that are none.

    Raises:
        ReadError: The file is damaged, or no such table.
    """
    number = faults = 0
    with opened_table(content, _is_read) as file:
        if _RUNS.issuperset(file.names):
            return  # `stats`: runs without their tests
        if not is_table(file.names):
            raise ReadError(f"no table of FD.io CSIT's results: those have {', '.join(NEEDED)} and result_ columns")
        for row in (row for group in range(file.count) for row in _rows(file.read(group))):
            number += 1
            try:
                yield from read_row(row, f"{source} row {number}")
            except ReadError as error:
                faults += 1
                if faults <= _MAX_FAULTS:
                    yield Problem(source, f"{source}: row {number}: {error}")
    if faults > _MAX_FAULTS:
        yield Problem(source, f"{source}: {faults:,} of {number:,} rows are no results of tests")


def _is_read(column: str) -> bool:
    return column in _READ or _FIGURES.fullmatch(column) is not None


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows of a group. Times are texts, so that one that is out of range costs only itself."""
    times = [column.name for column in table.schema if pa.types.is_timestamp(column.type)]
    for name in times:
        at, column = table.schema.names.index(name), table[name]
        utc = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))  # values with a zone are in UTC too
        table = table.set_column(at, name, utc.cast(pa.string()))
    for batch in table.to_batches(_TOGETHER):
        try:
            rows = batch.to_pylist()
        except (ValueError, OverflowError) as error:
            raise ReadError(f"a value that no result has: {error}") from error
        for row in rows:
            yield row | {name: f"{row[name]}+00:00" for name in times if row[name] is not None}


def is_table(columns: Collection[str]) -> bool:
    """Whether a Parquet file with these columns is such a table."""
    return set(columns).issuperset(NEEDED) and any(map(_FIGURES.fullmatch, columns))


def read_row(row: Mapping[str, Any], source: str) -> Iterator[ImportedTest]:
    """Yield the test of a row, read as its file would be.

    `row`: values by column, times as texts.
    `source`: the table, and where in it the row is.

    Raises:
        ReadError: Unknown version of the model, or not its structure.
    """
    # Null and NaN, which pandas writes for it, are unknown.
    row = {name: value for name, value in row.items() if value is not None and value == value}  # noqa: PLR0124 - NaN
    named = {_RENAMED.get(name, name): value for name, value in row.items()}
    data: dict[str, Any] = {name: named.get(name) for name in _PLAIN}
    data["hosts"] = data["hosts"] or [_testbed(named)]
    name = str(data["test_name_long"] or "")
    data["tags"] = data["tags"] or tags_of_name(name.lower())
    result: dict[str, Any] = {}
    for column, value in row.items():
        found = _FIGURES.fullmatch(column)
        if found is not None:
            *path, last = (part for part in found.groups() if part)
            place = result
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value
    data["result"] = result or None
    run = " ".join(str(row[name]) for name in ("job", "build") if name in row)
    for item in read_csit(data, source):
        yield replace(item, row=replace(item.row, run=run or item.row.run))


def _testbed(row: Mapping[str, Any]) -> str | None:
    """Return the testbed that the name of a job ends in, such as 2n-skx."""
    found = _TESTBED.search(str(row.get("job") or ""))
    return found[1] if found else None

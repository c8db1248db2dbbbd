"""FD.io CSIT's Parquet tables of results (csit.infra.etl): `trending`, `iterative_*` and `coverage_*`.

A row is one test: the fields of its `*.info.json`, nested ones by names joined with underscores. Tables of 2021 have
other names for four of them. `trending` has no tags, and older tables no hosts: the cell follows from the name of the
test, and the testbed from that of the job.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from csit_utils.dataset.foreign.csit import read_csit, tags_of_name
from csit_utils.dataset.items import ImportedTest

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
_TESTBED = re.compile(r"-(\d+n\d?-\w+)$")


def is_table(columns: Mapping[str, object]) -> bool:
    """Whether a Parquet file with these columns is such a table."""
    return set(columns).issuperset(NEEDED) and any(map(_FIGURES.fullmatch, columns))


def read_row(row: Mapping[str, Any], source: str) -> Iterator[ImportedTest]:
    """Yield the test of a row, read as its file would be.

    Args:
        row: Values by column.
        source: The table, and where in it the row is.

    Raises:
        ReadError: Unknown version of the model, or not its structure.
    """
    named = {_RENAMED.get(name, name): value for name, value in row.items()}
    data: dict[str, Any] = {name: _plain(named.get(name)) for name in _PLAIN}
    data["hosts"] = data["hosts"] or [_testbed(named)]
    name = str(data["test_name_long"] or "")
    data["tags"] = data["tags"] or tags_of_name(name.lower())
    result: dict[str, Any] = {}
    for column, value in row.items():
        found = _FIGURES.fullmatch(column)
        if found is not None and value is not None:
            *path, last = (part for part in found.groups() if part)
            place = result
            for part in path:
                place = place.setdefault(part, {})
            place[last] = _plain(value)
    data["result"] = result or None
    run = " ".join(str(row[name]) for name in ("job", "build") if row.get(name) is not None)
    for item in read_csit(data, source):
        yield replace(item, row=replace(item.row, run=run or item.row.run))


def _testbed(row: Mapping[str, Any]) -> str | None:
    """Return the testbed that the name of a job ends in, such as 2n-skx."""
    found = _TESTBED.search(str(row.get("job") or ""))
    return found[1] if found else None


def _plain(value: Any) -> Any:  # noqa: ANN401 - what a cell of a table holds
    """Return a value as the file has it: times as texts, in UTC."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return value

"""Parquet tables of a dataset: columns of tests in Arrow's types, and files of whole records of other studies.

Beside a record are the rows that are queried most, as lists; their values are in the record too.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, replace
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.items import Problem, ReadError, Recorded, Status
from csit_utils.dataset.load import read_recorded
from csit_utils.dataset.measures import MeasuredValue
from csit_utils.dataset.rows import LISTS, MeasuredRow, TestRow
from csit_utils.dataset.store.bounded_files import opened
from resources.libraries.python.model.request.cell import Dimensions


class _NoPandas(MetaPathFinder):
    """Finder that refuses the import of pandas."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Refuse pandas, and leave other modules to other finders."""
        if name == "pandas":
            raise ImportError(name)


def convert_without_pandas() -> None:
    """Let Arrow convert its first list while pandas cannot be imported; for programs that have no data of pandas.

    It would import pandas, for 0.3 s of CPU time in each process, only to ask whether lists are columns of it. Later
    calls that need pandas, such as `to_pandas`, import it. Until then Arrow takes columns of pandas for plain lists.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, finder := _NoPandas())
        try:
            pa.array([])
        finally:
            sys.meta_path.remove(finder)


def _type(name: str, hint: object) -> pa.DataType:
    if name in LISTS:
        return pa.list_(pa.struct([(each, _type("", of)) for each, of in get_type_hints(LISTS[name]).items()]))
    kind = (set(get_args(hint) or (hint,)) - {type(None)}).pop()
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[kind]


_HINTS = get_type_hints(TestRow)
TEST_TYPES = {field.name: _type(field.name, _HINTS[field.name]) for field in fields(TestRow)}
TEST_COLUMNS = pa.schema(list(TEST_TYPES.items()))
TEST_NAMES = tuple(TEST_TYPES)
OPTIONAL = tuple(field.name for field in fields(TestRow) if field.default is not MISSING)
"""Columns that rows can do without."""


_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("anchor", "digest", "kind", "name", "testbed", "started_at", "label"), pa.string()),
    "simulated": pa.bool_(),
    **dict.fromkeys(("status", "message", "source", "record"), pa.string()),
}
"""`record` is the JSON of the model; other columns permit queries without it."""
_MEASURES = pa.schema(
    {
        **dict.fromkeys(("measure", "unit", "service"), pa.string()),
        **dict.fromkeys(Dimensions(1, 1).columns, pa.int64()),
        **dict.fromkeys(("nf_size", "frame", "goals"), pa.string()),
        **dict.fromkeys(("value", "lowest", "highest"), pa.float64()),
    }
)
"""Quantities that are followed over time, of all studies."""
NEEDED_OF_RECORDS = tuple(name for name in _COLUMNS if name != "label")
"""Columns that every file has."""


def record_columns() -> pa.Schema:
    """Return the columns of a file: those of each record, and a list of rows for each table that studies declare."""
    return pa.schema(_COLUMNS | {name: pa.list_(pa.struct(list(columns))) for name, columns in _tables().items()})


@cache
def _tables() -> dict[str, pa.Schema]:
    """Columns of the tables that studies declare, by the name of the view."""
    from csit_utils.studies.registry import record_kinds  # noqa: PLC0415 - costs time where no study is in a file

    found = {"measures": _MEASURES}
    for kind in record_kinds().values():
        if (queried := kind.queried) is not None:
            types = {
                **dict.fromkeys(queried.texts, pa.string()),
                **dict.fromkeys(queried.counts, pa.int64()),
                **dict.fromkeys(queried.flags, pa.bool_()),
            }
            for table, columns in queried.columns.items():
                found[queried.view(table)] = pa.schema({column: types.get(column, pa.float64()) for column in columns})
    return found


def write_records(path: Path, items: Sequence[Recorded], label: str | None) -> None:
    """Write records to a new file, with the label of their run."""
    rows = [
        {
            "anchor": item.anchor,
            "digest": item.digest,
            "kind": item.record.kind,
            "name": item.record.test_name,
            "testbed": item.record.testbed,
            "started_at": item.record.started_at,
            "label": label,
            "simulated": item.record.simulated,
            "status": str(item.status),
            "message": item.message,
            "source": item.source,
            "record": item.record.model_dump_json(),
            **_rows(item),
        }
        for item in items
    ]
    # Without dictionaries: each value of a list may be as long as one, and readers bound that.
    pq.write_table(pa.Table.from_pylist(rows, schema=record_columns()), path, compression="zstd", use_dictionary=False)


def _rows(item: Recorded) -> dict[str, list[dict[str, object]]]:
    from csit_utils.studies.registry import kind_of  # noqa: PLC0415 - as above

    kind = kind_of(item)
    measures = [_measure(row, each) for row in kind.rows_of(item) for each in row.measures]
    if (queried := kind.queried) is None:
        return {"measures": measures}
    return {
        "measures": measures,
        **{
            queried.view(name): [dict(zip(queried.columns[name], row, strict=False)) for row in rows[1:]]
            for name, rows in kind.tables(item.record)
            if name in queried.columns
        },
    }


def _measure(row: MeasuredRow, found: MeasuredValue) -> dict[str, object]:
    return {
        "measure": str(found.measure),
        "unit": found.measure.unit,
        "service": row.service_type,
        **{name: getattr(row, name) for name in (*Dimensions(1, 1).columns, "nf_size", "frame", "goals")},
        "value": found.value,
        "lowest": found.lowest,
        "highest": found.highest,
    }


def read_records(path: Path, count: int) -> Iterator[Recorded | Problem]:
    """Yield the records of a file; a problem where one is damaged.

    `count`: number of records, as its import says.

    Raises:
        ReadError: The file is damaged.
    """
    wanted = ["name", "status", "message", "source", "digest", "record", "label"]
    try:
        with opened(path, pa.schema(_COLUMNS), wanted, optional=["label"], rows=count) as file:
            rows = [row for group in range(file.count) for row in file.read(group).to_pylist()]
    except ReadError as error:
        raise ReadError(f"{path}: damaged; import its files again: {error}") from error
    for row in rows:
        try:
            source, status, where = row["source"], Status(row["status"]), f"{path}: test '{row['name']}'"
            item = read_recorded(row["record"], where, source, status, row["message"], label=row.get("label"))
        except ReadError as error:
            yield Problem(row["source"], str(error))
        else:
            yield replace(item, named_digest=row["digest"])

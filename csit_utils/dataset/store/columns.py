"""Rows of tests as columns of Arrow, and back."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from importlib.abc import MetaPathFinder
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import DEFAULTS, TestRow
from csit_utils.dataset.testrows import HeadRow, columns_of


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


def _type(hint: object) -> pa.DataType:
    kind = (set(get_args(hint) or (hint,)) - {type(None)}).pop()
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[kind]


_HINTS = get_type_hints(TestRow)
TEST_TYPES = {field.name: _type(_HINTS[field.name]) for field in fields(TestRow)}
TESTS = pa.schema(list(TEST_TYPES.items()))
UNREADABLE = (OSError, pa.ArrowException, UnicodeError)
"""Errors of reading a damaged file."""
NEEDED = tuple(field.name for field in fields(TestRow) if field.default is MISSING)
"""Columns that rows cannot do without."""
DETAILS = pa.schema({"anchor": pa.string(), "digest": pa.string(), "kind": pa.string(), "record": pa.string()})
RECORD, ROWS = "record", "rows"
"""Kinds of details: a packed record; JSON of rows, for results without a record."""


def table_of_tests(rows: Sequence[HeadRow | TestRow], run: str, constants: Mapping[str, str]) -> pa.Table:
    """Return rows as columns.

    Args:
        rows: Tests in the order of the table.
        run: Id of the run of those with a head.
        constants: Columns with the same value in all rows, which override those of the rows.
    """
    heads = [row for row in rows if isinstance(row, HeadRow)]
    others = [row for row in rows if isinstance(row, TestRow)]
    tables = [_table(len(heads), columns_of(heads), {"run": run, **constants})] if heads else []
    if others:
        values = {name: [getattr(row, name) for row in others] for name in TEST_TYPES}
        tables.append(_table(len(others), values, constants))
    table = pa.concat_tables(tables)
    if heads and others:
        order = sorted(range(len(rows)), key=lambda at: isinstance(rows[at], TestRow))
        table = table.take(np.argsort(order))
    return table


def _table(rows: int, values: Mapping[str, Sequence[Any]], constants: Mapping[str, str]) -> pa.Table:
    """Return columns as a table; one that is missing has the default of `TestRow`."""
    arrays = [
        pa.array(values[name], kind)
        if name in values and name not in constants
        else pa.repeat(pa.scalar(constants.get(name, DEFAULTS[name]), kind), rows)
        for name, kind in TEST_TYPES.items()
    ]
    return pa.table(arrays, schema=TESTS)


def check_columns(schema: pa.Schema, wanted: pa.Schema, needed: Iterable[str]) -> None:
    """Check that a file has a table.

    Raises:
        ReadError: It lacks a needed column, or has one of another type.
    """
    if lacking := sorted(set(needed) - set(schema.names)):
        raise ReadError(f"it has no column '{lacking[0]}'")
    for name in schema.names:
        if name in wanted.names and _form(schema.field(name).type) is not _form(wanted.field(name).type):
            raise ReadError(f"its column '{name}' has the type {schema.field(name).type}")


def _form(kind: pa.DataType) -> type:
    """Text, truth or number: earlier versions had integers where there are fractions now."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return float
    return bool if pa.types.is_boolean(kind) else str if pa.types.is_string(kind) else object


def rows_of_table(table: pa.Table) -> Iterator[TestRow]:
    """Yield columns as rows. A column missing in an older dataset has the default of `TestRow`."""
    names = [name for name in TEST_TYPES if name in table.column_names]
    columns = [table.column(name).to_pylist() for name in names]
    lacking = [name for name in TEST_TYPES if name not in table.column_names]
    rest = {name: DEFAULTS[name] for name in lacking}
    for values in zip(*columns, strict=True):
        # A frozen dataclass takes ten times as long to set a hundred fields one by one.
        row = object.__new__(TestRow)
        row.__dict__.update(zip(names, values, strict=True), **rest)
        yield row

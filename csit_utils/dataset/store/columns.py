"""Rows of tests as columns of Arrow, and back."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from importlib.abc import MetaPathFinder
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import DEFAULTS, TestRow


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


def table_of_tests(rows: Sequence[tuple[Any, ...]], constants: dict[str, str]) -> pa.Table:
    """Return rows as columns.

    Args:
        rows: All fields in the order of `TestRow`.
        constants: Fields with the same value in all rows, which override those of the rows.
    """
    values = zip(*rows, strict=True)
    arrays = [
        pa.repeat(pa.scalar(constants[name], kind), len(rows)) if name in constants else pa.array(column, kind)
        for (name, kind), column in zip(TEST_TYPES.items(), values, strict=True)
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

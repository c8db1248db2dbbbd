"""Columns of the table of tests, in Arrow's types."""

import sys
from collections.abc import Iterable
from dataclasses import MISSING, fields
from importlib.abc import MetaPathFinder
from typing import get_args, get_type_hints

import pyarrow as pa

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import LISTS, TestRow


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
TESTS = pa.schema(list(TEST_TYPES.items()))
UNREADABLE = (OSError, pa.ArrowException, UnicodeError)
"""Errors of reading a damaged file."""
NAMES = tuple(TEST_TYPES)
OPTIONAL = tuple(field.name for field in fields(TestRow) if field.default is not MISSING)
"""Columns that rows can do without."""


def check_columns(schema: pa.Schema, wanted: pa.Schema, needed: Iterable[str]) -> None:
    """Check that a file has a table.

    Raises:
        ReadError: It lacks a needed column, or has one twice or of another type.
    """
    # Arrow makes the names anew each time.
    expected = dict(zip(wanted.names, wanted.types, strict=True))
    names = schema.names
    if len(set(names)) < len(names):
        raise ReadError("it has a column twice")
    if lacking := sorted(set(needed).difference(names)):
        raise ReadError(f"it has no column '{lacking[0]}'")
    for name, kind in zip(names, schema.types, strict=True):
        usual = expected.get(name, kind)
        if kind != usual and (_form(kind) is not _form(usual) or name in LISTS):
            raise ReadError(f"its column '{name}' has the type {kind}")


def _form(kind: pa.DataType) -> type:
    """Text, truth or number: a column without fractions may be of integers."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return float
    return bool if pa.types.is_boolean(kind) else str if pa.types.is_string(kind) else object

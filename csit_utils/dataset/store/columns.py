"""Rows of tests as columns of Arrow, and back."""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from functools import partial
from importlib.abc import MetaPathFinder
from itertools import groupby
from operator import attrgetter
from typing import Any, NoReturn, get_args, get_type_hints

import pyarrow as pa

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import DEFAULTS, LISTS, TestRow
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


_CACHED_ROWS = 64
"""Rows that become columns at once: their records are still in the CPU cache then."""


class WaitingRows:
    """Rows of tests that are written together.

    `run`: id of the run of tests with a head.
    `constants`: columns with the same value in all rows, which override those of the rows.
    """

    def __init__(self, run: str, constants: Mapping[str, str]) -> None:
        self._constants = constants
        self._defaults = {**DEFAULTS, "run": run}
        self._rows: list[HeadRow | TestRow] = []
        self._count = 0
        """Number of rows in `_values`."""
        self._values: dict[str, list[Any]] = {}
        """Without columns that have the default of `TestRow` in all rows."""

    def add(self, row: HeadRow | TestRow) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= _CACHED_ROWS:
            self._make_columns()

    def _make_columns(self) -> None:
        for kind, same in groupby(self._rows, type):
            rows: list[Any] = list(same)
            made = columns_of(rows) if kind is HeadRow else {name: map(attrgetter(name), rows) for name in TEST_TYPES}
            for name in made.keys() - self._values.keys():
                self._values[name] = [self._defaults.get(name)] * self._count
            for name, values in self._values.items():
                values.extend(made[name] if name in made else (self._defaults[name],) * len(rows))
            self._count += len(rows)
        self._rows.clear()

    def table(self) -> pa.Table | None:
        """Return all rows as columns, in their order, and forget them; None without any."""
        self._make_columns()
        count, self._count = self._count, 0
        same = {**self._defaults, **self._constants}
        arrays = [
            pa.repeat(pa.scalar(same[name], kind), count)
            if name in self._constants or name not in self._values
            else pa.array(_plain(self._values[name]) if name in LISTS else self._values[name], kind)
            for name, kind in TEST_TYPES.items()
        ]
        self._values.clear()
        return pa.table(arrays, schema=TESTS) if count else None


def _plain(values: Iterable[Sequence[Any] | None]) -> list[list[dict[str, Any]] | None]:
    """Rows of tables in a column, as Arrow takes them."""
    return [None if rows is None else [asdict(row) for row in rows] for rows in values]


def _rows(name: str, values: Iterable[Sequence[Mapping[str, Any] | None] | None]) -> list[Any]:
    """The same as Arrow gives them.

    Raises:
        ReadError: A row, or a value that each has, is missing.
    """
    needed = [each for each, hint in get_type_hints(LISTS[name]).items() if type(None) not in get_args(hint)]

    def row_of(row: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 - of the type of the column's rows
        if row is None or any(row[each] is None for each in needed):
            raise ReadError(f"its column '{name}' has a row without values")
        return LISTS[name](**row)

    return [None if rows is None else tuple(map(row_of, rows)) for rows in values]


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


def rows_of_table(table: pa.Table) -> Iterator[TestRow]:
    """Yield columns as rows. A column missing in an older dataset has the default of `TestRow`."""
    there = set(table.column_names)  # which Arrow makes anew each time
    names = [name for name in TEST_TYPES if name in there]
    columns = [
        _rows(name, values) if name in LISTS else values
        for name in names
        for values in [table.column(name).to_pylist()]
    ]
    blank = {name: DEFAULTS.get(name) for name in TEST_TYPES}
    for values in zip(*columns, strict=True):
        # A frozen dataclass takes ten times as long to set a hundred fields one by one.
        row = object.__new__(TestRow)
        filled = blank.copy()  # of its final size: a dictionary that grows takes longer
        filled.update(zip(names, values, strict=True))
        object.__setattr__(row, "__dict__", filled)
        yield row


class SomeColumns:
    """Makes rows that have some columns, and no memory for others; asking one for another column is an error."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = tuple(name for name in NAMES if name in names)
        unread = {name: property(partial(_refuse, name)) for name in NAMES if name not in names}
        self._type = type(TestRow.__name__, (TestRow,), {"__slots__": self.names, "__module__": __name__, **unread})
        self._setters = [getattr(self._type, name).__set__ for name in self.names]
        self._known: dict[str, str] = {}
        """Texts, most of which are equal in many rows."""

    def rows_of(self, table: pa.Table) -> Iterator[TestRow]:
        """Yield columns as rows. A column missing in an older dataset has the default of `TestRow`."""
        there = set(table.column_names)
        columns = [
            self._values(name, table.column(name)) if name in there else (DEFAULTS.get(name),) * table.num_rows
            for name in self.names
        ]
        for values in zip(*columns, strict=True):
            row: TestRow = object.__new__(self._type)
            for put, value in zip(self._setters, values, strict=True):
                put(row, value)
            yield row

    def _values(self, name: str, column: pa.ChunkedArray) -> Sequence[Any]:
        values: list[Any] = column.to_pylist()
        if name in LISTS:
            return _rows(name, values)
        if TEST_TYPES[name] != pa.string():
            return values
        known = self._known.setdefault
        return [None if value is None else known(value, value) for value in values]


def _refuse(name: str, _: object) -> NoReturn:
    raise AttributeError(f"the column '{name}' was not read")

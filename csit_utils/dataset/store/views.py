"""Views of a dataset for SQL: names, columns, the statements that make them, and the files behind them.

A view has its name and its columns on every engine. `tests` has a row per test of the density suites,
`characterizations` one per test of another study; each table of a study that is kept in a dataset is a view of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from csit_utils.dataset.items import Problem, ReadError
from csit_utils.dataset.store.bounded_files import check_pages
from csit_utils.dataset.store.layout import CHARACTERIZATIONS, TESTS, Layout
from csit_utils.dataset.store.tables import NEEDED_OF_RECORDS, OPTIONAL, TEST_COLUMNS, record_columns
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Dimensions

TEST_PARTS, RECORD_PARTS = "_tests", "_characterizations"
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
        (TESTS, TEST_COLUMNS, TEST_PARTS, "run, source", _OF_TEST),
        (CHARACTERIZATIONS, record_columns(), RECORD_PARTS, "source", _OF_RECORD),
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

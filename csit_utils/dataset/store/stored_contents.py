"""Contents of a dataset on disk: rows are read as a whole, records one at a time on demand."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_args, get_type_hints

import msgspec
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from csit_utils.analysis.runs import Choice, ChosenRuns, newest
from csit_utils.dataset.flatten import TABLES, RowT, record_rows
from csit_utils.dataset.goal_words import one_way, order_remark
from csit_utils.dataset.items import (
    ImportedTest,
    ImportedTrial,
    Item,
    Problem,
    ReadError,
    Recorded,
    Refusal,
    Status,
    Unrecorded,
)
from csit_utils.dataset.load import read_recorded
from csit_utils.dataset.rows import DEFAULTS, LISTS, OWN, LatencyRow, TestRow
from csit_utils.dataset.store.bounded_files import RECORD_DETAIL, DetailGroup, check_details, detail_groups, opened
from csit_utils.dataset.store.layout import DETAILS, TESTS, Import, Layout, StoredPart, environment
from csit_utils.dataset.store.tables import OPTIONAL, TEST_COLUMNS, TEST_NAMES, TEST_TYPES, read_records
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.result import Environment
from resources.libraries.python.recording.records import NotUnpacked, unpack
from resources.libraries.python.search.findings.verdict import verdict_of
from resources.libraries.python.studies.density.model import DensityRecord, RefusedCell

_NO_KEYS: dict[str, Any] = {}
_BLANK = DensityRecord.model_construct(**_NO_KEYS)
"""A record with defaults only: a copy takes a tenth of the time to make one."""
_MAX_NEAR = 256
"""Kept details, about 4 MB."""
_OF_GOALS = ("origin", "world", "simulated", "testbed", "drivers", "frame", "goals")
"""Columns of rows that `_join_goals` needs."""
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _in_lists(name: str, values: Iterable[Sequence[Mapping[str, Any] | None] | None]) -> list[Any]:
    """Rows of tables in a column, from what Arrow gives.

    Raises:
        ReadError: A row, or a value that each has, is missing.
    """
    needed = [each for each, hint in get_type_hints(LISTS[name]).items() if type(None) not in get_args(hint)]

    def row_of(row: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 - of the type of the column's rows
        if row is None or any(row[each] is None for each in needed):
            raise ReadError(f"its column '{name}' has a row without values")
        return LISTS[name](**row)

    return [None if rows is None else tuple(map(row_of, rows)) for rows in values]


def rows_of_table(table: pa.Table) -> Iterator[TestRow]:
    """Yield columns as rows. A column missing in an older dataset has the default of `TestRow`."""
    there = set(table.column_names)  # which Arrow makes anew each time
    names = [name for name in TEST_TYPES if name in there]
    values_of = [
        _in_lists(name, values) if name in LISTS else values
        for name in names
        for values in [table.column(name).to_pylist()]
    ]
    blank = {name: DEFAULTS.get(name) for name in TEST_TYPES}
    for values in zip(*values_of, strict=True):
        # A frozen dataclass takes ten times as long to set a hundred fields one by one.
        row = object.__new__(TestRow)
        filled = blank.copy()  # of its final size: a dictionary that grows takes longer
        filled.update(zip(names, values, strict=True))
        object.__setattr__(row, "__dict__", filled)
        yield row


class _SomeColumns:
    """Makes rows that have some columns, and no memory for others; asking one for another column is an error."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = tuple(name for name in TEST_NAMES if name in names)
        unread = {name: property(partial(_refuse, name)) for name in TEST_NAMES if name not in names}
        self._type = type(TestRow.__name__, (TestRow,), {"__slots__": self.names, "__module__": __name__, **unread})
        self._setters = [getattr(self._type, name).__set__ for name in self.names]
        self._known: dict[str, str] = {}
        """Texts, most of which are equal in many rows."""

    def rows_of(self, table: pa.Table) -> Iterator[TestRow]:
        """Yield columns as rows. A column missing in an older dataset has the default of `TestRow`."""
        there = set(table.column_names)
        values_of = [
            self._values(name, table.column(name)) if name in there else (DEFAULTS.get(name),) * table.num_rows
            for name in self.names
        ]
        for values in zip(*values_of, strict=True):
            row: TestRow = object.__new__(self._type)
            for put, value in zip(self._setters, values, strict=True):
                put(row, value)
            yield row

    def _values(self, name: str, column: pa.ChunkedArray) -> Sequence[Any]:
        values: list[Any] = column.to_pylist()
        if name in LISTS:
            return _in_lists(name, values)
        if TEST_TYPES[name] != pa.string():
            return values
        known = self._known.setdefault
        return [None if value is None else known(value, value) for value in values]


def _refuse(name: str, _: object) -> NoReturn:
    raise AttributeError(f"the column '{name}' was not read")


class _Place(NamedTuple):
    layout: Layout
    made: Import
    part: StoredPart


class _Opened(NamedTuple):
    layout: Layout
    imports: Sequence[Import]
    chosen: ChosenRuns

    @property
    def read(self) -> Iterator[Import]:
        """Imports of the chosen runs, and those without density tests."""
        chosen = {each.digest for each, _ in self.chosen.parts}
        return (each for each in self.imports if not each.parts or each.digest in chosen)


class Stored:
    """Rows of all tests of datasets, and records of single tests. Of a test in two of them, the first counts.

    Args:
        wanted: Columns of rows that are read; None for all of them.
        choose: Chooses the runs whose tests are read; of temporary datasets, which are made for one question, all are.
        problems: Inputs that could not be imported.
    """

    def __init__(
        self,
        *layouts: Layout,
        wanted: Collection[str] | None = None,
        choose: Choice = newest,
        problems: Iterable[Problem] = (),
    ) -> None:
        self._layouts = layouts
        self._choose = choose
        self._some = None if wanted is None else _SomeColumns(wanted)
        self._damaged = [*problems]
        """With files of the datasets that were found damaged, and are left out."""
        self._near: dict[str, tuple[str, str]] = {}
        """Kind and text of details in the row groups last read: the next record is often in one of them."""

    @cached_property
    def _datasets(self) -> Sequence[_Opened]:
        found = []
        for layout in self._layouts:
            damaged: list[str] = []
            imports = layout.imports(damaged)
            self._damaged += [Problem(str(layout.folder), text) for text in damaged]
            found.append(_Opened(layout, imports, (newest if layout.temporary else self._choose)(imports)))
        return found

    @property
    def left_out(self) -> str:
        """Sentence on runs that are not read; empty if all are."""
        return "; ".join(
            f"{layout.folder}: read the newest {chosen.runs:,} of {chosen.all_runs:,} runs, {chosen.tests:,} of "
            f"{chosen.all_tests:,} tests; --max-tests N reads more"
            for layout, _, chosen in self._datasets
            if chosen.runs < chosen.all_runs
        )

    @cached_property
    def _found(self) -> tuple[Sequence[TestRow], Mapping[str, _Place]]:
        """Rows, and the places of their details. A test imported from different files counts once."""
        rows: dict[str, TestRow] = {}
        places: dict[str, _Place] = {}
        for layout, _, chosen in self._datasets:
            for each, part in chosen.parts:
                place = _Place(layout, each, part)
                for row in self._rows_of(place):
                    if row.anchor not in rows:
                        rows[row.anchor], places[row.anchor] = row, place
        if self._some is None or set(_OF_GOALS) <= set(self._some.names):
            _join_goals(rows.values())
        # Stable sort: tests of a file without times keep their order.
        ordered = sorted(rows.values(), key=lambda row: (not row.recorded, row.started_at or "", row.run))
        return ordered, places

    def _rows_of(self, place: _Place) -> Sequence[TestRow]:
        """Rows of a part whose details can be read too; none of a damaged one."""
        layout, each, part = place
        path: str | Path = part.path
        try:
            path = layout.path(DETAILS, part)
            check_details(path)
            path = layout.path(TESTS, part)
            names, rows_of = (
                (TEST_NAMES, rows_of_table) if self._some is None else (self._some.names, self._some.rows_of)
            )
            with opened(path, TEST_COLUMNS, names, optional=OPTIONAL, rows=part.tests) as file:
                return [row for group in range(file.count) for row in rows_of(file.read(group))]
        except ReadError as error:
            self._leave_out(each, path, f"{part.tests} tests", error)
            return ()

    def _leave_out(self, each: Import, what: str | Path, lost: str, error: Exception) -> None:
        text = f"{what}: damaged, {lost} left out; import {each.source} again: {error_text(error)}"
        self._damaged.append(Problem(each.source, text))

    @property
    def tests(self) -> Sequence[TestRow]:
        """One row per test by time, those without a record last."""
        return self._found[0]

    @cached_property
    def refused(self) -> Sequence[Refusal]:
        """Cells that do not fit on their testbed."""
        found: list[Refusal] = []
        for dataset in self._datasets:
            for each in dataset.read:
                try:
                    found += [Refusal(each.source, RefusedCell.model_validate_json(bytes(raw))) for raw in each.refused]
                except (ValueError, KeyError, msgspec.DecodeError) as error:
                    self._leave_out(each, dataset.layout.folder, "cells that do not fit are", error)
        return found

    @property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full when they were imported, and files of the dataset that are damaged."""
        _ = self._found
        every = (each for dataset in self._datasets for each in dataset.imports)
        imported = [Problem(each.source, text) for each in every for text in each.problems]
        return [*imported, *self._damaged]

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest, see `TestRow.environment`."""
        every = {
            digest: (dataset.layout, each, raw)
            for dataset in self._datasets
            for each in dataset.read
            for digest, raw in each.environments.items()
        }
        found = {}
        for digest, (layout, each, raw) in every.items():
            try:
                found[digest] = environment(raw)
            except ValidationError as error:
                self._leave_out(each, layout.folder, "an environment is", error)
        return found

    @cached_property
    def characterizations(self) -> Sequence[Recorded]:
        """Records of other studies by time, which are not among the tests."""
        found: dict[str, Recorded] = {}
        for layout, each in ((one.layout, each) for one in self._datasets for each in one.imports):
            if not each.characterizations:
                continue
            try:
                path = layout.characterizations(each)
                for item in read_records(path, each.characterizations):
                    if isinstance(item, Recorded):
                        found[item.anchor] = item
                    else:
                        self._damaged.append(item)
            except ReadError as error:
                self._damaged.append(Problem(each.source, str(error)))
        return sorted(found.values(), key=lambda item: item.record.started_at)

    def rows(self, *kinds: type[RowT], anchors: Collection[str] | None = None) -> Iterator[RowT]:
        """Yield the rows of some of `TABLES`, of tests with these anchors or of all; each record is read once.

        Without anchors histograms are left out.

        Raises:
            ReadError: A record is damaged.
        """
        keys = {"verdict", *(TABLES[kind].key for kind in kinds)}
        for row, kind, text in self._details(anchors):
            if kind == RECORD_DETAIL:
                record = _partial(text, row, keys)
                made = [each for of in kinds for each in record_rows(of, row.anchor, record)]
            else:
                made = [each for each in _imported(row, text).latency if isinstance(each, kinds)]
            yield from made if anchors is not None else map(_without_histogram, made)

    def record(self, anchor: str) -> DensityRecord:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
            ReadError: Its record is damaged.
        """
        if anchor not in self._near:
            if len(self._near) > _MAX_NEAR:
                self._near = {}
            for here, kinds, texts in _groups(self._found[1][anchor], {anchor}):
                self._near |= zip(here, zip(kinds.to_pylist(), texts.to_pylist(), strict=True), strict=True)
        kind, text = self._near.get(anchor, (None, ""))
        if kind != RECORD_DETAIL:
            raise KeyError(anchor)
        return self._recorded(self._by_anchor[anchor], text).record

    def items(self) -> Iterator[Item]:
        """Yield all items with whole records."""
        yield from self.refused
        yield from self.problems
        yield from self.characterizations
        bare = dict(self._by_anchor)
        for row, kind, text in self._details(None):
            del bare[row.anchor]
            if kind == RECORD_DETAIL:
                yield self._recorded(row, text)
            else:
                yield _imported(row, text)
        for row in bare.values():
            tags = tuple(row.tags.split())
            status = Status(row.status)
            yield Unrecorded(row.test_id, row.test_name, tags, row.source, status, row.message, row.started_at)

    def _recorded(self, row: TestRow, text: str) -> Recorded[DensityRecord]:
        where = f"{row.source}: test '{row.test_id}'"
        item = read_recorded(text, where, row.source, Status(row.status), row.message, label=row.label)
        if not isinstance(item.record, DensityRecord):
            raise ReadError(f"{where}: a record of the study '{item.record.study}' instead of a density test")
        return item

    def _details(self, anchors: Collection[str] | None) -> Iterator[tuple[TestRow, str, str]]:
        """Row, kind and text of the details of tests."""
        _, places = self._found
        wanted: dict[Path, tuple[_Place, set[str]]] = {}
        for anchor in places if anchors is None else anchors:
            if anchor in places:
                place = places[anchor]
                wanted.setdefault(place.layout.folder / place.part.path, (place, set()))[1].add(anchor)
        for place, names in wanted.values():
            for here, kinds, texts in _groups(place, names):
                for at, anchor in enumerate(here):
                    if anchor in names:
                        names.discard(anchor)
                        yield self._by_anchor[anchor], kinds[at].as_py(), texts[at].as_py()

    @cached_property
    def _by_anchor(self) -> Mapping[str, TestRow]:
        return {row.anchor: row for row in self.tests}


def _join_goals(rows: Iterable[TestRow]) -> None:
    """Give tests of other tools the goals of all tests of their system and frame, unless one has two definitions.

    FD.io CSIT and NFVbench measure NDR and MRR by different tests, each of which states its own definitions only.
    Results with different `TestRow.goals` never share a matrix, and these do not differ.
    """
    alike: dict[tuple[object, ...], list[TestRow]] = defaultdict(list)
    for row in rows:
        if row.origin != OWN and row.goals:
            alike[*(getattr(row, name) for name in _OF_GOALS[:-1]), one_way(row.goals)].append(row)
    for own in alike.values():
        parts = {part for goals in {row.goals or "" for row in own} for part in goals.split("; ")}
        names = {part.partition(" ")[0]: part for part in parts}
        if len(names) == len(parts):
            ordered = sorted(names, key=lambda name: (name.islower(), name == "MRR", name))
            joined = "; ".join(names[name] for name in ordered)
            for row in own:
                object.__setattr__(row, "goals", joined)  # rows that have some columns cannot be made anew


def _groups(place: _Place, names: Collection[str]) -> Iterator[DetailGroup]:
    """Groups with details of some tests.

    Raises:
        ReadError: The file is damaged.
    """
    path = place.layout.path(DETAILS, place.part)
    try:
        yield from detail_groups(path, names)
    except ReadError as error:
        raise ReadError(f"{path}: damaged; import its file again: {error}") from error


class _ForeignRows(msgspec.Struct):
    latency: tuple[LatencyRow, ...] = ()
    trials: tuple[ImportedTrial, ...] = ()


def _imported(row: TestRow, text: str) -> ImportedTest:
    found = msgspec.json.decode(text, type=_ForeignRows)
    return ImportedTest(row, found.latency, found.trials)


def _without_histogram(row: RowT) -> RowT:
    return replace(row, histogram=None) if isinstance(row, LatencyRow) else row


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    annotation: Any = DensityRecord.model_fields[key].annotation
    return TypeAdapter(annotation)


def _partial(text: str, row: TestRow, keys: Collection[str]) -> DensityRecord:
    """Return a record with only these keys, the verdict among them, and its name.

    Raises:
        ReadError: The record is damaged.
    """
    try:
        light = _KEYS.decode(text)
        heavy = _KEYS.decode(unpack(msgspec.json.decode(light["packed"], type=str)))
        every = {**light, **heavy}
        found = {key: _adapter(key).validate_json(bytes(every[key])) for key in keys if key in every}
    except (NotUnpacked, msgspec.DecodeError, ValidationError, UnicodeError, KeyError) as error:
        raise ReadError(f"{row.source}: test '{row.test_id}': the record is damaged: {error_text(error)}") from error
    if (remark := order_remark(partial(getattr, row))) is not None and remark.text not in found["verdict"].evidence:
        found["verdict"] = verdict_of((remark, *found["verdict"].findings))
    return _BLANK.model_copy(update={"test_name": row.test_name, **found})

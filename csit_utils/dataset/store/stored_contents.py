"""Contents of a dataset on disk: rows are read as a whole, records one at a time on demand."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pydantic import TypeAdapter, ValidationError

from csit_utils.dataset.flatten import instance_rows, latency_rows, loss_rows
from csit_utils.dataset.goal_order import of_row, remarked_verdict
from csit_utils.dataset.items import (
    Characterized,
    Dataset,
    ImportedTest,
    Item,
    Problem,
    ReadError,
    RecordedTest,
    Refusal,
    Status,
    Unrecorded,
)
from csit_utils.dataset.records import parse_density
from csit_utils.dataset.refusals import from_dataset
from csit_utils.dataset.rows import HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from csit_utils.dataset.store import characterization_files, columns, details
from csit_utils.dataset.store.bounded_files import opened
from csit_utils.dataset.store.chosen_runs import Choice, ChosenRuns, newest
from csit_utils.dataset.store.layout import DETAILS, TESTS, Import, Layout, StoredPart, environment
from resources.libraries.python.model.base import ON_FIRST_USE, error_text
from resources.libraries.python.model.findings.evidence import ItemizedFigure, LocatedLosses
from resources.libraries.python.model.result import Environment, LatencyAtLoad, Verdict
from resources.libraries.python.recording.packed_record import NotUnpacked, unpack
from resources.libraries.python.studies.density.model.record import DensityRecord

_Row = TypeVar("_Row")
_TYPES: dict[str, TypeAdapter[Any]] = {
    "verdict": TypeAdapter(Verdict),
    "latency": TypeAdapter(tuple[LatencyAtLoad, ...], config=ON_FIRST_USE),
    "itemized": TypeAdapter(tuple[ItemizedFigure, ...], config=ON_FIRST_USE),
    "located": TypeAdapter(LocatedLosses | None, config=ON_FIRST_USE),
}
"""Keys of a record that rows of latency, instances, hops and threads need."""
_OF_INSTANCES = ("itemized",)
_OF_LATENCY = ("latency",)
_NO_KEYS: dict[str, Any] = {}
_BLANK = DensityRecord.model_construct(**_NO_KEYS)
"""A record with defaults only: a copy takes a tenth of the time to make one."""
_MAX_NEAR = 256
"""Kept details, about 4 MB."""
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Stored:
    """Implementation of `contents.Contents`.

    Args:
        layout: The dataset.
        wanted: Columns of rows that are read; None for all of them.
        choose: Chooses the runs whose tests are read.
    """

    def __init__(self, layout: Layout, wanted: Collection[str] | None = None, choose: Choice = newest) -> None:
        self._layout = layout
        self._choose = choose
        self._some = None if wanted is None else columns.SomeColumns(wanted)
        self._damaged: list[Problem] = []
        """Files of the dataset that were found damaged, and are left out."""
        self._ahead: dict[str, Sequence[TestRow]] = {}
        """Rows that have been read ahead."""
        self._near: dict[str, tuple[str, str]] = {}
        """Kind and text of details in the row groups last read: the next record is often in one of them."""

    def read_ahead(self, made: Import) -> None:
        """Read the rows of an import that has been committed, while others are under way."""
        self._ahead |= {part.path: self._rows_of(made, part) for part in made.parts}

    @cached_property
    def _imports(self) -> Sequence[Import]:
        damaged: list[str] = []
        found = self._layout.imports(damaged)
        self._damaged += [Problem(str(self._layout.folder), text) for text in damaged]
        return found

    @cached_property
    def chosen(self) -> ChosenRuns:
        """Runs whose tests are read."""
        return self._choose(self._imports)

    @property
    def left_out(self) -> str:
        """Sentence on runs that are not read; empty if all are."""
        found = self.chosen
        if found.runs == found.all_runs:
            return ""
        return (
            f"{self._layout.folder}: the newest {found.runs:,} of {found.all_runs:,} runs are read, {found.tests:,} of "
            f"{found.all_tests:,} tests; --max-tests N reads more"
        )

    @cached_property
    def _read(self) -> Sequence[Import]:
        """Imports of these runs, and those without density tests."""
        chosen = {each.digest for each, _ in self.chosen.parts}
        return [each for each in self._imports if not each.parts or each.digest in chosen]

    @cached_property
    def _found(self) -> tuple[Sequence[TestRow], Mapping[str, StoredPart]]:
        """Rows, and the parts with their details. A test imported from different files counts once."""
        rows: dict[str, TestRow] = {}
        parts: dict[str, StoredPart] = {}
        for each, part in self.chosen.parts:
            read = self._ahead.pop(part.path, None)
            for row in self._rows_of(each, part) if read is None else read:
                if row.anchor not in rows:
                    rows[row.anchor], parts[row.anchor] = row, part
        # Stable sort: tests of a file without times keep their order.
        ordered = sorted(rows.values(), key=lambda row: (not row.recorded, row.started_at or "", row.run))
        return ordered, parts

    def _rows_of(self, each: Import, part: StoredPart) -> Sequence[TestRow]:
        """Rows of a part whose details can be read too; none of a damaged one."""
        path: str | Path = part.path
        try:
            path = self._layout.path(DETAILS, part)
            details.check(path)
            path = self._layout.path(TESTS, part)
            names, rows_of = (
                (columns.NAMES, columns.rows_of_table) if self._some is None else (self._some.names, self._some.rows_of)
            )
            with opened(path, columns.TESTS, names, optional=columns.OPTIONAL, rows=part.tests) as file:
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
        for each in self._read:
            try:
                found += from_dataset(each.source, each.refused)
            except (ValueError, KeyError, msgspec.DecodeError) as error:
                self._leave_out(each, self._layout.folder, "cells that do not fit are", error)
        return found

    @property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full when they were imported, and files of the dataset that are damaged."""
        _ = self._found
        imported = [Problem(each.source, text) for each in self._imports for text in each.problems]
        return [*imported, *self._damaged]

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest."""
        every = {digest: (each, raw) for each in self._read for digest, raw in each.environments.items()}
        found = {}
        for digest, (each, raw) in every.items():
            try:
                found[digest] = environment(raw)
            except ValidationError as error:
                self._leave_out(each, self._layout.folder, "an environment is", error)
        return found

    @cached_property
    def characterizations(self) -> Sequence[Characterized]:
        """Records of other studies by time."""
        found: dict[str, Characterized] = {}
        for each in self._imports:
            if not each.characterizations:
                continue
            try:
                path = self._layout.characterizations(each)
                for item in characterization_files.read(path, each.characterizations):
                    if isinstance(item, Characterized):
                        found[item.anchor] = item
                    else:
                        self._damaged.append(item)
            except ReadError as error:
                self._damaged.append(Problem(each.source, str(error)))
        return sorted(found.values(), key=lambda item: item.record.started_at)

    def instances(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow]:
        """Throughput by instance and direction."""
        return self._rows(instance_rows, _OF_INSTANCES, anchors)

    def latency(self, anchors: Collection[str] | None = None) -> Iterator[LatencyRow]:
        """Latency by load, instance and direction; without anchors the histograms are left out."""
        return self._rows(_latency_rows(anchors), _OF_LATENCY, anchors)

    def by_instance(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow | LatencyRow]:
        """Throughput and latency by instance and direction."""
        latency = _latency_rows(anchors)

        def rows(dataset: Dataset) -> Iterator[InstanceRow | LatencyRow]:
            yield from instance_rows(dataset)
            yield from latency(dataset)

        return self._rows(rows, (*_OF_INSTANCES, *_OF_LATENCY), anchors)

    def losses(self, anchors: Collection[str] | None = None) -> Iterator[HopRow | ThreadRow]:
        """Losses by hop, and time of data threads."""
        return self._rows(loss_rows, ("located",), anchors)

    def record(self, anchor: str) -> RecordedTest:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
            ReadError: Its record is damaged.
        """
        if anchor not in self._near:
            if len(self._near) > _MAX_NEAR:
                self._near = {}
            for here, kinds, texts in self._groups(self._found[1][anchor], {anchor}):
                self._near |= zip(here, zip(kinds.to_pylist(), texts.to_pylist(), strict=True), strict=True)
        kind, text = self._near.get(anchor, (None, ""))
        if kind != details.RECORD:
            raise KeyError(anchor)
        return self._recorded(self._by_anchor[anchor], text)

    def items(self) -> Iterator[Item]:
        """Yield all items with whole records."""
        yield from self.refused
        yield from self.problems
        yield from self.characterizations
        bare = dict(self._by_anchor)
        for _, row, kind, text in self._details(None):
            del bare[row.anchor]
            if kind == details.RECORD:
                yield self._recorded(row, text)
            else:
                yield _imported(row, text)
        for row in bare.values():
            tags = tuple(row.tags.split())
            status = Status(row.status)
            yield Unrecorded(row.test_id, row.test_name, tags, row.source, status, row.message, row.started_at)

    def _recorded(self, row: TestRow, text: str) -> RecordedTest:
        result, digest = parse_density(text, f"{self._layout.folder}: test '{row.test_id}'")
        return RecordedTest(result, row.source, Status(row.status), row.message, digest)

    def _rows(
        self, rows: Callable[[Dataset], Iterable[_Row]], keys: tuple[str, ...], anchors: Collection[str] | None
    ) -> Iterator[_Row]:
        for _, row, kind, text in self._details(anchors):
            if kind == details.RECORD:
                partial = _Partial(_partial(text, row, keys), row.anchor)
                yield from rows(Dataset(recorded=[partial]))  # type: ignore[list-item] # has what rows are made of
            elif kind == details.ROWS and set(_OF_LATENCY) <= set(keys):
                yield from rows(Dataset(foreign=[_imported(row, text)]))

    def _details(self, anchors: Collection[str] | None) -> Iterator[tuple[StoredPart, TestRow, str, str]]:
        """Part, row, kind and text of the details of tests."""
        _, parts = self._found
        wanted: dict[str, tuple[StoredPart, set[str]]] = {}
        for anchor in parts if anchors is None else anchors:
            if anchor in parts:
                wanted.setdefault(parts[anchor].path, (parts[anchor], set()))[1].add(anchor)
        for part, names in wanted.values():
            for here, kinds, texts in self._groups(part, names):
                for at, anchor in enumerate(here):
                    if anchor in names:
                        names.discard(anchor)
                        yield part, self._by_anchor[anchor], kinds[at].as_py(), texts[at].as_py()

    def _groups(self, part: StoredPart, names: Collection[str]) -> Iterator[details.Group]:
        """Groups with details of some tests.

        Raises:
            ReadError: The file is damaged.
        """
        path = self._layout.path(DETAILS, part)
        try:
            yield from details.groups(path, names)
        except ReadError as error:
            raise ReadError(f"{path}: damaged; import its file again: {error}") from error

    @cached_property
    def _by_anchor(self) -> Mapping[str, TestRow]:
        return {row.anchor: row for row in self.tests}


class _ForeignRows(msgspec.Struct):
    latency: tuple[LatencyRow, ...] = ()


def _imported(row: TestRow, text: str) -> ImportedTest:
    return ImportedTest(row, msgspec.json.decode(text, type=_ForeignRows).latency)


def _latency_rows(anchors: Collection[str] | None) -> Callable[[Dataset], Iterator[LatencyRow]]:
    """Function that returns rows of latency, without histograms unless some tests are asked for."""
    if anchors is not None:
        return latency_rows
    return lambda dataset: (replace(row, histogram=None) for row in latency_rows(dataset))


@dataclass(frozen=True)
class _Partial:
    """A test with some keys of its record; its anchor is that of the row."""

    result: DensityRecord
    anchor: str


def _partial(text: str, row: TestRow, keys: tuple[str, ...]) -> DensityRecord:
    """Return a record with only these keys, its name and its verdict.

    Raises:
        ReadError: The record is damaged.
    """
    try:
        light = _KEYS.decode(text)
        heavy = _KEYS.decode(unpack(msgspec.json.decode(light["packed"], type=str)))
        every = {**light, **heavy}
        wanted = ("verdict", *keys)
        read = {key: bytes(every[key]) for key in wanted if key in every}
        found = {key: adapter.validate_json(read[key]) for key, adapter in _TYPES.items() if key in read}
    except (NotUnpacked, msgspec.DecodeError, ValidationError, UnicodeError, KeyError) as error:
        raise ReadError(f"{row.source}: test '{row.test_id}': the record is damaged: {error_text(error)}") from error
    if (remark := of_row(row)) is not None and remark.text not in found["verdict"].evidence:
        found["verdict"] = remarked_verdict(found["verdict"], remark)
    return _BLANK.model_copy(update={"test_name": row.test_name, **found})

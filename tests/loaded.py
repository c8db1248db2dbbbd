"""Items of result files with whole records, by the import that all commands use, and their rows."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.flatten import RowT, record_rows
from csit_utils.dataset.items import ImportedTest, Item, Problem, Recorded, Refusal, Unrecorded
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.testrows import columns_of, packed_row, unrecorded_row
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.writer import pack
from resources.libraries.python.studies.density.model import DensityRecord

OfT = TypeVar("OfT", bound=Record)


@dataclass
class Dataset:
    """All tests of all files."""

    recorded: list[Recorded] = field(default_factory=list)
    """Those of all studies, see `of`."""
    unrecorded: list[Unrecorded] = field(default_factory=list)
    foreign: list[ImportedTest] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def characterizations(self) -> list[Recorded]:
        """Those of other studies than density."""
        return [item for item in self.recorded if not isinstance(item.record, DensityRecord)]

    def of(self, kind: type[OfT]) -> list[Recorded[OfT]]:
        """Return those with a record of a type."""
        return [item for item in self.recorded if isinstance(item.record, kind)]

    def add(self, item: Item) -> None:
        """Add an item to the list of its type."""
        match item:
            case Recorded():
                self.recorded.append(item)
            case Unrecorded():
                self.unrecorded.append(item)
            case ImportedTest():
                self.foreign.append(item)
            case Problem():
                self.problems.append(item)
            case Refusal():
                self.refused.append(item)


def items(*paths: Path) -> list[Item]:
    """Read files and folders, which may have no test."""
    return list(opened([*paths]).contents(may_be_empty=True).items())


def load(paths: Iterable[Path]) -> Dataset:
    """Read files and folders, and sort the items by type."""
    dataset = Dataset()
    for item in items(*paths):
        dataset.add(item)
    return dataset


def contents(output: Path, file: str = "output.xml") -> list[tuple[str, ...]]:
    """Everything in a file of results in order; of tests, all of which have a record, what is alike in each run."""
    found = items(output / file)
    assert not [item for item in found if isinstance(item, Unrecorded | Problem)]
    return [
        (item.status.value, item.message, str(without_moment(item.record.model_dump_json())))
        if isinstance(item, Recorded)
        else (str({**vars(item), "source": "", "started_at": ""}),)
        for item in found
    ]


def without_moment(record: str) -> dict[str, Any]:
    """A simulated test's JSON without what another run of it has otherwise.

    That is the time of day of it and of an earlier result, how long deployment and removal took, settings of the
    machine, which others change by using it, and the work tree, which a commit changes. All other times are virtual.
    """
    found: dict[str, Any] = json.loads(record)
    prior = (found.get("search") or {}).get("prior") or {}
    moments = (found.pop("started_at"), found.pop("finished_at"), prior.pop("started_at", ""))
    assert all(datetime.fromisoformat(each).tzinfo for each in moments if each), moments
    took_s = found.pop("deployment", {}).values()
    assert all(isfinite(each) and each >= 0 for each in took_s if each is not None), took_s
    for name in ("settings", "git_revision", "git_dirty"):
        found["environment"].pop(name, None)
    return found


def rows_of_tests(dataset: Dataset) -> list[TestRow]:
    """One row per test, those without a record last."""
    foreign = (item.row for item in dataset.foreign)
    return [*map(_row_of, dataset.of(DensityRecord)), *foreign, *map(unrecorded_row, dataset.unrecorded)]


def _row_of(item: Recorded[DensityRecord]) -> TestRow:
    row, _ = packed_row(pack(item.record, digest=item.digest), item.status, item.message)
    columns = {name: value for name, (value,) in columns_of((row,)).items()}
    return TestRow(source=item.source, run=item.source, **columns)


def table_rows(dataset: Dataset, kind: type[RowT]) -> Iterator[RowT]:
    """Yield the rows of one of `TABLES` of all tests."""
    for imported in dataset.foreign:
        yield from (row for row in imported.latency if isinstance(row, kind))
    for item in dataset.of(DensityRecord):
        yield from record_rows(kind, item.anchor, item.record)

"""Contents of items in memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from csit_utils.dataset.flatten import RowT
from csit_utils.dataset.items import Item, Problem, Recorded, Refusal
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.result import Environment
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import Dataset, rows_of_tests, table_rows


class InMemory:
    """Contents of files."""

    left_out = ""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.refused: Sequence[Refusal] = dataset.refused
        self.problems: Sequence[Problem] = dataset.problems

    @cached_property
    def tests(self) -> Sequence[TestRow]:
        """One row per test, those without a record last."""
        return rows_of_tests(self._dataset)

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        every = (item.record.environment for item in self._dataset.recorded)
        return {environment.digest: environment for environment in every}

    @property
    def characterizations(self) -> Sequence[Recorded]:
        return self._dataset.characterizations

    @cached_property
    def _records(self) -> Mapping[str, DensityRecord]:
        return {item.anchor: item.record for item in self._dataset.of(DensityRecord)}

    def rows(self, *kinds: type[RowT], anchors: Collection[str] | None = None) -> Iterator[RowT]:
        every: Iterator[Any] = chain.from_iterable(table_rows(self._dataset, kind) for kind in kinds)
        return (row for row in every if anchors is None or row.anchor in anchors)

    def items(self) -> Iterator[Item]:
        """Yield everything, with whole records."""
        read = self._dataset
        return chain[Item](read.refused, read.problems, read.recorded, read.foreign, read.unrecorded)

    def record(self, anchor: str) -> DensityRecord:
        return self._records[anchor]

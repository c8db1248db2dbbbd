"""Contents of items in memory."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeVar

from csit_utils.dataset.flatten import instance_rows, latency_rows, loss_rows, rows_of_tests
from csit_utils.dataset.items import Dataset, Problem, Recorded, Refusal
from csit_utils.dataset.rows import HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from resources.libraries.python.model.result import Environment
from resources.libraries.python.studies.density.model.record import DensityRecord

_Row = TypeVar("_Row", InstanceRow, LatencyRow, InstanceRow | LatencyRow, HopRow | ThreadRow)


class InMemory:
    """Contents of files."""

    left_out = ""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    @cached_property
    def tests(self) -> Sequence[TestRow]:
        """One row per test, those without a record last."""
        return rows_of_tests(self._dataset)

    @property
    def refused(self) -> Sequence[Refusal]:
        """Cells that do not fit on their testbed."""
        return self._dataset.refused

    @property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full."""
        return self._dataset.problems

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest."""
        every = (item.record.environment for item in self._dataset.recorded)
        return {environment.digest: environment for environment in every}

    @property
    def characterizations(self) -> Sequence[Recorded]:
        """Records of other studies."""
        return self._dataset.characterizations

    @cached_property
    def _recorded(self) -> Mapping[str, Recorded[DensityRecord]]:
        return {item.anchor: item for item in self._dataset.of(DensityRecord)}

    def instances(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow]:
        """Throughput by instance and direction."""
        return _of(instance_rows(self._dataset), anchors)

    def latency(self, anchors: Collection[str] | None = None) -> Iterator[LatencyRow]:
        """Latency by load, instance and direction."""
        return _of(latency_rows(self._dataset), anchors)

    def by_instance(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow | LatencyRow]:
        """Throughput and latency by instance and direction."""
        return chain(self.instances(anchors), self.latency(anchors))

    def losses(self, anchors: Collection[str] | None = None) -> Iterator[HopRow | ThreadRow]:
        """Losses by hop, and time of data threads."""
        return _of(loss_rows(self._dataset), anchors)

    def record(self, anchor: str) -> Recorded[DensityRecord]:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
        """
        return self._recorded[anchor]


def _of(rows: Iterable[_Row], anchors: Collection[str] | None) -> Iterator[_Row]:
    return (row for row in rows if anchors is None or row.anchor in anchors)

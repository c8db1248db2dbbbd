"""Contents of results, in memory or in a dataset."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Protocol, TypeVar

from csit_utils.dataset.flatten import (
    instance_rows,
    latency_rows,
    loss_rows,
    rows_of_tests,
)
from csit_utils.dataset.items import Characterized, Dataset, Problem, RecordedTest, Refusal
from csit_utils.dataset.rows import HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from resources.libraries.python.model.result import Environment

_Row = TypeVar("_Row", InstanceRow, LatencyRow, InstanceRow | LatencyRow, HopRow | ThreadRow)


class Contents(Protocol):
    """Rows of all tests, and records of single tests.

    Methods with `anchors` return the rows of these tests only, or of all tests with None.
    """

    @property
    def tests(self) -> Sequence[TestRow]:
        """One row per test."""

    @property
    def refused(self) -> Sequence[Refusal]:
        """Cells that do not fit on their testbed."""

    @property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full."""

    @property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest, see `TestRow.environment`."""

    @property
    def characterizations(self) -> Sequence[Characterized]:
        """Records of other studies, which are not among the tests.

        Raises:
            ReadError: A record is damaged.
        """

    def instances(self, anchors: Collection[str] | None = None) -> Iterable[InstanceRow]:
        """Throughput by instance and direction."""

    def latency(self, anchors: Collection[str] | None = None) -> Iterable[LatencyRow]:
        """Latency by load, instance and direction; without anchors the histograms are left out."""

    def by_instance(self, anchors: Collection[str] | None = None) -> Iterable[InstanceRow | LatencyRow]:
        """Rows of `instances` and of `latency`; each record is read once."""

    def losses(self, anchors: Collection[str] | None = None) -> Iterable[HopRow | ThreadRow]:
        """Losses by hop, and time of data threads."""

    def record(self, anchor: str) -> RecordedTest:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
        """


class InMemory:
    """Contents of files."""

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
        every = (item.result.environment for item in self._dataset.recorded)
        others = (item.record.environment for item in self._dataset.characterizations)
        return {environment.digest: environment for environment in chain(every, others)}

    @property
    def characterizations(self) -> Sequence[Characterized]:
        """Records of other studies."""
        return self._dataset.characterizations

    @cached_property
    def _recorded(self) -> Mapping[str, RecordedTest]:
        return {item.anchor: item for item in self._dataset.recorded}

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

    def record(self, anchor: str) -> RecordedTest:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
        """
        return self._recorded[anchor]


class JoinedContents:
    """Several contents as one; of a test in two of them, the first counts."""

    def __init__(self, *several: Contents) -> None:
        self._several = several

    @cached_property
    def _owners(self) -> Mapping[str, Contents]:
        owners: dict[str, Contents] = {}
        for each in self._several:
            for row in each.tests:
                owners.setdefault(row.anchor, each)
        return owners

    @cached_property
    def tests(self) -> Sequence[TestRow]:
        """One row per test, those without a record last."""
        rows = [row for each in self._several for row in each.tests if self._owners[row.anchor] is each]
        return sorted(rows, key=lambda row: not row.recorded)

    @cached_property
    def refused(self) -> Sequence[Refusal]:
        """Cells that do not fit on their testbed."""
        return [cell for each in self._several for cell in each.refused]

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full."""
        return [problem for each in self._several for problem in each.problems]

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest."""
        return {digest: found for each in self._several for digest, found in each.environments.items()}

    @cached_property
    def characterizations(self) -> Sequence[Characterized]:
        """Records of other studies."""
        return list({item.anchor: item for each in self._several for item in each.characterizations}.values())

    def instances(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow]:
        """Throughput by instance and direction."""
        return self._own(lambda each: each.instances(anchors))

    def latency(self, anchors: Collection[str] | None = None) -> Iterator[LatencyRow]:
        """Latency by load, instance and direction."""
        return self._own(lambda each: each.latency(anchors))

    def by_instance(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow | LatencyRow]:
        """Throughput and latency by instance and direction."""
        return self._own(lambda each: each.by_instance(anchors))

    def losses(self, anchors: Collection[str] | None = None) -> Iterator[HopRow | ThreadRow]:
        """Losses by hop, and time of data threads."""
        return self._own(lambda each: each.losses(anchors))

    def record(self, anchor: str) -> RecordedTest:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
        """
        return self._owners[anchor].record(anchor)

    def _own(self, rows: Callable[[Contents], Iterable[_Row]]) -> Iterator[_Row]:
        return (row for each in self._several for row in rows(each) if self._owners.get(row.anchor) is each)


def _of(rows: Iterable[_Row], anchors: Collection[str] | None) -> Iterator[_Row]:
    return (row for row in rows if anchors is None or row.anchor in anchors)

"""Contents of results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from csit_utils.dataset.items import Problem, Recorded, Refusal
from csit_utils.dataset.rows import HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from resources.libraries.python.model.result import Environment
from resources.libraries.python.studies.density.model.record import DensityRecord


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
    def left_out(self) -> str:
        """Sentence on runs that are not read; empty if all are."""

    @property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest, see `TestRow.environment`."""

    @property
    def characterizations(self) -> Sequence[Recorded]:
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

    def record(self, anchor: str) -> Recorded[DensityRecord]:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
        """

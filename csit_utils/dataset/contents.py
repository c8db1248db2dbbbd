"""Contents of results."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from csit_utils.dataset.flatten import RowT
from csit_utils.dataset.items import Item, Problem, Recorded, Refusal
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.result import Environment
from resources.libraries.python.studies.density.model import DensityRecord


class Contents(Protocol):
    """Rows of all tests, and records of single tests."""

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

    def rows(self, *kinds: type[RowT], anchors: Collection[str] | None = None) -> Iterator[RowT]:
        """Yield the rows of some of `flatten.TABLES`, of tests with these anchors or of all; each record is read once.

        Without anchors histograms are left out.
        """

    def items(self) -> Iterator[Item]:
        """Yield everything, with whole records."""

    def record(self, anchor: str) -> DensityRecord:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
        """

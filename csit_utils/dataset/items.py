"""Items of result files: tests, records, refused cells, problems."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic

from typing_extensions import TypeVar

from csit_utils.dataset.rows import LatencyRow, TestRow
from resources.libraries.python.errors import message
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.density.model import RefusedCell
from resources.libraries.python.unpacking import UnpackError

ReadError = UnpackError
"""A result file is unreadable or incomplete; the text names the file."""


class Status(StrEnum):
    """Robot's status of a test."""

    PASS = "PASS"  # noqa: S105 - a status, no password
    FAIL = "FAIL"
    SKIP = "SKIP"


RecordT = TypeVar("RecordT", bound=Record, default=Any)


@dataclass(frozen=True)
class Recorded(Generic[RecordT]):
    """A test of any study with its record. It may have failed after it: a failed cleanup fails the test."""

    record: RecordT
    source: str
    status: Status
    message: str
    label: str | None = None
    """Label of its run; in a dataset only."""
    named_digest: str | None = None
    """Digest of the whole record as first written, see `read_record`; None if the record was not read from JSON."""

    @cached_property
    def digest(self) -> str:
        """Digest of the record, independent of its source."""
        return self.named_digest or hashlib.sha256(self.record.model_dump_json().encode()).hexdigest()

    @property
    def anchor(self) -> str:
        """Id for links to this test, the same in every report of this record."""
        return self.record.anchor(self.digest)


def status_of(record: Record) -> Status:
    """Return the status of a test by its record, or the head of one, for one of which no output.xml is known."""
    return Status.PASS if record.passed else Status.SKIP if record.skipped else Status.FAIL


@dataclass(frozen=True)
class Unrecorded:
    """A test without a readable record."""

    test_id: str
    name: str
    tags: tuple[str, ...]
    source: str
    status: Status
    message: str
    started_at: str | None = None
    """As `TestRow.started_at`."""

    @property
    def anchor(self) -> str:
        """Id for links to this test."""
        return "test-" + hashlib.sha256(f"{self.source}\n{self.test_id}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class ImportedTrial:
    """A trial of a search of another tool; its load is the aggregate of both directions."""

    load_pps: float
    loss_ratio: float
    duration_s: float


@dataclass(frozen=True)
class ImportedTest:
    """A test of another tool, as rows; it needs no record."""

    row: TestRow
    latency: tuple[LatencyRow, ...] = ()
    trials: tuple[ImportedTrial, ...] = ()
    """Of its search, in their order."""

    @property
    def anchor(self) -> str:
        """Id for links."""
        return self.row.anchor

    @property
    def digest(self) -> str:
        """Digest of the result, independent of its source."""
        return self.row.anchor


@dataclass(frozen=True)
class Refusal:
    """A cell that does not fit on the testbed of a run."""

    source: str
    """File of the run."""
    refused: RefusedCell


@dataclass(frozen=True)
class Problem:
    """An input that could not be read in full, as a sentence with its file."""

    source: str
    text: str

    def __post_init__(self) -> None:
        # The name of a file may have an end of line, and must not look like another message.
        object.__setattr__(self, "text", message(self.text).replace("\n", "\\n"))


Item = Recorded | Unrecorded | ImportedTest | Refusal | Problem

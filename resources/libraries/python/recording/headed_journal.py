"""The journal of one characterization test: a heading with the digest of the question, then a line of JSON per result.

A line is on disk before anything else happens. What the journal has is not measured again, for the same system and the
same question only: a test with another question begins below a new heading. The last line says that the test has
passed. A kind of test says in a class of its own how its rows are read and what is asked of them.
"""

import json
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.recording.lines import Lines

Row = TypeVar("Row", bound=Frozen)


class Heading(Frozen):
    """What the lines below are about."""

    journal: str
    """What kind of test."""
    schema_version: str = "1.0"
    digest: str


class Complete(Frozen):
    """The test has passed, and its record is on disk."""

    line: Literal["complete"] = "complete"
    at: str
    """UTC, ISO 8601."""
    record: str
    """Name of the file in the folder of results."""


def digest_of(*parts: str) -> str:
    """Tell questions apart: SHA-256 of what is asked and of the system that is asked."""
    return sha256(json.dumps(parts).encode()).hexdigest()


class HeadedJournal(Generic[Row]):
    """A journal that is being written. One process at a time has it open; a context manager.

    Args:
        path: The file; made when it is missing.
        digest: Of the question and the system, see `digest_of`.
    """

    FILE: ClassVar[str]
    """Its name in the folder of the test."""
    KIND: ClassVar[str]
    """Of the test, such as `sizing`."""
    ROWS: ClassVar[TypeAdapter[Any]]
    """Reads a row."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self._heading = Heading(journal=self.KIND, digest=digest)
        self._file = Lines(path)
        self.rows: list[Row] = []
        """Written before, in order; none where the last heading is another one."""
        self.complete: Complete | None = None
        """The end of the test; None where it has none yet."""
        self.remarks: list[str] = []
        """What somebody who resumes should know."""

    def __enter__(self) -> Self:
        """Open it and read what is there.

        Raises:
            ConfigError: It is no journal of this kind that this version reads.
            CsitError: Another process writes it, or it cannot be written.
        """
        self._file.open()
        try:
            if self._read() != self._heading:
                self._file.append(self._heading.model_dump_json())
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; the lock goes with it."""
        self._file.close()

    def end(self, at: str, record: str) -> None:
        """Write that the test has passed.

        Args:
            at: When, UTC, ISO 8601.
            record: Name of the file of its record.

        Raises:
            JournalFull: As for a row.
        """
        self._file.append(Complete(at=at, record=record).model_dump_json())

    def keep(self, row: Row) -> None:
        """Write a line; it is on disk when this returns.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self._file.append(row.model_dump_json())

    def _read(self) -> Heading | None:
        """The last heading, with the rows below it where it is ours."""
        last: Heading | None = None
        for number, raw in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                data: Any = json.loads(raw)
            except ValueError:  # a part of a JSON object is no JSON, and a part of a letter no text
                self.remarks.append(
                    f"{self.path}: line {number} is torn, its writing was cut short; what it said is lost"
                )
                continue
            try:
                if isinstance(data, dict) and "journal" in data:
                    last = Heading.model_validate(data)
                    self.rows.clear()
                    self.complete = None
                elif last == self._heading and isinstance(data, dict) and data.get("line") == "complete":
                    self.complete = Complete.model_validate(data)
                elif last == self._heading:
                    self.rows.append(self.ROWS.validate_json(raw))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise ConfigError(
                    f"{self.path}: line {number} is not of a {self._heading.journal} that this version reads: {where}: "
                    f"{first['msg']}"
                ) from error
        return last

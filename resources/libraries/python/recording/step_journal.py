"""The journal of one test's steps: a heading with the digest of what is measured, then one line of JSON per step.

A line is on disk before the next step begins. Steps of the same digest are not measured again when the run resumes; a
test with other settings begins below a new heading. Each study declares the models of its rows.
"""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen, error_text, refused_version
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.recording.lines import Lines, read_lines

Row = TypeVar("Row", bound=Frozen)
SCHEMA_VERSION: Literal["1"] = "1"


class Heading(Frozen):
    """Heading of the lines below it."""

    journal: str
    """Kind of the test."""
    schema_version: Literal["1"] = SCHEMA_VERSION
    digest: str


class StepJournal(Generic[Row]):
    """A journal open for writing, by one process at a time; a context manager.

    `path`: The file; created when missing.
    `digest`: Of the settings and the system, see `digest_of`.
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
        """Rows of earlier runs in order; none where the last heading has another digest."""
        self.remarks: list[str] = []
        """Warnings for the log of the run."""

    def __enter__(self) -> Self:
        """Open and read.

        Raises:
            ConfigError: It is not a journal of this kind, or this version cannot read it.
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
        """Close, and release the lock."""
        self._file.close()

    def keep(self, row: Row) -> None:
        """Write a row; it is on disk on return.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self._file.append(row.model_dump_json())

    def _read(self) -> Heading | None:
        """The last heading; keeps the rows below it where it is that of this test."""
        last: Heading | None = None
        for number, raw in enumerate(read_lines(self.path), 1):
            try:
                data: Any = json.loads(raw or b"")
            except (ValueError, RecursionError):  # a part of a JSON object is not JSON, and a part of a letter not text
                self.remarks.append(
                    f"{self.path}: line {number} is incomplete, its writing was interrupted; its step is lost"
                )
                continue
            try:
                if last is None or (isinstance(data, dict) and "journal" in data):
                    version = data.get("schema_version") if isinstance(data, dict) else None
                    if version not in (None, SCHEMA_VERSION):
                        raise ConfigError(f"{self.path}: the journal has {refused_version(version, SCHEMA_VERSION)}")
                    last = Heading.model_validate(data)
                    self.rows.clear()
                    if last.journal != self.KIND:
                        raise ConfigError(
                            f"{self.path}: line {number} begins a journal of '{quoted(last.journal)}', not of "
                            f"'{self.KIND}'"
                        )
                elif last == self._heading:
                    self.rows.append(self.ROWS.validate_json(raw or b""))
            except ValidationError as error:
                raise ConfigError(
                    f"{self.path}: line {number} is no entry of a journal of '{self.KIND}': {error_text(error)}"
                ) from error
        return last

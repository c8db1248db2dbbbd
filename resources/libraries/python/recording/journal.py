"""The journal of a run: a line of JSON per event, on disk before the run goes on.

Whoever reads the journal is told of a torn line; what it was to say has not happened.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.recording.journal_events import EVENTS, AnyEvent, CellQuarantined, Event, TestFinished
from resources.libraries.python.recording.lines import Lines

JOURNAL_FILE = "journal.jsonl"
CHARACTERIZATION_JOURNAL = "characterization.jsonl"
"""Of characterization tests: how the run was begun. Each of its tests has a journal of its own for what it measures."""
Ended = TestFinished | CellQuarantined
_WITH_RECORD: dict[str, type[Ended]] = {"finished": TestFinished, "quarantined": CellQuarantined}
"""Lines whose large part, the record, is validated only when it is needed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line that could be read."""

    line: int
    offset: int
    """Where it begins in the file, in bytes."""
    event: AnyEvent


class Journal:
    """A journal that is being written. One process at a time has it open; a context manager.

    Args:
        path: The file; made when it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = Lines(path)
        self._lines = 0

    def __enter__(self) -> Self:
        """Open it at its end.

        Raises:
            CsitError: Another process writes it, or it cannot be written.
        """
        self._file.open()
        self._lines = max((item.line for item in read(self.path)), default=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; the lock goes with it."""
        self._file.close()

    @property
    def next_line(self) -> int:
        """Number of the line that is appended next."""
        return self._lines + 1

    def append(self, event: Event) -> None:
        """Write a line; it is on disk when this returns.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self._file.append(event.model_dump_json())
        self._lines += 1


@dataclass(frozen=True, slots=True)
class Damage:
    """Lines that say nothing any more."""

    line: int
    """The last of them."""
    text: str


def read(path: Path) -> Iterator[Entry | Damage]:
    """Read a journal line by line.

    Records of finished tests are validated where they are needed, see `ended_at`; here they only have to be JSON.

    Raises:
        ConfigError: There is no such file, or it is no journal of this program.
    """
    try:
        with path.open("rb") as file:
            offset = line = 0
            for raw in file:
                begin, offset = offset, offset + len(raw)
                event = _event(raw, path, line + 1)
                if event is None:
                    line += 1
                    yield Damage(line, f"{path}: line {line} is torn, its writing was cut short")
                    continue
                if event.line != line + 1:
                    yield Damage(event.line - 1, f"{path}: after line {line} comes line {event.line}")
                line = event.line
                yield Entry(line, begin, event)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _event(raw: bytes, path: Path, number: int) -> AnyEvent | None:
    """The event of a line; None for a torn one: a part of a JSON object is no JSON."""
    try:
        data = json.loads(raw)
    except ValueError:
        return None
    try:
        if isinstance(data, dict) and (kind := _WITH_RECORD.get(data.get("event", ""))):
            return kind.model_construct(**data)
        return EVENTS.validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{path}: line {number} is not of a journal that this version reads: {where}: {first['msg']}"
        ) from error


def ended_at(path: Path, offset: int) -> Ended:
    """Read the line of one test that has ended, with its record.

    Raises:
        CsitError: The record there is none that this version reads.
    """
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.readline()
    try:
        ended = EVENTS.validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise CsitError(f"{path}: a record cannot be read any more: {where}: {first['msg']}") from error
    assert isinstance(ended, Ended)  # noqa: S101 - nobody gives other offsets
    return ended

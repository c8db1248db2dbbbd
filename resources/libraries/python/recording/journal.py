"""The journal of a run: one line of JSON per event, on disk before the run continues."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import ON_FIRST_USE, Frozen, error_text, refused_version
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment
from resources.libraries.python.recording.lines import Lines, read_lines

JOURNAL_FILE = "journal.jsonl"
VERSION: Literal[1] = 1
Status = Literal["PASS", "FAIL", "SKIP"]
"""Robot's status of a test."""


class Choices(Frozen):
    """User's choices. A run is resumed with the same choices or not at all."""

    topology: str
    """Path of the topology file."""
    topology_digest: str
    """SHA-256 of its contents."""
    variables: dict[str, str]
    """Name to value of the variables that choose cells, frames and search, defaults included."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Tag patterns."""
    profile: SearchProfile
    """Settings of the search profile at that time."""


class Event(Frozen):
    """One line of a journal."""

    __test__: ClassVar[bool] = False  # no pytest class

    line: int
    """Counts from 1: a missing line leaves a gap."""
    at: str
    """UTC, ISO 8601."""


class RunBegun(Event):
    """Header."""

    event: Literal["run"] = "run"
    version: Literal[1] = VERSION
    run_id: str
    boot_id: str | None
    """Boot id of the kernel: a different one later means that the machine went down in between."""
    choices: Choices
    environment: Environment
    command: Literal["local", "robot"] | None = None
    """Command of this project that started the run; None for plain Robot."""
    arguments: tuple[str, ...] = ()
    """Robot's command line, to repeat it; empty for plain Robot."""
    folder: str = ""
    """Working directory of the command: relative paths start there."""


class RunResumed(Event):
    """The run continues in another process, or in the next suite that opens the testbed."""

    event: Literal["resumed"] = "resumed"
    boot_id: str | None
    environment: Environment
    remarks: tuple[str, ...] = ()
    """Differences from the environment at the start."""


class TestStarted(Event):
    """An attempt begins."""

    event: Literal["started"] = "started"
    test: str
    attempt: int


class TestBroken(Event):
    """An attempt broke the system under test; its results are discarded."""

    event: Literal["broken"] = "broken"
    test: str
    attempt: int
    reason: str
    evidence: tuple[str, ...] = ()


class TestEnded(Event):
    """A test has ended and its record is on disk."""

    test: str
    status: Status
    digest: str
    """Of what the test measured."""
    record: str
    """File name in the folder of results."""


class TestFinished(TestEnded):
    """Its result counts, passed or not."""

    event: Literal["finished"] = "finished"


class TestInterrupted(Event):
    """The run was stopped during a test, which will be measured again."""

    event: Literal["interrupted"] = "interrupted"
    test: str
    reason: str
    record: str = ""
    """File name of its incomplete record, in the folder of results."""


class CellQuarantined(TestEnded):
    """Its cell broke the system under test in every attempt. No test of that cell runs any more."""

    event: Literal["quarantined"] = "quarantined"
    cell: str
    reason: str


class RunCutShort(Event):
    """The run ended early because no further test could run."""

    event: Literal["stopped"] = "stopped"
    reason: str
    tests: tuple[str, ...] = ()
    """Tests whose results are discarded: what stopped the run may have affected them."""
    cells: tuple[str, ...] = ()
    """Cells released from quarantine for the same reason."""


class RunEnded(Event):
    """The run is complete."""

    event: Literal["ended"] = "ended"


AnyEvent = Annotated[
    RunBegun
    | RunResumed
    | TestStarted
    | TestBroken
    | TestFinished
    | TestInterrupted
    | CellQuarantined
    | RunCutShort
    | RunEnded,
    Field(discriminator="event"),
]
EVENTS: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent, config=ON_FIRST_USE)


class Journal(Lines):
    """A journal open for writing."""

    _lines = 0

    def __enter__(self) -> Self:
        """Open at the end; see `Lines`."""
        super().__enter__()
        self._lines = max((item.line for item in read(self.path)), default=0)
        return self

    @property
    def next_line(self) -> int:
        """Number of the line that is appended next."""
        return self._lines + 1

    def append(self, event: Event) -> None:
        """Write a line; it is on disk on return.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self.add_line(event.model_dump_json())
        self._lines += 1


@dataclass(frozen=True, slots=True)
class Damage:
    """Unreadable or missing lines."""

    line: int
    """The last of them."""
    text: str


def read(path: Path) -> Iterator[AnyEvent | Damage]:
    """Read a journal line by line.

    Raises:
        ConfigError: There is no such file, or this version cannot read it.
    """
    try:
        line = 0
        for raw in read_lines(path):
            event = _event(raw or b"", path, line + 1)
            if event is None:
                line += 1
                yield Damage(line, f"{path}: line {line} is incomplete, its writing was interrupted")
                continue
            if event.line != line + 1:
                yield Damage(event.line - 1, f"{path}: after line {line} comes line {event.line}")
            line = event.line
            yield event
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _event(raw: bytes, path: Path, number: int) -> AnyEvent | None:
    """Parse a line; None for a torn one: a part of a JSON object is not JSON."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict) and data.get("event") == "run" and data.get("version") != VERSION:
        raise ConfigError(f"{path}: the journal has {refused_version(data.get('version'), VERSION)}")
    try:
        return EVENTS.validate_json(raw)
    except ValidationError as error:
        raise ConfigError(f"{path}: line {number} is no event of a run: {error_text(error)}") from error

"""What a journal can say: one frozen model per kind of line."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.result import Environment, Result

Status = Literal["PASS", "FAIL", "SKIP"]
"""How a test ended, in Robot's words."""


class Choices(Frozen):
    """What somebody chose to measure. A run is resumed with the same choices or not at all."""

    topology: str
    """Path of the testbed's file."""
    topology_digest: str
    """SHA-256 of what the file says."""
    variables: dict[str, str]
    """Name to value of the variables that choose cells, frames and search, defaults included."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Tag patterns."""
    profile: SearchProfile
    """What the name of the search profile meant."""


class Event(Frozen):
    """One line of a journal."""

    __test__: ClassVar[bool] = False  # no pytest class

    line: int
    """Counts from 1: a line that went missing leaves a gap."""
    at: str
    """UTC, ISO 8601."""


class RunBegun(Event):
    """The header."""

    event: Literal["run"] = "run"
    version: Literal[1] = 1
    run_id: str
    boot_id: str | None
    """Of the kernel: another one later means that the machine went down in between."""
    choices: Choices
    environment: Environment
    command: Literal["local", "robot"] | None = None
    """Of this project, that started the run; None for plain Robot."""
    arguments: tuple[str, ...] = ()
    """Robot's command line, to repeat it; empty for plain Robot."""
    folder: str = ""
    """In which the command was given: relative paths start there."""


class RunResumed(Event):
    """The run goes on in another process, or in its next suite that opens the testbed."""

    event: Literal["resumed"] = "resumed"
    boot_id: str | None
    environment: Environment
    remarks: tuple[str, ...] = ()
    """What is not as it was before."""


class TestStarted(Event):
    """An attempt begins."""

    event: Literal["started"] = "started"
    test: str
    attempt: int


class TestBroken(Event):
    """An attempt broke the system under test; nothing of it counts."""

    event: Literal["broken"] = "broken"
    test: str
    attempt: int
    reason: str
    evidence: tuple[str, ...] = ()


class TestFinished(Event):
    """A test has ended and its record is complete."""

    event: Literal["finished"] = "finished"
    test: str
    status: Status
    result: Result


class TestInterrupted(Event):
    """Somebody or something stopped the run in the middle of a test; it is to be measured again."""

    event: Literal["interrupted"] = "interrupted"
    test: str
    reason: str
    result: Result | None = None
    """As far as it came."""


class CellQuarantined(Event):
    """A test has ended in which its cell broke the system under test once too often. No test of it is run any more."""

    event: Literal["quarantined"] = "quarantined"
    cell: str
    test: str
    reason: str
    status: Status
    result: Result


class RunCutShort(Event):
    """The run ended early because no further test could be run."""

    event: Literal["stopped"] = "stopped"
    reason: str
    tests: tuple[str, ...] = ()
    """Whose results count no more: what stopped the run may have spoilt them."""
    cells: tuple[str, ...] = ()
    """That are released from quarantine for the same reason."""


class RunEnded(Event):
    """The run came to its end."""

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
EVENTS: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)

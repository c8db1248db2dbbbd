"""The journal of one test's steps: a heading with the digest of what is measured, then one line of JSON per step.

A line is on disk before the next step begins. Steps of the same digest are not measured again when the run resumes; a
test with other settings begins below a new heading. Each study declares the models of its rows.
"""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import ON_FIRST_USE, Frozen, error_text, refused_version
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


class StepJournal(Lines, Generic[Row]):
    """A journal open for writing.

    `digest`: Of the settings and the system, see `digest_of`.
    """

    FILE: ClassVar[str]
    """Its name in the folder of the test."""
    KIND: ClassVar[str]
    """Of the test, such as `sizing`."""
    ROWS: ClassVar[TypeAdapter[Any]]
    """Reads a row."""

    def __init__(self, path: Path, digest: str) -> None:
        super().__init__(path)
        self._heading = Heading(journal=self.KIND, digest=digest)
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
        super().__enter__()
        try:
            if self._read() != self._heading:
                self.add_line(self._heading.model_dump_json())
        except BaseException:
            self.__exit__()
            raise
        return self

    def keep(self, row: Row) -> None:
        """Write a row; it is on disk on return.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self.add_line(row.model_dump_json())

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


class StepLine(Frozen, Generic[Row]):
    """Line for a step that is complete; what was deployed for it is removed."""

    line: Literal["step"] = "step"
    at: str
    """UTC, ISO 8601."""
    step: str
    """Its name, which no other step of the study has."""
    plan: str = ""
    """Digest of the plan by which it was deployed; empty without one."""
    row: Row
    facts: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Facts of the parts of the deployment."""
    notes: tuple[str, ...] = ()


class LoadLine(Frozen, Generic[Row]):
    """Line for what all steps need and was found before them, such as their load."""

    line: Literal["load"] = "load"
    at: str
    load: Row
    notes: tuple[str, ...] = ()


def step_line(row: Any) -> Any:  # noqa: ANN401 - a class that is made here
    """Return the class of lines with rows of a class."""
    return StepLine[row]


def load_line(load: Any) -> Any:  # noqa: ANN401 - as above
    """Return the class of lines with loads of a class."""
    return LoadLine[load]


@cache
def journal_of(study: str, row: type[Frozen], load: type[Frozen] | None) -> type[StepJournal[Any]]:
    """Return the class of the journal of a study, given the classes of its rows and loads."""
    lines, config = step_line(row), None
    if load is not None:
        lines, config = Annotated[lines | load_line(load), Field(discriminator="line")], ON_FIRST_USE
    rows: TypeAdapter[Any] = TypeAdapter(lines, config=config)
    names = {"FILE": f"{study}.jsonl", "KIND": f"{study} study", "ROWS": rows}
    return type(f"{study.title()}Journal", (StepJournal,), names)

"""A run and its journal: what has happened in it, in this process or before, and what happens next."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from uuid import uuid4

from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.model.result import Asked, Environment, Result
from resources.libraries.python.model.topology import World
from resources.libraries.python.recording.draft import utc_now
from resources.libraries.python.recording.journal import JOURNAL_FILE, Ended, Journal, ended_at
from resources.libraries.python.recording.journal_events import (
    AnyEvent,
    CellQuarantined,
    Choices,
    RunBegun,
    RunCutShort,
    RunEnded,
    RunResumed,
    Status,
    TestBroken,
    TestFinished,
    TestInterrupted,
    TestStarted,
)
from resources.libraries.python.recording.resume import Past, asked_key, cell_key, differences, past_of

MOST_ATTEMPTS = 2
"""A cell that breaks the system under test is tried once more."""
MOST_IN_A_ROW = 3
"""Where so many cells in a row end in quarantine, it is the machine that is broken and not the cells."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Command:
    """How a run was started, so that it can be started again."""

    name: Literal["local", "robot"] | None = None
    """`local` or `robot`; None for plain Robot."""
    arguments: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a test before it begins."""

    ended: Ended | None
    """Its end, when it has been measured already."""
    quarantine: str | None
    """Why its cell is not measured any more."""
    broken: tuple[str, ...]
    """How earlier attempts ended."""


class Run:
    """Writes the journal of a run and knows what is in it. To be closed."""

    def __init__(self, journal: Journal, past: Past | None) -> None:
        self._journal = journal
        self._past_or_none = past
        self._row: list[tuple[str, str]] = []
        self._is_whole = True
        self._held = ExitStack()
        self.remarks: tuple[str, ...] = ()
        """What somebody who resumes it should know."""

    @classmethod
    def begin(
        cls,
        folder: Path,
        choices: Choices,
        environment: Environment,
        command: Command,
        boot_id: str | None,
        *,
        file: str = JOURNAL_FILE,
    ) -> Self:
        """Begin a run in a folder; the journal of an earlier run there is put aside.

        Raises:
            CsitError: The folder cannot be written, or another process writes there.
        """
        path = folder / file
        remarks: tuple[str, ...] = ()
        if path.is_file():
            with Journal(path):  # nobody writes it
                aside = _free_name(path)
                path.rename(aside)
                remarks = (f"the journal of an earlier run in {folder} is kept as {aside.name}",)
        run = cls(Journal(path), None)
        run.remarks = remarks
        run._held.enter_context(run._journal)
        header = RunBegun(
            line=run._journal.next_line,
            at=utc_now(),
            run_id=str(uuid4()),
            boot_id=boot_id,
            choices=choices,
            environment=environment,
            command=command.name,
            arguments=command.arguments,
            folder=command.folder,
        )
        run._journal.append(header)
        run._past_or_none = Past(path, header, _boot_id=boot_id)
        return run

    @classmethod
    def resume(
        cls,
        folder: Path,
        choices: Choices,
        environment: Environment,
        world: World,
        boot_id: str | None,
        *,
        file: str = JOURNAL_FILE,
    ) -> Self:
        """Go on with the run of a folder.

        Raises:
            ConfigError: There is none, or it was begun with other choices or on another machine.
            CsitError: It is still going on.
        """
        past = past_of(folder, file)
        told = differences(past.header, choices, environment, world)
        run = cls(Journal(past.path), past)
        run._held.enter_context(run._journal)
        run.remarks = (*past.damage, *told)
        run._write(
            lambda line: RunResumed(line=line, at=utc_now(), boot_id=boot_id, environment=environment, remarks=told)
        )
        return run

    @classmethod
    def go_on(
        cls, folder: Path, choices: Choices, environment: Environment, boot_id: str | None, *, file: str = JOURNAL_FILE
    ) -> Self:
        """Go on with a run that this process has begun or resumed: another of its suites opens the testbed.

        A suite may choose other cells or frames than the one before.

        Raises:
            ConfigError: It is of another testbed, whose tests would have the same names in the journal.
        """
        past = past_of(folder, file)
        then = past.header.choices
        if then.topology_digest != choices.topology_digest:
            raise ConfigError(
                f"suites of one run are on one testbed: {then.topology} for the first, {choices.topology} for this; "
                "give each a run and a folder (-d) of its own"
            )
        run = cls(Journal(past.path), past)
        run._held.enter_context(run._journal)
        run._write(lambda line: RunResumed(line=line, at=utc_now(), boot_id=boot_id, environment=environment))
        return run

    @property
    def past(self) -> Past:
        """All that has happened until now."""
        if self._past_or_none is None:
            raise CsitError("the run has not begun")
        return self._past_or_none

    def standing(self, asked: Asked) -> Standing:
        """What is known of a test before it begins.

        Raises:
            ConfigError: It was measured with something else in mind.
        """
        test = asked_key(asked)
        offset = self.past.done.get(test)
        if offset is not None:
            try:
                ended = ended_at(self.past.path, offset)
            except CsitError as error:
                _log.warning("%s is measured again: %s", test, error)
                del self.past.done[test]
            else:
                if ended.result.asked != asked:
                    raise ConfigError(f"{test} was measured with other settings; begin a new run for these")
                return Standing(ended, None, ())
        return Standing(None, self.past.quarantined.get(cell_key(asked)), self.past.broken.get(test, ()))

    def started(self, asked: Asked) -> int:
        """An attempt begins; return its number, which counts from 1."""
        test = asked_key(asked)
        attempt = len(self.past.broken.get(test, ())) + 1
        self._write(lambda line: TestStarted(line=line, at=utc_now(), test=test, attempt=attempt))
        return attempt

    def broken(self, asked: Asked, reason: str, evidence: tuple[str, ...] = ()) -> tuple[str, ...]:
        """An attempt broke the system under test; return the reasons of all attempts."""
        test = asked_key(asked)
        attempt = len(self.past.broken.get(test, ())) + 1
        self._write(
            lambda line: TestBroken(
                line=line, at=utc_now(), test=test, attempt=attempt, reason=reason, evidence=evidence
            )
        )
        return self.past.broken[test]

    def ended(self, result: Result, status: Status) -> None:
        """A test has ended, for good.

        Raises:
            RunStopped: This was one cell too many in a row that went into quarantine.
        """
        test, cell = asked_key(result.asked), cell_key(result.asked)
        if result.quarantined is None:
            self._write(lambda line: TestFinished(line=line, at=utc_now(), test=test, status=status, result=result))
            if result.passed:
                self._row.clear()
            return
        reason = result.quarantined
        self._write(
            lambda line: CellQuarantined(
                line=line, at=utc_now(), cell=cell, test=test, reason=reason, status=status, result=result
            )
        )
        self._row.append((test, cell))
        if len(self._row) >= MOST_IN_A_ROW:
            sentence = (
                f"{len(self._row)} cells in a row broke the system under test, the last one because {reason}: look at "
                "the machine, then resume the run"
            )
            self.stopped(sentence, self._row)
            raise RunStopped(sentence)

    def interrupted(self, asked: Asked, reason: str, result: Result | None) -> None:
        """The run is stopped in the middle of a test."""
        self._is_whole = False
        test = asked_key(asked)
        self._write(lambda line: TestInterrupted(line=line, at=utc_now(), test=test, reason=reason, result=result))

    def stopped(self, reason: str, spoilt: Sequence[tuple[str, str]] = ()) -> None:
        """No further test can be run; the tests and cells that this may have spoilt are measured again."""
        if not self._is_whole:
            return
        self._is_whole = False
        tests, cells = tuple(test for test, _ in spoilt), tuple(cell for _, cell in spoilt)
        self._write(lambda line: RunCutShort(line=line, at=utc_now(), reason=reason, tests=tests, cells=cells))

    def close(self) -> None:
        """The run ends in this process, at its end unless it was interrupted or stopped."""
        with self._held:
            if self._is_whole:
                self._write(lambda line: RunEnded(line=line, at=utc_now()))

    def _write(self, event_at: Callable[[int], AnyEvent]) -> None:
        offset = self.past.path.stat().st_size
        event = event_at(self._journal.next_line)
        self._journal.append(event)
        self.past.fold(event, offset)


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return aside

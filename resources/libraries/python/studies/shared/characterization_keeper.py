"""What the keywords keep of a characterization test: its record, its tables, its message in Robot's log."""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from robot.api import logger

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.recording.characterization import CharacterizationDraft
from resources.libraries.python.recording.environment import boot_id
from resources.libraries.python.recording.file_names import FileNames
from resources.libraries.python.recording.headed_journal import HeadedJournal
from resources.libraries.python.recording.journal import CHARACTERIZATION_JOURNAL
from resources.libraries.python.recording.journal_events import Choices
from resources.libraries.python.recording.journal_run import Run
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.packed import pack_characterization
from resources.libraries.python.recording.space import Reserve
from resources.libraries.python.recording.writer import (
    RESULTS_FOLDER,
    check_folder,
    write_characterization,
    write_tables,
)
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.density.keeper import RESULT_SPACE_BYTES, EndOfRun
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.shared.choices import Lookup, choices, command, resumed_folder
from resources.libraries.python.studies.shared.robot_context import variable
from resources.libraries.python.studies.sweep.analysis.tables import csv_text, tables_of

SWEEP_VARIABLES = ("SWEEP_RATES", "SWEEP_DURATION", "STOP_LOSS", "FLOWS", "PROTOCOL", "GENERATOR", "PROFILES")
"""Those of a sweep that no suite sets by itself; what a suite sets is in the digest of its tests."""

AnyJournal = TypeVar("AnyJournal", bound=HeadedJournal[Any])

_BEGUN_HERE: set[Path] = set()
"""Folders of runs that this process has begun or goes on with: each of their suites opens the testbed anew."""
_NAMES: defaultdict[Path, FileNames] = defaultdict(FileNames)
"""By folder of a run: its suites have a keeper each."""


@contextmanager
def ending() -> Iterator[None]:
    """Make an end of the run of what makes further tests pointless.

    Raises:
        EndOfRun: In the place of RunStopped.
    """
    try:
        yield
    except RunStopped as error:
        raise EndOfRun(str(error)) from error


def characterization_choices(lookup: Lookup, topology: Topology) -> Choices:
    """All that somebody chose, for the journal. Tests that say more than the variables have a digest of their own."""
    found = choices(lookup, topology)
    said = {name: str(value) for name in SWEEP_VARIABLES if (value := lookup(name))}
    return found.model_copy(update={"variables": {**found.variables, **said}})


class CharacterizationKeeper:
    """Keeps the records of a run from `open` to `close`, and what its tests need to go on when it is cut short."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._reserve: Reserve | None = None
        self._resumed: Path | None = None
        self._goes_on = False
        self._held = ExitStack()
        self._test = ExitStack()
        self._journal: HeadedJournal[Any] | None = None

    def open(self, folder: Path) -> None:
        """Check the folder of the results, and hold space for the end of the run.

        Raises:
            CsitError: It cannot be written, or has no space.
        """
        check_folder(folder, RESULT_SPACE_BYTES)
        self._folder = folder
        self._reserve = Reserve(folder)
        self._reserve.hold()

    def begin(self, lookup: Lookup, topology: Topology, environment: Environment) -> None:
        """Begin the journal of the run, or go on with it; to be called between `open` and `close`.

        Raises:
            CsitError: The run is going on elsewhere, or was begun with other choices.
        """
        folder, resumed = self._opened, resumed_folder(lookup)
        same = resumed is not None and resumed.resolve() == folder.resolve()
        again = folder.resolve() in _BEGUN_HERE
        chosen = characterization_choices(lookup, topology)
        if again:
            run = Run.go_on(folder, chosen, environment, boot_id(), file=CHARACTERIZATION_JOURNAL)
        elif same and (folder / CHARACTERIZATION_JOURNAL).is_file():
            run = Run.resume(
                folder, chosen, environment, topology.world, boot_id(), file=CHARACTERIZATION_JOURNAL
            )  # fmt: skip
        else:
            run = Run.begin(folder, chosen, environment, command(lookup), boot_id(), file=CHARACTERIZATION_JOURNAL)
        self._held.callback(run.close)
        self._resumed, self._goes_on = resumed, same
        _BEGUN_HERE.add(folder.resolve())
        for line in run.remarks:
            logger.warn(line)

    def close(self) -> None:
        """Close the journal, give the space back."""
        self._test.close()
        with self._held:
            if self._reserve is not None:
                self._reserve.free()

    def journal(self, kind: type[AnyJournal], digest: str) -> AnyJournal:
        """The journal of the present test, open until the test ends.

        Where the run that is resumed has another folder, this is a new run that begins with a copy of its journal.

        Args:
            kind: Of the journal.
            digest: Of what the test measures, and of the system.

        Raises:
            CsitError: It cannot be written, or is none that this version reads.
            EndOfRun: There is no space for it.
        """
        self._test.close()
        path = self.tables_in(self._opened) / kind.FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not self._goes_on:
                path.unlink(missing_ok=True)
                if self._resumed is not None and (earlier := self.tables_in(self._resumed) / kind.FILE).exists():
                    shutil.copyfile(earlier, path)
            there = path.exists()
        except OSError as error:
            raise CsitError(f"{path}: cannot be written: {error.strerror}") from error
        journal = kind(path, digest)
        with ending():
            self._test.enter_context(journal)
        self._journal = journal
        self._test.callback(self._forget)
        for line in journal.remarks:
            logger.warn(line)
        if there and not journal.rows:
            logger.warn(f"{path} is of a {kind.KIND} with other settings, or of nothing yet: this one begins anew")
        return journal

    def tables_in(self, folder: Path) -> Path:
        """The folder of the present test's tables in this run's folder, or in that of a run that is resumed."""
        return write_tables(self._name, {}, folder)

    @property
    def _name(self) -> str:
        """What the files of the present test are called."""
        return _NAMES[self._opened.resolve()].of(_test_id(), str(variable("TEST NAME")))

    def carried_over(self, journal: HeadedJournal[Any]) -> Characterization | None:
        """The record of the present test where it had passed before the run was cut short; logged once more.

        None of a test that had not, and of one in another folder than that of the run that is resumed.
        """
        if journal.complete is None or not self._goes_on:
            return None
        path = self._opened / RESULTS_FOLDER / journal.complete.record
        try:
            record = Characterization.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            logger.warn(f"{path} cannot be read any more, its test is run again: {error}")
            return None
        self._test.close()
        logger.info(f"{RESULT_MARKER}{pack_characterization(record)}")
        logger.info(f"carried over; measured from {record.started_at} to {record.finished_at}")
        return record

    def _forget(self) -> None:
        self._journal = None

    @property
    def _opened(self) -> Path:
        if self._folder is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._folder

    def check(self) -> None:
        """See that there is space for another test.

        Raises:
            EndOfRun: There is not.
        """
        if self._reserve is None:
            return
        with ending():
            self._reserve.check()

    def end_test(
        self, draft: CharacterizationDraft, remove: Callable[[], str | None], status: str, message: str
    ) -> Characterization:
        """Remove what was deployed, write the record of the test.

        Args:
            draft: What is known, whatever happened.
            remove: Removes what was deployed; what went wrong with it.
            status: Robot's, of the test.
            message: Robot's.

        Raises:
            EndOfRun: No further test can be run.
            CsitError: The removal failed.
        """
        with self._test:
            return self._end_test(draft, remove, status, message)

    def _end_test(
        self, draft: CharacterizationDraft, remove: Callable[[], str | None], status: str, message: str
    ) -> Characterization:
        stop: RunStopped | None = None
        try:
            removal = remove() or ""
        except RunStopped as error:
            removal, stop = str(error), error
        record = draft.finish(
            test_id=_test_id(),
            test_name=str(variable("TEST NAME")),
            tags=tuple(variable("TEST TAGS")),
            passed=status == "PASS" and not removal,
            message="; ".join(filter(None, [message, removal])),
        )
        try:
            self._write(record)
            if stop is not None:
                raise stop
        except RunStopped as error:
            self.close()
            raise EndOfRun(str(error)) from error
        if removal:
            raise CsitError(removal)
        return record

    def _write(self, record: Characterization) -> None:
        logger.info(f"{RESULT_MARKER}{pack_characterization(record)}")
        path = write_characterization(record, self._opened, self._name)
        logger.info(f"record: {path}")
        found = (*tables_of(record), *chain_tables(record), *interference_tables(record))
        if tables := {f"{name}.csv": csv_text(rows) for name, rows in found}:
            logger.info(f"tables: {write_tables(self._name, tables, self._opened)}")
        if self._journal is not None and record.passed:
            self._journal.end(record.finished_at, path.name)


def _test_id() -> str:
    """Of the present test: Robot's long name."""
    return f"{variable('SUITE NAME')}.{variable('TEST NAME')}"

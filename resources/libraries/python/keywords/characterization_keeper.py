"""What the keywords keep of a characterization test: its record, its tables, its message in Robot's log."""

from collections.abc import Callable
from pathlib import Path

from robot.api import logger

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.keywords.keeper import RESULT_SPACE_BYTES, EndOfRun
from resources.libraries.python.keywords.running import variable
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.profiling.tables import csv_text, tables_of
from resources.libraries.python.recording.characterization import CharacterizationDraft
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.packed import pack_characterization
from resources.libraries.python.recording.space import Reserve
from resources.libraries.python.recording.writer import check_folder, write_characterization, write_tables


class CharacterizationKeeper:
    """Keeps the records of a run from `open` to `close`.

    There is no journal: a run that was cut short has the records of its tests, and is begun anew.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._reserve: Reserve | None = None

    def open(self, folder: Path) -> None:
        """Check the folder of the results, and hold space for the end of the run.

        Raises:
            CsitError: It cannot be written, or has no space.
        """
        check_folder(folder, RESULT_SPACE_BYTES)
        self._folder = folder
        self._reserve = Reserve(folder)
        self._reserve.hold()

    def close(self) -> None:
        """Give the space back."""
        if self._reserve is not None:
            self._reserve.free()

    def check(self) -> None:
        """See that there is space for another test.

        Raises:
            EndOfRun: There is not.
        """
        if self._reserve is None:
            return
        try:
            self._reserve.check()
        except RunStopped as error:
            raise EndOfRun(str(error)) from error

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
        stop: RunStopped | None = None
        try:
            removal = remove() or ""
        except RunStopped as error:
            removal, stop = str(error), error
        record = draft.finish(
            test_id=f"{variable('SUITE NAME')}.{variable('TEST NAME')}",
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
        assert self._folder is not None  # noqa: S101 - the run is open
        logger.info(f"{RESULT_MARKER}{pack_characterization(record)}")
        logger.info(f"record: {write_characterization(record, self._folder)}")
        if tables := {f"{name}.csv": csv_text(rows) for name, rows in tables_of(record)}:
            logger.info(f"tables: {write_tables(record.test_name, tables, self._folder)}")

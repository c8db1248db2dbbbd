"""What the keywords keep of a run: its journal, space for its end, and what was measured before it was resumed."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from robot.api import Failure, SkipExecution, logger
from robot.errors import ExecutionFailed, PassExecution

from resources.libraries.python.errors import CsitError, RunStopped, SystemBroken
from resources.libraries.python.model.result import Asked, Environment, Result
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.recording.environment import boot_id
from resources.libraries.python.recording.journal import Ended
from resources.libraries.python.recording.journal_run import Run
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.packed import pack
from resources.libraries.python.recording.resume import cell_key, has_only_characterizations, past_of
from resources.libraries.python.recording.space import Reserve
from resources.libraries.python.recording.writer import check_folder, write_result
from resources.libraries.python.studies.density.progress import ConsoleProgress
from resources.libraries.python.studies.density.retry import measure_with_care
from resources.libraries.python.studies.density.run import Experiment
from resources.libraries.python.studies.shared.choices import Lookup, choices, command, resumed_folder

RESULT_SPACE_BYTES = 50_000_000
"""The reserve included."""
_SIGNAL = "Execution terminated by signal"
"""What Robot says of a test that was interrupted by Ctrl-C or SIGTERM."""


class EndOfRun(Exception):
    """Ends the whole run, with its text as the reason."""

    ROBOT_EXIT_ON_FAILURE = True
    ROBOT_SUPPRESS_NAME = True


class Keeper:
    """Keeps a run from `open` to `close`."""

    def __init__(self, progress: ConsoleProgress) -> None:
        self._progress = progress
        self._folder: Path | None = None
        self._begun_in: Path | None = None
        """The folder of the run that an earlier suite has begun or resumed: each suite file opens the testbed anew."""
        self._run_or_none: Run | None = None
        self._reserve: Reserve | None = None
        self._cut_short = False
        self._held = ExitStack()

    def prepare(self, lookup: Lookup, folder: Path) -> None:
        """Check the folder of the results.

        Raises:
            CsitError: It cannot be written, has no space, or is not that of the run that is to be resumed.
        """
        resumed = resumed_folder(lookup)
        if resumed is not None and resumed.resolve() != folder.resolve():
            raise CsitError(f"a run is resumed in its own folder; say -d {resumed}")
        check_folder(folder, RESULT_SPACE_BYTES)
        self._folder = folder

    def open(self, lookup: Lookup, topology: Topology, environment: Environment) -> None:
        """Begin the journal of a run, or go on with it; suites of one Robot run share it.

        Raises:
            CsitError: The run is going on elsewhere, or was begun with other choices.
        """
        folder = self._prepared()
        chosen = choices(lookup, topology)
        if self._begun_in == folder:
            run = Run.go_on(folder, chosen, environment, boot_id())
        elif resumed_folder(lookup) is None or has_only_characterizations(folder):
            run = Run.begin(folder, chosen, environment, command(lookup), boot_id())
        else:
            run = Run.resume(folder, chosen, environment, topology.world, boot_id())
        self._held.callback(run.close)
        self._begun_in = folder
        for line in run.remarks:
            logger.warn(line)
        self._reserve = Reserve(folder)
        self._held.callback(self._reserve.free)
        self._reserve.hold()
        self._run_or_none = run

    def close(self) -> None:
        """Close the journal."""
        self._run_or_none = None
        with self._ending():
            self._held.close()

    def done_before(self, lookup: Lookup) -> Collection[str]:
        """Names of tests that need not be measured any more."""
        if self._run_or_none is not None:
            return self._run_or_none.past.done
        folder = resumed_folder(lookup)
        return past_of(folder).done if folder is not None and not has_only_characterizations(folder) else ()

    def begin_test(self, asked: Asked) -> None:
        """Let a test begin; one that was measured before ends here as it ended then.

        Raises:
            PassExecution, Failure, SkipExecution: It ended so, or its cell is in quarantine.
        """
        self._cut_short = False
        standing = self._run.standing(asked)
        if standing.ended is not None:
            self._progress.carried()
            _carry_over(standing.ended)
        if standing.quarantine is not None:
            self._progress.left_out()
            raise SkipExecution(f"quarantined: {cell_key(asked)}: {standing.quarantine}")

    def measure(self, experiment: Experiment, again: Callable[[], Experiment], phases: Callable[[], object]) -> None:
        """Run the phases of a test with care.

        Raises:
            EndOfRun: No further test can be run.
            Failure: The cell goes into quarantine.
        """
        assert self._reserve is not None  # noqa: S101 - the run is open
        try:
            with self._ending():
                measure_with_care(
                    self._run, experiment, again, phases, check=self._reserve.check, progress=self._progress
                )
        except EndOfRun:
            self._cut_short = True
            raise
        except SystemBroken as error:
            raise Failure(str(error)) from error
        except ExecutionFailed as failure:  # by a signal, where it ends the run
            self._cut_short = failure.exit
            raise

    def end_test(self, finish: Callable[[str], Result], experiment: Experiment, message: str, status: str) -> None:
        """Remove the cell, write the record of the test.

        Args:
            finish: Makes the record, given what went wrong with the removal.
            experiment: What ends.
            message: Robot's, of the test.
            status: Robot's.

        Raises:
            EndOfRun: No further test can be run.
            CsitError: The removal failed.
        """
        cut_short = self._cut_short or message.startswith(_SIGNAL)
        stop: RunStopped | None = None
        try:
            removal = experiment.remove() or ""
        except RunStopped as error:
            removal, stop, cut_short = str(error), error, True
        result = finish(removal)
        with self._ending():
            self._write(result, message, cut_short=cut_short)
            logger.info(f"{RESULT_MARKER}{pack(result)}")
            for line in result.verdict.evidence:
                logger.info(f"verdict: {line}")
            self._progress.done(result)
            if not cut_short:
                self._run.ended(result, "PASS" if result.passed else "SKIP" if status == "SKIP" else "FAIL")
            if stop is not None:
                raise stop
        if removal:
            raise CsitError(removal)

    def _write(self, result: Result, message: str, *, cut_short: bool) -> None:
        """A test that was cut short is measured again, so its record is worth having and no more."""
        with suppress(*([RunStopped] if cut_short else [])):
            logger.info(f"record: {write_result(result, self._prepared())}")
            if cut_short:
                self._run.interrupted(result.asked, message, result)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Make an end of the run of what makes further tests pointless."""
        try:
            yield
        except RunStopped as error:
            if self._reserve is not None:
                self._reserve.free()
            if self._run_or_none is not None:
                with suppress(RunStopped):
                    self._run_or_none.stopped(str(error))
            self._progress.stopped(str(error))
            raise EndOfRun(str(error)) from error

    @property
    def _run(self) -> Run:
        if self._run_or_none is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._run_or_none

    def _prepared(self) -> Path:
        if self._folder is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._folder


def _carry_over(ended: Ended) -> None:
    """End the present test as it ended when it was measured."""
    result = ended.result
    logger.info(f"{RESULT_MARKER}{pack(result)}")
    logger.info(f"carried over from the journal; measured from {result.started_at} to {result.finished_at}")
    match ended.status:
        case "PASS":
            raise PassExecution("")
        case "SKIP":
            raise SkipExecution(result.message)
        case "FAIL":
            raise Failure(result.message)

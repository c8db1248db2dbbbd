"""State of a run: its journal, space for its last records, and the record of every test; retry and quarantine.

What breaks the system under test is tried once more, then given up. A result is never tried again, also not
`no traffic`. Tests whose phases are Robot keywords are repeated as a whole; studies that deploy one step after the
other repeat the step (`step_study.py`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from robot.api import Failure, SkipExecution, logger
from robot.errors import ExecutionFailed, PassExecution

from resources.libraries.python.errors import ConfigError, CsitError, RunStopped, SystemBroken, chain
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.bounds import LARGEST_RECORD_BYTES
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import readable_cells
from resources.libraries.python.model.request.variables import Lookup
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.recording.environment import boot_id
from resources.libraries.python.recording.journal import JOURNAL_FILE, Status
from resources.libraries.python.recording.lines import refuse_active
from resources.libraries.python.recording.marker import RESULT_MARKER, plain_message
from resources.libraries.python.recording.records import NotARecord, read_record
from resources.libraries.python.recording.run_journal import MAX_ATTEMPTS, EndFacts, RunJournal, TestKey, past_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.recording.writer import (
    RESULTS_FOLDER,
    FileNames,
    Reserve,
    check_folder,
    pack,
    remove_half_written,
    write_record,
    write_tables,
)
from resources.libraries.python.redaction import command_text
from resources.libraries.python.search.qualification import UnqualifiedLoads
from resources.libraries.python.studies.shared.boundary import variable
from resources.libraries.python.studies.shared.choices import choices, command, resumed_folder
from resources.libraries.python.studies.shared.progress import StudyProgress
from resources.libraries.python.studies.shared.study import StudyTest
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of
from resources.libraries.python.whole_files import write_whole

RESULT_SPACE_BYTES = 50_000_000
"""Free space that a run needs, the reserve included."""
_SIGNAL = "Execution terminated by signal"
"""Robot's message of a test that was interrupted by Ctrl-C or SIGTERM."""
Tables = Callable[[Any], dict[str, str]]
"""CSV files of a record, by name."""
_MAX_IN_ONE_LINE = 3
AnyStudy = StudyTest[Any]
_Deployed = TypeVar("_Deployed", bound=AnyStudy)
_BEGUN: set[Path] = set()
"""Folders of runs that this process has begun or resumed: each of their suites opens the testbed again."""
_NAMES: defaultdict[Path, FileNames] = defaultdict(FileNames)
"""By folder of a run, shared by its suites."""


def ends_run(tags: Collection[str], message: str) -> bool:
    """Whether a test of Robot tells that the run has ended: by a signal, also one in a teardown, or before the test."""
    return "robot:exit" in tags or _SIGNAL in message


def measure_with_care(
    run: RunJournal,
    key: TestKey,
    test: _Deployed,
    again: Callable[[], _Deployed],
    phases: Callable[[], object],
    *,
    check: Callable[[], None],
    on_broken: Callable[[str, bool], None],
) -> None:
    """Run the phases of a test; where they break the system under test, remove the deployment and run them once more.

    `again`: Makes the next attempt the present one.
    `phases`: Robot keywords; fail as Robot's keywords do.
    `check`: Called before each attempt; raises where no test can run.
    `on_broken`: Called after a broken attempt with the reason, and whether there is another attempt.

    Raises:
        SystemBroken: Every attempt broke it; the cell goes into quarantine.
        ExecutionFailed: The phases failed and that is a result, or the run is being ended.
        RunStopped: The machine cannot be used any more.
    """
    reasons = run.history(key).broken
    while len(reasons) < MAX_ATTEMPTS:
        check()
        run.started(key)
        test.draft.broken = reasons
        found = _attempt(test, phases, last=len(reasons) + 1 == MAX_ATTEMPTS)
        if not found:
            return
        removal = test.remove()
        reasons = run.broken(key, found[0], (*found[1:], *([removal] if removal else [])))
        is_last = len(reasons) >= MAX_ATTEMPTS
        on_broken(found[0], not is_last)
        if not is_last:
            test = again()
    test.draft.broken, test.draft.quarantined = reasons, reasons[-1]
    raise SystemBroken(f"quarantined after {len(reasons)} attempts: {reasons[-1]}")


def _attempt(test: AnyStudy, phases: Callable[[], object], *, last: bool) -> tuple[str, ...]:
    """One attempt; return why and how the system under test was broken, nothing when it was not."""
    try:
        phases()
    except ExecutionFailed as failure:
        if failure.exit or failure.skip or failure.timeout:
            raise
        cause = _cause(failure)
        found = test.problems() if test.is_deployed else ()
        if cause is not None and is_breakage(cause):
            # A part that died is the reason of the error in another one.
            return _reasons([*dict.fromkeys([reason_of(cause), *found])])
        if not found:
            raise
        return _reasons(found)
    found = test.problems() if test.is_deployed else ()
    # If a data thread moves again, the verdict of the number is affinity-lost.
    return _reasons(found or (() if last or not test.is_deployed else test.moved()))


def _reasons(found: Sequence[str]) -> tuple[str, ...]:
    """The first few in one line, followed by all of them."""
    return ("; ".join(found[:_MAX_IN_ONE_LINE]), *found) if found else ()


def _cause(failure: ExecutionFailed) -> BaseException | None:
    """The error of a library keyword: Robot keeps its text, Python the chain of exceptions."""
    first: BaseException | None = failure.get_errors()[0]
    behind = () if first is None else chain(first, lambda each: each.__cause__ or each.__context__)
    return next((each for each in behind if not isinstance(each, ExecutionFailed)), None)


class EndOfRun(Exception):
    """Ends the whole run, with its text as the reason."""

    ROBOT_EXIT_ON_FAILURE = True
    ROBOT_SUPPRESS_NAME = True


class StudyRunState:
    """Keeps a run from `open` to `close`, for tests of any study."""

    def __init__(self, progress: StudyProgress) -> None:
        self._progress = progress
        self._folder: Path | None = None
        self._resumed: Path | None = None
        """Folder of the run that is resumed, which may be another one."""
        self._run_or_none: RunJournal | None = None
        self._reserve: Reserve | None = None
        self._key: TestKey | None = None
        self._cut_short = False
        self.noise: tuple[CpuNoise, ...] = ()
        """Noise floor of the testbed, for all records."""
        self.beyond: UnqualifiedLoads | None = None
        """Qualification of the generator, for all records, and trials beyond that since the last record."""
        self.ends_run = False
        """Whether a test was the last one of the run: a signal or an error has ended it."""
        self._held = ExitStack()
        self._test = ExitStack()

    def prepare(self, lookup: Lookup, folder: Path, *, elsewhere: bool) -> None:
        """Check the folder of the results.

        `elsewhere`: whether a run may be resumed in another folder, with the steps of its tests.

        Raises:
            CsitError: It cannot be written, has no space, is not that of the run to resume, or another process writes
                its results there.
        """
        self._resumed = resumed_folder(lookup)
        if self._resumed is not None and self._resumed.resolve() != folder.resolve() and not elsewhere:
            raise CsitError("a run is resumed in its own folder; use ", command_text("-d", self._resumed))
        check_folder(folder, RESULT_SPACE_BYTES)
        if folder.resolve() not in _BEGUN:
            refuse_active(folder / JOURNAL_FILE)
            remove_half_written(folder)
        self._folder = folder

    def open(self, lookup: Lookup, topology: Topology, environment: Environment) -> None:
        """Begin the journal of a run, or continue it; suites of one Robot run share it.

        Raises:
            CsitError: Another process is running it, or it was begun with other choices.
        """
        folder, chosen = self._opened, choices(lookup, topology)
        if folder.resolve() in _BEGUN:
            run = RunJournal.next_suite(folder, chosen, environment, boot_id())
        elif self._continues:
            run = RunJournal.resume(folder, chosen, environment, topology.world, boot_id())
        else:
            run = RunJournal.begin(folder, chosen, environment, command(lookup), boot_id())
        self._held.callback(run.close)
        _BEGUN.add(folder.resolve())
        for line in run.remarks:
            logger.warn(line)
        self._reserve = Reserve(folder)
        self._held.callback(self._reserve.free)
        self._reserve.hold()
        self._run_or_none = run

    def close(self) -> None:
        """Close the journal and release the reserved space."""
        self._test.close()
        self._run_or_none = None
        with self.ending():
            self._held.close()

    def done_before(self, lookup: Lookup) -> Collection[str]:
        """Names of tests that have ended, as the journal has them."""
        if self._run_or_none is not None:
            return {test for test, _ in self._run.past.done}
        folder = resumed_folder(lookup)
        return {test for test, _ in past_of(folder).done} if folder is not None else ()

    def begin_test(
        self, key: TestKey, *, failed_again: bool, on_carried: Callable[[Any], None] = lambda _: None
    ) -> None:
        """Let a test begin; one that has ended before the run was resumed ends here in the same way.

        `failed_again`: whether to run a failed test again, which measures the steps that it lacks. One that is in
        quarantine stays there.
        `on_carried`: takes the record of a test that has ended before.

        Raises:
            PassExecution, Failure, SkipExecution: It has ended in this way, or its cell is in quarantine.
            EndOfRun: There is no space for another test.
        """
        self._cut_short = False
        self._key = key
        self._progress.begin_test(_test_id())
        history = self._run.history(key)
        ended = history.ended
        if ended is not None and (ended.status == "PASS" or not failed_again or ended.is_quarantined):
            record = self._record_of(ended)
            if record is not None:
                on_carried(record)
                _carry_over(ended, record)
            self._run.discard(key)
        elif history.quarantine is not None:
            raise SkipExecution(f"quarantined: {readable_cells(key.cell)}: {history.quarantine}")
        self.check()

    def begin_steps(self) -> None:
        """The steps of the present test begin."""
        self._run.started(self._present)

    def step_journal(self, kind: type[StepJournal[Any]]) -> StepJournal[Any]:
        """Open the journal of the present test's steps, until the test ends.

        Where the run to resume has another folder, this is a new run that begins with a copy of its steps.

        Raises:
            CsitError: It cannot be written, or this version cannot read it.
            EndOfRun: There is no space for it.
        """
        self._test.close()
        path = self.tables_in(self._opened) / kind.FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not self._continues:
                path.unlink(missing_ok=True)
                if self._resumed is not None and (earlier := self.tables_in(self._resumed) / kind.FILE).exists():
                    write_whole(path, earlier.read_bytes())
            there = path.exists()
        except OSError as error:
            raise CsitError(f"{path}: cannot be written: {error.strerror}") from error
        journal = kind(path, self._present.digest)
        with self.ending():
            self._test.enter_context(journal)
        for line in journal.remarks:
            logger.warn(line)
        if there and not journal.rows:
            logger.warn(f"{path} has no {kind.KIND} with these settings: all steps are measured")
        return journal

    def tables_in(self, folder: Path) -> Path:
        """Folder of the present test's tables, in this run's folder or in that of the run to resume."""
        return write_tables(self._name, {}, folder)

    def check(self) -> None:
        """Check that there is space for another test.

        Raises:
            EndOfRun: There is not.
        """
        if self._reserve is not None:
            with self.ending():
                self._reserve.check()

    def measure(self, test: _Deployed, again: Callable[[], _Deployed], phases: Callable[[], object]) -> None:
        """Run the phases of a test, see `measure_with_care`.

        Raises:
            EndOfRun: No further test can run.
            Failure: The cell goes into quarantine.
        """
        assert self._reserve is not None  # noqa: S101 - the run is open
        try:
            with self.ending():
                measure_with_care(
                    self._run,
                    self._present,
                    test,
                    again,
                    phases,
                    check=self._reserve.check,
                    on_broken=lambda reason, more: self._progress.line(
                        f"{reason}; {'trying again' if more else 'quarantined'}"
                    ),
                )
        except EndOfRun:
            self._cut_short = True
            raise
        except SystemBroken as error:
            raise Failure(str(error)) from error
        except ExecutionFailed as failure:  # by a signal, where it ends the run
            self._cut_short = failure.exit
            raise

    def end_test(
        self,
        test: AnyStudy,
        status: str,
        message: str,
        tables: Tables,
        report: Callable[[Any], None],
    ) -> Any:  # noqa: ANN401 - a record of any study
        """Remove what is deployed and write the record of the test.

        Returns:
            The record.

        Raises:
            EndOfRun: No further test can run.
            CsitError: The removal failed.
        """
        cut_short = self._cut_short or message.startswith(_SIGNAL)
        stop: RunStopped | None = None
        try:
            removal = test.remove() or ""
        except RunStopped as error:
            removal, stop, cut_short = str(error), error, True
        self.ends_run = self.ends_run or cut_short
        test.draft.noise = self.noise
        if self.beyond is not None:
            test.draft.qualification, beyond = self.beyond.qualification, self.beyond.take()
            test.draft.warnings += self.beyond.other_version(test.draft.facts.get("generator", {}))
            if not test.draft.judged:  # the verdict says it otherwise
                test.draft.warnings += beyond
        record: Record = test.draft.finish(
            test_id=_test_id(),
            test_name=str(variable("TEST NAME")),
            tags=tuple(variable("TEST TAGS")),
            passed=status == "PASS" and not removal,
            skipped=status == "SKIP" and not removal,
            message="; ".join(filter(None, [plain_message(message), removal])),
        )
        with self._test, self.ending():
            file = ""
            with suppress(*([RunStopped] if cut_short else [])):  # a test that was cut short is measured again
                file = self._write(record, tables)
            report(record)
            if cut_short:
                with suppress(RunStopped):
                    self._run.interrupted(self._present, message, file)
            else:
                ended: Status = "PASS" if record.passed else "SKIP" if record.skipped else "FAIL"
                self._run.ended(self._present, ended, file, record.quarantined)
                if record.passed:
                    self._progress.end_test()
            if stop is not None:
                raise stop
        if removal:
            raise CsitError(removal)
        return record

    @contextmanager
    def ending(self) -> Iterator[None]:
        """End the run on errors that make further tests pointless.

        Raises:
            EndOfRun: In the place of RunStopped.
        """
        try:
            yield
        except RunStopped as error:
            self.ends_run = True
            if self._reserve is not None:
                self._reserve.free()
            if self._run_or_none is not None:
                with suppress(RunStopped):
                    self._run_or_none.stopped(str(error))
            self._progress.line(str(error))
            raise EndOfRun(str(error)) from error

    def _write(self, record: Record, tables: Tables) -> str:
        text = record.model_dump_json()
        # First: on a full disk it frees the reserve, which output.xml needs.
        path = write_record(record, self._opened, self._name, text)
        logger.info(f"{RESULT_MARKER}{pack(record, text)}")
        for line in record.verdict.evidence if record.verdict else ():
            logger.info(f"verdict: {line}")
        logger.info(f"record: {path}")
        if found := tables(record):
            logger.info(f"tables: {write_tables(self._name, found, self._opened)}")
        return path.name

    def _record_of(self, ended: EndFacts) -> Record | None:
        """Record of a test that has ended; None where it cannot be read any more."""
        path = self._opened / RESULTS_FOLDER / ended.record
        try:
            return read_record(content_of(path, LARGEST_RECORD_BYTES))[0]
        except (ConfigError, NotARecord) as error:
            logger.warn(f"{self._present.test} is measured again: its record {path} is unreadable: {error_text(error)}")
            return None

    @property
    def _name(self) -> str:
        return _NAMES[self._opened.resolve()].of(_test_id(), str(variable("TEST NAME")))

    @property
    def _continues(self) -> bool:
        """Whether the run in this folder is resumed."""
        return self._resumed is not None and self._resumed.resolve() == self._opened.resolve()

    @property
    def _present(self) -> TestKey:
        if self._key is None:
            raise CsitError("no test has begun")
        return self._key

    @property
    def _run(self) -> RunJournal:
        if self._run_or_none is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._run_or_none

    @property
    def _opened(self) -> Path:
        if self._folder is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._folder


def _carry_over(ended: EndFacts, record: Record) -> None:
    """End the present test as it ended when it was measured."""
    logger.info(f"{RESULT_MARKER}{pack(record)}")
    logger.info(f"carried over; measured from {record.started_at} to {record.finished_at}")
    match ended.status:
        case "PASS":
            raise PassExecution("")
        case "SKIP":
            raise SkipExecution(record.message)
        case "FAIL":
            raise Failure(record.message)


def _test_id() -> str:
    """Robot's long name of the present test."""
    return f"{variable('SUITE NAME')}.{variable('TEST NAME')}"

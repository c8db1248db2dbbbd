"""A night: tests to choose from, its Robot runs and journal, no test begun that would not fit, and its page."""

import signal
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, FiniteFloat, TypeAdapter
from robot.api import SuiteVisitor, TestSuite
from robot.errors import DataError
from robot.model import TagPatterns

from csit_utils.analysis.night import NightKey, NightLine, NightPlan, NightReason, NightTest, Omission, OmittedTest
from csit_utils.commands.results.inputs import opened
from csit_utils.commands.runs.outcome import unfinished
from csit_utils.commands.runs.robot import run_suites
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.rows import OWN, TestRow
from csit_utils.report.html import html_templates, style
from csit_utils.report.units import percent, seconds
from csit_utils.studies.density.plan_table import SIMULATED_TEST_S
from csit_utils.studies.registry import cost_of, kind_of, studies_by_name
from resources.libraries.python.errors import ConfigError, CsitError, without_middle
from resources.libraries.python.model.base import Frozen, of_form
from resources.libraries.python.model.bounds import LONGEST_RUN_S, MAX_FILES, MAX_RUNS
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.request.variables import DENSITY as OF_DENSITY
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.journal import JOURNAL_FILE
from resources.libraries.python.recording.marker import plain_message
from resources.libraries.python.recording.run_journal import has_ended
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.planning.extras import chosen_extras, test_s
from resources.libraries.python.studies.density.suite_rows import rows_for
from resources.libraries.python.studies.shared.run_state import ends_run

DENSITY = PROJECT / "tests" / "density"
CHARACTERIZATION = PROJECT / "tests" / "characterization"
OPENING_S = {World.LOCAL: 2.0, World.SIM: 0.3, World.LAB: 10.0}
"""Opening the testbed of a run, and removing leftovers; 2.0 s measured locally, assumed in a lab."""
_UNLESS_ASKED = "${UNLESS ASKED}"
"""In a tag of tests that run only where `MORE` is set."""


def matrix_tests(
    variables: Mapping[str, str], types: Sequence[ServiceType], test_types: Sequence[TestType]
) -> Iterator[NightTest]:
    """Yield the tests of a density matrix, of which each service and test type is a suite, in the order of suites.

    Raises:
        CsitError: A choice is wrong.
    """
    topology, search = load_topology(Path(variables["TOPOLOGY"])), profile(variables["SEARCH"])
    extras = chosen_extras(variables.get)
    for service_type, test_type in ((service, test) for service in types for test in test_types):
        made = rows_for({**variables, "SERVICE_TYPE": service_type.value, "TEST_TYPE": test_type.value}.get)
        suite = f"{service_type.lower()}-{test_type.lower()}"
        for row in made.rows if made else ():
            cost_s = test_s(topology, row.cell, search, test_type, extras)
            yield NightTest(
                NightKey(suite, row.name, search.name),
                f"{row.cell.name} {row.frame.name} {test_type}",
                f"Density.{suite.title()}.{row.name}",
                SIMULATED_TEST_S if topology.world is World.SIM else cost_s,
            )
        for refused in dict.fromkeys(each.refused for each in made.refused) if made else ():
            title = f"{refused.cell.name} {test_type}"
            yield NightTest(NightKey(suite, title), title, "", None, refused.reason)


def study_tests(pattern: str, topology: Topology, more: str = "") -> Iterator[NightTest]:
    """Yield the tests of other studies with the tags of a Robot pattern, such as `OUTAGE OR STATEFUL`.

    Without the variable `MORE`, tests that need it are left out.

    Raises:
        ConfigError: No test has such tags.
    """
    try:
        suites = TestSuite.from_file_system(str(CHARACTERIZATION))
    except DataError as error:
        raise ConfigError(str(error)) from error
    tags = TagPatterns([pattern])
    found = [test for test in suites.all_tests if tags.match(test.tags)]
    if not found:
        raise ConfigError(f"--studies '{pattern}': no test of {CHARACTERIZATION} has these tags")
    for test in found:
        if not more and any(_UNLESS_ASKED in tag for tag in test.tags):
            continue
        study = Path(test.source).stem
        made = NightTest(NightKey(study, test.name), f"{study}: {test.name}", test.full_name, None, study=True)
        try:
            cost = cost_of(study, test.body[0].args, topology.world)
        except CsitError as error:
            yield replace(made, why_not=str(error))
            continue
        if cost is not None:
            simulated = topology.world is World.SIM
            made = replace(made, seconds=SIMULATED_TEST_S * cost.steps if simulated else cost.seconds)
        yield made


def stored_rows(found: Contents, topology: Topology) -> list[tuple[NightKey, TestRow]]:
    """Return stored tests of a testbed with their identities."""
    of_kind = {kind.kind: name for name, study in studies_by_name().items() for kind in study.kinds}
    pairs = [
        (NightKey(f"{row.service_type}-{row.test_type}".lower(), row.test_name, row.profile or ""), row)
        for row in found.tests
    ]
    pairs += [
        (NightKey(of_kind[item.record.kind], row.test_name), row)
        for item in found.characterizations
        if item.record.kind in of_kind
        for row in kind_of(item).rows_of(item)
    ]
    here = (topology.metadata.name, topology.world.value, OWN)
    return [(key, row) for key, row in pairs if (row.testbed, row.world, row.origin) == here and row.recorded]


def as_known(test: NightTest, measured_s: float | None, statuses: Collection[str], *, has_figure: bool) -> NightTest:
    """Return a test with the duration of its stored results, and with what has become of it in the night so far.

    A test that failed, or gave no figure, is not measured again in the same night.
    """
    why_not = test.why_not
    if "FAIL" in statuses:
        why_not = "failed in this night"
    elif statuses and not has_figure:
        why_not = "gave no figure in this night"
    return replace(test, seconds=measured_s or test.seconds, tried=bool(statuses), why_not=why_not)


CHOICES_FILE = "night.choices"
"""JSON, but no result record: what reads a folder of results takes each .json file for one."""
MAX_HOURS = 168.0
PLANNED, NOT_BEGUN = "PLANNED", "NOT BEGUN"
"""Status of a test before it, and of one that would not have fitted into the time that was left."""
_OF_STUDIES = [each.name for each in VARIABLES.values() if each.studies != (OF_DENSITY,)]
"""Variables of a night that studies other than density read."""
_Seconds = Annotated[FiniteFloat, Field(ge=0, le=LONGEST_RUN_S)]


def _with_search(variables: dict[str, str]) -> dict[str, str]:
    if "SEARCH" not in variables:
        raise ValueError("SEARCH is missing")
    return variables


class NightChoices(Frozen):
    """Choices of the user."""

    topology: str
    simulated: bool = False
    hours: Annotated[float, Field(gt=0, le=MAX_HOURS)]
    types: str
    tests: str
    variables: Annotated[dict[str, str], AfterValidator(_with_search)]
    """Of the suites."""
    studies: str = ""
    """Pattern of tags."""
    data: Annotated[tuple[str, ...], Field(max_length=MAX_FILES)]
    """Stored results, absolute paths."""
    within: float
    unseen_days: float
    began: str
    """UTC, ISO 8601."""


class TestOfNight(Frozen):
    """A test is planned, has ended, or was not begun."""

    __test__: ClassVar[bool] = False  # no pytest class

    run: Annotated[str, of_form(r"\d{2,6}-[a-z]{1,20}", "the folder of a run, such as 01-ndr")]
    """Folder of its Robot run."""
    test: str
    """Robot's full name."""
    title: str
    why: str
    study: bool = False
    """Whether it belongs to another study than the density matrix."""
    seconds: _Seconds
    """Expected duration."""
    status: str = PLANNED
    """`PLANNED`, Robot's, or `NOT_BEGUN`."""
    message: str = ""
    session: Annotated[int, Field(ge=0, le=MAX_RUNS)] = 0
    """Number of the process, from 0: one more after each resumption."""
    elapsed_s: _Seconds = 0.0
    """Time since the begin of the session."""

    @property
    def has_ended(self) -> bool:
        """Whether it was measured."""
        return self.status not in {PLANNED, NOT_BEGUN}


class NightJournal(StepJournal[TestOfNight]):
    """Journal of a night."""

    FILE = "night.jsonl"
    KIND = "night"
    ROWS: ClassVar[TypeAdapter[TestOfNight]] = TypeAdapter(TestOfNight)


class NightClock:
    """Tests and time left of a night. What passes while nothing runs, as after a kill, is not spent."""

    def __init__(self, budget_s: float, journal: NightJournal, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begin_s, self._journal = clock, clock(), journal
        spent: dict[int, float] = {}
        for row in journal.rows:
            spent[row.session] = max(spent.get(row.session, 0.0), row.elapsed_s)
        self._budget_s, self._session = budget_s - sum(spent.values()), max(spent, default=-1) + 1
        self.rows = {(row.run, row.test): row for row in journal.rows}
        """Last state of each planned test, by its run and name, in the order of the plan."""

    @property
    def left_s(self) -> float:
        """Time left."""
        return self._budget_s - (self._clock() - self._begin_s)

    def plan(self, plan: NightPlan, why: Callable[[NightLine], str]) -> None:
        """Add the runs of a plan, numbered after those before it."""
        for number, lines in enumerate(plan.runs.values(), len({run for run, _ in self.rows}) + 1):
            run = f"{number:02d}-{lines[0].reason}"
            for line in lines:
                test, study = line.test, line.test.study
                self._keep(
                    TestOfNight(
                        run=run, test=test.name, title=test.title, why=why(line), study=study, seconds=line.seconds
                    )
                )

    def ended(self, row: TestOfNight, status: str, message: str = "") -> None:
        """Note on disk how a test ended."""
        self._keep(row.model_copy(update={"status": status, "message": without_middle(message, 300)}))

    def _keep(self, row: TestOfNight) -> None:
        row = row.model_copy(update={"session": self._session, "elapsed_s": self._clock() - self._begin_s})
        self._journal.keep(row)
        self.rows[row.run, row.test] = row

    def runs(self) -> dict[str, list[TestOfNight]]:
        """Planned tests by run."""
        found: dict[str, list[TestOfNight]] = {}
        for row in self.rows.values():
            found.setdefault(row.run, []).append(row)
        return found

    def statuses(self, test: str) -> set[str]:
        """Statuses with which a test ended in the runs of the night, by its full name."""
        return {row.status for row in self.rows.values() if row.test == test and row.has_ended}


class PlannedOrder(SuiteVisitor):  # type: ignore[misc]  # Robot is not typed for mypy
    """A pre-run modifier: tests, and suites by their first test, in the order of their full names in the plan."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    def start_suite(self, suite: Any) -> None:  # noqa: ANN401 - of Robot
        """Order one suite."""
        suite.suites = sorted(suite.suites, key=lambda each: min(map(self._place, each.all_tests), default=0))
        suite.tests = sorted(suite.tests, key=self._place)

    def _place(self, test: Any) -> int:  # noqa: ANN401 - of Robot
        return self._places.get(test.full_name, len(self._places))


class WithinBudget:
    """A listener: skips tests that would not fit into the time left, and notes each test."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, run: Sequence[TestOfNight], clock: NightClock) -> None:
        self._missing = {row.test: row for row in run if not row.has_ended}
        self._clock = clock
        self._not_begun: dict[str, str] = {}

    def start_test(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002 - of Robot
        """Replace a test that would not fit by a skip; those that have ended before a resumption take no time."""
        row, left_s = self._missing.get(data.full_name), self._clock.left_s
        if row is None or row.seconds <= left_s:
            return
        reason = f"not begun: takes about {seconds(row.seconds)}, {seconds(max(left_s, 0.0))} of the night are left"
        self._not_begun[row.test] = reason
        data.setup = data.teardown = None
        data.body.clear()
        data.body.create_keyword(name="Skip", args=[reason])

    def end_test(self, data: Any, result: Any) -> None:  # noqa: ANN401 - of Robot
        """Note how a test ended; one that a signal cut short is measured again."""
        if (row := self._missing.get(data.full_name)) is None:
            return
        if row.test in self._not_begun:
            self._clock.ended(row, NOT_BEGUN, self._not_begun[row.test])
        elif not ends_run(result.tags, result.message):
            self._clock.ended(row, result.status, plain_message(result.message))


@contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Yield whether SIGINT or SIGTERM came while Robot runs, which forgets one that comes after its last test."""
    reader, writer = socket.socketpair()
    with reader, writer:
        for end in (reader, writer):
            end.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

        def came() -> bool:
            with suppress(BlockingIOError):
                return not {signal.SIGINT, signal.SIGTERM}.isdisjoint(reader.recv(4096))
            return False

        try:
            yield came
        finally:
            signal.set_wakeup_fd(before)


def run_night(choices: NightChoices, opening_s: float, folder: Path, clock: NightClock) -> str | None:
    """Run all that is planned and has not ended before; return why the night is incomplete, None at its end."""
    for run, tests in clock.runs().items():
        place = folder / run
        if _lacks(place) is None:
            continue
        missing = [test for test in tests if not test.has_ended]
        if min((test.seconds for test in missing), default=0.0) + opening_s > clock.left_s:
            for test in missing:
                clock.ended(test, NOT_BEGUN, f"not begun: {seconds(max(clock.left_s, 0.0))} of the night are left")
            continue
        resume = place if (place / JOURNAL_FILE).exists() else None
        with _signals() as came:
            try:
                run_suites(
                    [] if resume else arguments_of(tests, choices, place),
                    resume=resume,
                    modifiers=[PlannedOrder([test.test for test in tests])],
                    listeners=[WithinBudget(tests, clock)],
                    expected_s={test.test: test.seconds for test in tests},
                )
            except CsitError as error:  # refused before its first test; the night is resumed
                return f"{place}: {error}"
            is_stopped = came()
        if (lacks := _lacks(place)) is not None:
            return f"{place}: {lacks}"
        if is_stopped:
            return "stopped by a signal"
    return None


def _lacks(folder: Path) -> str | None:
    """Return why a run is incomplete; None if it is complete, with all results in its output."""
    output = output_of(folder)
    if not output.exists():
        return "no output.xml was written"
    found = opened([output]).contents(may_be_empty=True)
    return unfinished(found, ended=(folder / JOURNAL_FILE).exists() and has_ended(folder))


def arguments_of(tests: Sequence[TestOfNight], choices: NightChoices, folder: Path) -> list[str]:
    """Return Robot's command line of a run."""
    variables = {"TOPOLOGY": choices.topology, **choices.variables}
    study = tests[0].study
    if study:  # choices of cells are not read there, and refused
        variables = {name: value for name, value in variables.items() if name in _OF_STUDIES}
    argv = ["--console", "quiet", "-d", str(folder), "--xunit", "xunit.xml"]
    argv += [word for name, value in variables.items() if value for word in ("--variable", f"{name}:{value}")]
    argv += [word for test in tests for word in ("--test", test.test)]
    return [*argv, str(CHARACTERIZATION if study else DENSITY)]


_FEW_DAYS = 2.0


def reason_of(line: NightLine) -> str:
    """Why a test is measured."""
    known = line.known
    match line.reason:
        case NightReason.SUSPECTED:
            of = f", {line.repeat} of {known.missing} figures that a step lacks"
            return f"suspected: {known.suspect} {percent(known.suspected, signed=True)}{of}"
        case NightReason.UNSEEN:
            return "unseen: " + (
                "never measured" if known.last_seen is None else f"last measured {_days(line.score)} ago"
            )
        case _:
            metric = known.metric or "level"
            if line.before is None:
                return f"uncertain: one figure gives no interval of {metric}"
            after = f", about ±{percent(line.after)} then" if line.after is not None else ""
            return f"uncertain: {metric} ±{percent(line.before)}{after}"


def why_left_out(left: OmittedTest) -> str:
    """Why a test is not measured, or less often than wanted."""
    match left.why:
        case Omission.UNFIT:
            return f"{'open' if left.test.tried else 'does not fit'}: {left.test.why_not}"
        case Omission.NO_DURATION:
            return "its duration is not known: it has no preview, and no stored result; measure it once by ./csit robot"
        case Omission.SETTLED:
            known = left.known
            width = known.half_width(known.count)
            return "settled: " + (f"{known.metric} ±{percent(width)}" if width is not None else "measured enough")
    of = f"{left.planned} of {left.wanted} measurements are planned" if left.planned else "not planned"
    return f"no time: {of}; one takes {seconds(left.test.seconds)}"


def summary(plan: NightPlan) -> str:
    """The plan in one sentence."""
    tests = len({line.test.key for line in plan.lines})
    counts = {reason: sum(line.reason is reason for line in plan.lines) for reason in NightReason}
    listed = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count) or "none"
    opening = f", {seconds(plan.opening_s)} of it for opening the testbed" if plan.opening_s else ""
    count, runs = _many(len(plan.lines), "measurement"), _many(len(plan.runs), "run")
    return (
        f"{count} of {_many(tests, 'test')} ({listed}) in {runs}: "
        f"about {seconds(plan.seconds)} of {seconds(plan.budget_s)}{opening}"
    )


def _days(days: float) -> str:
    return f"{days * 24:.0f} hours" if days < _FEW_DAYS else f"{days:.0f} days"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def render_night(
    choices: NightChoices,
    rows: Iterable[TestOfNight],
    ending: str,
    still_open: Sequence[tuple[str, str]],
    left_out: Sequence[tuple[str, str]],
    *,
    has_report: bool,
) -> str:
    """Return the page of a night that has ended; one file that needs no network and no script."""
    return html_templates().get_template("night.html.j2").render(
        topology=Path(choices.topology).name,
        choices=choices,
        began=choices.began[:16].replace("T", " "),
        ending=ending,
        rows=tuple(rows),
        duration=seconds,
        still_open=still_open,
        left_out=left_out,
        has_report=has_report,
        style=style(),
    )  # fmt: skip

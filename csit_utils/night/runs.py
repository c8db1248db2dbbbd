"""Robot runs of a night: tests in the planned order, none begun that would not fit into the time left."""

import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from robot.api import SuiteVisitor

from csit_utils.commands.runs.outcome import unfinished
from csit_utils.commands.runs.robot import run_suites
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.load import load
from csit_utils.night.candidates import CHARACTERIZATION, DENSITY
from csit_utils.night.state import NOT_BEGUN, NightChoices, NightClock, NightState, PlannedRun
from csit_utils.report.units import seconds
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.request.variables import DENSITY as OF_DENSITY
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.recording.journal import JOURNAL_FILE
from resources.libraries.python.recording.robot_message import plain_message
from resources.libraries.python.recording.run_journal import has_ended
from resources.libraries.python.studies.shared.keeper import ends_run

_OF_STUDIES = [each.name for each in VARIABLES.values() if each.studies != (OF_DENSITY,)]
"""Variables of a night that studies other than density read."""


class PlannedOrder(SuiteVisitor):  # type: ignore[misc]  # Robot is not typed for mypy
    """A pre-run modifier: tests, and suites by their first test, in the order of the plan.

    Args:
        names: Full names of the planned tests.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    def start_suite(self, suite: Any) -> None:  # noqa: ANN401 - of Robot
        """Order one suite."""
        suite.suites = sorted(suite.suites, key=lambda each: min(map(self._place, each.all_tests), default=0))
        suite.tests = sorted(suite.tests, key=self._place)

    def _place(self, test: Any) -> int:  # noqa: ANN401 - of Robot
        return self._places.get(test.full_name, len(self._places))


class WithinBudget:
    """A listener: skips tests that would not fit into the time left, and notes each test.

    Args:
        run: Folder of the run.
        expected_s: Durations by full name.
        clock: Of the night.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, run: str, expected_s: Mapping[str, float], clock: NightClock) -> None:
        self._run, self._expected_s, self._clock = run, expected_s, clock
        self._before = clock.measured(run)
        self._not_begun: dict[str, str] = {}

    def start_test(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002 - of Robot
        """Replace a test that would not fit by a skip; those that have ended before a resumption take no time."""
        needs_s, left_s = self._expected_s.get(data.full_name, 0.0), self._clock.left_s
        if data.full_name in self._before or needs_s <= left_s:
            return
        reason = f"not begun: takes about {seconds(needs_s)}, {seconds(max(left_s, 0.0))} of the night are left"
        self._not_begun[data.full_name] = reason
        data.setup = data.teardown = None
        data.body.clear()
        data.body.create_keyword(name="Skip", args=[reason])

    def end_test(self, data: Any, result: Any) -> None:  # noqa: ANN401 - of Robot
        """Note how a test ended; one that a signal cut short is measured again."""
        name = data.full_name
        if name in self._not_begun:
            self._clock.keep(self._run, name, NOT_BEGUN, self._not_begun[name])
        elif name not in self._before and not ends_run(result.tags, result.message):
            self._clock.keep(self._run, name, result.status, plain_message(result.message))


class Signals:
    """Signals to this process while Robot runs, which forgets one that comes when the last test has ended."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)

    def __enter__(self) -> Self:
        """Begin to note them."""
        self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        signal.set_wakeup_fd(self._before)
        self._reader.close()
        self._writer.close()

    def came(self) -> bool:
        """Whether SIGINT or SIGTERM came since the last call."""
        try:
            return not {signal.SIGINT, signal.SIGTERM}.isdisjoint(self._reader.recv(4096))
        except BlockingIOError:
            return False


def run_night(state: NightState, folder: Path, clock: NightClock) -> str | None:
    """Run all that is planned and has not ended before.

    Args:
        state: The plan.
        folder: Of the night.
        clock: Time left.

    Returns:
        Why the night is incomplete; None at its end.
    """
    for run in state.runs:
        place = folder / run.folder
        if _lacks(place) is None:
            continue
        missing = [test for test in run.tests if test.name not in clock.measured(run.folder)]
        least_s = min((test.seconds for test in missing), default=0.0) + state.opening_s
        if least_s > clock.left_s:
            reason = f"not begun: {seconds(max(clock.left_s, 0.0))} of the night are left"
            for test in missing:
                clock.keep(run.folder, test.name, NOT_BEGUN, reason)
            continue
        resume = place if (place / JOURNAL_FILE).exists() else None
        expected_s = {test.name: test.seconds for test in run.tests}
        with Signals() as signals:
            try:
                run_suites(
                    [] if resume else arguments_of(run, state.choices, place),
                    resume=resume,
                    modifiers=[PlannedOrder(list(expected_s))],
                    listeners=[WithinBudget(run.folder, expected_s, clock)],
                    expected_s=expected_s,
                )
            except CsitError as error:  # refused before its first test; the night is resumed
                return f"{place}: {error}"
            is_stopped = signals.came()
        lacks = _lacks(place)
        if lacks is not None:
            return f"{place}: {lacks}"
        if is_stopped:
            return "stopped by a signal"
    return None


def _lacks(folder: Path) -> str | None:
    """Return why a run is incomplete; None if it is complete, with all results in its output."""
    output = output_of(folder)
    if not output.exists():
        return "no output.xml was written"
    return unfinished(load([output]), ended=(folder / JOURNAL_FILE).exists() and has_ended(folder))


def arguments_of(run: PlannedRun, choices: NightChoices, folder: Path) -> list[str]:
    """Return Robot's command line of a run."""
    variables = {"TOPOLOGY": choices.topology, **choices.variables}
    if run.study:  # choices of cells are not read there, and refused
        variables = {name: value for name, value in variables.items() if name in _OF_STUDIES}
    argv = ["--console", "quiet", "-d", str(folder), "--xunit", "xunit.xml"]
    argv += [word for name, value in variables.items() if value for word in ("--variable", f"{name}:{value}")]
    argv += [word for test in run.tests for word in ("--test", test.name)]
    return [*argv, str(CHARACTERIZATION if run.study else DENSITY)]

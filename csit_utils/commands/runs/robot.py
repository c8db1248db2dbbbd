"""`robot`: Robot Framework's command line; rows of density suites are made before tests are filtered."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from robot.api import logger
from robot.conf import RobotSettings
from robot.errors import DataError, Information
from robot.run import RobotFramework

from csit_utils.commands.runs.command_line import again, remembered
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.request.variables import SET
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.cost import RunPlan, TimedTest
from resources.libraries.python.quantities import counted
from resources.libraries.python.recording.journal import JOURNAL_FILE
from resources.libraries.python.recording.lines import refuse_active
from resources.libraries.python.recording.run_journal import past_of
from resources.libraries.python.studies.density.suite_rows import RowsBeforeFilter
from resources.libraries.python.studies.shared.choices_before_run import (
    ChoicesBeforeRun,
    RunRefused,
    SpellingBeforeRun,
    are_ours,
    given_to,
)
from resources.libraries.python.studies.shared.progress import RUN, human_time
from resources.libraries.python.whole_files import remove_link

RESUME = "--resume"
_SET = f"{SET.name}:"
_USAGE = """Usage: ./csit robot [--resume FOLDER] [-v NAME:VALUE]... [OPTIONS] SUITE...

Run suites: the density matrix (tests/density) or studies (tests/characterization).

Examples:
./csit robot -v TOPOLOGY:topologies/sim.yaml -v CELLS:1x1,2x2 \\
    -d results/sim tests/density
./csit robot -v TOPOLOGY:topologies/sim.yaml -d results/outages \\
    tests/characterization/outage.robot"""
_FILES = {"output": "output.xml", "log": "log.html", "report": "report.html", "xunit": "x.xml", "debugfile": "d.txt"}
"""Options of Robot for files, with defaults: when Robot looks at one it makes their folder, not so a refused run."""
_ALWAYS = ("output", "log", "report")
"""Those that Robot writes unasked."""


def robot(context: typer.Context) -> None:
    """Run suites by Robot Framework; accepts all its options.

    --resume FOLDER as the first option resumes the interrupted run of that folder.
    --args TEXT as the first option has tests, variables and tags in one text, and
    nothing else, such as a parameter of a job; it is split as by a shell. --help
    begins with the variables of the suites.

    Exit status: the number of failed tests, up to 250; ./csit outcome tells these from
    incomplete runs.

    \b
    Examples:
    ./csit robot -v TOPOLOGY:topologies/sim.yaml --include CSC tests/density
    """  # noqa: D301 - \b keeps the lines of the examples apart
    folder, arguments = _resumed(context.args)
    raise typer.Exit(run_suites(arguments, resume=folder))


@contextmanager
def console_on_stderr() -> Iterator[None]:
    """Send what Robot prints to stderr, for commands whose answer is on stdout."""
    before = sys.stdout, sys.__stdout__
    sys.stdout = sys.__stdout__ = sys.stderr  # type: ignore[misc, assignment]  # where Robot's console is
    try:
        yield
    finally:
        sys.stdout, sys.__stdout__ = before  # type: ignore[misc]


class PlannedTimes:
    """A listener: plans the time of a run when its tests are chosen; on a simulated testbed it plans none.

    Args:
        rows: Made before the run, with the durations of tests of the density matrix.
        worlds: Of the testbeds of the suites that run, by their files; known when their choices have been looked at.
        expected_s: Durations by full name that are known otherwise: 0 of tests that have ended.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(
        self, rows: RowsBeforeFilter, worlds: Mapping[Path | None, World], expected_s: Mapping[str, float]
    ) -> None:
        self._rows, self._worlds, self._expected_s = rows, worlds, expected_s

    def start_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002 - of Robot
        """Plan all tests when the outermost suite starts."""
        if data.parent is not None:
            return
        plan = RunPlan([TimedTest(test.full_name, self._test_s(test)) for test in data.all_tests])
        RUN.plan(plan)
        if plan.seconds:
            tests = len(plan.tests)
            logger.console(f"{counted(tests, 'test')}, about {human_time(plan.seconds)}")

    def _test_s(self, test: Any) -> float:  # noqa: ANN401 - of Robot
        world = self._worlds.get(test.source)
        if world is None or world is World.SIM or not test.body:
            return 0.0
        known_s = self._expected_s.get(test.full_name, self._rows.expected_s.get((test.source, test.name)))
        if known_s is not None:
            return known_s
        from csit_utils.studies.registry import cost_of  # noqa: PLC0415 - costs time of every run

        try:
            cost = cost_of(Path(test.source).stem, getattr(test.body[0], "args", ()), world)
        except CsitError:  # the test says why
            return 0.0
        return cost.seconds if cost is not None else 0.0


class LinksOfFiles:
    """A listener: removes links under the names of Robot's files, which another user may put there before and in a run.

    Robot writes its log and report last.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, options: Mapping[str, Any]) -> None:
        folder = Path(options.get("outputdir") or ".")
        asked = [(options.get(name) or (usual if name in _ALWAYS else ""), usual) for name, usual in _FILES.items()]
        files = [(folder / name, Path(usual).suffix) for name, usual in asked if name]
        self._files = [file if file.suffix else file.with_suffix(suffix) for file, suffix in files]

    def remove(self) -> None:
        """Remove them now."""
        for file in self._files:
            remove_link(file)

    def output_file(self, _path: Path) -> None:
        """Remove them before log and report are written."""
        self.remove()


def run_suites(
    arguments: list[str],
    *,
    command: str = "robot",
    resume: Path | None = None,
    listeners: Sequence[object] = (),
) -> int:
    """Run suites in this process, so that Ctrl-C and SIGTERM reach Robot, which then cleans up.

    `command`: which resumes the run.
    `resume`: folder of the run to resume.

    Returns:
        Robot's exit status.

    Raises:
        ConfigError: The command line is wrong, or there is no run to resume.
        CsitError: Another process writes its results there.
    """
    framework = RobotFramework()
    if resume is not None:
        arguments = again(resume, arguments)
    try:
        options, sources = framework.parse_arguments(arguments)
    except Information as text:
        if {"-h", "-?", "--help"} & set(arguments):
            from csit_utils.commands.results.explain import variables_page  # noqa: PLC0415 - costs time of every run

            typer.echo(f"{_USAGE}\n\nVariables of the suites:\n\n{variables_page()}\nOptions of Robot Framework:\n")
        typer.echo(str(text))
        return 0
    except DataError as error:
        raise ConfigError(f"{str(error).removesuffix('.')} (see ./csit robot --help)") from error
    if resume is not None:
        options["outputdir"] = str(resume)
    # Before Robot overwrites the output.xml of that run.
    refuse_active(Path(options.get("outputdir") or ".") / JOURNAL_FILE)
    options["variable"] = [*_joined(options.get("variable", [])), remembered(command, arguments)]
    rows = RowsBeforeFilter(options.get("variable", []), options.get("include", []))
    checked: list[object] = [rows]
    worlds: Mapping[Path | None, World] = {}
    if all(map(are_ours, sources)):
        settings = RobotSettings(options | dict.fromkeys(_FILES, "NONE"))
        given = given_to(settings)
        choices = ChoicesBeforeRun(settings, given)
        checked, worlds = [SpellingBeforeRun(settings, given), rows, choices], choices.worlds
    past = past_of(resume).done if resume is not None else {}
    done = {test: 0.0 for (test, _), ended in past.items() if ended.status == "PASS"}
    planned = PlannedTimes(rows, worlds, done)
    links = LinksOfFiles(options)
    links.remove()
    options["listener"] = [*options.get("listener", []), planned, links, *listeners]
    options["prerunmodifier"] = [*options.get("prerunmodifier", []), *checked]
    try:
        return int(framework.execute(*sources, **options))
    except RunRefused as refused:
        reason = refused.error
    raise reason  # here: `from refused` would make a ring of its causes


def _joined(given: Sequence[str]) -> list[str]:
    """Return variables with one `SET` in the place of several, of which Robot would use the last one only."""
    settings = [each for each in given if each.startswith(_SET)]
    others = [each for each in given if not each.startswith(_SET)]
    return [*others, *([_SET + ";".join(each.removeprefix(_SET) for each in settings)] if settings else [])]


def _resumed(given: list[str]) -> tuple[Path | None, list[str]]:
    """Return the folder of the run to resume, if any, and the rest of the command line."""
    first = given[0] if given else ""
    if given == [RESUME]:
        raise ConfigError(f"{RESUME}: expected the folder of a run, such as ./csit robot {RESUME} results/night")
    if first == RESUME:
        return Path(given[1]).absolute(), given[2:]
    if first.startswith(f"{RESUME}="):
        return Path(first.removeprefix(f"{RESUME}=")).absolute(), given[1:]
    if any(each == RESUME or each.startswith(f"{RESUME}=") for each in given):
        text = "not an option of Robot Framework; put it first"
        raise ConfigError(f"{RESUME}: {text}: ./csit robot {RESUME} results/night")
    return None, given

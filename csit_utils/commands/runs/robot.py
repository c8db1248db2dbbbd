"""`robot`: Robot Framework's command line; rows of density suites are made before tests are filtered."""

from collections.abc import Sequence
from pathlib import Path

import typer
from robot.conf import RobotSettings
from robot.errors import DataError, Information
from robot.run import RobotFramework

from csit_utils.commands.runs.command_line import again, remembered
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.recording.journal import JOURNAL_FILE
from resources.libraries.python.recording.lines import refuse_active
from resources.libraries.python.studies.density.suite_rows import RowsBeforeFilter
from resources.libraries.python.studies.shared.choices_before_run import (
    ChoicesBeforeRun,
    RunRefused,
    SpellingBeforeRun,
    are_ours,
    given_to,
)

RESUME = "--resume"
_FILES = ("output", "log", "report", "xunit", "debugfile")
"""Options of Robot for files: when Robot looks at one it makes their folder, which a refused run leaves out."""


def robot(context: typer.Context) -> None:
    """Run suites by Robot Framework; accepts all its options.

    --resume FOLDER as the first option resumes the interrupted run of that folder.

    \b
    Examples:
    ./csit robot -v TOPOLOGY:topologies/sim.yaml --include CSC tests/density
    """  # noqa: D301 - \b keeps the lines of the examples apart
    folder, arguments = _resumed(context.args)
    raise typer.Exit(run_suites(arguments, resume=folder))


def run_suites(
    arguments: list[str],
    *,
    resume: Path | None = None,
    modifiers: Sequence[object] = (),
    listeners: Sequence[object] = (),
) -> int:
    """Run suites in this process, so that Ctrl-C and SIGTERM reach Robot, which then cleans up.

    Args:
        arguments: Robot's command line; empty for that of the run to resume.
        resume: Folder of the run to resume.
        modifiers: Of suites, after their rows are made.
        listeners: Of Robot.

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
        typer.echo(str(text))
        return 0
    except DataError as error:
        raise ConfigError(str(error)) from error
    if resume is not None:
        options["outputdir"] = str(resume)
    # Before Robot overwrites the output.xml of that run.
    refuse_active(Path(options.get("outputdir") or ".") / JOURNAL_FILE)
    options["variable"] = [*options.get("variable", []), remembered("robot", arguments)]
    options["listener"] = [*options.get("listener", []), *listeners]
    checked: list[object] = [RowsBeforeFilter(options.get("variable", []), options.get("include", []))]
    if all(map(are_ours, sources)):
        settings = RobotSettings(options | dict.fromkeys(_FILES, "NONE"))
        given = given_to(settings)
        checked = [SpellingBeforeRun(settings, given), *checked, ChoicesBeforeRun(settings, given)]
    options["prerunmodifier"] = [*options.get("prerunmodifier", []), *checked, *modifiers]
    try:
        return int(framework.execute(*sources, **options))
    except RunRefused as refused:
        reason = refused.error
    raise reason  # here: `from refused` would make a ring of its causes


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

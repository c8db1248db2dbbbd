"""Command lines of runs: given as one text, and kept in the journal so that runs can be resumed."""

import json
import os
import re
import shlex
from collections.abc import Sequence
from getopt import GetoptError, getopt
from pathlib import Path

import typer

from csit_utils.dataset.inputs import output_of
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.variables import SET, VARIABLES
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.journal import JOURNAL_FILE, RunBegun
from resources.libraries.python.recording.lines import refuse_active
from resources.libraries.python.recording.run_journal import header_of
from resources.libraries.python.redaction import MASK, command_text, masked_words, redacted_words

ARGS = "--args"
_OPTIONS = {
    "robot": ("v:i:e:s:t:", ("variable=", "include=", "exclude=", "suite=", "test=")),
    "night": (
        "v:",
        (
            *("types=", "cells=", "nf-sizes=", "nf-kinds=", "vswitch=", "frames=", "search=", "tests=", "variable="),
            *("studies=", "within=", "unseen-days="),
        ),
    ),
}
"""Options that such a text may have, by command: those that choose tests."""
_OF_CALLERS = ("TOPOLOGY", "RESUME", "QUALIFY")
"""Variables that the text may not have: who gives it does not choose the testbed, nor folders that are written."""

_PLAIN_SETTINGS = re.compile(r"(?!.*program)[\w.,+/=;\[\] -]*")
"""Keys of specifications and their values, but for programs of users and YAML that could hide one."""


def spread(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the words of the text after `--args`, its second word, at the end.

    The text is split as a shell splits words, once, and nothing else in it means what it means to a shell. It is from
    users who may choose tests, but not programs, inputs and outputs on this machine.

    Raises:
        ConfigError: The command has no such option, or the text is not only tests and choices.
    """
    command, _, text, *rest = [*arguments, ""] if len(arguments) == 2 else arguments
    if command not in _OPTIONS:
        raise ConfigError(f"{ARGS}: an option of {' and '.join(_OPTIONS)}; remove it")
    short, long = _OPTIONS[command]
    try:
        options, paths = getopt(shlex.split(text), short, long)
    except (GetoptError, ValueError) as error:
        allowed = ", ".join(f"--{name.removesuffix('=')}" for name in long)
        raise ConfigError(f"{ARGS} '{quoted(text)}': {error}; expected tests and {allowed}") from error
    for option, value in options:
        name, _, given = value.partition(":")
        if option in {"-v", "--variable"} and (name not in VARIABLES or name in _OF_CALLERS):
            known = ", ".join(each for each in VARIABLES if each not in _OF_CALLERS)
            raise ConfigError(f"{ARGS}: -v {quoted(name)}: not a variable that may be chosen here; choose from {known}")
        if name == SET.name and not _PLAIN_SETTINGS.fullmatch(given):
            raise ConfigError(f"{ARGS}: -v SET:{quoted(given)}: expected numbers, words and lists of them, no program")
    for path in paths:
        if command == "night" or not Path(path).resolve().is_relative_to(PROJECT / "tests") or not Path(path).exists():
            raise ConfigError(f"{ARGS} '{quoted(path)}': expected suites below tests/, such as tests/density")
    return [command, *rest, *(word for pair in options for word in pair), *paths]


def remembered(name: str, arguments: Sequence[str]) -> str:
    """Return a Robot variable by which the journal records how the run was started.

    `arguments`: Robot's command line, of which the journal gets no secrets.
    """
    known = redacted_words(arguments)
    return "COMMAND:" + json.dumps({"name": name, "arguments": known, "folder": os.getcwd()})  # noqa: PTH109


def typed(context: typer.Context) -> list[str]:
    """Return the names of the parameters that a command line has."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def again(folder: Path, arguments: Sequence[str] = ()) -> list[str]:
    """Return Robot's command line, without the output folder, that resumes a run; rename the existing output.

    `arguments`: Robot's command line; if empty, that of the run is used, and the working directory changes to that of
      the run.

    Raises:
        ConfigError: No run in the folder, or its command line is not recorded, or had secrets.
        CsitError: The run is still active.
    """
    folder = folder.absolute()
    header = header_of(folder)
    refuse_active(folder / JOURNAL_FILE)
    if not arguments:
        if header.command is None:
            raise ConfigError(
                f"{folder}: this run was started by Robot itself; repeat its command with ",
                command_text("-d", folder, "-v", f"RESUME:{folder}"),
            )
        if missing := masked_words(header.arguments):
            command = command_text("./csit", "robot", "--resume", folder, *header.arguments)
            raise ConfigError(
                f"{folder}: the journal has no secrets; repeat the command with a value for "
                f"{', '.join(word.removesuffix(MASK) for word in missing)} ",
                command,
            )
        _change_to(header)
        arguments = header.arguments
    _put_aside(output_of(folder))
    # In front: Robot takes everything after the first path as paths.
    return ["--variable", f"RESUME:{folder}", *arguments]


def _change_to(header: RunBegun) -> None:
    try:
        os.chdir(header.folder)
    except OSError as error:
        raise ConfigError(f"{header.folder}: working directory of the run: {error.strerror}") from error


def _put_aside(output: Path) -> None:
    """Rename the output of the interrupted part: the journal has its records, but not its log."""
    number = 1
    while (aside := output.with_name(f"{output.stem}-{number}{output.suffix}")).exists():
        number += 1
    if output.exists():
        output.rename(aside)

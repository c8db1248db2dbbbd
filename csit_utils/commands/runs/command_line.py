"""Command lines of runs, kept in the journal so that runs can be resumed."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from csit_utils.dataset.inputs import output_of
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.recording.journal import JOURNAL_FILE, RunBegun
from resources.libraries.python.recording.lines import refuse_active
from resources.libraries.python.recording.run_journal import header_of
from resources.libraries.python.redaction import MASK, command_text, masked_words, redacted_words


def remembered(name: str, arguments: Sequence[str]) -> str:
    """Return a Robot variable by which the journal records how the run was started.

    Args:
        name: Of the command, `local` or `robot`.
        arguments: Robot's command line, of which the journal gets no secrets.
    """
    known = redacted_words(arguments)
    return "COMMAND:" + json.dumps({"name": name, "arguments": known, "folder": os.getcwd()})  # noqa: PTH109


def again(folder: Path, arguments: Sequence[str] = ()) -> list[str]:
    """Return Robot's command line, without the output folder, that resumes a run; rename the existing output.

    Args:
        folder: Of the run.
        arguments: Robot's command line; if empty, that of the run is used, and the working directory changes to that of
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

"""How a run is started so that it can be resumed, and how it is resumed."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.recording.journal import RunBegun
from resources.libraries.python.recording.run_journal import header_of


def remembered(name: str, arguments: Sequence[str]) -> str:
    """A Robot variable that lets the journal keep how the run was started.

    Args:
        name: Of the command, `local` or `robot`.
        arguments: Robot's command line.
    """
    return "COMMAND:" + json.dumps({"name": name, "arguments": list(arguments), "folder": os.getcwd()})  # noqa: PTH109


def again(folder: Path, arguments: Sequence[str] = ()) -> list[str]:
    """Robot's command line, but for its folder, that goes on with a run; the present output.xml is put aside.

    Args:
        folder: Of the run.
        arguments: Robot's command line, if somebody gives it anew; else that of the run is taken, and the working
            directory changes to where it was given.

    Raises:
        ConfigError: There is no run, or nobody knows how it was started.
    """
    folder = folder.absolute()
    header = header_of(folder)
    if not arguments:
        if header.command is None:
            raise ConfigError(
                f"{folder}: this run was started with Robot's own command; repeat that with -d {folder} and "
                f"-v RESUME:{folder}"
            )
        _change_to(header)
        arguments = header.arguments
    _put_aside(folder / "output.xml")
    # In front, since Robot takes all that follows the first path for paths.
    return ["--variable", f"RESUME:{folder}", *arguments]


def _change_to(header: RunBegun) -> None:
    try:
        os.chdir(header.folder)
    except OSError as error:
        raise ConfigError(f"{header.folder}, where the run was started, is not there: {error.strerror}") from error


def _put_aside(output: Path) -> None:
    """Keep what Robot wrote of the part before: the journal has its records, this has its log."""
    number = 1
    while (aside := output.with_name(f"{output.stem}-{number}{output.suffix}")).exists():
        number += 1
    if output.exists():
        output.rename(aside)

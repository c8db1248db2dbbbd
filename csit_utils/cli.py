"""The command line: one module per command, in `csit_utils.commands` or in the folder of its study."""

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from csit_utils.studies import study_commands
from resources.libraries.python.errors import ConfigError, CsitError

_RUN = (
    "local", "doctor", "reserve", "prepare", "status", "release", "cleanup", "emulate", "convert", "robot", "outcome",
)  # fmt: skip
_READ = ("import", "export", "report", "show", "compare", "trend", "gate", "explain", "schema", "bench")
_OF_STUDIES = study_commands()
COMMANDS = (*_RUN, *_OF_STUDIES, *_READ)
"""In the order of --help. Each is a function of that name in the module of that name, except those below."""
_OTHER_NAMES = {"import": ("csit_utils.commands.importing", "import_")}
"""Module and function of commands whose name is a keyword of Python."""

_OF_ANOTHER_PROGRAM = {"robot": {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}}
"""Commands whose options another program parses."""


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with the requested command, or with all of them where none is given.

    Importing all commands takes half a second.
    """
    app = typer.Typer(
        help="Measure NF service density, and read the results.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(lambda: None)  # so that a single command is still called by its name
    for name in [name for name in COMMANDS if name in arguments[:1]] or COMMANDS:
        module, function_name = _OTHER_NAMES.get(name, (_OF_STUDIES.get(name, f"csit_utils.commands.{name}"), name))
        function = getattr(import_module(module), function_name)
        app.command(name, context_settings=_OF_ANOTHER_PROGRAM.get(name))(function)
    return app


def main() -> int:
    """Run the command line.

    Returns:
        2 for invalid input, 1 for any other failure, and otherwise the exit status of the command.
    """
    try:
        make_app(sys.argv[1:])(prog_name="./csit")
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except CsitError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0

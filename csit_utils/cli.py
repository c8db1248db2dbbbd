"""The command line: one module per command, in `csit_utils.commands` or in the folder of its study."""

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from resources.libraries.python.errors import ConfigError, CsitError

COMMANDS = (
    "local", "doctor", "reserve", "prepare", "status", "release", "cleanup", "emulate", "plan", "convert", "size",
    "chains", "interference", "robot", "outcome", "import", "export", "report", "show", "answer", "compare", "trend",
    "gate", "profile", "suspects", "place", "explain", "schema", "bench",
)  # fmt: skip
"""In the order of --help. Each is a function of that name in the module of that name, but for those below."""
_OTHER_NAMES = {"import": ("importing", "import_")}
"""Module and function of commands whose name is a word of Python."""
_OF_STUDIES = {
    "plan": "density",
    "answer": "density",
    "profile": "sweep",
    "size": "sizing",
    "chains": "chains",
    "suspects": "chains",
    "interference": "interference",
    "place": "interference",
}
"""Commands that belong to a study, by its folder."""

_OF_ANOTHER_PROGRAM = {"robot": {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}}
"""Commands whose options another program parses."""


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """The command line with the command that is asked for; with all of them where it is none of them.

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
        module, function_name = _OTHER_NAMES.get(name, (name, name))
        folder = f"studies.{_OF_STUDIES[name]}.commands" if name in _OF_STUDIES else "commands"
        function = getattr(import_module(f"csit_utils.{folder}.{module}"), function_name)
        app.command(name, context_settings=_OF_ANOTHER_PROGRAM.get(name))(function)
    return app


def main() -> int:
    """Run the command line.

    Returns:
        2 for bad input, 1 for any other failure; what the command says otherwise.
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

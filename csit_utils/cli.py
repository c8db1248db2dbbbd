"""The command line: one module per command, below `csit_utils.commands` or in the folder of its study."""

import io
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, TextIO, get_args

import typer
from typer._click import Context, HelpFormatter  # Typer has its own copy of Click since 0.26, and exports neither
from typer._click.exceptions import UsageError
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from csit_utils.studies import study_commands
from resources.libraries.python.defects import expected, report_defect
from resources.libraries.python.errors import ConfigError, CsitError, message
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.redaction import keep_named_secrets, outgoing, redacted
from resources.libraries.python.terminal import discard_output, terminal_width, with_command, wrapped
from resources.libraries.python.version import program_version

_VALUES = {int: "N", float: "NUMBER", Path: "FILE"}
_OF_PYDANTIC = re.compile(r"^Value error, |, unable to parse .*$")


class CsitCommand(TyperCommand):
    """Command with `FILE...` in its usage, a word for the value of each option, and which options are repeatable.

    Typer writes `{FILE}...` and the types of Python: `<str>`, `<list[Path]>`, `<float range>`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - those of Typer, passed on
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                parameter.metavar = parameter.metavar or parameter.name.upper().rstrip(".")
            if isinstance(parameter, TyperOption):
                parameter.metavar = parameter.metavar or _value(parameter)
            if isinstance(parameter, TyperArgument | TyperOption):
                _add_remarks(parameter)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the command line; what is wrong is refused without the phrases of pydantic.

        Raises:
            UsageError: An option or a value is wrong or missing.
        """
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = error.ctx or ctx  # Click forgets it where an option lacks its value
            error.message = _OF_PYDANTIC.sub("", error.message).replace("Input should be", "expected")
            raise

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return the words after the name of the command: optional arguments are in brackets."""
        names = [_name(each) if each.required else f"[{_name(each)}]" for each in _arguments(self, ctx)]
        return [*([self.options_metavar] if self.options_metavar else []), *names]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the lists of arguments and options."""
        arguments = [
            (_listed(each, ctx), record[1]) for each in _arguments(self, ctx) if (record := each.get_help_record(ctx))
        ]
        options = [each.get_help_record(ctx) for each in self.get_params(ctx) if isinstance(each, TyperOption)]
        for title, records in (("Arguments", arguments), ("Options", [each for each in options if each])):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class CsitGroup(TyperGroup):
    """All commands, with the help that the entry script prints before there is an environment."""

    def get_help(self, ctx: Context) -> str:  # noqa: ARG002 - of Click
        """Return the list of commands, by what they are for."""
        return (PROJECT / "resources/tools/usage.txt").read_text(encoding="utf-8").rstrip()


def _arguments(command: TyperCommand, ctx: Context) -> list[TyperArgument]:
    return [each for each in command.get_params(ctx) if isinstance(each, TyperArgument)]


def _name(argument: TyperArgument) -> str:
    return f"{argument.display_name_raw}{'...' if argument.nargs != 1 else ''}"


def _listed(argument: TyperArgument, ctx: Context) -> str:
    """Name of an argument, and its words where it is a choice of some."""
    choices = f" {argument.display_type(ctx)}" if argument.type_descriptor.is_choice else ""
    return f"{_name(argument)}{choices}"


def _value(option: TyperOption) -> str | None:
    """What is written after an option; None for Typer's own words, which are right for flags, choices and pairs."""
    of_list = get_args(option.type_descriptor.annotation) if option.multiple else ()
    kind = of_list[0] if of_list else option.type_descriptor.annotation
    if kind is str:
        return option.name.upper().replace("_", "-")
    return _VALUES.get(kind) if isinstance(kind, type) and option.nargs == 1 else None


def _add_remarks(parameter: TyperArgument | TyperOption) -> None:
    """Append a default that is a text, without Typer's brackets around it, and whether an option can be repeated."""
    remarks: list[str] = []
    if isinstance(parameter.show_default, str):
        remarks.append(f"default: {parameter.show_default}")
        parameter.show_default = False
    if isinstance(parameter, TyperOption) and parameter.multiple:
        remarks.append("repeatable")
    if remarks:
        parameter.help = f"{parameter.help}  [{'; '.join(remarks)}]"


_OF_NO_STUDY = {
    "runs": ("local", "robot", "night", "twin", "bisect"),
    "results": (
        "report", "show", "outcome", "explain", "compare", "trend", "gate", "acknowledge", "why",
        "import", "export", "query", "mcp", "schema",
    ),
    "testbeds": (
        "doctor", "qualify", "reserve", "status", "release", "prepare", "cleanup", "emulate", "convert",
    ),
}  # fmt: skip
"""Commands by their folder below `csit_utils.commands`; studies have theirs."""
_OTHER_MODULES = {
    "import": "import_command",
    "mcp": "mcp_server",
    "status": "reserve",
    "release": "reserve",
    "outcome": "show",
    "schema": "explain",
}
"""Modules of commands with another name: that of a keyword or of a package, or of the command that they belong to."""
_MODULES = {
    name: f"csit_utils.commands.{folder}.{_OTHER_MODULES.get(name, name)}"
    for folder, names in _OF_NO_STUDY.items()
    for name in names
} | study_commands()
COMMANDS = tuple(_MODULES)
"""Each is a function of that name in its module, except those below."""
_OTHER_NAMES = {"import": "import_"}
"""Functions of commands whose name is a keyword of Python."""

_OF_ANOTHER_PROGRAM = {"robot": {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}}
"""Commands whose options another program parses."""
_CONSOLES = ("local", "robot")
"""Commands whose standard output is the console of a run, which goes on without it. That of others is a result."""


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"csit {program_version()}")
        raise typer.Exit


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with the requested command, or with the names of all where none is given.

    Importing all commands takes more than a second of CPU time, and nothing of them runs then.
    """
    app = typer.Typer(
        cls=CsitGroup,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_program)  # so that a single command is still called by its name
    requested = next((name for name in COMMANDS if name in arguments[:1]), None)
    if requested is not None:
        module = import_module(_MODULES[requested])
        function = getattr(module, _OTHER_NAMES.get(requested, requested))
        app.command(requested, cls=CsitCommand, context_settings=_OF_ANOTHER_PROGRAM.get(requested))(function)
        return app
    for name in COMMANDS:
        app.command(name)(lambda: None)
    return app


def _program(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version, and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> int:
    """Run the command line; with `--debug` as the first argument, print the traceback of an error as well.

    Returns:
        2 for invalid input, 1 for any other failure, 70 (EX_SOFTWARE) for a defect of this program, and otherwise the
        exit status of the command. SIGTERM ends it as Ctrl-C does: it removes what it made, and exits with 143. So does
        the end of its terminal, unless SIGHUP is ignored, as nohup does.
    """
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))  # as Robot handles it in a run
    _complete_streams()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Visible())
    keep_named_secrets(os.environ)
    debug = sys.argv[1:2] == ["--debug"]
    arguments = sys.argv[2:] if debug else sys.argv[1:]
    with _redacted_streams(is_console=arguments[:1] in [[name] for name in _CONSOLES]):
        return _run(arguments, debug=debug)


def _terminated(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # the second one does not wait for the removal
    raise SystemExit(128 + number)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, where it ended the process at once: a command removes what it made."""
    ends_at_once = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    if ends_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ends_at_once:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(arguments: Sequence[str], *, debug: bool) -> int:
    try:
        try:
            if list(arguments[1:]) == ["--version"]:
                arguments = ["--version"]
            if list(arguments[1:2]) == ["--args"]:
                from csit_utils.commands.runs.command_line import spread  # noqa: PLC0415 - for few commands only

                arguments = spread(arguments)
            app = make_app(arguments)
            with _interruptible():
                status: int | None = app(arguments, prog_name="./csit", standalone_mode=False)
        finally:
            sys.stdout.flush()  # here, where a full disk still becomes a sentence
    except KeyboardInterrupt:  # before or after the command, whose parser ends in the same way
        return 128 + signal.SIGINT
    except Exception as error:  # boundary: any error becomes one sentence and an exit status
        if debug:
            sys.stderr.write(outgoing(traceback.format_exc()))
        sentence, status = _reported(error)
        command = error.command if isinstance(error, CsitError) and sentence.endswith(error.command) else ""
        width = terminal_width(sys.stderr) if sys.stderr.isatty() else None
        sys.stderr.write(with_command(sentence.removesuffix(command).rstrip(), command, width) + "\n")
        if isinstance(error, OSError) and error.filename == _STREAMS["<stdout>"]:
            discard_output(sys.stdout)
        return status
    return status or 0


def _reported(error: Exception) -> tuple[str, int]:
    match error:
        case UsageError():
            hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
            return message(" ".join(error.format_message().split()).removesuffix("."), hint), 2
        case ConfigError():
            return str(error), 2
        case CsitError():
            return expected(error), 1
        case OSError(strerror=str(reason)):
            where = f"{quoted(str(error.filename))}: " if error.filename is not None else ""
            return f"{where}{reason}", 1
    return report_defect(error), 70


_OWN_ESCAPES = re.compile(
    r"(^\r|\r$|\x1b\[K|\x1b\[(?!(?:\d+;)*8[;m])[0-9;]*m|\x1b\]8;;(?:file://[^\x00-\x1f\x7f]*)?\x1b\\)"
)
"""Terminal output of this program and Robot: colours, but no hidden text; the next state of a line; links."""


_CURSOR_AT_START = re.compile(r"[\n\r]")

_STREAMS = {"<stdout>": "standard output", "<stderr>": "standard error"}


class _Redacting:
    """Standard output or error without secrets, whichever part of the program writes there.

    On a terminal all other control characters are visible: results, journals and nodes can have put any into a text.

    `drops`: Whether text that cannot be written is dropped; otherwise it is an error.
    """

    def __init__(self, stream: TextIO, *, wraps: bool, drops: bool) -> None:
        self._stream = stream
        self._wraps = wraps
        self._drops = drops
        self._column = 0

    def write(self, text: str) -> int:
        """Write a text."""
        shown = redacted(text)
        if self._stream.isatty():
            parts = _OWN_ESCAPES.split(shown)
            shown = "".join(part if place % 2 else outgoing(part) for place, part in enumerate(parts))
            if self._wraps:
                shown = wrapped(shown, terminal_width(self._stream), self._column)
                self._column = len(_OWN_ESCAPES.sub("", _CURSOR_AT_START.split(shown)[-1])) + (
                    0 if _CURSOR_AT_START.search(shown) else self._column
                )
        with self._unwritable():
            self._stream.write(shown)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._unwritable():
            self._stream.flush()

    @contextmanager
    def _unwritable(self) -> Iterator[None]:
        """Drop what cannot be written, or name the stream in the error, such as that of a full disk."""
        try:
            yield
        except OSError as error:
            is_closed = isinstance(error, BrokenPipeError)
            if self._drops or is_closed:
                discard_output(self._stream)
            if self._drops:
                return
            if is_closed:  # `| head` has seen enough
                raise SystemExit(128 + signal.SIGPIPE) from error
            error.filename = _STREAMS.get(getattr(self._stream, "name", ""), error.filename)
            raise

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the stream
        return getattr(self._stream, name)


def _complete_streams() -> None:
    """Give closed streams a place, and let none refuse a character."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # its descriptor is the lowest free one: no other file must get it
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - to the end
            setattr(sys, f"__{name}__", getattr(sys, name))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the encoding of a locale may have no dash


@contextmanager
def _redacted_streams(*, is_console: bool) -> Iterator[None]:
    names = ("stdout", "stderr", "__stdout__", "__stderr__")  # Robot's console is the last two
    streams = {name: getattr(sys, name) for name in names}
    for name, stream in streams.items():
        # Tables fit already, JSON and CSV are copied from there, and failures that Robot shows end with commands.
        drops = is_console or name.strip("_") == "stderr"
        setattr(sys, name, stream and _Redacting(stream, wraps=name == "stderr", drops=drops))
    try:
        yield
    finally:
        for name, stream in streams.items():
            setattr(sys, name, stream)


class _Visible(logging.Formatter):
    """Of warnings, which Python writes to the terminal while Robot does not run."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message as a terminal may show it."""
        return message(super().format(record))

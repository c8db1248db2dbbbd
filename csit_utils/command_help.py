"""Help of commands: how arguments and options are written in usage and lists."""

from pathlib import Path
from typing import Any, get_args

from typer import BadParameter
from typer._click import Context, HelpFormatter  # Typer has its own copy of Click since 0.26, and exports neither
from typer.core import TyperArgument, TyperCommand, TyperOption

_VALUES = {str: "text", int: "number", float: "number", Path: "path"}


class CsitCommand(TyperCommand):
    """Command with `FILE...` in its usage, the kind of a value after each option, and which options are repeatable.

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
        """Parse the command line; a word that is no choice is named without pydantic's own prefix.

        Raises:
            BadParameter: A value does not fit.
        """
        try:
            return super().parse_args(ctx, args)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
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
    return f"<{_VALUES[kind]}>" if isinstance(kind, type) and kind in _VALUES and option.nargs == 1 else None


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

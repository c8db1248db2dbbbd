"""`explain`: meaning of a metric, a verdict or a variable of suites; `schema`: the JSON Schema of result files."""

import json
import textwrap
from difflib import get_close_matches
from typing import Annotated

import typer

from csit_utils.commands.tables import TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.measures import Explanation
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.variables import VARIABLES, Variable
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.recording.records import RECORDS, records_schema
from resources.libraries.python.redaction import command_text
from resources.libraries.python.terminal import terminal_width

_WIDEST = 96
"""Of a page, in characters: longer lines are hard to read."""


def explain(
    name: Annotated[
        str | None,
        typer.Argument(help="A metric, a verdict or a variable, or 'variables' for all; default: list all names."),
    ] = None,
) -> None:
    """Explain a metric, a verdict, or a variable of the suites.

    \b
    Examples:
    ./csit explain pdr
    ./csit explain vswitch-bound
    ./csit explain NOISE_FLOOR
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if name is not None and (name == "variables" or name in VARIABLES):
        typer.echo(variables_page() if name == "variables" else variables_page(name))
        return
    from csit_utils.studies.registry import explanations  # noqa: PLC0415 - numpy costs time of every --help

    known = explanations()
    verdicts = {kind.value: kind.meaning for kind in VerdictKind}
    if name is None:
        rows = {**{name: text.what for name, text in known.items()}, **verdicts}
        heads = ("metric or verdict", "meaning")
        print_table(heads, [TableLine(row, {}) for row in rows.items()], TableForm.TABLE, heads)
        print_sentence("variables of the suites:", command_text("./csit", "explain", "variables"), err=True)
        return
    found = known.get(name.lower())
    if found is not None:
        typer.echo(page_of(found))
    elif name.lower() in verdicts:
        print_sentence(f"verdict {name.lower()}: {verdicts[name.lower()]}")
        print_sentence("how verdicts are found:", command_text("./csit", "explain", "verdict"), err=True)
    elif name.upper() in VARIABLES:
        typer.echo(variables_page(name.upper()))
    else:
        names = {each.lower(): each for each in (*known, *verdicts, *VARIABLES)}
        (close,) = get_close_matches(name.lower(), names, n=1, cutoff=0.0)
        raise ConfigError(
            f"'{quoted(name)}' is no metric, verdict or variable; did you mean '{names[close]}'? All are listed by ",
            command_text("./csit", "explain"),
        )


def variables_page(*names: str) -> str:
    """Return the meaning of variables of the suites, of all where none is named: one paragraph each."""
    fill = textwrap.TextWrapper(min(_WIDEST, terminal_width()), initial_indent="  ", subsequent_indent="  ").fill
    rows = [VARIABLES[name] for name in names or VARIABLES]
    return "\n".join(f"{command_text('-v', f'{each.name}:{each.example}')}\n{fill(_about(each))}" for each in rows)


def _about(variable: Variable[object]) -> str:
    default = f"; default {variable.default}" if variable.default else ""
    return f"{variable.meaning} ({', '.join(variable.studies) or 'all studies'}){default}"


def page_of(text: Explanation) -> str:
    """Return the paragraphs of an explanation."""
    parts = (("What", text.what), ("Unit", text.unit), ("How", text.how), ("Pitfalls", text.misread))
    width = min(_WIDEST, terminal_width())
    body = "\n\n".join(
        f"{head}\n{textwrap.fill(part, width, initial_indent='  ', subsequent_indent='  ')}" for head, part in parts
    )
    return f"{text.title}\n\n{body}"


def schema(
    study: Annotated[str | None, typer.Argument(help=f"One of {', '.join(RECORDS)}; default: all.")] = None,
) -> None:
    """Print the JSON Schema of result files.

    Result files are OUTPUT/results/*.json.

    \b
    Examples:
    ./csit schema density > density.schema.json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if study is not None and study not in RECORDS:
        raise ConfigError(f"no study '{study}'; choose from {', '.join(RECORDS)}")
    typer.echo(json.dumps(records_schema(study), indent=1))

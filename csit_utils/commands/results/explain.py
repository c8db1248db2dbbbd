"""`explain`: definition, unit and interpretation of a metric, or the meaning of a variable of the suites."""

import textwrap
from typing import Annotated

import typer

from csit_utils.commands.tables import TableForm, TableLine, print_table
from csit_utils.dataset.measures import Explanation
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.variables import VARIABLES, Variable
from resources.libraries.python.terminal import terminal_width

_WIDEST = 96
"""Of a page, in characters: longer lines are hard to read."""


def explain(
    metric: Annotated[
        str | None, typer.Argument(help="Name of a metric or variable, or 'variables' for all; default: list metrics.")
    ] = None,
) -> None:
    """Explain a metric, or a variable of the suites.

    \b
    Examples:
    ./csit explain pdr
    ./csit explain NOISE_FLOOR
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if metric is not None and (metric == "variables" or metric in VARIABLES):
        typer.echo(variables_page() if metric == "variables" else variables_page(metric))
        return
    from csit_utils.studies.registry import explanations  # noqa: PLC0415 - numpy costs time of every --help

    known = explanations()
    if metric is None:
        heads = ("metric", "meaning")
        print_table(heads, [TableLine((text.name, text.what), {}) for text in known.values()], TableForm.TABLE, heads)
        return
    found = known.get(metric.lower())
    if found is None and metric.upper() in VARIABLES:
        typer.echo(variables_page(metric.upper()))
        return
    if found is None:
        raise ConfigError(f"no metric '{metric}'; choose from {', '.join(known)}, or 'variables'")
    typer.echo(_page(found))


def variables_page(*names: str) -> str:
    """Return the meaning of variables of the suites, of all where none is named: one paragraph each."""
    fill = textwrap.TextWrapper(min(_WIDEST, terminal_width()), initial_indent="  ", subsequent_indent="  ").fill
    rows = [VARIABLES[name] for name in names or VARIABLES]
    return "\n".join(f"-v {each.name}:{each.example}\n{fill(_about(each))}" for each in rows)


def _about(variable: Variable[object]) -> str:
    default = f"; default {variable.default}" if variable.default else ""
    return f"{variable.meaning} ({', '.join(variable.studies) or 'all studies'}){default}"


def _page(text: Explanation) -> str:
    parts = (("What", text.what), ("Unit", text.unit), ("How", text.how), ("Pitfalls", text.misread))
    width = min(_WIDEST, terminal_width())
    body = "\n\n".join(
        f"{head}\n{textwrap.fill(part, width, initial_indent='  ', subsequent_indent='  ')}" for head, part in parts
    )
    return f"{text.title}\n\n{body}"

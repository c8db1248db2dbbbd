"""`explain`: definition, unit and interpretation of a metric."""

import textwrap
from typing import Annotated

import typer

from csit_utils.commands.tables import TableForm, TableLine, print_table
from csit_utils.report.explanations import Explanation
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.terminal import terminal_width

_WIDEST = 96
"""Of a page, in characters: longer lines are hard to read."""


def explain(
    metric: Annotated[str | None, typer.Argument(help="Name of a metric; default: list all.")] = None,
) -> None:
    """Explain a metric: definition, unit, common misreadings.

    \b
    Examples:
    ./csit explain pdr
    """  # noqa: D301 - \b keeps the lines of the examples apart
    from csit_utils.studies.registry import explanations  # noqa: PLC0415 - numpy costs time of every --help

    known = explanations()
    if metric is None:
        heads = ("metric", "meaning")
        print_table(
            heads, [TableLine((text.name, text.what), {}) for text in known.values()], TableForm.TERMINAL, heads
        )
        return
    found = known.get(metric.lower())
    if found is None:
        raise ConfigError(f"no metric '{metric}'; choose from {', '.join(known)}")
    typer.echo(_page(found))


def _page(text: Explanation) -> str:
    parts = (("What", text.what), ("Unit", text.unit), ("How", text.how), ("Pitfalls", text.misread))
    width = min(_WIDEST, terminal_width())
    body = "\n\n".join(
        f"{head}\n{textwrap.fill(part, width, initial_indent='  ', subsequent_indent='  ')}" for head, part in parts
    )
    return f"{text.title}\n\n{body}"

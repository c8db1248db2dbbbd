"""`explain`: definition, unit and interpretation of a metric."""

import textwrap
from typing import Annotated

import typer

from csit_utils.report.explanations import Explanation
from resources.libraries.python.errors import ConfigError


def explain(
    metric: Annotated[str | None, typer.Argument(help="Name of a metric; default: list all.")] = None,
) -> None:
    """Explain a metric: definition, unit, how it is measured, common misreadings.

    Example: ./csit explain pdr
    """
    from csit_utils.studies.registry import explanations  # noqa: PLC0415 - numpy costs time of every --help

    known = explanations()
    if metric is None:
        width = max(map(len, known))
        for text in known.values():
            typer.echo(f"{text.name:<{width}}  {text.what}")
        return
    found = known.get(metric.lower())
    if found is None:
        raise ConfigError(f"no metric '{metric}'; choose from {', '.join(known)}")
    typer.echo(_page(found))


def _page(text: Explanation) -> str:
    parts = (("What", text.what), ("Unit", text.unit), ("How", text.how), ("Pitfalls", text.misread))
    body = "\n\n".join(
        f"{head}\n{textwrap.fill(said, 96, initial_indent='  ', subsequent_indent='  ')}" for head, said in parts
    )
    return f"{text.title}\n\n{body}"

"""Tables for people on a terminal, and for programs in a pipe."""

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from resources.libraries.python.errors import ConfigError


class Form(StrEnum):
    """How a table is written."""

    TERMINAL = "terminal"
    """In columns; tab-separated in a pipe."""
    CSV = "csv"
    MARKDOWN = "markdown"
    JSON = "json"
    """One object per line."""


AS_CSV = Annotated[bool, typer.Option("--csv", help="Comma-separated, raw numbers.")]
AS_MARKDOWN = Annotated[bool, typer.Option("--markdown", help="A table for a document.")]
AS_JSON = Annotated[bool, typer.Option("--json", help="One JSON object per line, raw numbers.")]


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    texts: tuple[str, ...]
    """For people, one per column."""
    raw: Mapping[str, Any]
    """For programs: what JSON can hold."""
    style: str = ""
    """On a terminal."""


def form_of(*, as_csv: bool, as_markdown: bool, as_json: bool) -> Form:
    """The form that options ask for.

    Raises:
        ConfigError: They ask for two.
    """
    asked = [
        form for form, wanted in ((Form.CSV, as_csv), (Form.MARKDOWN, as_markdown), (Form.JSON, as_json)) if wanted
    ]
    if len(asked) > 1:
        raise ConfigError(f"--{asked[0]} and --{asked[1]}: a table has one form")
    return asked[0] if asked else Form.TERMINAL


def print_table(heads: Sequence[str], lines: Sequence[Line], form: Form, left: Sequence[str] = ()) -> None:
    """Write a table to stdout.

    Args:
        heads: Of the columns.
        lines: Their texts and raw values.
        form: How.
        left: Heads of columns that hold words, not numbers.
    """
    if form is Form.JSON:
        sys.stdout.writelines(json.dumps(_finite(line.raw)) + "\n" for line in lines)
    elif form is Form.CSV:
        sys.stdout.write(_csv(lines))
    elif form is Form.MARKDOWN:
        sys.stdout.write(_markdown(heads, lines, left))
    elif sys.stdout.isatty():
        _columns(heads, lines, left)
    else:
        for texts in (heads, *(line.texts for line in lines)):
            sys.stdout.write("\t".join(" ".join(text.split()) for text in texts) + "\n")


def _finite(raw: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity."""
    return {key: None if value in (float("inf"), float("-inf")) else value for key, value in raw.items()}


def _csv(lines: Sequence[Line]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if lines:
        writer.writerow(lines[0].raw)
    writer.writerows(
        ["; ".join(map(str, value)) if isinstance(value, list | tuple) else value for value in line.raw.values()]
        for line in lines
    )
    return text.getvalue()


def _markdown(heads: Sequence[str], lines: Sequence[Line], left: Sequence[str]) -> str:
    rows = [heads, [":---" if head in left else "---:" for head in heads], *(line.texts for line in lines)]
    return "".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |\n" for row in rows)


def _columns(heads: Sequence[str], lines: Sequence[Line], left: Sequence[str]) -> None:
    from rich.console import Console  # noqa: PLC0415 - costs time of every --help
    from rich.table import Table  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", overflow="fold")
    for line in lines:
        table.add_row(*line.texts, style=line.style or None)
    Console(markup=False, highlight=False).print(table)

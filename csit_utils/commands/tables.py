"""Tables on a terminal, tab-separated in a pipe, and as CSV, Markdown or JSON."""

import json
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.redaction import visible
from resources.libraries.python.terminal import terminal_width, with_command


class TableForm(StrEnum):
    """Output format of a table."""

    TABLE = "table"
    """In columns that fit the terminal; tab-separated in a pipe."""
    CSV = "csv"
    MARKDOWN = "markdown"
    JSON = "json"
    """One object per line."""


FORMAT = Annotated[
    TableForm,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table (tab-separated in a pipe), markdown, csv (raw values) or json (an object of them per line).",
    ),
]
TABLE_OR_JSON = Annotated[
    Literal[TableForm.TABLE, TableForm.JSON],
    typer.Option("--format", metavar="FORMAT", help="table (text for people), or json (objects of raw values)."),
]


@dataclass(frozen=True)
class TableLine:
    """One line of a table."""

    texts: tuple[str, ...]
    """Formatted values, one per column."""
    raw: Mapping[str, Any]
    """Raw values for CSV and JSON."""
    style: str = ""
    """Style on a terminal: a key of `_CODES`."""
    below: tuple[str, ...] = ()
    """Sentences below the line."""


def print_table(heads: Sequence[str], lines: Sequence[TableLine], form: TableForm, left: Sequence[str] = ()) -> None:
    """Write a table to stdout, with control characters escaped, as JSON has them: texts are of results of others.

    `left`: heads of columns of words, which are left-aligned.
    """
    lines = [
        replace(line, texts=tuple(map(visible, line.texts)), below=tuple(map(visible, line.below))) for line in lines
    ]
    if form is TableForm.JSON:
        sys.stdout.writelines(json.dumps(_finite(line.raw)) + "\n" for line in lines)
    elif form is TableForm.CSV:
        sys.stdout.write(visible(_csv(lines)))
    elif form is TableForm.MARKDOWN:
        sys.stdout.write(_markdown(heads, lines, left))
    elif sys.stdout.isatty():
        for text, style in fitted(heads, lines, left, terminal_width()):
            sys.stdout.write(styled(text, style) + "\n")
    else:
        _tab_separated(heads, lines)


def _tab_separated(heads: Sequence[str], lines: Sequence[TableLine]) -> None:
    """Write a line per row, and each sentence below a row as a line with only the last column."""
    for texts, below in ((heads, ()), *((line.texts, line.below) for line in lines)):
        sys.stdout.write("\t".join(" ".join(text.split()) for text in texts) + "\n")
        sys.stdout.writelines("\t" * (len(heads) - 1) + " ".join(sentence.split()) + "\n" for sentence in below)


def _finite(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Replace infinity by None, since JSON has none."""
    return {key: None if value in (float("inf"), float("-inf")) else value for key, value in raw.items()}


def _csv(lines: Sequence[TableLine]) -> str:
    rows = (
        ["; ".join(map(str, value)) if isinstance(value, list | tuple) else value for value in line.raw.values()]
        for line in lines
    )
    return csv_text([[*lines[0].raw], *rows]) if lines else ""


def _markdown(heads: Sequence[str], lines: Sequence[TableLine], left: Sequence[str]) -> str:
    rows = [heads, [":---" if head in left else "---:" for head in heads], *(line.texts for line in lines)]
    return "".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |\n" for row in rows)


_GAP = "  "
_MIN_WRAPPED = 30
"""Least width in characters of a column whose words are wrapped in place."""
_INDENT = " " * 4
_CODES = {"bold": "1", "dim": "2", "red": "31", "bold red": "1;31", "green": "32", "yellow": "33"}


def fitted(
    heads: Sequence[str], lines: Sequence[TableLine], left: Sequence[str], width: int
) -> Iterator[tuple[str, str]]:
    """Yield each line of a table of at most `width` characters, and its style; only longer words are cut.

    The widest column of words is wrapped in place if at least `_MIN_WRAPPED` characters are left for it; otherwise
    its cells follow below their row with their head, or, for the first column, above it. If the table is still too
    wide, every cell has its own line.

    `left`: heads of columns of words.
    """
    lines = [replace(line, texts=tuple(" ".join(text.split()) for text in line.texts)) for line in lines]
    contents = [max((len(line.texts[at]) for line in lines), default=0) for at in range(len(heads))]
    widths = [max(len(head), content) for head, content in zip(heads, contents, strict=True)]
    places = list(range(len(heads)))
    below: list[int] = []
    wrapped: int | None = None
    if _total(widths, places) > width:
        # Leave out columns without any text, and wrap heads to their longest word.
        places = [at for at in places if contents[at] or at == 0]
        widths = [
            max(*map(len, head.split() or [""]), content, 1) for head, content in zip(heads, contents, strict=True)
        ]
    while _total(widths, places) > width:
        candidates = [at for at in places if (heads[at] in left or at == 0) and len(places) > 1]
        if not candidates:
            yield from _stacked(heads, lines, width)
            return
        widest = max(candidates, key=lambda at: widths[at] if heads[at] in left else 0)
        if widest == 0:
            places.remove(0)
            continue
        room = width - (_total(widths, places) - widths[widest])
        if room >= min(_MIN_WRAPPED, widths[widest]):
            wrapped, widths[widest] = widest, room
        else:
            places.remove(widest)
            below.append(widest)
    shown = [widths[at] for at in places]
    words = [heads[at] in left for at in places]
    if any(heads):
        yield from ((row, "bold") for row in _rows([wrap(heads[at], widths[at]) for at in places], shown, words))
    for line in lines:
        if 0 not in places:
            yield from ((text, line.style or "bold") for text in wrap(line.texts[0], width))
        cells = [wrap(line.texts[at], widths[at]) if at == wrapped else [line.texts[at]] for at in places]
        yield from ((row, line.style) for row in _rows(cells, shown, words))
        for at in sorted(below):
            if line.texts[at]:
                labelled = f"{heads[at]}: {line.texts[at]}"
                yield from ((_INDENT + text, line.style) for text in _paragraph(labelled, width))
        for sentence in line.below:
            yield from ((_INDENT + text, "dim") for text in _paragraph(sentence, width))


def _total(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[at] for at in places) + len(_GAP) * (len(places) - 1)


def _rows(cells: Sequence[Sequence[str]], widths: Sequence[int], words: Sequence[bool]) -> Iterator[str]:
    """Lines of a row whose cells may have several lines."""
    for number in range(max(map(len, cells), default=0)):
        texts = (cell[number] if number < len(cell) else "" for cell in cells)
        padded = (
            text.ljust(width) if is_left else text.rjust(width)
            for text, width, is_left in zip(texts, widths, words, strict=True)
        )
        yield _GAP.join(padded).rstrip()


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a wrapped text, at least one."""
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _paragraph(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width - len(_INDENT), subsequent_indent="  ", break_on_hyphens=False)


def _stacked(heads: Sequence[str], lines: Sequence[TableLine], width: int) -> Iterator[tuple[str, str]]:
    """Lines of a table with one cell per line, beside its head."""
    longest = max(map(len, heads))
    for line in lines:
        for at, (head, text) in enumerate(zip(heads, line.texts, strict=True)):
            style = line.style or ("" if at else "bold")
            for number, part in enumerate(wrap(text, max(20, width - longest - len(_GAP))) if text else ()):
                yield f"{'' if number else head:<{longest}}{_GAP}{part}", style
        for sentence in line.below:
            yield from ((_INDENT + text, "dim") for text in _paragraph(sentence, width))


def styled(text: str, style: str) -> str:
    """Return a text in a style, unless NO_COLOR is set or the terminal has no colours."""
    plain = not style or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def print_sentence(text: str, command: str = "", *, err: bool = False) -> None:
    """Write a line of words to stdout or stderr, with its control characters escaped.

    On a terminal, words that do not fit go to indented lines below it.

    `command`: command or other line to be copied that ends the sentence; it is not broken.
    """
    stream = sys.stderr if err else sys.stdout
    width = terminal_width(stream) if stream.isatty() else None
    stream.write(with_command(visible(text), visible(command), width) + "\n")
    stream.flush()

"""Tables for people on a terminal, and for programs in a pipe."""

import csv
import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from resources.libraries.python.errors import ConfigError


class Form(StrEnum):
    """Output format of a table."""

    TERMINAL = "terminal"
    """In columns that fit the terminal; tab-separated in a pipe."""
    CSV = "csv"
    MARKDOWN = "markdown"
    JSON = "json"
    """One object per line."""


AS_CSV = Annotated[bool, typer.Option("--csv", help="Comma-separated, raw numbers.")]
AS_MARKDOWN = Annotated[bool, typer.Option("--markdown", help="A table for a document.")]
AS_JSON = Annotated[bool, typer.Option("--json", help="One JSON object per line, raw numbers.")]


@dataclass(frozen=True)
class TableLine:
    """One line of a table."""

    texts: tuple[str, ...]
    """For people, one per column."""
    raw: Mapping[str, Any]
    """For programs: what JSON can hold."""
    style: str = ""
    """On a terminal: a key of `_CODES`."""
    below: tuple[str, ...] = ()
    """Sentences below the line."""


def form_of(*, as_csv: bool, as_markdown: bool, as_json: bool) -> Form:
    """Return the format that the options select.

    Raises:
        ConfigError: They select two.
    """
    asked = [
        form for form, wanted in ((Form.CSV, as_csv), (Form.MARKDOWN, as_markdown), (Form.JSON, as_json)) if wanted
    ]
    if len(asked) > 1:
        raise ConfigError(f"--{asked[0]} and --{asked[1]}: choose one format")
    return asked[0] if asked else Form.TERMINAL


def print_table(heads: Sequence[str], lines: Sequence[TableLine], form: Form, left: Sequence[str] = ()) -> None:
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
        for text, style in fitted(heads, lines, left, terminal_width()):
            sys.stdout.write(styled(text, style) + "\n")
    else:
        _tab_separated(heads, lines)


def _tab_separated(heads: Sequence[str], lines: Sequence[TableLine]) -> None:
    """What a pipe gets: a line per row, and each sentence below a row in its last column."""
    for texts, below in ((heads, ()), *((line.texts, line.below) for line in lines)):
        sys.stdout.write("\t".join(" ".join(text.split()) for text in texts) + "\n")
        sys.stdout.writelines("\t" * (len(heads) - 1) + " ".join(sentence.split()) + "\n" for sentence in below)


def _finite(raw: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity."""
    return {key: None if value in (float("inf"), float("-inf")) else value for key, value in raw.items()}


def _csv(lines: Sequence[TableLine]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if lines:
        writer.writerow(lines[0].raw)
    writer.writerows(
        ["; ".join(map(str, value)) if isinstance(value, list | tuple) else value for value in line.raw.values()]
        for line in lines
    )
    return text.getvalue()


def _markdown(heads: Sequence[str], lines: Sequence[TableLine], left: Sequence[str]) -> str:
    rows = [heads, [":---" if head in left else "---:" for head in heads], *(line.texts for line in lines)]
    return "".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |\n" for row in rows)


_GAP = "  "
_LEAST_WRAPPED = 30
"""Characters of the narrowest column whose words are wrapped in place."""
_INDENT = " " * 4
_CODES = {"bold": "1", "dim": "2", "red": "31", "bold red": "1;31", "green": "32", "yellow": "33"}


def fitted(
    heads: Sequence[str], lines: Sequence[TableLine], left: Sequence[str], width: int
) -> Iterator[tuple[str, str]]:
    """Yield each line of a table of at most this width, and its style; only a word longer than that is cut.

    Words of the widest column that holds words are wrapped in place where enough of the width is left for them,
    otherwise they follow below their row, with their head; those of the first column get a line of their own above it.
    Where that is not enough every cell has a line.

    Args:
        heads: Of the columns.
        lines: Of the table.
        left: Heads of columns that hold words.
        width: In characters.
    """
    lines = [replace(line, texts=tuple(" ".join(text.split()) for text in line.texts)) for line in lines]
    contents = [max((len(line.texts[at]) for line in lines), default=0) for at in range(len(heads))]
    widths = [max(len(head), content) for head, content in zip(heads, contents, strict=True)]
    places = list(range(len(heads)))
    below: list[int] = []
    wrapped: int | None = None
    if _total(widths, places) > width:
        # Columns without any text are left out, and heads take no more of the width than their longest word.
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
        if room >= min(_LEAST_WRAPPED, widths[widest]):
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
                told = f"{heads[at]}: {line.texts[at]}"
                yield from ((_INDENT + text, line.style) for text in _paragraph(told, width))
        for sentence in line.below:
            yield from ((_INDENT + text, "dim") for text in _paragraph(sentence, width))


def _total(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[at] for at in places) + len(_GAP) * (len(places) - 1)


def _rows(cells: Sequence[Sequence[str]], widths: Sequence[int], words: Sequence[bool]) -> Iterator[str]:
    """Lines of a row whose cells may have several."""
    for number in range(max(map(len, cells), default=0)):
        texts = (cell[number] if number < len(cell) else "" for cell in cells)
        padded = (
            text.ljust(width) if is_left else text.rjust(width)
            for text, width, is_left in zip(texts, widths, words, strict=True)
        )
        yield _GAP.join(padded).rstrip()


def wrap(text: str, width: int) -> list[str]:
    """Lines of a text; at least one."""
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _paragraph(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width - len(_INDENT), subsequent_indent="  ", break_on_hyphens=False)


def _stacked(heads: Sequence[str], lines: Sequence[TableLine], width: int) -> Iterator[tuple[str, str]]:
    """Every cell in a line of its own, with its head."""
    longest = max(map(len, heads))
    for line in lines:
        for at, (head, text) in enumerate(zip(heads, line.texts, strict=True)):
            style = line.style or ("" if at else "bold")
            for number, part in enumerate(wrap(text, max(20, width - longest - len(_GAP))) if text else ()):
                yield f"{'' if number else head:<{longest}}{_GAP}{part}", style
        for sentence in line.below:
            yield from ((_INDENT + text, "dim") for text in _paragraph(sentence, width))


def styled(text: str, style: str) -> str:
    """Return a text in a style, if the terminal has colours and the user did not switch them off."""
    plain = not style or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def terminal_width() -> int:
    """Columns of the terminal."""
    return max(40, shutil.get_terminal_size().columns)

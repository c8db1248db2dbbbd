"""Tables of records as CSV: rows whose first one names the columns. What is unknown is None, an empty field."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA = re.compile(r"(?:^|(?<=;))'*[=+\-@\t\uff0b\uff0d\uff1d\uff20]|\A'*\n", re.MULTILINE)
"""Also with full-width signs, which some programs take for these, at the beginning of a later line, and after a
semicolon, by which Excel separates columns where the comma is a decimal sign."""

Table = tuple[str, Iterable[Sequence[object]]]
"""Name and rows, of which the first one names the columns."""
Row = tuple[object, ...]
Tables = tuple[tuple[str, list[Row]], ...]


def filled(*tables: tuple[str, Iterable[Row]]) -> Tables:
    """Return the tables that have more than the names of their columns."""
    listed = ((name, list(rows)) for name, rows in tables)
    return tuple((name, rows) for name, rows in listed if len(rows) > 1)


def times(value: float | None, factor: float) -> float | None:
    """Return a value in another unit."""
    return None if value is None else factor * value


def harmless(cell: object) -> object:
    """Put an apostrophe before what a spreadsheet would take for a formula; numbers stay as they are.

    Lines within a text end in a line feed: Python's CSV writer does not quote a carriage return alone.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    try:
        float(text)
    except ValueError:
        return _FORMULA.sub(r"'\g<0>", text)
    return text


def original(text: str) -> str:
    """Return the text that `harmless` put apostrophes into."""
    return _FORMULA.sub(lambda found: found[0].removeprefix("'"), text)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Format a table; texts that look like formulas are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(harmless, row) for row in rows)
    return text.getvalue()


def csv_files(tables: Iterable[Table]) -> dict[str, str]:
    """Format tables by their names; return the text of each by the name of its file."""
    return {f"{name}.csv": csv_text(rows) for name, rows in tables}

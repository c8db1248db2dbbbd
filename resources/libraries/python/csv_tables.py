"""Tables of records as CSV: rows whose first one names the columns. What is unknown is None, an empty field."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA = re.compile(r"'*[=+\-@\t\n]")


def harmless(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would take for a formula; numbers stay as they are.

    Lines within a text end in a line feed: Python's CSV writer does not quote a carriage return alone.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def original(text: str) -> str:
    """Return the text that `harmless` put an apostrophe before."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Format a table; texts that look like formulas are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(harmless, row) for row in rows)
    return text.getvalue()


def csv_files(tables: Iterable[tuple[str, Iterable[Sequence[object]]]]) -> dict[str, str]:
    """Format tables by their names; return the text of each by the name of its file."""
    return {f"{name}.csv": csv_text(rows) for name, rows in tables}

"""Tables of records as CSV: rows whose first one names the columns. What is unknown is None, an empty field."""

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Format a table."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def csv_files(tables: Iterable[tuple[str, Iterable[Sequence[object]]]]) -> dict[str, str]:
    """Format tables by their names; return the text of each by the name of its file."""
    return {f"{name}.csv": csv_text(rows) for name, rows in tables}

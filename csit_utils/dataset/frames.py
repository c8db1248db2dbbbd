"""Tables for pandas and for CSV files, made from flat rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pandas as pd

from csit_utils.dataset.flatten import TABLES
from csit_utils.dataset.reference import WORLD as PUBLISHED
from csit_utils.dataset.rows import LISTS, TestRow
from resources.libraries.python.csv_tables import harmless
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from csit_utils.dataset.store.stored_contents import Stored


FILES: Mapping[str, type[Any]] = {"tests": TestRow, **{table.name: kind for kind, table in TABLES.items()}}
"""Type of the rows of each CSV file, by its name."""


def columns_of(kind: "type[DataclassInstance]") -> tuple[str, ...]:
    """Return the columns of a file, without those that are lists and histograms."""
    return tuple(each.name for each in fields(kind) if each.name not in (*LISTS, "histogram"))


def frame_of(kind: "type[DataclassInstance]", rows: "Iterable[DataclassInstance]") -> pd.DataFrame:
    """Return rows of a file as a table."""
    frame = pd.DataFrame((asdict(row) for row in rows), columns=columns_of(kind))
    hints = get_type_hints(kind)
    return frame.astype({name: _dtype(hints[name]) for name in frame.columns})


def _dtype(hint: object) -> str:
    """Nullable types: an unknown count stays unknown instead of turning its column into floats with NaN."""
    kinds = set(get_args(hint) or (hint,)) - {type(None)}
    return {str: "string", int: "Int64", float: "float64", bool: "boolean"}[kinds.pop()]


def write_csv(contents: "Stored", directory: Path) -> tuple[Path, ...]:
    """Write `FILES`, with raw numbers.

    Histograms and published figures are left out.

    Returns:
        The files.

    Raises:
        CsitError: One cannot be written.
        ReadError: A record is damaged.
    """
    every: Iterator[Any] = contents.rows(*TABLES)
    rows: dict[type, list[Any]] = {kind: [] for kind in TABLES}
    for row in every:
        rows[type(row)].append(row)
    rows[TestRow] = [row for row in contents.tests if row.world != PUBLISHED]
    frames = {name: frame_of(kind, rows[kind]) for name, kind in FILES.items()}
    options: dict[str, Any] = {"index": False, "lineterminator": "\n"}
    for name, frame in frames.items():
        texts = frame.select_dtypes(exclude=["number", "bool"])
        safe: dict[str, Any] = {str(column): texts[column].map(harmless) for column in texts}
        write_whole(directory / f"{name}.csv", frame.assign(**safe).to_csv(None, **options))
    return tuple(directory / f"{name}.csv" for name in frames)

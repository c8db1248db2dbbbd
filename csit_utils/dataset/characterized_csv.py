"""Tables of characterizations as CSV files, named as their tests write them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from csit_utils.dataset.items import Characterized
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.recording.writer import write_tables
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.sizing.analysis import tables as sizing_tables
from resources.libraries.python.studies.sweep.analysis.tables import csv_text, tables_of


def write_characterizations(items: Sequence[Characterized], directory: Path) -> tuple[Path, ...]:
    """Write the tables of each record, as its test wrote them, to `directory/characterization/<test>/`.

    Where several records are of one test, the folder's name ends with what the record is called in reports.

    Returns:
        The folders.

    Raises:
        RunStopped: They cannot be written.
    """
    names = Counter(item.record.test_name for item in items)
    return tuple(
        write_tables(
            item.record.test_name if names[item.record.test_name] == 1 else f"{item.record.test_name}-{item.anchor}",
            tables,
            directory,
        )
        for item in items
        if (tables := _tables(item.record))
    )


def _tables(record: Characterization) -> dict[str, str]:
    found = (*tables_of(record), *chain_tables(record), *interference_tables(record))
    tables = {f"{name}.csv": csv_text(rows) for name, rows in found}
    if record.sizing is not None:
        tables["sizing.csv"] = sizing_tables.sizing_table(record.sizing)
    return tables

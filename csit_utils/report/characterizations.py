"""Records of studies other than density: on a terminal, and as CSV files."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from csit_utils.dataset.items import Recorded
from csit_utils.report.study import View
from csit_utils.report.units import unit
from csit_utils.studies.registry import kind_of
from resources.libraries.python.csv_tables import csv_files
from resources.libraries.python.recording.writer import write_tables


def characterization_lines(found: Sequence[View], *, why: bool = False) -> Iterator[str]:
    """Yield one line per record.

    `why`: also functions, predictions, search steps and warnings.
    """
    for view in found:
        yield _line(view)
        if why:
            details = (*kind_of(view.item).lines_of(view.record), *view.warnings)
            yield from (f"    {' '.join(line.split())}" for line in details)


def characterization_objects(items: Iterable[Recorded]) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON object of each record, the oldest first.

    Its measures are those that are compared and followed over time.
    """
    for item in sorted(items, key=lambda item: item.record.started_at):
        record, view = item.record, kind_of(item).view(item, 0)
        yield {
            "study": record.study,
            "kind": record.kind,
            "test_id": record.test_id,
            "test_name": record.test_name,
            "source": item.source,
            "status": item.status.value,
            "message": item.message,
            "started_at": record.started_at,
            "testbed": record.testbed,
            "simulated": view.simulated,
            "oversubscribed": view.oversubscribed,
            "title": view.title,
            "headline": view.headline,
            "measures": [
                {
                    "name": each.measure,
                    "subject": row.service_type,
                    "nf_chains": row.nf_chains,
                    "nf_nodes": row.nf_nodes,
                    "nf_size": row.nf_size,
                    "frame": row.frame,
                    "load": row.goals,
                    "value": each.value,
                    "unit": unit(each.measure, row),
                    "lowest": each.lowest,
                    "highest": each.highest,
                }
                for row in kind_of(item).rows_of(item)
                for each in row.measures
            ],
            "details": [" ".join(line.split()) for line in kind_of(item).lines_of(record)],
            "warnings": list(view.warnings),
        }


def _line(view: View) -> str:
    marks = [
        *(["SIMULATED"] if view.record.simulated else []),
        *(["oversubscribed"] if view.oversubscribed else []),
        *([] if view.passed else [str(view.item.status)]),
    ]
    name = kind_of(view.item).name.lower()
    return " ".join([*marks, f"{name} {view.title} ({view.record.test_name}):", view.headline])


def write_characterizations(items: Sequence[Recorded], directory: Path) -> tuple[Path, ...]:
    """Write the tables of each record to `directory/characterization/<test>/`, as its test did.

    If a test has several records, the name of the folder ends with the id of the record.

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
        if (tables := csv_files(kind_of(item).tables(item.record)))
    )

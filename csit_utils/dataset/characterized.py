"""Records of other studies in a dataset: one Parquet file of whole records per import.

Beside a record are the rows that are queried most, as lists; their values are in the record too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.columns import UNREADABLE, check_columns
from csit_utils.dataset.items import Characterized, Problem, ReadError, Status
from csit_utils.dataset.records import parse_record
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.chains.analysis import tables as chains
from resources.libraries.python.studies.chains.model.record import ChainsRecord
from resources.libraries.python.studies.interference.analysis import tables as interference
from resources.libraries.python.studies.interference.model.record import InterferenceRecord

_TABLES = {
    "runs": chains.RUNS,
    "statistics": chains.STATISTICS,
    "suspects": chains.SUSPECTS,
    "reasons": chains.REASONS,
    "meetings": interference.MEETINGS,
    "interference_matrix": interference.MATRIX,
    "interference_means": interference.MEANS,
    "interference_sweep": interference.SWEEP,
}
"""Tables of the CSV files, with their columns. Samples and transitions, the largest part, are in the record only."""
_WORDS = (
    "chain", "resources", "protocol", "frame", "planted", "failed", "owner", "feature", "unit", "reason", "target",
    "against", "network_function", "type", "kind", "stand_in_for", "rules", "measure",
)  # fmt: skip
_COUNTS = ("sessions", "samples", "filtered", "rank", "turn", "repetition", "memory_bytes", "cache_misses")
_TYPES = {
    **dict.fromkeys(_WORDS, pa.string()),
    **dict.fromkeys(_COUNTS, pa.int64()),
    "guaranteed": pa.bool_(),
}
"""Types of columns that are not numbers."""
_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("anchor", "digest", "kind", "name", "testbed", "started_at", "label"), pa.string()),
        "simulated": pa.bool_(),
        **dict.fromkeys(("status", "message", "source", "record"), pa.string()),
        **{
            table: pa.list_(pa.struct({column: _TYPES.get(column, pa.float64()) for column in columns}))
            for table, columns in _TABLES.items()
        },
    }
)
"""`record` is the JSON of the model; other columns permit queries without it."""


def write(path: Path, items: Sequence[Characterized], label: str | None) -> None:
    """Write records to a new file, with the label of their run."""
    rows = [
        {
            "anchor": item.anchor,
            "digest": item.digest,
            "kind": item.record.kind,
            "name": item.record.test_name,
            "testbed": item.record.testbed,
            "started_at": item.record.started_at,
            "label": label,
            "simulated": item.record.simulated,
            "status": str(item.status),
            "message": item.message,
            "source": item.source,
            "record": item.record.model_dump_json(),
            **_tables(item.record),
        }
        for item in items
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path, compression="zstd")


def _tables(record: Record) -> dict[str, list[dict[str, object]]]:
    every: tuple[tuple[str, list[tuple[object, ...]]], ...] = ()
    if isinstance(record, ChainsRecord):
        every = chains.chain_tables(record)
    elif isinstance(record, InterferenceRecord):
        every = interference.interference_tables(record)
    return {
        name: [dict(zip(_TABLES[name], row, strict=True)) for row in rows[1:]]
        for name, rows in every
        if name in _TABLES
    }


def read(path: Path) -> Iterator[Characterized | Problem]:
    """Yield the records of a file; a problem where one is damaged.

    Raises:
        ReadError: The file is damaged.
    """
    wanted = {"name", "status", "message", "source", "record", "label"}
    try:
        with pq.ParquetFile(path) as file:
            there = wanted.intersection(file.schema_arrow.names)  # earlier versions wrote no label
            check_columns(file.schema_arrow, _SCHEMA, wanted - {"label"})
            rows = file.read(columns=sorted(there)).to_pylist()
    except (*UNREADABLE, ReadError) as error:
        raise ReadError(f"{path}: damaged; import its files again: {error}") from error
    for row in rows:
        try:
            record, _ = parse_record(row["record"], f"{path}: test '{row['name']}'")
        except ReadError as error:
            yield Problem(row["source"], str(error))
            continue
        yield Characterized(record, row["source"], Status(row["status"]), row["message"], row.get("label"))

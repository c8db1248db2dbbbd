"""Records of characterizations in a dataset: one Parquet file for each import that has any, whole records in it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.items import Characterized, ReadError, Status
from csit_utils.dataset.records import parse_characterization

_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("anchor", "digest", "kind", "name", "testbed", "started_at"), pa.string()),
        "simulated": pa.bool_(),
        **dict.fromkeys(("status", "message", "source", "record"), pa.string()),
    }
)
"""`record` is the JSON of the model; the others are there to be asked for without it."""


def write(path: Path, items: Sequence[Characterized]) -> None:
    """Write records to a new file."""
    rows = [
        {
            "anchor": item.anchor,
            "digest": item.digest,
            "kind": item.record.kind,
            "name": item.record.test_name,
            "testbed": item.record.testbed,
            "started_at": item.record.started_at,
            "simulated": item.record.simulated,
            "status": str(item.status),
            "message": item.message,
            "source": item.source,
            "record": item.record.model_dump_json(),
        }
        for item in items
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path, compression="zstd")


def read(path: Path) -> Iterator[Characterized]:
    """Read them back.

    Raises:
        ReadError: The file or a record in it is damaged.
    """
    try:
        rows = pq.read_table(path, partitioning=None).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise ReadError(f"{path}: damaged; import its files anew: {error}") from error
    for row in rows:
        record = parse_characterization(row["record"], f"{path}: test '{row['name']}'")
        yield Characterized(record, row["source"], Status(row["status"]), row["message"])


def digests(path: Path) -> set[str]:
    """Of its records."""
    return set(pq.read_table(path, columns=["digest"], partitioning=None).column("digest").to_pylist())

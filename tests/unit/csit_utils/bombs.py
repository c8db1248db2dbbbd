"""Files of a dataset that stand for far more than they are: each replaces one of a folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.store import columns, details

ROWS = 20_000


def part_of(folder: Path, table: str) -> Path:
    (part,) = (path for path in (folder / table).rglob("*.*") if path.is_file())
    return part


def say(folder: Path, **changes: object) -> None:
    """Let the import say something else."""
    (path,) = (folder / "imports").glob("*.json")
    made = json.loads(path.read_text(encoding="utf-8"))
    if "tests" in changes or "path" in changes:
        made["parts"][0] |= changes
    else:
        made |= changes
    path.write_text(json.dumps(made), encoding="utf-8")


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """As many rows as there are values, with the other columns of the first row."""
    rows = table.take(pa.array([0] * len(values)))
    return rows.set_column(rows.schema.names.index(name), name, values)


def repeated(table: pa.Table, name: str) -> pa.Table:
    """A text of 100 kB in all rows, once in the file."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array(["x" * 100_000]))
    return with_column(table, name, texts)


def one_text_in_all_rows(folder: Path) -> None:
    part = part_of(folder, "tests")
    table = pq.read_table(part, partitioning=None)
    pq.write_table(repeated(table, "message"), part, store_schema=False)
    say(folder, tests=ROWS)


def one_text_in_all_records(folder: Path) -> None:
    part = part_of(folder, "characterizations")
    table = pq.read_table(part, partitioning=None)
    pq.write_table(repeated(table, "record"), part, store_schema=False)
    say(folder, characterizations=ROWS)


def a_page_of_zeros(folder: Path) -> None:
    part = part_of(folder, "tests")
    ends = pa.array([0, 200_000_000], pa.int32()).buffers()[1]
    message = pa.StringArray.from_buffers(1, ends, pa.py_buffer(bytes(200_000_000)))
    table = with_column(pq.read_table(part, partitioning=None), "message", message)
    pq.write_table(table, part, compression="zstd", use_dictionary=False, write_statistics=False)


def texts_that_begin_with_the_one_before(folder: Path) -> None:
    part = part_of(folder, "tests")
    table = with_column(pq.read_table(part, partitioning=None), "message", pa.array(["x" * 100_000] * 2_000))
    pq.write_table(table, part, use_dictionary=False, column_encoding={"message": "DELTA_BYTE_ARRAY"})
    say(folder, tests=2_000)


def a_million_empty_rows(folder: Path) -> None:
    part = part_of(folder, "tests")
    nothing = {
        name: pa.nulls(1_000_000, kind) for name, kind in columns.TEST_TYPES.items() if name not in columns.OPTIONAL
    }
    pq.write_table(pa.table(nothing), part)
    say(folder, tests=1_000_000)


def _with_costs(folder: Path, count: int, texts: pa.Array) -> None:
    """A row with a long list of costs."""
    kind = columns.TEST_TYPES["costs"]
    fields = [texts if field.name == "load" else pa.nulls(count, field.type) for field in kind.value_type]
    items = pa.StructArray.from_arrays(fields, [field.name for field in kind.value_type])
    costs = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), items)
    part = part_of(folder, "tests")
    pq.write_table(with_column(pq.read_table(part, partitioning=None), "costs", costs), part, store_schema=False)


def a_list_of_nothing(folder: Path) -> None:
    _with_costs(folder, 2_000_000, pa.nulls(2_000_000, pa.string()))


def a_list_of_one_text(folder: Path) -> None:
    indices = pa.array([0] * 100_000, pa.int32())
    _with_costs(folder, 100_000, pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 100_000])))


def packed_details(folder: Path) -> None:
    part = part_of(folder, "details")
    rows = {
        name: pa.repeat(pa.scalar("x" * (10_000 if name == "record" else 1)), ROWS) for name in details.SCHEMA.names
    }
    with pa.ipc.new_file(str(part), details.SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(pa.table(rows, details.SCHEMA))


BOMBS: dict[Callable[[Path], None], str] = {
    one_text_in_all_rows: "stand for more than",
    one_text_in_all_records: "stand for more than",
    a_page_of_zeros: "stand for more than",
    texts_that_begin_with_the_one_before: "a page in encoding 7",
    a_million_empty_rows: "stand for more than",
    a_list_of_nothing: "stand for more than",
    a_list_of_one_text: "stand for more than",
}

"""Files of a dataset that stand for far more than they are: each replaces one of a folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.store.bounded_files import DETAIL_COLUMNS
from csit_utils.dataset.store.tables import OPTIONAL, TEST_TYPES

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


def changed(folder: Path, table: str, name: str, values: pa.Array, **options: object) -> None:
    """Write a table with as many rows as there are values, with the other columns of its first row."""
    part = part_of(folder, table)
    read = pq.read_table(part, partitioning=None)
    rows = read.take(pa.array([0] * len(values)))
    pq.write_table(rows.set_column(read.schema.names.index(name), name, values), part, **options)


def repeated(count: int) -> pa.Array:
    """A text of 100 kB in so many rows, once in the file."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 100_000]))


def one_text_in_all_rows(folder: Path) -> None:
    changed(folder, "tests", "message", repeated(ROWS), store_schema=False)
    say(folder, tests=ROWS)


def one_text_in_all_records(folder: Path) -> None:
    changed(folder, "characterizations", "record", repeated(ROWS), store_schema=False)
    say(folder, characterizations=ROWS)


def a_page_of_zeros(folder: Path) -> None:
    ends = pa.array([0, 200_000_000], pa.int32()).buffers()[1]
    message = pa.StringArray.from_buffers(1, ends, pa.py_buffer(bytes(200_000_000)))
    changed(folder, "tests", "message", message, compression="zstd", use_dictionary=False, write_statistics=False)


def texts_that_begin_with_the_one_before(folder: Path) -> None:
    encoding, texts = {"message": "DELTA_BYTE_ARRAY"}, pa.array(["x" * 100_000] * 2_000)
    changed(folder, "tests", "message", texts, use_dictionary=False, column_encoding=encoding)
    say(folder, tests=2_000)


def a_million_empty_rows(folder: Path) -> None:
    types = {name: kind for name, kind in TEST_TYPES.items() if name not in OPTIONAL}
    nothing = {name: pa.nulls(1_000_000, kind) for name, kind in types.items()}
    pq.write_table(pa.table(nothing), part_of(folder, "tests"))
    say(folder, tests=1_000_000)


def _with_costs(folder: Path, count: int, texts: pa.Array) -> None:
    """A row with a long list of costs."""
    kind = TEST_TYPES["costs"].value_type
    fields = [texts if field.name == "load" else pa.nulls(count, field.type) for field in kind]
    items = pa.StructArray.from_arrays(fields, [field.name for field in kind])
    costs = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), items)
    changed(folder, "tests", "costs", costs, store_schema=False)


def a_list_of_nothing(folder: Path) -> None:
    _with_costs(folder, 2_000_000, pa.nulls(2_000_000, pa.string()))


def a_list_of_one_text(folder: Path) -> None:
    _with_costs(folder, 100_000, repeated(100_000))


def packed_details(folder: Path) -> None:
    texts = {name: "x" * (10_000 if name == "record" else 1) for name in DETAIL_COLUMNS.names}
    rows = pa.table({name: pa.repeat(pa.scalar(text), ROWS) for name, text in texts.items()}, DETAIL_COLUMNS)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(str(part_of(folder, "details")), DETAIL_COLUMNS, options=options) as file:
        file.write_table(rows)


BOMBS: dict[Callable[[Path], None], str] = {
    one_text_in_all_rows: "stand for more than", one_text_in_all_records: "stand for more than",
    a_page_of_zeros: "stand for more than", texts_that_begin_with_the_one_before: "a page in encoding 7",
    a_million_empty_rows: "stand for more than", a_list_of_nothing: "stand for more than",
    a_list_of_one_text: "stand for more than",
}  # fmt: skip

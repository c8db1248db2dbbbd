"""Staging of rows of tests: written to files that a commit moves to their places."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.items import Problem, Recorded
from csit_utils.dataset.rows import DEFAULTS, LISTS, TestRow
from csit_utils.dataset.store.bounded_files import DETAIL_COLUMNS
from csit_utils.dataset.store.layout import (
    CHARACTERIZATIONS,
    DETAILS,
    TESTS,
    Import,
    Layout,
    PartValues,
    StoredPart,
    partition,
    run_of,
)
from csit_utils.dataset.store.tables import TEST_COLUMNS, TEST_TYPES, write_records
from csit_utils.dataset.testrows import Detail, Entry, HeadRow, columns_of
from resources.libraries.python.recording.records import NotUnpacked, unpack
from resources.libraries.python.studies.density.model import RefusedCell

_MAX_BYTES = 8 * 1024 * 1024
"""Size of buffered rows and records over all partitions. Writing a table of a hundred columns costs as much as about a
hundred of its rows, so rows are buffered for longer than records."""
_ROW_BYTES = 2_500
"""Approximate size of a row without its message."""
_MAX_LISTED = 32
"""Values of a column that are listed for a part."""
_CACHED_ROWS = 64
"""Rows that become columns at once: their records are still in the CPU cache then."""
_BUFFER_BYTES = 1 << 16
"""Write buffer of a file: a table of tests is written in about two hundred short pieces."""
GROUP_ROWS = 64
"""Details per group, which are read together."""
GROUP_BYTES = 1 << 20
"""Size of texts per group, so that they are still in the CPU cache when written."""
_DETAILS_BUFFER_BYTES = 1 << 15
"""The same of details: a group is written in about sixteen pieces, all but its texts short ones."""


def stage(
    layout: Layout, rows: Iterable[Entry], source: str, digest: str, label: str | None, *, files: tuple[str, ...] = ()
) -> Import:
    """Write rows to staged files.

    `rows`: rows of one file, or of several record files.
    """
    made = _Staging(layout, digest, source, label)
    refused: dict[RefusedCell, None] = {}  # each once: every suite of a service type reports the same ones
    problems: list[str] = []
    others: list[Recorded] = []
    try:
        for item in rows:
            if isinstance(item, tuple):
                made.add(*item)
            elif isinstance(item, Problem):
                problems.append(item.text)
            elif isinstance(item, Recorded):
                others.append(item)
            else:
                refused[item.refused] = None
        parts = made.close()
    except BaseException:
        made.abandon()
        raise
    if others:
        write_records(layout.staged(digest, CHARACTERIZATIONS, 0), others, label)
    environments = made.environments | {
        each.record.environment.digest: msgspec.Raw(each.record.environment.model_dump_json().encode())
        for each in others
    }
    return Import(
        digest,
        source,
        label,
        parts,
        tuple(msgspec.Raw(each.model_dump_json().encode()) for each in refused),
        tuple(problems),
        environments,
        files,
        characterizations=len(others),
    )


class _Staging:
    """Staged rows of all partitions."""

    def __init__(self, layout: Layout, digest: str, source: str, label: str | None) -> None:
        self.environments: dict[str, msgspec.Raw] = {}
        self._layout = layout
        self._digest = digest
        self._run = run_of(digest)
        self._constants = {"source": source} | ({"label": label} if label else {})
        self._partitions: dict[tuple[str | None, str | None], Partition] = {}
        self._rows_bytes = self._details_bytes = 0

    def add(self, row: HeadRow | TestRow, detail: Detail | None) -> None:
        if isinstance(row, TestRow) and detail is None:
            # The anchor of a test without a record depends on its source, a different file every night. Rows of other
            # tools, which write a file per test, have the run.
            row = replace(row, anchor=_anchor(self._run, row.test_id), run=self._run)
        elif detail is not None and detail.environment is not None and detail.environment not in self.environments:
            self._keep_environment(detail)
        started = row.started_at
        # An empty name has the same folder as no name.
        key = row.testbed or None, started[:10] if started else None
        if (part := self._partitions.get(key)) is None:
            part = self._partitions[key] = self._partition(*key)
        self._rows_bytes += _ROW_BYTES + len(row.message)
        self._details_bytes += part.add(row, detail)
        if self._rows_bytes > _MAX_BYTES:
            self._rows_bytes = 0
            for each in self._partitions.values():
                each.write_rows()
        if self._details_bytes > _MAX_BYTES:
            self._details_bytes = 0
            for each in self._partitions.values():
                each.write_details()

    def _partition(self, testbed: str | None, night: str | None) -> "Partition":
        tests, details = (self._layout.staged(self._digest, table, len(self._partitions)) for table in (TESTS, DETAILS))
        path = f"{partition(testbed, night)}/{self._digest[:16]}.parquet"
        return Partition(path, tests, details, self._run, self._constants)

    def _keep_environment(self, detail: Detail) -> None:
        try:
            text = unpack(msgspec.json.decode(detail.text, type=_PackedPart).packed)
            self.environments[str(detail.environment)] = msgspec.json.decode(text, type=_Heavy).environment
        except (NotUnpacked, msgspec.DecodeError):
            return  # keep the row; opening the record reports the error

    def close(self) -> tuple[StoredPart, ...]:
        return tuple(part.close(*key) for key, part in self._partitions.items())

    def abandon(self) -> None:
        """Close all files as they are."""
        for part in self._partitions.values():
            part.abandon()


class _PackedPart(msgspec.Struct):
    packed: str


class _Heavy(msgspec.Struct):
    environment: msgspec.Raw


class WaitingRows:
    """Rows of tests that are written together.

    `run`: id of the run of tests with a head.
    `constants`: columns with the same value in all rows, which override those of the rows.
    """

    def __init__(self, run: str, constants: Mapping[str, str]) -> None:
        self._constants = constants
        self._defaults = {**DEFAULTS, "run": run}
        self._rows: list[HeadRow | TestRow] = []
        self._count = 0
        """Number of rows in `_values`."""
        self._values: dict[str, list[Any]] = {}
        """Without columns that have the default of `TestRow` in all rows."""

    def add(self, row: HeadRow | TestRow) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= _CACHED_ROWS:
            self._make_columns()

    def _make_columns(self) -> None:
        for kind, same in groupby(self._rows, type):
            rows: list[Any] = list(same)
            made = columns_of(rows) if kind is HeadRow else {name: map(attrgetter(name), rows) for name in TEST_TYPES}
            for name in made.keys() - self._values.keys():
                self._values[name] = [self._defaults.get(name)] * self._count
            for name, values in self._values.items():
                values.extend(made[name] if name in made else (self._defaults[name],) * len(rows))
            self._count += len(rows)
        self._rows.clear()

    def table(self) -> pa.Table | None:
        """Return all rows as columns, in their order, and forget them; None without any."""
        self._make_columns()
        count, self._count = self._count, 0
        same = {**self._defaults, **self._constants}
        arrays = [
            pa.repeat(pa.scalar(same[name], kind), count)
            if name in self._constants or name not in self._values
            else pa.array(_plain(self._values[name]) if name in LISTS else self._values[name], kind)
            for name, kind in TEST_TYPES.items()
        ]
        self._values.clear()
        return pa.table(arrays, schema=TEST_COLUMNS) if count else None


def _plain(values: Iterable[Sequence[Any] | None]) -> list[list[dict[str, Any]] | None]:
    """Rows of tables in a column, as Arrow takes them."""
    return [None if rows is None else [asdict(row) for row in rows] for rows in values]


class Partition:
    """Tests of one testbed and night: buffered rows and details, and their two files."""

    def __init__(self, path: str, tests: Path, details: Path, run: str, constants: dict[str, str]) -> None:
        self.path = path
        self._tests = _Writer(tests, _BUFFER_BYTES, _tests_writer)
        self._details = _Writer(details, _DETAILS_BUFFER_BYTES, partial(pa.ipc.new_file, schema=DETAIL_COLUMNS))
        self._rows = WaitingRows(run, constants)
        self._waiting = WaitingDetails()
        self._count = 0
        self._begun: str | None = None
        self._values: dict[str, set[str]] = {name: set() for name in PartValues.__struct_fields__}

    def add(self, row: HeadRow | TestRow, detail: Detail | None) -> int:
        """Add a test; return the change of the buffered size in bytes, negative if details were written."""
        self._rows.add(row)
        return 0 if detail is None else self.add_detail(row.anchor, detail)

    def add_detail(self, anchor: str, detail: Detail) -> int:
        """Add what a test has beside its row; return as `add`."""
        before = self._waiting.size_bytes
        self._waiting.add(anchor, detail)
        if self._waiting.full:
            self.write_details()
        return self._waiting.size_bytes - before

    def write_rows(self) -> None:
        """Write buffered rows."""
        if (table := self._rows.table()) is not None:
            self.write_table(table)

    def write_table(self, table: pa.Table) -> None:
        """Write rows as columns."""
        self._tests.write(table)
        self._count += table.num_rows
        for name, known in self._values.items():
            # `unique` of Arrow would import pyarrow.compute.
            known.update(each for each in table.column(name).to_pylist() if each is not None)
        self._begun = min(filter(None, (self._begun, *table.column("started_at").to_pylist())), default=None)

    def write_details(self) -> None:
        """Write buffered details."""
        if (batch := self._waiting.batch()) is not None:
            self._details.write(batch)
        self._waiting.clear()

    def close(self, testbed: str | None, night: str | None) -> StoredPart:
        """Write the rest; return what was written."""
        self.write_rows()
        self.write_details()
        self._tests.close()
        self._details.close()
        listed = (tuple(sorted(each)) if len(each) <= _MAX_LISTED else None for each in self._values.values())
        return StoredPart(self.path, testbed, night, self._begun, self._count, PartValues(*listed))

    def abandon(self) -> None:
        """Close both files as they are."""
        self._tests.abandon()
        self._details.abandon()


class WaitingDetails:
    """Details that are written together.

    Texts are copied into one buffer: keeping them in new memory would cost
    more than the copies, since the kernel clears it page by page.
    """

    def __init__(self) -> None:
        # Memory is allocated on first write, so a table of few records is small.
        # A slice of a bytearray itself would copy bytes twice on assignment.
        self._texts = memoryview(bytearray(GROUP_BYTES + GROUP_BYTES // 4))
        self._ends = [0]
        self._names: list[tuple[str, str, str]] = []

    @property
    def size_bytes(self) -> int:
        """Size of the buffered texts."""
        return self._ends[-1]

    @property
    def full(self) -> bool:
        """Whether the buffer should be written."""
        return len(self._names) >= GROUP_ROWS or self.size_bytes >= GROUP_BYTES

    def add(self, anchor: str, detail: Detail) -> None:
        """Add a detail; text as bytes is UTF-8."""
        raw = detail.text.encode() if isinstance(detail.text, str) else detail.text
        begin, end = self.size_bytes, self.size_bytes + len(raw)
        if end > len(self._texts):
            # A new buffer, because Arrow may still refer to the previous one.
            larger = memoryview(bytearray(2 * end))
            larger[:begin] = self._texts[:begin]
            self._texts = larger
        self._texts[begin:end] = raw
        self._ends.append(end)
        self._names.append((anchor, detail.digest, detail.kind))

    def batch(self) -> pa.RecordBatch | None:
        """Return buffered details as columns, valid until the next change; None without any."""
        if not self._names:
            return None
        texts = pa.py_buffer(self._texts[: self.size_bytes])
        ends = pa.py_buffer(np.array(self._ends, dtype=np.int32))
        arrays = [pa.array(column, pa.string()) for column in zip(*self._names, strict=True)]
        return pa.record_batch(
            [*arrays, pa.StringArray.from_buffers(len(self._names), ends, texts)], schema=DETAIL_COLUMNS
        )

    def clear(self) -> None:
        """Empty the buffer."""
        self._ends = [0]
        self._names.clear()


class _Writer:
    """Writer of a file, opened for its first rows, so that not all files of many partitions are open at once."""

    def __init__(self, path: Path, buffer_bytes: int, make: Callable[[pa.NativeFile], Any]) -> None:
        self._path = path
        self._buffer_bytes = buffer_bytes
        self._make = make
        self._open: tuple[Any, pa.NativeFile] | None = None

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        self._opened()[0].write(rows)

    def close(self) -> None:
        """Complete the file, also one without rows."""
        for each in self._opened():
            each.close()

    def abandon(self) -> None:
        """Close the file as it is, after a failure.

        Arrow writes buffered data when an open file is freed, and prints that this fails too, such as on a full disk.
        """
        for each in self._open or ():
            with suppress(OSError, ValueError):  # ValueError: the writer of a closed file
                each.close()

    def _opened(self) -> tuple[Any, pa.NativeFile]:
        if self._open is None:
            sink = pa.BufferedOutputStream(pa.OSFile(str(self._path), "wb"), self._buffer_bytes)
            self._open = self._make(sink), sink
        return self._open


def _tests_writer(sink: pa.NativeFile) -> pq.ParquetWriter:
    options: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
    return pq.ParquetWriter(sink, TEST_COLUMNS, compression="lz4", **options)


def _anchor(run: str, test_id: str) -> str:
    return "test-" + hashlib.sha256(f"{run}\n{test_id}".encode()).hexdigest()[:12]

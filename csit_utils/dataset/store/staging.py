"""Staging of rows of tests: written to files that a commit moves to their places."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.items import Characterized, Problem, Refusal
from csit_utils.dataset.refusals import to_dataset
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.store import characterization_files, columns
from csit_utils.dataset.store.layout import (
    CHARACTERIZATIONS,
    DETAILS,
    TESTS,
    Import,
    Layout,
    Part,
    partition,
    run_of,
)
from csit_utils.dataset.testrows import HeadRow
from resources.libraries.python.recording.packed_record import NotUnpacked, digest_of, unpack

GROUP_ROWS = 64
"""Records per row group, which are read together."""
GROUP_BYTES = 1 << 20
"""Size of texts per row group, so that they are still in the CPU cache when written."""


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

    def add(self, anchor: str, digest: str, kind: str, text: str | bytes) -> None:
        """Add a detail; text as bytes is UTF-8."""
        raw = text.encode() if isinstance(text, str) else text
        begin, end = self.size_bytes, self.size_bytes + len(raw)
        if end > len(self._texts):
            # A new buffer, because Arrow may still refer to the previous one.
            larger = memoryview(bytearray(2 * end))
            larger[:begin] = self._texts[:begin]
            self._texts = larger
        self._texts[begin:end] = raw
        self._ends.append(end)
        self._names.append((anchor, digest, kind))

    def table(self) -> pa.Table | None:
        """Return buffered details as columns, valid until the next change; None without any."""
        if not self._names:
            return None
        texts = pa.py_buffer(self._texts[: self.size_bytes])
        ends = pa.py_buffer(np.array(self._ends, dtype=np.int32))
        arrays = [pa.array(column, pa.string()) for column in zip(*self._names, strict=True)]
        return pa.table(
            [*arrays, pa.StringArray.from_buffers(len(self._names), ends, texts)],
            schema=columns.DETAILS,
        )

    def clear(self) -> None:
        """Empty the buffer."""
        self._ends = [0]
        self._names.clear()


_MOST_BYTES = 8 * 1024 * 1024
"""Size of buffered rows and records over all partitions. Writing a table of a hundred columns costs as much as about a
hundred of its rows, so rows are buffered for longer than records."""
_ROW_BYTES = 2_500
"""Approximate size of a row without its message."""
_BUFFER_BYTES = 1 << 16
"""Write buffer of a file: a table of tests is written in about two hundred short pieces."""


class Detail(msgspec.Struct, frozen=True, gc=False):
    """Data of a test beside its row."""

    digest: str
    """Digest of the record's JSON, or of the file of another tool."""
    kind: str
    text: str | bytes
    environment: str | None = None


Row = tuple[HeadRow | TestRow, Detail | None]
Entry = Row | Characterized | Refusal | Problem
"""An item of a file for a dataset."""


def stage(
    layout: Layout,
    rows: Iterable[Entry],
    source: str,
    digest: str,
    label: str | None,
    *,
    files: tuple[str, ...] = (),
) -> Import:
    """Write rows to staged files.

    Args:
        layout: The dataset.
        rows: Rows of one file, or of several record files.
        source: Name of the file.
        digest: Digest of the file.
        label: Label of the run.
        files: Digests of record files.
    """
    made = _Staging(layout, digest, source, label)
    refused: list[Refusal] = []
    problems: list[str] = []
    others: list[Characterized] = []
    for item in rows:
        if isinstance(item, tuple):
            made.add(*item)
        elif isinstance(item, Problem):
            problems.append(item.text)
        elif isinstance(item, Characterized):
            others.append(item)
        else:
            refused.append(item)
    parts = made.close()
    if others:
        characterization_files.write(layout.staged(digest, CHARACTERIZATIONS, 0), others, label)
    environments = made.environments | {
        digest_of(each.record.environment): msgspec.Raw(each.record.environment.model_dump_json().encode())
        for each in others
    }
    return Import(
        digest,
        source,
        label,
        parts,
        to_dataset(refused),
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
        self._partitions: dict[tuple[str | None, str | None], _Partition] = {}
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
        if self._rows_bytes > _MOST_BYTES:
            self._rows_bytes = 0
            for each in self._partitions.values():
                each.write_rows()
        if self._details_bytes > _MOST_BYTES:
            self._details_bytes = 0
            for each in self._partitions.values():
                each.write_details()

    def _partition(self, testbed: str | None, night: str | None) -> "_Partition":
        tests, details = (self._layout.staged(self._digest, table, len(self._partitions)) for table in (TESTS, DETAILS))
        path = f"{partition(testbed, night)}/{self._digest[:16]}.parquet"
        return _Partition(path, tests, details, self._run, self._constants)

    def _keep_environment(self, detail: Detail) -> None:
        try:
            text = unpack(msgspec.json.decode(detail.text, type=_PackedPart).packed)
            self.environments[str(detail.environment)] = msgspec.json.decode(text, type=_Heavy).environment
        except (NotUnpacked, msgspec.DecodeError):
            return  # keep the row; opening the record reports the error

    def close(self) -> tuple[Part, ...]:
        return tuple(
            Part(part.path, testbed, night, part.close()) for (testbed, night), part in self._partitions.items()
        )


class _PackedPart(msgspec.Struct):
    packed: str


class _Heavy(msgspec.Struct):
    environment: msgspec.Raw


class _Partition:
    """Tests of one testbed and night: buffered rows and details, and their two files."""

    def __init__(self, path: str, tests: Path, details: Path, run: str, constants: dict[str, str]) -> None:
        self.path = path
        self._tests, self._details = _File(tests, columns.TESTS, "lz4"), _File(details, columns.DETAILS, "none")
        self._rows = columns.WaitingRows(run, constants)
        self._waiting = WaitingDetails()
        self._count = 0

    def add(self, row: HeadRow | TestRow, detail: Detail | None) -> int:
        """Add a test; return the change of the buffered size in bytes, negative if details were written."""
        self._rows.add(row)
        if detail is None:
            return 0
        before = self._waiting.size_bytes
        self._waiting.add(row.anchor, detail.digest, detail.kind, detail.text)
        if self._waiting.full:
            self.write_details()
        return self._waiting.size_bytes - before

    def write_rows(self) -> None:
        """Write buffered rows."""
        if (table := self._rows.table()) is not None:
            self._tests.write(table)
            self._count += table.num_rows

    def write_details(self) -> None:
        """Write buffered details."""
        if (table := self._waiting.table()) is not None:
            self._details.write(table)
        self._waiting.clear()

    def close(self) -> int:
        """Write the rest; return the number of tests."""
        self.write_rows()
        self.write_details()
        self._tests.close()
        self._details.close()
        return self._count


class _File:
    """A Parquet file, opened for its first rows, so that not all files of many partitions are open at once."""

    def __init__(self, path: Path, schema: pa.Schema, compression: str) -> None:
        self._path, self._schema, self._compression = path, schema, compression
        self._writer: pq.ParquetWriter | None = None
        self._sink: pa.NativeFile | None = None

    def write(self, table: pa.Table) -> None:
        self._opened().write_table(table)

    def close(self) -> None:
        self._opened().close()
        if self._sink is not None:
            self._sink.close()

    def _opened(self) -> pq.ParquetWriter:
        if self._writer is None:
            options: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
            self._sink = pa.BufferedOutputStream(pa.OSFile(str(self._path), "wb"), _BUFFER_BYTES)
            self._writer = pq.ParquetWriter(self._sink, self._schema, compression=self._compression, **options)
        return self._writer


def _anchor(run: str, test_id: str) -> str:
    return "test-" + hashlib.sha256(f"{run}\n{test_id}".encode()).hexdigest()[:12]

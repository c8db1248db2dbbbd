"""Details of tests: their records, and the rows of other tools, in a file beside the rows of each part of a dataset.

A file is Arrow's IPC format, one record batch per group of details: a batch is written as it lies in memory, and its
anchors are read without its texts.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.store.bounded_files import opened

SCHEMA = pa.schema({"anchor": pa.string(), "digest": pa.string(), "kind": pa.string(), "record": pa.string()})
RECORD, ROWS = "record", "rows"
"""Kinds of details: a packed record; JSON of rows, for results without a record."""
GROUP_ROWS = 64
"""Details per group, which are read together."""
GROUP_BYTES = 1 << 20
"""Size of texts per group, so that they are still in the CPU cache when written."""
_BUFFER_BYTES = 1 << 15
"""Write buffer of a file."""


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

    def batch(self) -> pa.RecordBatch | None:
        """Return buffered details as columns, valid until the next change; None without any."""
        if not self._names:
            return None
        texts = pa.py_buffer(self._texts[: self.size_bytes])
        ends = pa.py_buffer(np.array(self._ends, dtype=np.int32))
        arrays = [pa.array(column, pa.string()) for column in zip(*self._names, strict=True)]
        return pa.record_batch(
            [*arrays, pa.StringArray.from_buffers(len(self._names), ends, texts)],
            schema=SCHEMA,
        )

    def clear(self) -> None:
        """Empty the buffer."""
        self._ends = [0]
        self._names.clear()


class DetailsWriter:
    """Writer of a file, opened for its first details, so that not all files of many partitions are open at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pa.RecordBatchFileWriter | None = None
        self._sink: pa.NativeFile | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a group."""
        self._opened().write_batch(batch)

    def close(self) -> None:
        """Complete the file, also one without details."""
        self._opened().close()
        if self._sink is not None:
            self._sink.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        close_quietly(self._writer, self._sink)

    def _opened(self) -> pa.RecordBatchFileWriter:
        if self._writer is None:
            # A group is written in about sixteen pieces, all but its texts short ones.
            self._sink = pa.BufferedOutputStream(pa.OSFile(str(self._path), "wb"), _BUFFER_BYTES)
            self._writer = pa.ipc.new_file(self._sink, SCHEMA)
        return self._writer


def close_quietly(*files: pa.RecordBatchFileWriter | pq.ParquetWriter | pa.NativeFile | None) -> None:
    """Close a writer and its file after a failure.

    Arrow writes buffered data when an open file is freed, and prints that this fails too, such as on a full disk.
    """
    for each in files:
        if each is not None:
            with suppress(OSError, ValueError):  # ValueError: the writer of a closed file
                each.close()


class Group(NamedTuple):
    """Details that were written together, as columns."""

    anchors: list[str]
    kinds: pa.Array | pa.ChunkedArray
    texts: pa.Array | pa.ChunkedArray


def check(path: Path) -> None:
    """Check that a file is complete: its columns and groups are listed at its end.

    Raises:
        ReadError: It is not.
    """
    with opened(path, SCHEMA, SCHEMA.names):
        pass


def digests(path: Path) -> set[str]:
    """Return the digests of all details of a file.

    Raises:
        ReadError: It is damaged.
    """
    with opened(path, SCHEMA, ["digest"]) as file:
        return {digest for at in range(file.count) for digest in file.read(at).column("digest").to_pylist()}


def groups(path: Path, anchors: Collection[str]) -> Iterator[Group]:
    """Yield the groups that have details of some tests.

    `anchors`: anchors of the tests; may become fewer between groups.

    Raises:
        ReadError: The file is damaged.
    """
    with opened(path, SCHEMA, ["anchor"]) as names, opened(path, SCHEMA, ["kind", "record"]) as file:
        for at in range(names.count):
            here = names.read(at).column("anchor").to_pylist()
            if not set(anchors).isdisjoint(here):
                found = file.read(at)
                yield Group(here, found.column("kind"), found.column("record"))

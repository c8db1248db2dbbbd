"""Rows of tests on their way into a dataset: collected, and written to files that a commit puts in their places."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset import columns
from csit_utils.dataset.items import Problem, RefusedCell
from csit_utils.dataset.layout import DETAILS, TESTS, Import, Layout, Part, Refused, partition, run_of
from resources.libraries.python.recording.packed import NotUnpacked, unpack

_FLUSH_BYTES = 8 * 1024 * 1024
"""Of records that are held before they are written."""
_DETAIL_ROWS = 64
"""Records that are read at once where one is asked for."""


@dataclass(frozen=True)
class Detail:
    """What is kept of a test beside its row."""

    digest: str
    """Of the record's JSON, or of the file of another tool."""
    kind: str
    text: str | bytes
    environment: str | None = None


Row = tuple[dict[str, Any], Detail | None]


def stage(
    layout: Layout,
    rows: "Iterable[Row | RefusedCell | Problem]",
    source: str,
    digest: str,
    label: str | None,
    *,
    files: tuple[str, ...] = (),
) -> Import:
    """Write rows to where they are staged.

    Args:
        layout: The dataset.
        rows: Of one file, or of several record files.
        source: Where they come from.
        digest: Of that.
        label: What a person calls it.
        files: Digests of record files.
    """
    run = run_of(digest)
    made = _Staging(layout, digest, {"source": source, "run": run, "label": label})
    refused: dict[Refused, None] = {}
    problems: list[str] = []
    for item in rows:
        if isinstance(item, tuple):
            made.add(*item)
        elif isinstance(item, Problem):
            problems.append(item.text)
        else:
            refused[_refused(item)] = None  # every suite of a service type tells of the same ones
    parts = made.close()
    return Import(digest, source, label, parts, tuple(refused), tuple(problems), made.environments, files)


def _refused(cell: RefusedCell) -> Refused:
    return Refused(cell.service_type, cell.nf_chains, cell.nf_nodes, cell.nf_size, cell.vs_dtc, cell.reason)


@dataclass
class _Staging:
    """Rows that wait, and the files that they go to."""

    layout: Layout
    digest: str
    constants: dict[str, Any]
    environments: dict[str, msgspec.Raw] = field(default_factory=dict)
    _waiting: dict[tuple[str | None, str | None], list[Row]] = field(default_factory=lambda: defaultdict(list))
    _writers: dict[tuple[str | None, str | None], "_Writer"] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, row: dict[str, Any], detail: Detail | None) -> None:
        started = row.get("started_at")
        if detail is not None and detail.kind == columns.ROWS:
            # Other tools write a file for each test: which run it is of, and how that is called, their row says.
            self.constants = {key: self.constants[key] for key in ("source", "label") if self.constants.get(key)}
        if detail is None or detail.kind != columns.RECORD:
            # A test without a record is named after its source, which is another file every night.
            row["anchor"] = row["anchor"] if detail is not None else _anchor(self.constants["run"], row["test_id"])
        elif detail.environment is not None and detail.environment not in self.environments:
            self._keep_environment(detail)
        self._waiting[row.get("testbed"), started[:10] if started else None].append((row, detail))
        self._bytes += 2_000 + (len(detail.text) if detail else 0)
        if self._bytes > _FLUSH_BYTES:
            self._flush()

    def _keep_environment(self, detail: Detail) -> None:
        try:
            text = unpack(msgspec.json.decode(detail.text, type=_Packed).packed)
            self.environments[str(detail.environment)] = msgspec.json.decode(text, type=_Heavy).environment
        except (NotUnpacked, msgspec.DecodeError):
            return  # the row stands; whoever opens the record is told

    def _flush(self) -> None:
        for key, rows in self._waiting.items():
            if key not in self._writers:
                files = [self.layout.staged(self.digest, table, len(self._writers)) for table in (TESTS, DETAILS)]
                self._writers[key] = _Writer(f"{partition(*key)}/{self.digest[:16]}.parquet", *files)
            self._writers[key].write(rows, self.constants)
        self._waiting.clear()
        self._bytes = 0

    def close(self) -> tuple[Part, ...]:
        self._flush()
        return tuple(
            Part(writer.path, testbed, night, writer.close()) for (testbed, night), writer in self._writers.items()
        )


class _Packed(msgspec.Struct):
    packed: str


class _Heavy(msgspec.Struct):
    environment: msgspec.Raw


class _Writer:
    """The two files of a partition."""

    def __init__(self, path: str, tests: Path, details: Path) -> None:
        self.path = path
        self._count = 0
        options: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
        self._tests = pq.ParquetWriter(tests, columns.TESTS, compression="lz4", **options)
        # Records are compressed already.
        self._details = pq.ParquetWriter(details, columns.DETAILS, compression="none", **options)

    def write(self, rows: list[Row], constants: dict[str, Any]) -> None:
        self._count += len(rows)
        self._tests.write_table(columns.table_of_tests([row for row, _ in rows], constants))
        kept = [(row["anchor"], detail.digest, detail.kind, detail.text) for row, detail in rows if detail is not None]
        if kept:
            arrays = [pa.array(column, pa.string()) for column in zip(*kept, strict=True)]
            self._details.write_table(pa.table(arrays, schema=columns.DETAILS), row_group_size=_DETAIL_ROWS)

    def close(self) -> int:
        self._tests.close()
        self._details.close()
        return self._count


def _anchor(run: str, test_id: str) -> str:
    return "test-" + hashlib.sha256(f"{run}\n{test_id}".encode()).hexdigest()[:12]

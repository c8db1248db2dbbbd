"""Import of one file of results into a dataset, in constant memory."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from csit_utils.dataset import columns
from csit_utils.dataset.inputs import Source
from csit_utils.dataset.items import (
    Characterized,
    Foreign,
    Problem,
    ReadError,
    Recorded,
    Refusal,
    Status,
    Unrecorded,
)
from csit_utils.dataset.layout import DETAILS, TESTS, Import, Layout
from csit_utils.dataset.load import NO_RECORD, read_json, recorded_test, unrecorded
from csit_utils.dataset.scan import BLOCK_BYTES, Scanned, ScannedTest, scan
from csit_utils.dataset.staging import Detail, Entry, Row, stage
from csit_utils.dataset.testrows import Struct, packed_head, row_values, unrecorded_row
from resources.libraries.python.recording.packed import pack


def digest_of_source(source: Source) -> str:
    """Return the digest of the unpacked content of a file.

    Raises:
        ReadError: The file is unreadable.
    """
    digest = blake3()
    with source.open() as stream:
        try:
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
        except (ReadError, OSError) as error:
            # The part before the damage is imported, which is not the whole file.
            digest.update(f"\0{error}".encode())
    return digest.hexdigest()


def import_source(layout: Layout, source: Source, digest: str, label: str | None) -> Import:
    """Stage the contents of a file; `Layout.commit` adds them to the dataset.

    Raises:
        ReadError: The file is unreadable.
    """
    with source.open() as stream:
        return stage(layout, _rows(scan(stream, source.name), source.name), source.name, digest, label)


def _rows(found: Iterable[Scanned], source: str) -> Iterator[Entry]:
    for test in found:
        if not isinstance(test, ScannedTest):
            yield test
        elif test.record is None:
            yield _bare(unrecorded(test, source, test.message or NO_RECORD))
        else:
            try:
                yield _test(test, test.record, source)
            except ReadError as error:
                yield _bare(unrecorded(test, source, str(error)))
                yield Problem(source, str(error))


def _test(test: ScannedTest, text: str | bytes, source: str) -> Row | Characterized:
    """Return a test from its packed record; a plain record is read in full and packed.

    Raises:
        ReadError: Not a valid record.
    """
    try:
        head = packed_head(text)
        values = row_values(head)
    except ReadError:
        # A record of another study, a plain one, or an invalid one, whose error the full reader reports.
        item = recorded_test(test, text, source)
        return item if isinstance(item, Characterized) else _whole(item)
    status = test.status or (Status.PASS if head.passed else Status.FAIL)
    return _recorded(head, values, text, status, test.message or head.message)


def _whole(item: Recorded) -> Row:
    text = pack(item.result)
    head = packed_head(text)
    return _recorded(head, row_values(head), text, item.status, item.message)


def _recorded(head: Struct, row: dict[str, Any], text: str | bytes, status: Status, message: str) -> Row:
    row["status"], row["message"] = status, message
    return row, Detail(head.counted.digest, columns.RECORD, text, head.counted.environment)


def _bare(item: Unrecorded) -> Row:
    return asdict(unrecorded_row(item)), None


def json_rows(content: bytes, source: str, digest: str) -> Iterator[Entry]:
    """Yield the rows of a record file, or of a file of another tool.

    Args:
        content: The file.
        source: Its name.
        digest: SHA-256 of the content.
    """
    try:
        for item in read_json(content, source):
            yield item if isinstance(item, Characterized) else _item_row(item, digest)
    except ReadError as error:
        yield Problem(source, str(error))


def _item_row(item: Recorded | Unrecorded | Foreign | Refusal | Problem, digest: str) -> Entry:
    match item:
        case Recorded():
            row, detail = _whole(item)
            return row, detail and msgspec.structs.replace(detail, digest=digest)
        case Foreign():
            kept = msgspec.json.encode({"latency": item.latency})
            return asdict(item.row), Detail(digest, columns.ROWS, kept)
        case Unrecorded():
            return _bare(item)
        case _:
            return item


def known_records(layout: Layout, imports: Collection[Import]) -> set[str]:
    """Return the digests of all records of a dataset."""
    found: set[str] = set()
    for part in (part for each in imports for part in each.parts):
        found |= _digests(layout.path(DETAILS, part))
    for each in imports:
        if each.characterizations:
            found |= _digests(layout.characterizations(each))
    return found


def is_whole(layout: Layout, made: Import) -> bool:
    """Whether the files of an import can be read; where not, it is imported again."""
    files = [(layout.path(TESTS, part), columns.TESTS, columns.NEEDED) for part in made.parts]
    files += [(layout.path(DETAILS, part), columns.DETAILS, tuple(columns.DETAILS.names)) for part in made.parts]
    if made.characterizations:
        files.append((layout.characterizations(made), columns.DETAILS, ("digest", "record")))
    return all(_has_columns(*each) for each in files)


def _has_columns(path: Path, schema: pa.Schema, needed: tuple[str, ...]) -> bool:
    try:
        with pq.ParquetFile(path) as file:
            columns.check_columns(file.schema_arrow, schema, needed)
    except (*columns.UNREADABLE, ReadError):
        return False
    return True


def _digests(path: Path) -> set[str]:
    with pq.ParquetFile(path) as file:
        return set(file.read(columns=["digest"]).column("digest").to_pylist())

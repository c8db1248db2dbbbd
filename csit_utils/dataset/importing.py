"""From one file of results into a dataset: a stream of tests in, columns out, memory flat in the file's size."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import lru_cache

import msgspec
import pyarrow.parquet as pq
from blake3 import blake3

from csit_utils.dataset import columns
from csit_utils.dataset.heads import PackedHead, packed_head
from csit_utils.dataset.inputs import Source
from csit_utils.dataset.items import Foreign, Item, Problem, ReadError, Recorded, RefusedCell, Status, Unrecorded
from csit_utils.dataset.layout import DETAILS, Import, Layout
from csit_utils.dataset.load import read_json
from csit_utils.dataset.output_xml import NO_RECORD, unrecorded, where
from csit_utils.dataset.records import parse_record
from csit_utils.dataset.scan import Scanned, ScannedTest, scan
from csit_utils.dataset.staging import Detail, Row, stage
from csit_utils.dataset.testrows import (
    AskedParts,
    Values,
    cell_part,
    frame_part,
    profile_part,
    row_values,
    unrecorded_row,
)
from resources.libraries.python.model.cell import Cell, Frame
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.recording.packed import pack

_BLOCK_BYTES = 1 << 20
_CACHED = 4096
"""Cells, frames and profiles are the same in thousands of tests."""


def digest_of_source(source: Source) -> str:
    """The same for the same content, however it is named and packed.

    Raises:
        ReadError: It cannot be opened.
    """
    digest = blake3()
    with source.open() as stream:
        try:
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
        except (ReadError, OSError) as error:
            # What comes before the damage is imported, and is not the whole file.
            digest.update(f"\0{error}".encode())
    return digest.hexdigest()


def import_source(layout: Layout, source: Source, digest: str, label: str | None) -> Import:
    """Stage what is in a file; `Layout.commit` puts it into the dataset.

    Raises:
        ReadError: It cannot be opened.
    """
    with source.open() as stream:
        return stage(layout, _rows(scan(stream, source.name), source.name), source.name, digest, label)


def _rows(found: Iterable[Scanned], source: str) -> "Iterator[Row | RefusedCell | Problem]":
    for test in found:
        if not isinstance(test, ScannedTest):
            yield test
        elif test.record is None:
            yield _bare(unrecorded(test, source, test.message or NO_RECORD))
        else:
            try:
                head, text = _short(test.record, where(test, source))
                asked = _asked(head, where(test, source))
            except ReadError as error:
                yield _bare(unrecorded(test, source, str(error)))
                yield Problem(source, str(error))
                continue
            status = test.status or (Status.PASS if head.passed else Status.FAIL)
            yield _recorded(head, asked, text, status, test.message or head.message)


def _short(text: str | bytes, place: str) -> tuple[PackedHead, str | bytes]:
    """The head of a record and its short form; a plain one is read in full and packed.

    Raises:
        ReadError: It is no record.
    """
    if ('"packed":' if isinstance(text, str) else b'"packed":') in text:  # type: ignore[operator]
        try:
            return packed_head(text), text
        except ReadError:
            pass  # the slow way says what is wrong
    short = pack(parse_record(text, place)[0])
    return packed_head(short), short


def _asked(head: PackedHead, place: str) -> AskedParts:
    """What was asked.

    Raises:
        ReadError: It is no cell, frame or profile.
    """
    asked = head.asked
    try:
        return AskedParts(
            asked.test_type.value, _cell(bytes(asked.cell)), _frame(bytes(asked.frame)), _profile(bytes(asked.profile))
        )
    except ValueError as error:
        raise ReadError(f"{place}: the record is not valid: asked: {error}") from error


@lru_cache(_CACHED)
def _cell(text: bytes) -> Values:
    return cell_part(Cell.model_validate_json(text))


@lru_cache(_CACHED)
def _frame(text: bytes) -> Values:
    return frame_part(Frame.model_validate_json(text))


@lru_cache(_CACHED)
def _profile(text: bytes) -> Values:
    return profile_part(SearchProfile.model_validate_json(text))


def _recorded(head: PackedHead, asked: AskedParts, text: str | bytes, status: Status, message: str) -> Row:
    row = row_values(head, asked, head.counted)
    row["status"], row["message"] = status, message
    return row, Detail(head.counted.digest, columns.RECORD, text, head.counted.environment)


def _bare(item: Unrecorded) -> Row:
    return asdict(unrecorded_row(item)), None


def json_rows(content: bytes, source: str, digest: str) -> "Iterator[Row | RefusedCell | Problem]":
    """Rows of a record file, or of one of another tool.

    Args:
        content: The file.
        source: Its name.
        digest: SHA-256 of the content.
    """
    try:
        for item in read_json(content, source):
            yield _item_row(item, digest)
    except ReadError as error:
        yield Problem(source, str(error))


def _item_row(item: Item, digest: str) -> "Row | RefusedCell | Problem":
    match item:
        case Recorded():
            short = pack(item.result)
            head = packed_head(short)
            row, detail = _recorded(head, _asked(head, item.source), short, item.status, item.message)
            return row, detail and replace(detail, digest=digest)
        case Foreign():
            kept = msgspec.json.encode({"latency": item.latency})
            return asdict(item.row), Detail(digest, columns.ROWS, kept)
        case Unrecorded():
            return _bare(item)
        case _:
            return item


def known_records(layout: Layout, imports: Iterable[Import]) -> set[str]:
    """Digests of all records of a dataset."""
    found: set[str] = set()
    for part in (part for each in imports for part in each.parts):
        table = pq.read_table(layout.path(DETAILS, part), columns=["digest"], partitioning=None)
        found.update(value for value in table.column("digest").to_pylist())
    return found

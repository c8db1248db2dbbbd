"""Items of Robot's output.xml with whole records, in constant memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from csit_utils.dataset.items import Characterized, Item, Problem, ReadError, Recorded, Status, Unrecorded, item_of
from csit_utils.dataset.records import parse_record
from csit_utils.dataset.scan import ScannedTest, scan

NO_RECORD = "the test left no result record"


def read_output_xml(path: Path) -> Iterator[Item]:
    """Yield every test of an output.xml, then a problem if the file is damaged.

    A truncated file yields all complete tests.
    """
    try:
        with path.open("rb") as stream:
            yield from items(stream, str(path))
    except OSError as error:
        yield Problem(str(path), f"{path}: cannot be read: {error.strerror or error}")


def items(stream: BinaryIO, source: str) -> Iterator[Item]:
    """Yield the items of a stream with a name."""
    for found in scan(stream, source):
        if not isinstance(found, ScannedTest):
            yield found
        elif found.record is None:
            yield unrecorded(found, source, found.message or NO_RECORD)
        else:
            yield from _recorded(found, found.record, source)


def _recorded(test: ScannedTest, text: bytes | str, source: str) -> Iterator[Item]:
    try:
        yield recorded_test(test, text, source)
    except ReadError as error:
        yield unrecorded(test, source, str(error))
        yield Problem(source, str(error))


def recorded_test(test: ScannedTest, text: bytes | str, source: str) -> Recorded | Characterized:
    """Return a test with its record.

    Raises:
        ReadError: The record is damaged.
    """
    record, digest = parse_record(text, where(test, source))
    return item_of(record, source, digest, test.status, test.message)


def where(test: ScannedTest, source: str) -> str:
    """Return the location of a test for errors."""
    return f"{source}: test '{test.long_name}'"


def unrecorded(test: ScannedTest, source: str, message: str) -> Unrecorded:
    """Return a test without a readable record."""
    status = test.status or Status.FAIL
    return Unrecorded(test.long_name, test.name, test.tags, source, status, message, test.started_at)

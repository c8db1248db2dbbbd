"""Reading of result files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pydantic_core import from_json

from csit_utils.dataset.inputs import Source, content_of, files_of, sources_of_file
from csit_utils.dataset.items import (
    Characterized,
    Dataset,
    ImportedTest,
    Item,
    Problem,
    ReadError,
    RecordedTest,
    Refusal,
    Status,
    Unrecorded,
    item_of,
)
from csit_utils.dataset.kinds import READABLE
from csit_utils.dataset.records import parse_record
from csit_utils.dataset.robot_output import scanned
from csit_utils.dataset.scan import ScannedTest

_CSIT_TEST = {"version", "test_id", "test_name_long"}
_CSIT_SUITE = {"version", "suite_id", "start_time"}
_NFVBENCH = {"nfvbench_version", "benchmarks"}


def read_foreign(content: bytes, source: str) -> Iterator[Item] | None:
    """Read the result file of another tool.

    Args:
        content: The file, unpacked.
        source: Its path, for rows and errors.

    Returns:
        Its tests, or one problem with the file. None if it is not JSON, or of no known tool. CSIT's file about a suite
        has no tests.
    """
    try:
        data = from_json(content)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    from csit_utils.dataset.foreign.csit import read_csit  # noqa: PLC0415 - costs time where there is none
    from csit_utils.dataset.foreign.dts import is_dts, read_dts  # noqa: PLC0415 - as above
    from csit_utils.dataset.foreign.nfvbench import read_nfvbench  # noqa: PLC0415 - as above

    # The server of NFVbench wraps the output of its command line in `result`.
    inner = data.get("result")
    if isinstance(inner, dict) and inner.keys() >= _NFVBENCH:
        data = inner
    if data.keys() >= _NFVBENCH:
        found = _named(read_nfvbench(data, source), "NFVbench", source)
    elif data.keys() >= _CSIT_TEST:
        found = _named(read_csit(data, source), "FD.io CSIT", source)
    elif is_dts(data):
        found = _named(read_dts(data, source), "DPDK's DTS", source)
    else:
        return iter(()) if data.keys() >= _CSIT_SUITE else None
    return found


def _named(items: Iterable[Item], tool: str, source: str) -> Iterator[Item]:
    """Items of a file; only a problem if one of them is invalid."""
    try:
        found = list(items)
    except ReadError as error:
        yield Problem(source, f"{source}: invalid result of {tool}: {error}")
    else:
        yield from found


NO_RECORD = "the test left no result record"


def read_output_xml(path: Path) -> Iterator[Item]:
    """Yield every test of an output of Robot Framework, then a problem if the file is damaged.

    A truncated file yields all complete tests.
    """
    for source in sources_of_file(path):
        yield from read_source(source) if isinstance(source, Source) else (source,)


def items(stream: BinaryIO, source: Source) -> Iterator[Item]:
    """Yield the items of an output of Robot Framework."""
    for found in scanned(stream, source):
        if not isinstance(found, ScannedTest):
            yield found
        elif found.record is None:
            yield unrecorded(found, source.name, found.message or NO_RECORD)
        else:
            yield from _recorded(found, found.record, source.name)


def _recorded(test: ScannedTest, text: bytes | str, source: str) -> Iterator[Item]:
    try:
        yield recorded_test(test, text, source)
    except ReadError as error:
        yield unrecorded(test, source, str(error))
        yield Problem(source, str(error))


def recorded_test(test: ScannedTest, text: bytes | str, source: str) -> RecordedTest | Characterized:
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


def load(paths: Iterable[Path], progress: Callable[[int, int], None] = lambda _done, _total: None) -> Dataset:
    """Read output.xml files, record files (`.json`), files of other tools, archives, and directories of them.

    An unreadable file becomes a problem and does not affect others. A result that occurs twice, in
    different files or in one given twice, counts once.

    Args:
        paths: Files and folders.
        progress: Called after each file with the number of files read and the total; an archive is one file.
    """
    dataset = Dataset()
    seen: set[str] = set()
    refused: set[Refusal] = set()  # every suite of a service type reports the same ones
    for item in _read([place for path in paths for place in files_of(path)], progress):
        if isinstance(item, RecordedTest | Characterized | ImportedTest):
            if item.digest in seen:
                continue
            seen.add(item.digest)
        if isinstance(item, Refusal):
            if item in refused:
                continue
            refused.add(item)
        dataset.add(item)
    return dataset


def _read(places: Sequence[Path | Problem], progress: Callable[[int, int], None]) -> Iterator[Item]:
    for number, place in enumerate(places, start=1):
        for source in sources_of_file(place):
            if isinstance(source, Problem):
                yield source
            else:
                yield from read_source(source)
        progress(number, len(places))


def read_source(source: Source) -> Iterator[Item]:
    """Yield the items of one file of any kind."""
    try:
        with source.open() as stream:
            if source.is_json:
                yield from read_json(content_of(stream), source.name)
            else:
                yield from items(stream, source)
    except ReadError as error:
        yield named_problem(source, error)


def named_problem(source: Source, error: ReadError) -> Problem:
    """Return an error of a file as its problem, with its name."""
    text = str(error)
    return Problem(source.name, text if text.startswith(source.name) else f"{source.name}: {text}")


def read_json(content: bytes, source: str) -> Iterator[Item]:
    """Yield the items of a record file, or of a result file of another tool."""
    foreign = None if b'"schema_version"' in content[:200] else read_foreign(content, source)
    if foreign is not None:
        yield from foreign
        return
    try:
        record, digest = parse_record(content, source)
    except ReadError as error:
        if b'"schema_version"' in content:
            raise
        raise ReadError(f"{error}; {READABLE}") from error
    yield item_of(record, source, digest)

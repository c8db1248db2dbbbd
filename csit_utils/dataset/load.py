"""Reading of result files."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from csit_utils.dataset.foreign import read_foreign
from csit_utils.dataset.inputs import Source, sources
from csit_utils.dataset.items import (
    Characterized,
    Dataset,
    Foreign,
    Item,
    Problem,
    ReadError,
    Recorded,
    Refusal,
    item_of,
)
from csit_utils.dataset.output_xml import items
from csit_utils.dataset.records import parse_record

_LARGEST_RECORD_BYTES = 256 * 1024 * 1024


def load(paths: Iterable[Path]) -> Dataset:
    """Read output.xml files, record files (`.json`), files of other tools, archives, and directories of them.

    An unreadable file becomes a problem and does not affect others. A result that occurs twice, in
    different files or in one given twice, counts once.
    """
    dataset = Dataset()
    seen: set[str] = set()
    refused: set[Refusal] = set()  # every suite of a service type reports the same ones
    for item in (item for path in paths for item in _read(path)):
        if isinstance(item, Recorded | Characterized | Foreign):
            if item.digest in seen:
                continue
            seen.add(item.digest)
        if isinstance(item, Refusal):
            if item in refused:
                continue
            refused.add(item)
        dataset.add(item)
    return dataset


def _read(path: Path) -> Iterator[Item]:
    for source in sources(path):
        if isinstance(source, Problem):
            yield source
        else:
            yield from read_source(source)


def read_source(source: Source) -> Iterator[Item]:
    """Yield the items of one file of any kind."""
    try:
        with source.open() as stream:
            if source.is_json:
                yield from read_json(content_of(stream), source.name)
            else:
                yield from items(stream, source.name)
    except ReadError as error:
        text = str(error)
        yield Problem(source.name, text if text.startswith(source.name) else f"{source.name}: {text}")


def content_of(stream: BinaryIO) -> bytes:
    """Return the content of a record file.

    Raises:
        ReadError: Unreadable, or larger than any record.
    """
    blocks, size = [], 0
    while block := stream.read(1 << 20):
        blocks.append(block)
        size += len(block)
        if size > _LARGEST_RECORD_BYTES:
            raise ReadError(f"larger than {_LARGEST_RECORD_BYTES / 1e6:.0f} MB, the limit for records")
    return b"".join(blocks)


def read_json(content: bytes, source: str) -> Iterator[Item]:
    """Yield the items of a record file, or of a result file of another tool."""
    foreign = None if b'"schema_version"' in content[:200] else read_foreign(content, source)
    if foreign is not None:
        yield from foreign
        return
    record, digest = parse_record(content, source)
    yield item_of(record, source, digest)

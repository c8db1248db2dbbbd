"""Parquet and Arrow files of a dataset and of other tools, which may come from anyone, read within bounds.

A megabyte of such a file can stand for many gigabytes: one text repeated in all rows, a page of zeros, a billion empty
cells. So no reader of this project opens one by itself.

Of a Parquet file the headers of its pages say how much they unpack to: structs in Thrift's compact protocol. The footer
says it too, but nothing holds the pages to that. A page of another size than its header says is an error of the reader,
which unpacks one page of a column at a time. Of an Arrow file, footer and messages have the places of its record
batches, and whether they are packed, which pyarrow unpacks without asking: tables in the format of FlatBuffers, with
fields by offsets.

Details of tests, their records and the rows of other tools, are in a file beside the rows of each part of a dataset, in
Arrow's IPC format: a batch is written as it lies in memory, and its anchors are read without its texts.
"""

import re
import stat
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import SEEK_END, SEEK_SET, RawIOBase
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import LISTS
from csit_utils.dataset.store.layout import DETAILS_SUFFIX
from resources.libraries.python.model.bounds import (
    LARGEST_DIRECTORY_BYTES,
    MAX_ROWS_TOGETHER,
    MAX_TABLE_COLUMNS,
    MAX_TABLE_ITEMS,
    MAX_TABLE_RATIO,
    REPEATED_BYTES,
    ROW_BYTES,
    VALUE_BYTES,
)

_UNREADABLE = (OSError, pa.ArrowException, UnicodeError)
"""Errors of reading a damaged file."""
DETAIL_COLUMNS = pa.schema({"anchor": pa.string(), "digest": pa.string(), "kind": pa.string(), "record": pa.string()})
RECORD_DETAIL, ROWS_DETAIL = "record", "rows"
"""Kinds of details: a packed record; JSON of rows, for results without a record."""


class _Arrow:
    """Columns of an Arrow file. Its groups are in memory as they lie in the file: packed ones are refused."""

    def __init__(self, file: pa.NativeFile, schema: pa.Schema, columns: Collection[str]) -> None:
        self._file = file
        self._blocks = blocks_of(file.read_at, file.size())
        wanted = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(each) for each in columns])
        self._reader = pa.ipc.open_file(file, options=wanted)
        self.schema: pa.Schema = self._reader.schema
        """Of the columns that are read."""
        self.count = len(self._blocks)
        """Number of groups, which are written together."""
        self.rows: int | None = None

    def read(self, group: int) -> pa.RecordBatch:
        """Return a group, checked."""
        _refuse_packed(self._file.read_at, self._blocks[group])
        found = self._reader.get_batch(group)
        found.validate(full=True)  # texts are UTF-8, within the file
        return found


class _Page(Exception):
    """A page was asked for."""


class _Pageless(RawIOBase):
    """A file of a size, from which no page can be read."""

    def __init__(self, size: int) -> None:
        self._size = size

    def readable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = SEEK_SET) -> int:
        return place + (self._size if whence == SEEK_END else 0)

    def tell(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002
        raise _Page


class _Parquet:
    """Columns of a Parquet file, whose footer is bounded; pages are as they are read, and rows as they are made."""

    def __init__(self, file: pa.NativeFile, wanted: Callable[[str], bool]) -> None:
        self._file = file
        self._left_bytes = self._most_bytes = MAX_TABLE_RATIO * file.size()
        if int.from_bytes(file.read_at(8, max(0, file.size() - 8))[:4], "little") > LARGEST_DIRECTORY_BYTES:
            raise ReadError(f"its footer is larger than {LARGEST_DIRECTORY_BYTES:,} bytes")
        self._reader = pq.ParquetFile(
            file, thrift_string_size_limit=LARGEST_DIRECTORY_BYTES, thrift_container_size_limit=MAX_TABLE_ITEMS
        )
        self._metadata = self._reader.metadata
        if self._metadata.num_columns > MAX_TABLE_COLUMNS:
            raise ReadError(
                f"it has {self._metadata.num_columns:,} columns; at most {MAX_TABLE_COLUMNS:,} are possible"
            )
        self.schema: pa.Schema = self._reader.schema_arrow
        """Of all columns, also those that are not read."""
        self.count: int = self._reader.num_row_groups
        self.rows: int | None = self._metadata.num_rows
        names = self.schema.names
        self._columns = [*filter(wanted, names)]
        # What a row group says of the names of its columns is not what the reader goes by.
        if len(names) < self._metadata.num_columns:  # tables in columns
            paths = (self._reader.schema.column(at).path for at in range(self._metadata.num_columns))
            names = [path.split(".", 1)[0] for path in paths]
        self._places = [at for at, name in enumerate(names) if wanted(name)]
        self._unread = pq.ParquetFile(_Pageless(file.size()), metadata=self._metadata, buffer_size=1)

    def read(self, group: int) -> pa.Table:
        """Return a group, checked."""
        batches = list(self._batches(group)) if self._metadata.row_group(group).num_rows else []
        found = pa.Table.from_batches(batches) if batches else self.schema.empty_table().select(self._columns)
        found.validate(full=True)  # as above
        return found

    def check_pages(self) -> None:
        """Check all groups; those are read whose dictionaries let rows repeat more than all pages may stand for."""
        for group in range(self.count):
            rows = self._metadata.row_group(group).num_rows
            unpacked, dictionaries = self._checked(group)
            if unpacked + rows * (dictionaries + ROW_BYTES) <= self._left_bytes:
                self._spend(unpacked + rows * ROW_BYTES)
            else:
                for _ in self._batches(group):
                    pass

    def _batches(self, group: int) -> Iterator[pa.RecordBatch]:
        _, dictionaries = self._checked(group)
        together = max(1, min(MAX_ROWS_TOGETHER, REPEATED_BYTES // max(1, dictionaries)))
        # Without threads, which a forked process does not have.
        for batch in self._reader.iter_batches(together, [group], self._columns, use_threads=False):
            self._spend(batch.get_total_buffer_size() + ROW_BYTES * batch.num_rows)
            yield batch

    def _checked(self, group: int) -> tuple[int, int]:
        """Return what pages and lists of a group unpack to, and the size of its dictionaries, by its pages."""
        # What is wrong in a footer is an error where columns are about to be read, and ends the process below.
        try:
            next(self._unread.iter_batches(1, [group], self._columns, use_threads=False))
        except StopIteration:
            pass
        except _Page as unread:
            unread.__traceback__ = None  # Arrow keeps the exception, and so all that these frames know
        metadata = self._metadata.row_group(group)
        size, ranges, packed = self._file.size(), list[tuple[int, int]](), 0
        for at in self._places:
            column = metadata.column(at)
            begin, length = column.data_page_offset, column.total_compressed_size
            if column.has_dictionary_page and 0 < column.dictionary_page_offset < begin:
                begin = column.dictionary_page_offset
            packed += length
            if begin < 0 or length < 0 or packed > size:
                raise ReadError("its columns do not lie in the file")
            ranges.append((begin, begin + length))
        chunks = [chunk_of(data) for data in self._columns_of(ranges, packed)]
        unpacked = sum(chunk.unpacked_bytes for chunk in chunks)
        for at, chunk in zip(self._places, chunks, strict=True):
            # A row of a list may have all of them, so they are not seen by and by.
            if (listed := chunk.values - metadata.num_rows) > 0:
                is_text = self._reader.schema.column(at).physical_type.endswith("BYTE_ARRAY")
                unpacked += listed * (VALUE_BYTES + (chunk.dictionary_bytes if is_text else 0))
        self._bound(unpacked)
        return unpacked, sum(chunk.dictionary_bytes for chunk in chunks)

    def _columns_of(self, ranges: Sequence[tuple[int, int]], packed: int) -> Iterator[bytes]:
        """Columns of a group: at once where they lie side by side, which is a fifth of the cost."""
        first, last = min(ranges, default=(0, 0))[0], max((end for _, end in ranges), default=0)
        if last - first > packed:
            yield from (self._file.read_at(end - begin, begin) for begin, end in ranges)
            return
        whole = self._file.read_at(last - first, first)
        yield from (whole[begin - first : end - first] for begin, end in ranges)

    def _spend(self, count: int) -> None:
        self._left_bytes -= count
        self._bound(self._most_bytes - self._left_bytes)

    def _bound(self, count: int) -> None:
        if count > self._most_bytes:
            raise ReadError(
                f"refused: {self._file.size():,} bytes stand for more than {self._most_bytes:,}, as in an archive bomb"
            )


@contextmanager
def opened(
    path: Path, schema: pa.Schema, columns: Sequence[str], *, optional: Collection[str] = (), rows: int | None = None
) -> Iterator[_Arrow | _Parquet]:
    """Open a file of a dataset.

    `path`: where `Layout` says that it is.
    `schema`: columns that the file may have.
    `optional`: those of them that a file may lack: columns are added.
    `rows`: how many its import says; of Parquet.

    Raises:
        ReadError: It is damaged, or stands for more than it may; also where that is found while the caller reads.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise ReadError("it is no regular file")
        # Not mapped: a file cut short while it is read would end the process.
        with closing(pa.OSFile(str(path))) as native:
            is_arrow = path.suffix == DETAILS_SUFFIX
            file = _Arrow(native, schema, columns) if is_arrow else _Parquet(native, set(columns).__contains__)
            _check_columns(file.schema, schema, set(columns).difference(optional))
            if None not in (rows, file.rows) and rows != file.rows:
                raise ReadError(f"it has {file.rows:,} rows, and its import says {rows:,}")
            yield file
    except _UNREADABLE as error:
        raise ReadError(str(error)) from error


@contextmanager
def opened_table(content: bytes, wanted: Callable[[str], bool]) -> Iterator[_Parquet]:
    """Open a Parquet file of another tool.

    `wanted`: whether a column is read.

    Raises:
        ReadError: As `opened`.
    """
    try:
        file = _Parquet(pa.BufferReader(content), wanted)
        _check_columns(file.schema, pa.schema([]), ())
        yield file
    except _UNREADABLE as error:
        raise ReadError(str(error)) from error


def check_pages(path: Path, schema: pa.Schema, *, optional: Collection[str], rows: int) -> None:
    """Check a Parquet file that an engine opens by itself: its columns, its rows, and what its pages stand for.

    Raises:
        ReadError: It is damaged, or stands for more than it may.
    """
    with opened(path, schema, schema.names, optional=optional, rows=rows) as file:
        assert isinstance(file, _Parquet)  # noqa: S101 - engines open no others
        file.check_pages()


def _check_columns(schema: pa.Schema, wanted: pa.Schema, needed: Iterable[str]) -> None:
    """Check that a file has a table.

    Raises:
        ReadError: It lacks a needed column, or has one twice or of another type.
    """
    # Arrow makes the names anew each time.
    expected = dict(zip(wanted.names, wanted.types, strict=True))
    names = schema.names
    if len(set(names)) < len(names):
        raise ReadError("it has a column twice")
    if lacking := sorted(set(needed).difference(names)):
        raise ReadError(f"it has no column '{lacking[0]}'")
    for name, kind in zip(names, schema.types, strict=True):
        usual = expected.get(name, kind)
        if kind != usual and (_form(kind) is not _form(usual) or name in LISTS):
            raise ReadError(f"its column '{name}' has the type {kind}")


def _form(kind: pa.DataType) -> type:
    """Text, truth or number: a column without fractions may be of integers."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return float
    return bool if pa.types.is_boolean(kind) else str if pa.types.is_string(kind) else object


class DetailGroup(NamedTuple):
    """Details that were written together, as columns."""

    anchors: list[str]
    kinds: pa.Array | pa.ChunkedArray
    texts: pa.Array | pa.ChunkedArray


def check_details(path: Path) -> None:
    """Check that a file is complete: its columns and groups are listed at its end.

    Raises:
        ReadError: It is not.
    """
    with opened(path, DETAIL_COLUMNS, DETAIL_COLUMNS.names):
        pass


def detail_digests(path: Path) -> set[str]:
    """Return the digests of all details of a file.

    Raises:
        ReadError: It is damaged.
    """
    with opened(path, DETAIL_COLUMNS, ["digest"]) as file:
        return {digest for at in range(file.count) for digest in file.read(at).column("digest").to_pylist()}


def detail_groups(path: Path, anchors: Collection[str]) -> Iterator[DetailGroup]:
    """Yield the groups that have details of some tests.

    `anchors`: anchors of the tests; may become fewer between groups.

    Raises:
        ReadError: The file is damaged.
    """
    with opened(path, DETAIL_COLUMNS, ["anchor"]) as names, opened(path, DETAIL_COLUMNS, ["kind", "record"]) as file:
        for at in range(names.count):
            here = names.read(at).column("anchor").to_pylist()
            if not set(anchors).isdisjoint(here):
                found = file.read(at)
                yield DetailGroup(here, found.column("kind"), found.column("record"))


_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_INTEGERS = (4, 5, 6)
_UNPACKED, _PACKED = 2, 3
_DICTIONARY = 7
_ENCODING = {5: 2, _DICTIONARY: 2, 8: 4}
"""Field of the encoding in the header of each kind of page: data, dictionary, data of version 2."""
_VALUES = 1
"""Field of the number of values, nulls included, in the same headers."""
_ENCODINGS = (0, 2, 3, 4, 8)
"""Plain, of dictionaries, of runs and of bits. In others a value repeats the bytes of earlier ones."""
_NUMBER = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_EVEN = b"".join(rb"\x%02x" % byte for byte in range(0, 128, 2))
_EVEN_GOING_ON = b"".join(rb"\x%02x" % byte for byte in range(128, 256, 2))
_SIZE = rb"[%b]|[%b][\x80-\xff]{0,3}[\x00-\x7f]" % (_EVEN, _EVEN_GOING_ON)
"""A number that is not negative: the lowest bit is the sign."""
_COMMON = re.compile(
    rb"\x15\x00\x15(%(size)s)\x15(%(size)s)\x2c\x15(%(size)s)\x15[\x00\x04\x06\x10]\x15%(n)s\x15%(n)s(?:\x1c\x00)?\x00\x00"
    % {b"n": _NUMBER, b"size": _SIZE}
)
"""Header of a page of data as this project writes it: five times as fast as field by field, and there are hundreds."""
_MAX_SIZES = 4096
_DEEPEST = 3
_LONGEST_INTEGER = 10
_Fields: TypeAlias = Mapping[int, "int | _Fields"]


class _Chunk(NamedTuple):
    """What a column of a row group unpacks to."""

    unpacked_bytes: int
    dictionary_bytes: int
    """Of the dictionary: each value of the column may be as long as that."""
    values: int
    """Nulls included; more than rows where the column is in lists."""


def chunk_of(data: bytes) -> _Chunk:
    """Return what the pages of a column unpack to.

    Raises:
        ReadError: They are damaged, or in an encoding that this project does not write.
    """
    unpacked = dictionary = values = at = 0
    try:
        while at < len(data):
            if common := _COMMON.match(data, at):
                unpacked += _size(common[1])
                values += _size(common[3])
                at = common.end() + _size(common[2])
                continue
            header, at = _struct(data, at, 0)
            size, packed = header[_UNPACKED], header[_PACKED]
            if not isinstance(size, int) or not isinstance(packed, int) or size < 0 or packed < 0:
                raise ReadError("it has a page without a size")
            for kind, where in _ENCODING.items():
                of_kind = header.get(kind)
                if isinstance(of_kind, Mapping) and of_kind[where] not in _ENCODINGS:
                    raise ReadError(f"it has a page in encoding {of_kind[where]}")
                if isinstance(of_kind, Mapping) and kind != _DICTIONARY:
                    count = of_kind[_VALUES]
                    if not isinstance(count, int) or count < 0:
                        raise ReadError("it has a page without a number of values")
                    values += count
            unpacked += size
            dictionary += size if _DICTIONARY in header else 0
            at += packed
    except (IndexError, KeyError) as error:
        raise ReadError("it has a page whose header is damaged") from error
    return _Chunk(unpacked, dictionary, values)


def _struct(data: bytes, at: int, depth: int) -> tuple[_Fields, int]:
    """Return the numbers and structs of a struct, by number of the field, and where it ends."""
    if depth > _DEEPEST:
        raise ReadError("it has a page whose header has too many levels")
    fields: dict[int, int | _Fields] = {}
    number = 0
    while (byte := data[at]) != 0:
        at += 1
        kind, step = byte & 15, byte >> 4
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        if kind in _INTEGERS:
            fields[number], at = _integer(data, at)
        elif kind == _STRUCT:
            fields[number], at = _struct(data, at, depth + 1)
        elif kind == _BINARY:
            length, at = _unsigned(data, at)
            at += length
        elif kind in (_BYTE, _DOUBLE):
            at += 1 if kind == _BYTE else 8
        elif kind not in (_TRUE, _FALSE):
            raise ReadError("it has a page whose header has a list")
    return fields, at + 1


@lru_cache(_MAX_SIZES)
def _size(number: bytes) -> int:
    """Return a size in a common header: the same ones are in hundreds of them."""
    return _integer(number, 0)[0]


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_INTEGER):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ReadError("it has a page whose header has a number of too many bytes")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return value >> 1 ^ -(value & 1), at


_MAGIC = b"ARROW1"
_PREFIX_BYTES = 8
_BLOCK = struct.Struct("<qi4xq")
_DICTIONARIES, _BATCHES = 2, 3
_HEADER_OF_MESSAGE, _COMPRESSION_OF_BATCH = 2, 3
_ReadAt = Callable[[int, int], bytes]
"""So many bytes from an offset of the file."""


@dataclass(frozen=True)
class _BatchPlace:
    """A record batch."""

    offset: int
    header_bytes: int
    body_bytes: int


def blocks_of(read_at: _ReadAt, size: int) -> Sequence[_BatchPlace]:
    """Return the record batches of a file, as its footer lists them.

    Raises:
        ReadError: They do not lie in the file, or it has dictionaries, which this project does not write.
    """
    tail = read_at(4 + len(_MAGIC), max(0, size - 4 - len(_MAGIC)))
    if tail[4:] != _MAGIC:
        raise ReadError("it is no Arrow file, or ends too early")
    (length,) = struct.unpack_from("<i", tail)
    if not 0 < length <= size - len(tail):
        raise ReadError("its footer does not lie in the file")
    footer = _Buffer(read_at(length, size - len(tail) - length))
    root = footer.follow(0)
    if footer.items(root, _DICTIONARIES, _BLOCK):
        raise ReadError("it has dictionaries")
    found = [_BatchPlace(*each) for each in footer.items(root, _BATCHES, _BLOCK)]
    if any(min(each.offset, each.header_bytes, each.body_bytes) < 0 for each in found) or (
        sum(each.header_bytes + each.body_bytes for each in found) > size
    ):
        raise ReadError("its groups are larger than the file")
    return found


def _refuse_packed(read_at: _ReadAt, block: _BatchPlace) -> None:
    """Refuse a record batch that is packed.

    Raises:
        ReadError: It is, or it is damaged.
    """
    message = _Buffer(read_at(block.header_bytes, block.offset)[_PREFIX_BYTES:])
    header = message.field(message.follow(0), _HEADER_OF_MESSAGE)
    if not header or message.field(message.follow(header), _COMPRESSION_OF_BATCH):
        raise ReadError("it has a group that is packed; this project writes none")


class _Buffer:
    """Tables in the format of FlatBuffers."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def unpack(self, form: str, at: int) -> tuple[int, ...]:
        """Return numbers.

        Raises:
            ReadError: They do not lie in the buffer.
        """
        try:
            return struct.unpack_from(form, self._data, at)
        except struct.error as error:
            raise ReadError("its footer is damaged") from error

    def follow(self, at: int) -> int:
        """Return the place to which an offset leads."""
        return at + self.unpack("<I", at)[0]

    def field(self, table: int, number: int) -> int:
        """Return the place of a field of a table, 0 where the table lacks it."""
        names = table - self.unpack("<i", table)[0]
        if names < 0:
            raise ReadError("its footer is damaged")
        (size,) = self.unpack("<H", names)
        place = 4 + 2 * number
        (offset,) = self.unpack("<H", names + place) if place < size else (0,)
        return table + offset if offset else 0

    def items(self, table: int, number: int, form: struct.Struct) -> Sequence[tuple[int, ...]]:
        """Return the structs of a field that is a list."""
        if not (at := self.field(table, number)):
            return ()
        at = self.follow(at)
        begin, length = at + 4, self.unpack("<I", at)[0] * form.size
        if begin + length > len(self._data):
            raise ReadError("its footer is damaged")
        return list(form.iter_unpack(self._data[begin : begin + length]))

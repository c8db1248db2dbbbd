"""How much a reader unpacks of a Parquet or an Arrow file, by what the file itself says.

Of a Parquet file the headers of its pages say it: structs in Thrift's compact protocol. The footer says it too, but
nothing holds the pages to that. A page of another size than its header says is an error of the reader, which unpacks
one page of a column at a time. Of an Arrow file, footer and messages have the places of its record batches, and whether
they are packed, which pyarrow unpacks without asking: tables in the format of FlatBuffers, with fields by offsets.
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from csit_utils.dataset.items import ReadError

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


class Chunk(NamedTuple):
    """What a column of a row group unpacks to."""

    unpacked_bytes: int
    dictionary_bytes: int
    """Of the dictionary: each value of the column may be as long as that."""
    values: int
    """Nulls included; more than rows where the column is in lists."""


def chunk_of(data: bytes) -> Chunk:
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
    return Chunk(unpacked, dictionary, values)


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
ReadAt = Callable[[int, int], bytes]
"""So many bytes from an offset of the file."""


@dataclass(frozen=True)
class BatchPlace:
    """A record batch."""

    offset: int
    header_bytes: int
    body_bytes: int


def blocks_of(read_at: ReadAt, size: int) -> Sequence[BatchPlace]:
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
    found = [BatchPlace(*each) for each in footer.items(root, _BATCHES, _BLOCK)]
    if any(min(each.offset, each.header_bytes, each.body_bytes) < 0 for each in found) or (
        sum(each.header_bytes + each.body_bytes for each in found) > size
    ):
        raise ReadError("its groups are larger than the file")
    return found


def refuse_packed(read_at: ReadAt, block: BatchPlace) -> None:
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

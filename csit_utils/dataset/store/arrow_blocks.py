"""Places of the record batches of an Arrow file, and whether they are packed, which pyarrow unpacks without asking.

Footer and messages are tables in the format of FlatBuffers: fields are found by offsets.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from csit_utils.dataset.items import ReadError

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

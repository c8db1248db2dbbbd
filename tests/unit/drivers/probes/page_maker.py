"""Writes pages of the ring buffer as the kernel does: the other direction of what is tested."""

import struct
from collections.abc import Sequence

import numpy as np

PAGE_BYTES = 4096
_DATA_BYTES = PAGE_BYTES - 16
MISSED = 1 << 31


class Page:
    """One page; `add` is false when there is no more room."""

    def __init__(self, *, missed: bool = False) -> None:
        self._data = b""
        self._first_ns = 0
        self._now_ns = 0
        self._missed = missed

    def add(self, time_ns: int, record: bytes, *, absolute: bool = False) -> bool:
        entry = b""
        if not self._data:
            self._first_ns = self._now_ns = time_ns
        if absolute:
            stamp = time_ns & (1 << 59) - 1
            entry += struct.pack("=II", 31 | (stamp & (1 << 27) - 1) << 5, stamp >> 27)
            delta = 0
        elif (delta := time_ns - self._now_ns) >= 1 << 27:
            entry += struct.pack("=II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
            delta = 0
        record += bytes(-len(record) % 4)
        if 0 < len(record) <= 28 * 4:
            entry += struct.pack("=I", len(record) // 4 | delta << 5) + record
        else:
            entry += struct.pack("=II", delta << 5, len(record) + 4) + record
        return self._put(entry, time_ns)

    def discard(self, time_ns: int, size: int) -> bool:
        """An event that the kernel took back: its place and its time remain."""
        if not self._data:
            self._first_ns = self._now_ns = time_ns
        delta = min(max(1, time_ns - self._now_ns), (1 << 27) - 1)
        return self._put(struct.pack("=II", 29 | delta << 5, size) + bytes(size - 4), self._now_ns + delta)

    def _put(self, entry: bytes, time_ns: int) -> bool:
        if len(self._data) + len(entry) > _DATA_BYTES:
            return False
        self._data += entry
        self._now_ns = time_ns
        return True

    def words(self, *, filled: bool = False) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
        data = self._data
        if filled and len(data) + 4 <= _DATA_BYTES:
            data = data + struct.pack("=I", 29)  # nothing more on this page
            data += b"\xff" * (_DATA_BYTES - len(data))
        head = struct.pack("=QQ", self._first_ns, len(data) | (MISSED if self._missed else 0))
        return np.frombuffer((head + data).ljust(PAGE_BYTES, b"\xa5"), np.uint32)


def pages(*row: Page) -> "np.ndarray[tuple[int, int], np.dtype[np.uint32]]":
    return np.stack([page.words() for page in row])


def record(number: int, thread: int, *fields: int | bytes) -> bytes:
    """An event's data: the common fields, then the given ones, numbers of 32 bits."""
    rest = b"".join(field if isinstance(field, bytes) else struct.pack("=I", field & 0xFFFFFFFF) for field in fields)
    return struct.pack("=HBBi", number, 0, 0, thread) + rest


def format_of(name: str, number: int, fields: Sequence[tuple[str, int, int]], printed: str = '""') -> str:
    """A `format` file; fields with name, offset and size."""
    common = [("common_type", 0, 2), ("common_flags", 2, 1), ("common_preempt_count", 3, 1), ("common_pid", 4, 4)]
    rows = [f"\tfield:int {what};\toffset:{offset};\tsize:{size};\tsigned:0;" for what, offset, size in common]
    rows += [""] + [f"\tfield:int {what};\toffset:{offset};\tsize:{size};\tsigned:0;" for what, offset, size in fields]
    return f"name: {name}\nID: {number}\nformat:\n" + "\n".join(rows) + f"\n\nprint fmt: {printed}\n"

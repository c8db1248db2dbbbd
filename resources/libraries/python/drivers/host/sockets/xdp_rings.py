"""Rings of another program's AF_XDP sockets: how many packets it has taken from some, and put into others.

Kernel and program write these counts into memory that they share, where each sees how far the other is. The kernel
tells nobody else, but shows where a program has mapped a ring (/proc/<pid>/maps), and its memory to whoever may trace
it.
"""

import os
import re
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

from resources.libraries.python.errors import CsitError, Unsupported

SOL_XDP = 283
_XDP_MMAP_OFFSETS = 1
_OFFSETS = struct.Struct("=16Q")
"""Of the rings RX, TX, fill and completion: where producer, consumer, descriptors and flags are."""
_RX_PRODUCER, _RX_CONSUMER, _TX_PRODUCER, _TX_CONSUMER = 0, 1, 4, 5
_RX_AT, _TX_AT = 0, 0x80000000
"""Offsets at which the two rings are mapped."""
_MAPPED = re.compile(r"^([0-9a-f]+)-\S+ \S+ ([0-9a-f]+) \S+ (\d+) ", re.MULTILINE)
_INDEX = struct.Struct("=I")
_BITS = (1 << 32) - 1
_ENDED = "the process whose rings are read has ended"


class _Ring(NamedTuple):
    """Where its two counts are, in the memory of the program."""

    producer: int
    consumer: int


class Rings:
    """Of all AF_XDP sockets of a process."""

    def __init__(self, pid: int, sockets: Iterable[socket.socket]) -> None:
        """Find them.

        Args:
            pid: The process.
            sockets: Its sockets of AF_XDP.

        Raises:
            Unsupported: Its memory cannot be read.
        """
        self._rx: list[_Ring] = []
        self._tx: list[_Ring] = []
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8") as file:  # noqa: PTH123 - as that of its memory
                places = mapped(file.read())
            for own in sockets:
                offsets = _OFFSETS.unpack(own.getsockopt(SOL_XDP, _XDP_MMAP_OFFSETS, _OFFSETS.size))
                inode = os.fstat(own.fileno()).st_ino
                rx, tx = places[inode, _RX_AT], places[inode, _TX_AT]
                self._rx.append(_Ring(rx + offsets[_RX_PRODUCER], rx + offsets[_RX_CONSUMER]))
                self._tx.append(_Ring(tx + offsets[_TX_PRODUCER], tx + offsets[_TX_CONSUMER]))
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unsupported(f"its rings cannot be read ({error.strerror})") from error
        except KeyError as error:
            raise Unsupported("it has a socket of AF_XDP without rings for both ways") from error
        self._last = dict.fromkeys((*(ring.consumer for ring in self._rx), *(ring.producer for ring in self._tx)), 0)
        self._kept = 0

    def kept(self) -> int:
        """Packets that it has taken and never given to any port, since the first reading: it lost them, but for a few.

        Raises:
            CsitError: The process has ended.
        """
        try:
            taken = sum(self._more(ring.consumer) for ring in self._rx)
            self._kept += taken - sum(self._more(ring.producer) for ring in self._tx)
        except (OSError, struct.error) as error:
            raise CsitError(_ENDED) from error
        return self._kept

    def waiting(self) -> int:
        """Packets that are in the rings now, for the program and for the kernel.

        Raises:
            CsitError: The process has ended.
        """
        try:
            rings = (*self._rx, *self._tx)
            return sum((self._now(ring.producer) - self._now(ring.consumer)) & _BITS for ring in rings)
        except (OSError, struct.error) as error:
            raise CsitError(_ENDED) from error

    def _more(self, place: int) -> int:
        now = self._now(place)
        more = (now - self._last[place]) & _BITS
        self._last[place] = now
        return more

    def _now(self, place: int) -> int:
        (now,) = _INDEX.unpack(os.pread(self._memory, _INDEX.size, place))
        return int(now)

    def close(self) -> None:
        """Let go of its memory."""
        os.close(self._memory)


def mapped(maps: str) -> dict[tuple[int, int], int]:
    """Where sockets are mapped, by inode and offset, of all that /proc/<pid>/maps shows."""
    return {(int(inode), int(offset, 16)): int(begin, 16) for begin, offset, inode in _MAPPED.findall(maps)}

"""Frames at a port with the time at which the kernel saw each: a packet socket with a ring (TPACKET_V2, packet(7)).

The kernel writes the beginning of a frame and the time into the next slot as the frame passes, and nothing has to run
meanwhile. It stamps only what it writes. SO_TIMESTAMPNS would make it read the clock for every packet of the machine.
"""

import mmap
import socket
import struct
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.errors import CsitError

OUTGOING = 4
"""PACKET_OUTGOING: the kind of frames that the port itself sends."""
_PAGE = 4096
_SECOND_NS = 1_000_000_000
_SLOT = np.dtype(
    {
        "names": ["status", "mac", "s", "ns", "kind"],
        "formats": ["=u4", "=u2", "=u4", "=u4", "u1"],
        "offsets": [0, 12, 16, 20, 42],  # of `struct tpacket2_hdr`, and of sll_pkttype in the address behind it
    }
)
_WRITTEN = 1
_COUNTS = struct.Struct("=II")


@dataclass(frozen=True, slots=True)
class RingFrames:
    """Frames of a ring in the order in which they came."""

    stamps_ns: NDArray[np.int64]
    """When each passed, in nanoseconds since the epoch, shape (n,)."""
    kinds: NDArray[np.uint8]
    """Type of each: OUTGOING, or one of those that arrive, shape (n,)."""
    parts: NDArray[np.uint8]
    """Bytes of each, shape (n, bytes)."""


class PacketRing:
    """Keeps the first frames that pass a port, those beyond the slots of the ring are only counted.

    `interface`: The port, in the network namespace of the calling thread.
    `frames`: How many can come; the ring has at least as many slots.
    `protocol`: EtherType of frames that arrive; ETH_P_ALL for those too that the port sends.
    `slot_bytes`: Of a slot, a part of a page: at least 66 of them are before the frame.
    `program`: Classic BPF that chooses frames; None for all.

    Raises:
        CsitError: The kernel refused.
    """

    def __init__(
        self, interface: str, frames: int, protocol: int, slot_bytes: int, program: bytes | None = None
    ) -> None:
        per_page = _PAGE // slot_bytes
        self._slots, self._slot_bytes = -(-max(frames, 1) // per_page) * per_page, slot_bytes
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            if program is not None:
                kernel.attach_filter(self._socket, program)
            kernel.make_ring(self._socket, kernel.PACKET_RX_RING, _PAGE, slot_bytes, self._slots)
            self._memory = mmap.mmap(self._socket.fileno(), self._slots * slot_bytes)
            self._socket.bind((interface, protocol))
        except OSError as error:
            self._socket.close()
            raise CsitError(f"port {interface} stamps no frames: {error.strerror}") from error

    def counts(self) -> tuple[int, int]:
        """Frames since the last call, and how many of them found no slot."""
        passed, dropped = _COUNTS.unpack(
            self._socket.getsockopt(kernel.SOL_PACKET, kernel.PACKET_STATISTICS, _COUNTS.size)
        )
        return passed, dropped

    def read(self, first: int = 0, length: int = 1) -> RingFrames:
        """Return the frames so far.

        `first`: offset from the Ethernet header of the bytes that are wanted of each, as far as a slot has room.
        """
        area = np.frombuffer(bytes(self._memory), dtype=np.uint8)
        slots = area.reshape(self._slots, self._slot_bytes)[:, : _SLOT.itemsize].copy().view(_SLOT)[:, 0]
        used = np.flatnonzero(slots["status"] & _WRITTEN)
        slots = slots[used]
        parts = sliding_window_view(area, length)[used * self._slot_bytes + slots["mac"] + first]
        return RingFrames(slots["s"].astype(np.int64) * _SECOND_NS + slots["ns"], slots["kind"], parts)

    def close(self) -> None:
        """Give it back, which takes the kernel 10 ms."""
        self._memory.close()
        self._socket.close()

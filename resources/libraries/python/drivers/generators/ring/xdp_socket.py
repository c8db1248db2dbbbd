"""A ring of prebuilt frames that an AF_XDP socket sends: without a copy where the NIC's driver can, else by one."""

import ctypes
import errno
import mmap
import os
import platform
import socket
import struct
import time
from ctypes import get_errno

import numpy as np

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.ring.tx_ring import LoadFrames, slot_count
from resources.libraries.python.errors import CsitError, Unsupported

_AF_XDP, _SOL_XDP = 44, 283
_MMAP_OFFSETS, _TX_RING, _UMEM_REG, _UMEM_FILL_RING, _UMEM_COMPLETION_RING, _OPTIONS = 1, 3, 4, 5, 6, 8
_TX_PAGES, _COMPLETION_PAGES = 0x80000000, 0x180000000
_COPY = 1 << 1
_OPTION_ZEROCOPY = 1 << 0
_OFFSETS = struct.Struct("=16Q")
"""Of the RX, TX, fill and completion ring: producer, consumer, descriptors, flags."""
_DESCRIPTOR = np.dtype([("address", np.uint64), ("bytes", np.uint32), ("options", np.uint32)])
_ENTRIES = 2048
"""Of the rings: as many frames may be on their way. As in a TX ring, more than queues on the path can hold."""
_SMALL, _LARGE = 2048, 4096
"""Sizes of a slot that the kernel takes."""
_SOCKET_BYTES = 256 << 20
_RELEASE_S, _POLL_S = 2.0, 0.001
"""The kernel releases a closed socket's queue a little later."""
_DRAIN_S = 0.1
_COPIED_PER_CALL = 32
_DONTWAIT = int(socket.MSG_DONTWAIT)
_FULL = (errno.EAGAIN, errno.EBUSY, errno.ENOBUFS)
"""More is armed than one call takes; a queue has dropped a frame or has no room."""


class XdpSocketRing:
    """Load frames of one flow, ready to be sent from its interface; with the members of `TxRing`.

    The kernel takes up to 32 frames per system call where it copies them, and as many as there is room for where the
    NIC's driver reads them from here. What is armed stays armed: it is never taken back, since the kernel may have seen
    it.
    """

    def __init__(self, load: LoadFrames) -> None:
        """Open the socket and build its frames.

        Raises:
            Unsupported: Frames are larger than a page, or the kernel or the interface has no such socket.
        """
        self.interface = load.flow.tx_interface
        if (largest := load.largest_bytes - frames.FCS_BYTES) > _LARGE:
            raise Unsupported(f"frames of {load.largest_bytes} B, and an AF_XDP socket sends at most {_LARGE} B")
        slot = _SMALL if largest <= _SMALL else _LARGE
        self._slots = slot_count(slot, *load.cycles, fewest=_ENTRIES)
        self._memory = mmap.mmap(-1, self._slots * slot)
        lengths, self._tuples = load.fill(np.frombuffer(self._memory, dtype=np.uint8).reshape(self._slots, slot))
        self._frames = np.zeros(self._slots, _DESCRIPTOR)
        self._frames["address"], self._frames["bytes"] = np.arange(self._slots, dtype=np.uint64) * slot, lengths
        self._position = self._next = self._armed = self._pending = 0
        try:
            self._socket = socket.socket(_AF_XDP, socket.SOCK_RAW, 0)
        except OSError as error:
            raise Unsupported(f"the kernel has no AF_XDP sockets: {error.strerror}") from error
        try:
            self._open(slot)
        except OSError as error:
            self._socket.close()
            raise Unsupported(f"{self.interface} has no AF_XDP socket: {error.strerror}") from error

    def _open(self, slot: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_SNDBUFFORCE, _SOCKET_BYTES)
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        region = struct.pack("=QQ4I", place, self._slots * slot, slot, 0, 0, 0)
        self._socket.setsockopt(_SOL_XDP, _UMEM_REG, region)
        for ring in (_UMEM_FILL_RING, _UMEM_COMPLETION_RING, _TX_RING):
            self._socket.setsockopt(_SOL_XDP, ring, _ENTRIES)
        offsets = _OFFSETS.unpack(self._socket.getsockopt(_SOL_XDP, _MMAP_OFFSETS, _OFFSETS.size))
        (sent, taken, first), (done, seen, place) = offsets[4:7], offsets[12:15]
        self._ring = mmap.mmap(self._socket.fileno(), first + _ENTRIES * _DESCRIPTOR.itemsize, offset=_TX_PAGES)
        self._done = mmap.mmap(self._socket.fileno(), place + _ENTRIES * 8, offset=_COMPLETION_PAGES)
        self._armed_frames = np.frombuffer(self._ring, _DESCRIPTOR, _ENTRIES, first)
        self._words, self._done_words = memoryview(self._ring).cast("I"), memoryview(self._done).cast("I")
        self._producer, self._consumer = sent // 4, taken // 4
        self._completed, self._released = done // 4, seen // 4
        self._bind()
        (options,) = struct.unpack("=I", self._socket.getsockopt(_SOL_XDP, _OPTIONS, 4))
        self.copies = not options & _OPTION_ZEROCOPY

    def _bind(self) -> None:
        """Without copies where that can be: a driver reads descriptors on another CPU, in the order of x86 only."""
        flags = 0 if platform.machine() == "x86_64" else _COPY
        address = struct.pack("=HH3I", _AF_XDP, flags, socket.if_nametoindex(self.interface), 0, 0)
        end = time.monotonic() + _RELEASE_S
        while True:
            try:
                return kernel.bind(self._socket, address)
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > end:
                    raise
            time.sleep(_POLL_S)

    def rewind(self) -> None:
        """Begin with the first 5-tuple again, where there are more than slots."""
        end = time.monotonic() + _DRAIN_S
        while self._pending and not self._flush() and time.monotonic() < end:
            time.sleep(_POLL_S)
        self._pending = self._next = 0

    def send(self, count: int) -> int:
        """Hand frames to the interface.

        `count`: How many at most, at least 1.

        Returns:
            Frames handed over, those that a full queue refused included; 0 while earlier ones wait for room. They count
            when the kernel has taken all of them: before Linux 6.17 it does not say how many it has taken until then.

        Raises:
            CsitError: The interface is gone, down, or refuses such frames.
        """
        if self._pending:
            return self._handed()
        words, done = self._words, self._done_words
        done[self._released] = done[self._completed]
        place = self._armed % _ENTRIES
        room = _ENTRIES - (self._armed - words[self._consumer] & 0xFFFFFFFF)
        burst = min(count, self._slots - self._position, _ENTRIES - place, room)
        if not burst:
            self._flush()
            return 0
        end = self._position + burst
        if self._tuples:
            self._tuples.write(self._position, end, self._next)
        self._armed_frames[place : place + burst] = self._frames[self._position : end]
        words[self._producer] = self._armed = self._armed + burst & 0xFFFFFFFF
        self._position = end % self._slots
        self._next += burst
        self._pending = burst
        return self._handed()

    def _handed(self) -> int:
        """Have the kernel send what is armed; how many frames are handed over since they were last counted."""
        if not self._flush() and self.copies:
            return 0
        handed, self._pending = self._pending, 0
        return handed

    def _flush(self) -> bool:
        """Have the kernel send what is armed; whether it has taken all."""
        words, done, descriptor, flush = self._words, self._done_words, self._socket.fileno(), kernel.flush
        calls = self._pending // _COPIED_PER_CALL + 1 if self.copies else 1
        refused = self._pending
        while True:
            problem = get_errno() if flush(descriptor, None, 0, _DONTWAIT) < 0 else 0
            if problem and problem not in _FULL:
                raise CsitError(f"generator port {self.interface} does not send: {os.strerror(problem)}")
            if words[self._consumer] == self._armed:
                return True
            done[self._released] = done[self._completed]
            if problem == errno.EBUSY and refused:  # one frame was dropped; those behind it are still to be taken
                refused -= 1
                continue
            calls -= 1
            if not calls:
                return False

    def close(self) -> None:
        self._words.release()
        self._done_words.release()
        del self._armed_frames, self._tuples
        self._ring.close()
        self._done.close()
        self._socket.close()

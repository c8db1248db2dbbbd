"""Rings of prebuilt frames that the kernel sends.

That of a packet socket (`TPACKET_V2`) passes the queueing discipline. That of an AF_XDP socket sends without a copy
where the NIC's driver can, else by one.
"""

import ctypes
import errno
import math
import mmap
import os
import platform
import socket
import struct
import time
from collections.abc import Sequence
from ctypes import get_errno

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.errors import CsitError, Unsupported

_PAGE = 4096
_SMALLEST_SLOT = 512
_VNET_OFFSET = 32
"""Behind `struct tpacket2_hdr` comes `struct virtio_net_hdr`, of which only the third and fourth byte are used."""
_VNET_BYTES = 10
_FRAME_OFFSET = _VNET_OFFSET + _VNET_BYTES
_LINEAR_BYTES = 3500
"""Frames up to this are copied whole into the kernel's buffer as it sends them. Without that their data would stay in
the ring's pages, and veth, which must not hand those on, would take a page and copy them there, for a fifth of all
the time a frame takes. Larger buffers than this would be several pages, which are dear."""
_FEWEST_SLOTS = 2000
"""More than the queues can hold that a frame passes while it still occupies its slot (a bridge and two veth queues of
256 each, a backlog of 1000). Fewer would make the generator wait for the system under test, not overrun it."""
_LINEAR_HEADERS = 64
_FEWEST_LARGE_SLOTS = 600
"""Jumbo frames: without room for the backlog, which a veth with data threads does not use; 20 flows take 190 MB."""
_MAX_PREBUILT = 254
"""5-tuples of a ring that has all of them. With more, each frame gets the next one when its slot is used again."""
_SOCKET_BYTES = 256 << 20
_AVAILABLE, _SEND_REQUEST = 0, 1
_DONTWAIT = int(socket.MSG_DONTWAIT)


def slot_bytes(largest_frame_bytes: int) -> int:
    """Room for a slot: a part of a page, or whole pages.

    Pages are taken one by one where frames fit into one: the kernel counts the references to a page for every frame,
    and with a large compound page both CPUs would write to one counter all the time.

    `largest_frame_bytes`: With FCS.
    """
    needed = _FRAME_OFFSET + largest_frame_bytes - frames.FCS_BYTES
    if needed > _PAGE:
        return -(-needed // _PAGE) * _PAGE
    return max(_SMALLEST_SLOT, 1 << (needed - 1).bit_length())


def slot_count(slot: int, *cycles: int, fewest: int = 0) -> int:
    """Slots of a ring that ends neither within a page nor within one of the cycles.

    `cycles`: Lengths of what repeats over the slots: 5-tuples, frame sizes.
    `fewest`: Slots at least; 0: by the size of a slot.
    """
    unit = math.lcm(max(1, _PAGE // slot), *cycles)
    fewest = fewest or (_FEWEST_SLOTS if slot <= _PAGE else _FEWEST_LARGE_SLOTS)
    return -(-fewest // unit) * unit


class LoadFrames:
    """The frames of a flow, which fill the slots of a ring."""

    def __init__(
        self,
        flow: FlowSpec,
        pattern: Sequence[int],
        *,
        udp: bool = False,
        tcp: bool = False,
        flows: int = 0,
        captured: CapturedLoad | None = None,
    ) -> None:
        """Look whether the interface takes them.

        `pattern`: Frame sizes with FCS in sending order.
        `flows`: 5-tuples; 0: one for each source address.
        `captured`: Frames of a capture instead of all that.

        Raises:
            CsitError: the interface is not there or does not take such frames.
        """
        if captured:
            pattern, flows = (captured.lengths + frames.FCS_BYTES).tolist(), 1
        self.flow, self.largest_bytes = flow, max(pattern)
        frames.check_room(flow.tx_interface, kernel.mtu_bytes(flow.tx_interface), self.largest_bytes)
        self._pattern, self._udp, self._tcp, self._flows, self._captured = pattern, udp, tcp, flows, captured
        self._prebuilt = flows <= _MAX_PREBUILT
        self.cycles = (len(pattern), flows or flow.sources) if self._prebuilt else (len(pattern),)
        """Lengths of what repeats over the slots."""

    def fill(self, room: NDArray[np.uint8]) -> tuple[NDArray[np.int64], frames.TupleWriter | None]:
        """Write them into slots, shape (slots, bytes); return their lengths, and what gives used slots new 5-tuples."""
        if self._captured:
            return self._captured.write(self.flow, room), None
        kind = {"udp": self._udp, "tcp": self._tcp}
        lengths = frames.load_frames(self.flow, self._pattern, room, **kind, count=self._flows)
        return lengths, None if self._prebuilt else frames.TupleWriter(self.flow, self._flows, room, **kind)


class TxRing:
    """Load frames of one flow, ready to be sent from its interface."""

    def __init__(self, load: LoadFrames) -> None:
        """Open the ring and build its frames.

        Raises:
            CsitError: the interface has no such ring.
        """
        self.interface = load.flow.tx_interface
        slot = slot_bytes(load.largest_bytes)
        self._slots = slot_count(slot, *load.cycles)
        self._stride = slot // 4
        self._position = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._descriptor = self._socket.fileno()
        try:
            self._map(slot)
            area = np.frombuffer(self._memory, dtype=np.uint8).reshape(self._slots, slot)
            words = area.view(np.uint32)
            lengths, self._tuples = load.fill(area[:, _FRAME_OFFSET:])
            self._next = 0
            words[:, 1] = lengths + _VNET_BYTES
            area[:, _VNET_OFFSET:_FRAME_OFFSET].view(np.uint16)[:, 1] = np.where(
                lengths <= _LINEAR_BYTES, lengths, _LINEAR_HEADERS
            )
            self._status = words[:, 0]
            self._words = memoryview(self._memory).cast("I")
        except OSError as error:
            self._socket.close()
            raise CsitError(f"generator port {self.interface} has no send ring: {error.strerror}") from error

    def _map(self, slot: int) -> None:
        # Frames wait in queues of the system under test on account of this socket; the default allows about 200
        self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_SNDBUFFORCE, _SOCKET_BYTES)
        self._socket.setsockopt(kernel.SOL_PACKET, kernel.PACKET_QDISC_BYPASS, 1)
        self._socket.setsockopt(kernel.SOL_PACKET, kernel.PACKET_VNET_HDR, 1)
        kernel.make_ring(self._socket, kernel.PACKET_TX_RING, max(slot, _PAGE), slot, self._slots)
        self._socket.bind((self.interface, 0))
        self._memory = mmap.mmap(self._socket.fileno(), self._slots * slot)

    def rewind(self) -> None:
        """Begin with the first 5-tuple again, where there are more than slots."""
        self._next = 0

    def send(self, count: int) -> int:
        """Hand frames to the interface.

        A veth whose peer's queue is full drops the frame and says ENOBUFS; the kernel then leaves the frame's slot
        armed and its own position where it was. So every ENOBUFS is one frame that was sent and lost, and one slot at
        the end of the burst is disarmed for it.

        `count`: How many at most, at least 1.

        Returns:
            Frames handed over, refused ones included; fewer than `count` at the ring's end or when slots are still
            occupied by frames on their way.

        Raises:
            CsitError: the interface is gone, down, or refuses such frames.
        """
        start = self._position
        end = min(start + count, self._slots)
        if end - start == 1:
            if self._words[start * self._stride] != _AVAILABLE:
                return 0
            if self._tuples:
                self._tuples.write(start, end, self._next)
            self._words[start * self._stride] = _SEND_REQUEST
        else:
            if self._status[start:end].any():
                return 0
            if self._tuples:
                self._tuples.write(start, end, self._next)
            self._status[start:end] = _SEND_REQUEST
        tail = end
        # every refusal comes through here: names are looked up before the loop
        flush, descriptor, words, stride = kernel.flush, self._descriptor, self._words, self._stride
        while flush(descriptor, None, 0, _DONTWAIT) < 0:
            problem = get_errno()
            if problem != errno.ENOBUFS:
                if problem == errno.EAGAIN:
                    break
                raise CsitError(f"generator port {self.interface} does not send: {os.strerror(problem)}")
            tail -= 1
            words[tail * stride] = _AVAILABLE
            if tail == start:
                break
        refused = end - tail
        if tail > start and self._words[(tail - 1) * self._stride] == _SEND_REQUEST:
            tail = self._withdraw(start, tail)
        self._position = tail % self._slots
        self._next += tail - start
        return tail - start + refused

    def _withdraw(self, start: int, tail: int) -> int:
        """Disarm what the kernel left over for want of memory; the end of what it took."""
        left = int(np.count_nonzero(self._status[start:tail] == _SEND_REQUEST))
        self._status[tail - left : tail] = _AVAILABLE
        return tail - left

    def close(self) -> None:
        self._words.release()
        del self._status, self._tuples
        self._memory.close()
        self._socket.close()


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
_RELEASE_S, _POLL_S = 2.0, 0.001
"""The kernel releases a closed socket's queue a little later."""
_DRAIN_S = 0.1
_COPIED_PER_CALL = 32
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


Ring = TxRing | XdpSocketRing

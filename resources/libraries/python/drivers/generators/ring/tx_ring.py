"""A ring of prebuilt frames that the kernel sends: `TPACKET_V2`, past the queueing discipline."""

import errno
import math
import mmap
import os
import socket
from collections.abc import Sequence
from ctypes import get_errno

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.errors import CsitError

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

"""Frames whose headers are given as bytes: how they are marked, numbered, and found again where they arrive.

Behind the headers comes the mark of the flow, the number of a probe, and a word that makes the sum of them zero, so
that a checksum over them is that of zeros, whether the headers are of UDP or of TCP. A frame keeps its mark whatever a
system under test does to its headers.
"""

import socket
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.errors import CsitError

MARK_BYTES = 4
LOAD_PAYLOAD_BYTES, PAYLOAD_BYTES = MARK_BYTES + 2, MARK_BYTES + 6
"""Of a load frame, and of a probe. A TCP segment in a frame of 64 bytes has room for the former."""
FCS_BYTES, _TAG_BYTES = 4, 4
_TYPE, _TAGGED = slice(24, 28), "8100"
_PACKET_TYPE, _OUTGOING = 0xFFFFF000 + 4, 4
"""SKF_AD_OFF + SKF_AD_PKTTYPE, and PACKET_OUTGOING: frames that the port itself sends."""
_BUFFER_BYTES = 4096
_PROBE_ROOM = 16
"""Behind the mark of a probe the receiver keeps its number, and room for a time stamp."""


def payload(mark: int, number: int | None = None) -> bytes:
    """Return what comes behind the headers of a load frame, or of the probe of that number."""
    words = [mark >> 16, mark & 0xFFFF] + ([] if number is None else [number >> 16, number & 0xFFFF])
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    words.append(((total & 0xFFFF) + (total >> 16)) ^ 0xFFFF)
    return struct.pack(f"!{len(words)}H", *words)


def payload_offset(flow: FlowSpec) -> int:
    """Where the mark is in a received frame, from which the kernel has taken the VLAN tag."""
    headers = flow.headers[0]
    return len(headers) // 2 - _TAG_BYTES * (headers[_TYPE] == _TAGGED)


def write(flow: FlowSpec, slots: NDArray[np.int64], area: NDArray[np.uint8]) -> None:
    """Write a load frame of a flow into every row of an area; headers cycle with the rows."""
    behind = len(flow.headers[0]) // 2
    rows = np.frombuffer(bytes.fromhex("".join(flow.headers)), dtype=np.uint8).reshape(len(flow.headers), behind)
    area[:, :behind] = rows[slots % len(rows)]
    area[:, behind : behind + LOAD_PAYLOAD_BYTES] = np.frombuffer(payload(flow.mark), dtype=np.uint8)


class GivenProbeFrames:
    """The probe frames of one flow."""

    def __init__(self, flow: FlowSpec, pattern: Sequence[int]) -> None:
        """Make the frames; `pattern` has their sizes with FCS in sending order."""
        self._pattern, self._mark = tuple(pattern), flow.mark | 1
        self._frames = [
            {size: bytearray(bytes.fromhex(headers).ljust(size - FCS_BYTES, b"\0")) for size in set(pattern)}
            for headers in flow.headers
        ]
        self._behind = len(flow.headers[0]) // 2

    def frame(self, number: int) -> bytearray:
        """The probe frame of that number, valid until the next call."""
        frame = self._frames[number % len(self._frames)][self._pattern[number % len(self._pattern)]]
        frame[self._behind : self._behind + PAYLOAD_BYTES] = payload(self._mark, number)
        return frame


def mark_filter(flow: FlowSpec, *, probes: bool) -> bytes:
    """Return the program that lets frames of a flow pass that arrive, or its probes alone."""
    offset = payload_offset(flow)
    # ldb packet type; jeq outgoing, drop; ld [offset]; and mask; jne mark, drop; ret snap; drop: ret 0
    mask, mark = (0xFFFFFFFF, flow.mark | 1) if probes else (0xFFFFFFFE, flow.mark)
    return kernel.classic_bpf(
        (0x30, 0, 0, _PACKET_TYPE),
        (0x15, 4, 0, _OUTGOING),
        (0x20, 0, 0, offset),
        (0x54, 0, 0, mask),
        (0x15, 0, 1, mark),
        (0x06, 0, 0, offset + MARK_BYTES + _PROBE_ROOM if probes else 1),
        (0x06, 0, 0, 0),
    )


class MarkCounter:
    """Counts the frames of a flow that arrive at its port, and keeps none.

    The port is promiscuous meanwhile: what a system under test sends there may be for another address than the port's.
    """

    def __init__(self, flow: FlowSpec) -> None:
        """Open a socket in the network namespace of the calling thread.

        Raises:
            CsitError: The kernel refused.
        """
        self._count = 0
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except OSError as error:
            raise CsitError(f"generator port {flow.rx_interface} counts no frames: {error.strerror}") from error
        try:
            kernel.attach_filter(self._socket, mark_filter(flow, probes=False))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            self._socket.bind((flow.rx_interface, kernel.ETH_P_ALL))
            membership = struct.pack("=iHH8x", socket.if_nametoindex(flow.rx_interface), kernel.PACKET_MR_PROMISC, 0)
            self._socket.setsockopt(kernel.SOL_PACKET, kernel.PACKET_ADD_MEMBERSHIP, membership)
        except OSError as error:
            self._socket.close()
            raise CsitError(f"generator port {flow.rx_interface} counts no frames: {error.strerror}") from error

    def read(self) -> int:
        """Return the frames that have arrived so far."""
        # The kernel counts those too that the socket has no room for, and begins again with each reading.
        statistics = self._socket.getsockopt(kernel.SOL_PACKET, kernel.PACKET_STATISTICS, 8)
        self._count += int(struct.unpack("=II", statistics)[0])
        return self._count

    def close(self) -> None:
        self._socket.close()

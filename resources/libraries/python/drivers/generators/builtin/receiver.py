"""Probe frames that come back: the kernel writes each with its time of arrival into a ring."""

import mmap
import socket
import struct
import time
from ctypes import addressof, create_string_buffer
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.errors import CsitError

_PAGE = 4096
_SLOT = 128
_MOST_SLOTS = 1 << 20
"""128 MB. Probes beyond are counted, but not timed."""
_HEADER = np.dtype(
    [("status", "=u4"), ("length", "=u4"), ("snap", "=u4"), ("mac", "=u2"), ("net", "=u2"), ("s", "=u4"), ("ns", "=u4")]
)
_PROBE = np.dtype([("number", ">u4"), ("stamp", ">u8")])
_SECOND_NS = 1_000_000_000
# ldb [23]; jne UDP, drop; ldh [36]; jne port, drop; ret snap; drop: ret 0
_FILTER = (
    (0x30, 0, 0, 23),
    (0x15, 0, 3, frames.PROBE_PROTOCOL),
    (0x28, 0, 0, 36),
    (0x15, 0, 1, frames.PROBE_PORT),
    (0x06, 0, 0, frames.PROBE_BYTES),
    (0x06, 0, 0, 0),
)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The probes of a flow that came back."""

    received: int
    """Frames, duplicates included."""
    sent_ns: NDArray[np.int64]
    """When each left according to its own time stamp, by number: nanoseconds since the epoch, 0 where it has none."""
    arrived_ns: NDArray[np.int64]
    """When each came, 0 where it did not."""


class ProbeReceiver:
    """Keeps the first bytes and the arrival time of every probe frame that comes back.

    The kernel stamps a frame when it writes it here. Asking for the earlier stamp of SO_TIMESTAMPNS would make the
    kernel read the clock for every packet of the machine, the load in the system under test included.
    """

    def __init__(self, interface: str, probes: int) -> None:
        """Open the ring.

        Args:
            interface: where probes arrive.
            probes: how many can come.

        Raises:
            CsitError: the kernel refused.
        """
        per_page = _PAGE // _SLOT
        pages = -(-min(probes + per_page, _MOST_SLOTS) // per_page)
        self._slots = pages * per_page
        self._probes = probes
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            program = b"".join(struct.pack("=HBBI", *step) for step in _FILTER)
            code = create_string_buffer(program, len(program))
            attach = struct.pack("HL", len(_FILTER), addressof(code))
            self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_ATTACH_FILTER, attach)
            kernel.make_ring(self._socket, kernel.PACKET_RX_RING, _PAGE, _SLOT, self._slots)
            self._memory = mmap.mmap(self._socket.fileno(), pages * _PAGE)
            self._socket.bind((interface, kernel.ETH_P_IP))
        except OSError as error:
            self._socket.close()
            raise CsitError(f"generator port {interface} receives no probes: {error.strerror}") from error

    def collect(self) -> Arrivals:
        """What came so far."""
        statistics = self._socket.getsockopt(kernel.SOL_PACKET, kernel.PACKET_STATISTICS, 8)
        received = int(struct.unpack("=II", statistics)[0])
        area = np.frombuffer(bytes(self._memory), dtype=np.uint8).reshape(self._slots, _SLOT)
        headers = area[:, : _HEADER.itemsize].copy().view(_HEADER)[:, 0]
        sent, arrived = np.zeros(self._probes, dtype=np.int64), np.zeros(self._probes, dtype=np.int64)
        used = np.flatnonzero(headers["status"] & 1)
        if len(used):
            first = int(headers["mac"][used[0]]) + frames.NUMBER_OFFSET
            probes = area[used, first : first + _PROBE.itemsize].copy().view(_PROBE)[:, 0]
            stamps = headers["s"][used].astype(np.int64) * _SECOND_NS + headers["ns"][used]
            known = probes["number"] < self._probes
            # backwards, so that of duplicates the first remains
            numbers = probes["number"][known][::-1].astype(np.int64)
            arrived[numbers] = stamps[known][::-1]
            tai = probes["stamp"][known][::-1].astype(np.int64)
            sent[numbers] = np.where(tai > 0, tai - _tai_offset_ns(), 0)
        return Arrivals(received, sent, arrived)

    def close(self) -> None:
        """Close the ring."""
        self._memory.close()
        self._socket.close()


def _tai_offset_ns() -> int:
    """TAI minus UTC of this kernel in whole seconds, 0 if it is not set."""
    difference = time.clock_gettime_ns(time.CLOCK_TAI) - time.clock_gettime_ns(time.CLOCK_REALTIME)
    return round(difference / _SECOND_NS) * _SECOND_NS

"""Times of arrival of all frames at a port, by the kernel's time stamps, and the gaps between them."""

import mmap
import socket

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.builtin.wire import GapReport
from resources.libraries.python.errors import CsitError

MOST_FRAMES = 1 << 17
"""Slots of a ring, 16 MB: frames beyond have no time stamp."""
_PAGE, _SLOT = 4096, 128
_STAMP = np.dtype([("status", "=u4"), ("lengths", "=u4", (2,)), ("offsets", "=u2", (2,)), ("s", "=u4"), ("ns", "=u4")])


class ArrivalRing:
    """Keeps the time of arrival of each frame of IPv4 at a port, until it is closed.

    The frames are received by whatever serves the port: as they are in a trial, plus the writing of the time.
    """

    def __init__(self, interface: str, frames: int = MOST_FRAMES) -> None:
        """Open the ring in the present network namespace.

        Args:
            interface: Where frames arrive.
            frames: How many can come, at most `MOST_FRAMES`.

        Raises:
            CsitError: The kernel refused.
        """
        per_page = _PAGE // _SLOT
        self._slots = -(-min(max(frames, 1), MOST_FRAMES) // per_page) * per_page
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            kernel.make_ring(self._socket, kernel.PACKET_RX_RING, _PAGE, _SLOT, self._slots)
            self._memory = mmap.mmap(self._socket.fileno(), self._slots * _SLOT)
            self._socket.bind((interface, kernel.ETH_P_IP))
        except OSError as error:
            self._socket.close()
            raise CsitError(f"generator port {interface} stamps no frames: {error.strerror}") from error

    def stamps_ns(self) -> NDArray[np.int64]:
        """Return times of arrival so far, ascending, in nanoseconds since the epoch."""
        area = np.frombuffer(bytes(self._memory), dtype=np.uint8).reshape(self._slots, _SLOT)
        headers = area[:, : _STAMP.itemsize].copy().view(_STAMP)[:, 0]
        used = headers[headers["status"] & 1 > 0]
        return np.sort(used["s"].astype(np.int64) * 1_000_000_000 + used["ns"])

    def close(self) -> None:
        """Close the ring."""
        self._memory.close()
        self._socket.close()


def gap_report(stamps_ns: NDArray[np.int64]) -> GapReport | None:
    """Return percentiles of the gaps between ascending times of arrival; None for fewer than two."""
    if len(stamps_ns) < 2:
        return None
    p50, p99, p999 = np.percentile(np.diff(stamps_ns), (50, 99, 99.9))
    return GapReport(len(stamps_ns), round(p50), round(p99), round(p999))

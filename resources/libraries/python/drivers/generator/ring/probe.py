"""Probe frames of one flow: sent with a time stamp by the kernel, received with one into a ring."""

import errno
import mmap
import socket
import struct
from collections.abc import Sequence
from ctypes import addressof, create_string_buffer

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generator.ring import frames, kernel
from resources.libraries.python.drivers.generator.ring.wire import FlowSpec
from resources.libraries.python.errors import CsitError

_PAGE = 4096
_SLOT = 128
_SNAP = frames.SEQUENCE_OFFSET + 8
_SOCKET_BYTES = 64 << 20
_MOST_SLOTS = 1 << 20
"""128 MB. Probes beyond are counted, but not timed."""
_ERROR = struct.Struct("=IBBBBII")
_STAMP = struct.Struct("=qq")
_HEADER = np.dtype(
    [("status", "=u4"), ("length", "=u4"), ("snap", "=u4"), ("mac", "=u2"), ("net", "=u2"), ("s", "=u4"), ("ns", "=u4")]
)
# ldb [23]; jne UDP, drop; ldh [36]; jne port, drop; ret snap; drop: ret 0
_FILTER = (
    (0x30, 0, 0, 23),
    (0x15, 0, 3, frames.PROBE_PROTOCOL),
    (0x28, 0, 0, 36),
    (0x15, 0, 1, frames.PROBE_PORT),
    (0x06, 0, 0, _SNAP),
    (0x06, 0, 0, 0),
)


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

    def collect(self) -> tuple[int, NDArray[np.int64]]:
        """What came: the number of frames, and the arrival time of each probe by its number.

        Returns:
            Frames received, duplicates included; nanoseconds since the epoch, 0 where none came, shape (probes,).
        """
        statistics = self._socket.getsockopt(kernel.SOL_PACKET, kernel.PACKET_STATISTICS, 8)
        received = int(struct.unpack("=II", statistics)[0])
        area = np.frombuffer(bytes(self._memory), dtype=np.uint8).reshape(self._slots, _SLOT)
        headers = area[:, : _HEADER.itemsize].copy().view(_HEADER)[:, 0]
        arrived = np.zeros(self._probes, dtype=np.int64)
        used = np.flatnonzero(headers["status"] & 1)
        if len(used):
            first = int(headers["mac"][used[0]]) + frames.SEQUENCE_OFFSET
            numbers = area[used, first : first + 8].copy().view(">u8")[:, 0]
            stamps = headers["s"][used].astype(np.int64) * 1_000_000_000 + headers["ns"][used]
            known = numbers < self._probes
            # backwards, so that of duplicates the first remains
            arrived[numbers[known][::-1].astype(np.int64)] = stamps[known][::-1]
        return received, arrived

    def close(self) -> None:
        """Close the ring."""
        self._memory.close()
        self._socket.close()


class ProbeSender:
    """Sends the probe frames of one flow."""

    def __init__(self, flow: FlowSpec) -> None:
        """Open the socket.

        Args:
            flow: interface and addresses.

        Raises:
            CsitError: the kernel refused.
        """
        self._flow = flow
        self._ever = self._first = 0
        self._stamps_ns = np.zeros(0, dtype=np.int64)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_SNDBUFFORCE, _SOCKET_BYTES)
            self._socket.setsockopt(kernel.SOL_PACKET, kernel.PACKET_QDISC_BYPASS, 1)
            self._socket.bind((flow.tx_interface, 0))
            self._socket.setsockopt(socket.SOL_SOCKET, kernel.SO_TIMESTAMPING, kernel.TX_SOFTWARE_STAMPS)
        except OSError as error:
            self._socket.close()
            raise CsitError(f"generator port {flow.tx_interface} sends no probes: {error.strerror}") from error

    def prepare(self, pattern: Sequence[int], probes: int) -> None:
        """Make ready for a trial.

        Args:
            pattern: frame sizes with FCS in sending order.
            probes: how many will be sent.
        """
        while self._take_stamp():  # those of an earlier trial that broke off
            pass
        self._frames = frames.ProbeFrames(self._flow, pattern)
        self._first = self._ever
        self._stamps_ns = np.zeros(probes, dtype=np.int64)

    @property
    def sent(self) -> int:
        """Probes sent in this trial."""
        return self._ever - self._first

    def send(self) -> None:
        """Send the next probe and take its time stamp, which the kernel has when `send` returns.

        Raises:
            CsitError: the interface is gone or down.
        """
        try:
            self._socket.send(self._frames.frame(self.sent), socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # a full queue on the far side: sent and lost
                interface = self._flow.tx_interface
                raise CsitError(f"generator port {interface} sends no probes: {error.strerror}") from error
        self._ever += 1
        self._take_stamp()

    def stamps_ns(self) -> NDArray[np.int64]:
        """When each probe left, nanoseconds since the epoch, 0 when not known, shape (probes,)."""
        while self._take_stamp():
            pass
        return self._stamps_ns

    def _take_stamp(self) -> bool:
        try:
            _, ancillary, _, _ = self._socket.recvmsg(0, 256, kernel.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        stamp = number = None
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, kernel.SO_TIMESTAMPING):
                seconds, nanoseconds = _STAMP.unpack_from(data)
                stamp = seconds * 1_000_000_000 + nanoseconds
            elif (level, kind) == (kernel.SOL_PACKET, kernel.PACKET_TX_TIMESTAMP):
                # the kernel counts 32 bits over the socket's life, this trial's probes begin at `first`
                number = (_ERROR.unpack_from(data)[6] - self._first) & 0xFFFFFFFF
        if stamp is not None and number is not None and number < len(self._stamps_ns):
            self._stamps_ns[number] = stamp
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

"""Probe frames of one flow, sent through a socket with transmit time stamps."""

import errno
import socket
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.errors import CsitError

_SOCKET_BYTES = 64 << 20
_ERROR = struct.Struct("=IBBBBII")
_STAMP = struct.Struct("=qq")


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

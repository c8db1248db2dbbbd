"""Sockets through which a program of user space gets and gives packets of ports: what waits there, what is lost there.

The kernel counts what found no room in a packet socket, and the bytes that wait in it (SO_MEMINFO), and what found no
room in one of AF_XDP (XDP_STATISTICS). It tells these to whoever has the socket, as often as asked. A packet socket
that shares a ring with its program, as those of DPDK and VPP do, has another count (PACKET_STATISTICS): telling it sets
it to zero, and the program may want it itself.
"""

import os
import select
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from typing import NamedTuple

from resources.libraries.python.drivers.generators.builtin.kernel import SOL_PACKET
from resources.libraries.python.drivers.host.sockets.packet_sockets import shared
from resources.libraries.python.drivers.host.sockets.xdp_rings import SOL_XDP, Rings
from resources.libraries.python.errors import CsitError, Unsupported

_AF_XDP = 44
_SO_MEMINFO, _MEMINFO = 55, struct.Struct("=9I")
_WAITING, _DROPS = 0, 8
_PACKET_VERSION, _WITHOUT_RING = 10, 0
_XDP_STATISTICS, _STATISTICS = 7, struct.Struct("=6Q")
"""rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full and two more; the first three before Linux 5.9."""
_BITS = (1 << 32) - 1


class Seen(NamedTuple):
    """What the sockets tell; packets are counted from some time on."""

    refused: int
    """Packets that found no room as they came in, or no buffer."""
    kept: int | None = None
    """Packets that the program took and gave to no port; None where nobody counts them."""
    waiting_bytes: int | None = None
    """Memory of packets that wait for the program; None where they wait in rings."""


class ReceivingSockets:
    """All of some processes, together: those of AF_XDP where there are any, else packet sockets."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Take them; they are those of now.

        Raises:
            Unsupported: There is none, or what is lost there cannot be told.
        """
        self._open = ExitStack()
        self._ended = select.poll()
        self._packet: list[Count] = []
        self._xdp: list[Count] = []
        self._rings: list[Rings] = []
        with ExitStack() as failed:
            failed.callback(self._open.close)
            try:
                for pid in pids:
                    self._take(pid)
            except OSError as error:
                raise Unsupported(f"its sockets cannot be read ({error.strerror})") from error
            if not self._packet and not self._xdp:
                raise Unsupported("it has no socket through which packets come")
            failed.pop_all()

    def _take(self, pid: int) -> None:
        packet, xdp = list[socket.socket](), list[socket.socket]()
        with closing(shared(pid)) as sockets:
            for found in sockets:
                self._open.callback(found.close)
                if found.family == socket.AF_PACKET:
                    packet.append(found)
                elif found.family == _AF_XDP:
                    xdp.append(found)
        if any(own.getsockopt(SOL_PACKET, _PACKET_VERSION) != _WITHOUT_RING for own in packet):
            raise Unsupported("its packet sockets have rings, whose losses the kernel tells only once")
        self._packet += [Count(own, refused_by_packet_socket) for own in packet]
        self._xdp += [Count(own, refused_by_xdp_socket) for own in xdp]
        if xdp:
            self._rings.append(rings := Rings(pid, xdp))
            self._open.callback(rings.close)
        if packet or xdp:
            # A socket of ours outlives the process, and its counts would go on.
            process = os.pidfd_open(pid)
            self._open.callback(os.close, process)
            self._ended.register(process, select.POLLIN)

    def read(self) -> Seen:
        """As it is now.

        Raises:
            CsitError: A process has ended, or a socket cannot be read.
        """
        if self._ended.poll(0):
            raise CsitError("the process whose sockets are read has ended")
        try:
            if self._xdp:
                kept = sum(rings.kept() for rings in self._rings)
                return Seen(sum(count.read() for count in self._xdp), kept)
            waiting = sum(memory(count.own)[_WAITING] for count in self._packet)
            return Seen(sum(count.read() for count in self._packet), waiting_bytes=waiting)
        except OSError as error:
            raise CsitError(f"a socket cannot be read: {error.strerror}") from error

    def in_rings(self) -> int:
        """Packets that are in rings of AF_XDP sockets now.

        Raises:
            CsitError: A process has ended.
        """
        return sum(rings.waiting() for rings in self._rings)

    def close(self) -> None:
        """Let go of all."""
        self._open.close()


class Count:
    """Of one socket, going on where the kernel's 32 bits begin again."""

    def __init__(self, own: socket.socket, read: Callable[[socket.socket], int]) -> None:
        self.own = own
        self._read = read
        self._last = self._sum = 0

    def read(self) -> int:
        """Packets since it was opened.

        Raises:
            OSError: It cannot be read.
        """
        now = self._read(self.own)
        self._sum += (now - self._last) & _BITS
        self._last = now
        return self._sum


def memory(own: socket.socket) -> tuple[int, ...]:
    """What the kernel tells of the memory of a socket."""
    return _MEMINFO.unpack(own.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))


def refused_by_packet_socket(own: socket.socket) -> int:
    """Packets that found no room in a packet socket, modulo 2^32."""
    return memory(own)[_DROPS]


def refused_by_xdp_socket(own: socket.socket) -> int:
    """Packets that found the ring of a socket of AF_XDP full, or no buffer to be copied to."""
    answer = own.getsockopt(SOL_XDP, _XDP_STATISTICS, _STATISTICS.size)
    dropped, _, _, full, *_ = _STATISTICS.unpack(answer.ljust(_STATISTICS.size, bytes(1)))
    return int(dropped + full)

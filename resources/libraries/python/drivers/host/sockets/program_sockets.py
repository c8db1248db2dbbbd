"""Sockets by which another program receives and sends packets of ports: what they count, and what waits in them.

They are taken from their process by pidfd_getfd(2), as a debugger could: neither /proc/net/packet nor the packet
sockets of sock_diag(7) have the counters.

The kernel counts drops at a full packet socket, the bytes queued in it (SO_MEMINFO), and drops at a full AF_XDP socket
(XDP_STATISTICS), and reports them to any holder of the socket as often as asked. A packet socket that shares a ring
with its program, as those of DPDK and VPP do, has another counter (PACKET_STATISTICS), which is reset by reading, and
the program may want it itself; `PacketSocket` adds up what it reads.

AF_XDP rings are memory that kernel and program share, with the position of each. The kernel does not export these, but
shows where a program has mapped a ring (/proc/<pid>/maps), and lets a tracer read its memory.
"""

import ctypes
import errno
import os
import re
import select
import socket
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from threading import Lock
from typing import NamedTuple

from resources.libraries.python.drivers.generators.builtin.kernel import PACKET_STATISTICS, SOL_PACKET
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import ProcessedPackets

_SYS_PIDFD_GETFD = 438
"""On all architectures; since Linux 5.6."""
_COUNTS = struct.Struct("=II")
"""Packets, those that were dropped included, and those."""
_libc = ctypes.CDLL(None, use_errno=True)


class PacketSocket:
    """A packet socket that belongs to another process too."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        self.interface: str = own.getsockname()[0]
        """At which it gets packets."""
        self._packets = self._dropped = 0
        self._lock = Lock()

    def read(self) -> ProcessedPackets:
        """Packets that its process got, and that found no room because it was too slow, since it was made.

        Raises:
            CsitError: It cannot be read.
        """
        with self._lock:
            try:
                counts = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, _COUNTS.size)
            except OSError as error:
                raise CsitError(f"a packet socket cannot be read: {error.strerror}") from error
            packets, dropped = _COUNTS.unpack(counts)
            self._packets += packets - dropped
            self._dropped += dropped
            return ProcessedPackets(self._packets, self._dropped)

    def close(self) -> None:
        self._socket.close()


def find(pid: int, interface: str) -> PacketSocket | None:
    """The packet socket by which a process gets the packets of an interface; None while it has none.

    Raises:
        Unsupported: This system does not let us look at sockets of others.
    """
    with closing(shared(pid)) as sockets:
        for found in sockets:
            if found.family == socket.AF_PACKET and found.getsockname()[0] == interface:
                return PacketSocket(found)
            found.close()
    return None


def shared(pid: int) -> Generator[socket.socket, None, None]:
    """All sockets of a process, by descriptors of our own, which the caller closes; none when the process is gone.

    Raises:
        Unsupported: This system does not let us look at sockets of others.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError as error:
        raise _not_shared(error.errno or 0) from error
    try:
        for descriptor in _sockets_of(pid):
            if (found := _taken(process, descriptor)) is not None:
                yield found
    finally:
        os.close(process)


def _sockets_of(pid: int) -> Iterator[int]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:  # the process ended
        return
    except PermissionError as error:
        raise _not_shared(errno.EPERM) from error
    for name in names:
        with suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(f"{folder}/{name}").startswith("socket:"):  # noqa: PTH115
                yield int(name)


def _taken(process: int, descriptor: int) -> socket.socket | None:
    own = _libc.syscall(_SYS_PIDFD_GETFD, process, descriptor, 0)
    if own >= 0:
        # Left alone, Python reads the family from the socket's own address, and one of AF_XDP has none.
        any_family = socket.socket(socket.AF_UNIX, fileno=own)
        family = any_family.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN)
        return socket.socket(family, fileno=any_family.detach())
    code = ctypes.get_errno()
    if code in (errno.EBADF, errno.ESRCH):  # closed, or the process ended
        return None
    raise _not_shared(code)


def _not_shared(code: int) -> Unsupported:
    return Unsupported(
        f"what a program gets and misses cannot be counted: its sockets cannot be shared ({os.strerror(code)}); "
        "this takes root and the right to trace processes (CAP_SYS_PTRACE)"
    )


SOL_XDP = 283
_XDP_MMAP_OFFSETS = 1
_OFFSETS = struct.Struct("=16Q")
"""Of the rings RX, TX, fill and completion: where producer, consumer, descriptors and flags are."""
_RX_PRODUCER, _RX_CONSUMER, _TX_PRODUCER, _TX_CONSUMER = 0, 1, 4, 5
_RX_AT, _TX_AT = 0, 0x80000000
"""Offsets at which the two rings are mapped."""
_MAPPED = re.compile(r"^([0-9a-f]+)-\S+ \S+ ([0-9a-f]+) \S+ (\d+) ", re.MULTILINE)
_INDEX = struct.Struct("=I")
_BITS = (1 << 32) - 1
_ENDED = "the process whose rings are read has ended"


class _Ring(NamedTuple):
    """Where its two counts are, in the memory of the program."""

    producer: int
    consumer: int


class Rings:
    """Of all AF_XDP sockets of a process."""

    def __init__(self, pid: int, sockets: Iterable[socket.socket]) -> None:
        """Find them.

        Raises:
            Unsupported: Its memory cannot be read.
        """
        self._rx: list[_Ring] = []
        self._tx: list[_Ring] = []
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8") as file:  # noqa: PTH123 - as that of its memory
                places = mapped(file.read())
            for own in sockets:
                offsets = _OFFSETS.unpack(own.getsockopt(SOL_XDP, _XDP_MMAP_OFFSETS, _OFFSETS.size))
                inode = os.fstat(own.fileno()).st_ino
                rx, tx = places[inode, _RX_AT], places[inode, _TX_AT]
                self._rx.append(_Ring(rx + offsets[_RX_PRODUCER], rx + offsets[_RX_CONSUMER]))
                self._tx.append(_Ring(tx + offsets[_TX_PRODUCER], tx + offsets[_TX_CONSUMER]))
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unsupported(f"its rings cannot be read ({error.strerror})") from error
        except KeyError as error:
            raise Unsupported("it has a socket of AF_XDP without rings for both ways") from error
        self._last = dict.fromkeys((*(ring.consumer for ring in self._rx), *(ring.producer for ring in self._tx)), 0)
        self._kept = 0

    def kept(self) -> int:
        """Packets that it has taken and never given to any port, since the first reading: it lost them, but for a few.

        Raises:
            CsitError: The process has ended.
        """
        try:
            taken = sum(self._more(ring.consumer) for ring in self._rx)
            self._kept += taken - sum(self._more(ring.producer) for ring in self._tx)
        except (OSError, struct.error) as error:
            raise CsitError(_ENDED) from error
        return self._kept

    def waiting(self) -> int:
        """Packets that are in the rings now, for the program and for the kernel.

        Raises:
            CsitError: The process has ended.
        """
        try:
            rings = (*self._rx, *self._tx)
            return sum((self._now(ring.producer) - self._now(ring.consumer)) & _BITS for ring in rings)
        except (OSError, struct.error) as error:
            raise CsitError(_ENDED) from error

    def _more(self, place: int) -> int:
        now = self._now(place)
        more = (now - self._last[place]) & _BITS
        self._last[place] = now
        return more

    def _now(self, place: int) -> int:
        (now,) = _INDEX.unpack(os.pread(self._memory, _INDEX.size, place))
        return int(now)

    def close(self) -> None:
        os.close(self._memory)


def mapped(maps: str) -> dict[tuple[int, int], int]:
    """Where sockets are mapped, by inode and offset, of all that /proc/<pid>/maps shows."""
    return {(int(inode), int(offset, 16)): int(begin, 16) for begin, offset, inode in _MAPPED.findall(maps)}


_AF_XDP = 44
_SO_MEMINFO, _MEMINFO = 55, struct.Struct("=9I")
_WAITING, _DROPS = 0, 8
_PACKET_VERSION, _WITHOUT_RING = 10, 0
_XDP_STATISTICS, _STATISTICS = 7, struct.Struct("=6Q")
"""rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full and two more; the first three before Linux 5.9."""


class SocketCounters(NamedTuple):
    """Counters of sockets; packets are counted from a point in time."""

    refused: int
    """Packets that found no room as they came in, or no buffer."""
    kept: int | None = None
    """Packets that the program took and gave to no port; None where they are not counted."""
    waiting_bytes: int | None = None
    """Memory of packets that wait for the program; None where they wait in rings."""


class ReceivingSockets:
    """All of some processes, together: those of AF_XDP where there are any, else packet sockets."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Take them; they are those of now.

        Raises:
            Unsupported: There is none, or its drops cannot be counted.
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
            raise Unsupported("its packet sockets have rings, whose losses the kernel reports only once")
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

    def read(self) -> SocketCounters:
        """As it is now.

        Raises:
            CsitError: A process has ended, or a socket cannot be read.
        """
        if self._ended.poll(0):
            raise CsitError("the process whose sockets are read has ended")
        try:
            if self._xdp:
                kept = sum(rings.kept() for rings in self._rings)
                return SocketCounters(sum(count.read() for count in self._xdp), kept)
            waiting = sum(memory(count.own)[_WAITING] for count in self._packet)
            return SocketCounters(sum(count.read() for count in self._packet), waiting_bytes=waiting)
        except OSError as error:
            raise CsitError(f"a socket cannot be read: {error.strerror}") from error

    def in_rings(self) -> int:
        """Packets that are in rings of AF_XDP sockets now.

        Raises:
            CsitError: A process has ended.
        """
        return sum(rings.waiting() for rings in self._rings)

    def close(self) -> None:
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
    """Memory counters of a socket in the kernel."""
    return _MEMINFO.unpack(own.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))


def refused_by_packet_socket(own: socket.socket) -> int:
    """Packets that found no room in a packet socket, modulo 2^32."""
    return memory(own)[_DROPS]


def refused_by_xdp_socket(own: socket.socket) -> int:
    """Packets that found the ring of a socket of AF_XDP full, or no buffer to be copied to."""
    answer = own.getsockopt(SOL_XDP, _XDP_STATISTICS, _STATISTICS.size)
    dropped, _, _, full, *_ = _STATISTICS.unpack(answer.ljust(_STATISTICS.size, bytes(1)))
    return int(dropped + full)

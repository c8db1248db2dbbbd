"""Packet sockets of other processes: how many packets the kernel put into one, and how many found no room.

The kernel counts both for each packet socket (PACKET_STATISTICS, packet(7)) and shows them to its owner: neither
/proc/net/packet nor the packet sockets of sock_diag(7) have them. So the socket is taken from its process by
pidfd_getfd(2), as a debugger could. Reading sets the counters to zero, which is why they are added up here.
"""

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from threading import Lock

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

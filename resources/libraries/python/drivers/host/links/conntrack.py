"""The kernel's connection tracking in the network namespace that the calling thread is in."""

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.thread_scheduling import go_first
from resources.libraries.python.drivers.host.kernel_files import number_of
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import ConnectionTable, Deletion

_SETTINGS = Path("/proc/sys/net/netfilter")
_STATISTICS = Path("/proc/thread-self/net/stat/nf_conntrack")
_TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream", "nf_conntrack_tcp_timeout_time_wait")
_NETFILTER = 12
_DELETE = 1 << 8 | 2
"""IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK; without a tuple it deletes all entries of the namespace."""
_REQUEST_AND_ACK = 5
_ACK = 2
_WITHIN_S = 60.0
_EMPTY_S = 0.2
"""Entries in use by a packet on its way are freed a moment later."""
_POLL_S = 0.0005


def table() -> ConnectionTable:
    """Return the state of the table.

    Raises:
        Unsupported: The kernel tracks no connections here.
    """
    count = entries()
    try:
        found = read_statistics(_STATISTICS.read_text(encoding="ascii"))
    except (OSError, ValueError, IndexError):  # counters of a kernel that does not have them, or not in this form
        found = {}
    return ConnectionTable(
        entries=count,
        limit=_number("nf_conntrack_max"),
        buckets=_number("nf_conntrack_buckets"),
        timeout_s=_number(_TIMEOUTS[0]),
        failed=found.get("insert_failed"),
        dropped=found.get("drop"),
        evicted=found.get("early_drop"),
    )


def entries() -> int:
    """Return the number of entries in the table.

    Raises:
        Unsupported: The kernel tracks no connections here.
    """
    count = _number("nf_conntrack_count")
    if count is None:
        raise Unsupported(f"the kernel tracks no connections: there is no {_SETTINGS / 'nf_conntrack_count'}")
    return count


def read_statistics(text: str) -> Mapping[str, int]:
    """Sums over CPUs by name of the counter, from the kernel's table of hexadecimal numbers with a line per CPU."""
    names, *rows = (line.split() for line in text.splitlines())
    return {name: sum(int(row[place], 16) for row in rows) for place, name in enumerate(names) if name != "entries"}


def _number(name: str) -> int | None:
    return number_of(_SETTINGS / name)


def hold(timeout_s: int) -> ConnectionTable:
    """Let entries of UDP and of closed TCP connections expire after some seconds without a packet; return the table.

    Raises:
        CsitError: The kernel refused.
    """
    for name in _TIMEOUTS:
        try:
            (_SETTINGS / name).write_text(str(timeout_s), encoding="ascii")
        except OSError as error:
            raise CsitError(f"{_SETTINGS / name} cannot be set to {timeout_s}: {error.strerror}") from error
    return table()


def delete() -> Deletion:
    """Delete all entries of the table, in real time: what else runs on the machine would be counted as time of it.

    To be called by a thread that ends afterwards: it goes before all ordinary ones.

    Raises:
        Unsupported: The kernel has no sockets for this, or tracks no connections.
        CsitError: It refused.
    """
    go_first()
    count = entries()
    request = struct.pack("=IHHIIBBH", 20, _DELETE, _REQUEST_AND_ACK, 1, 0, 0, 0, 0)
    try:
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER)
    except OSError as error:
        raise Unsupported(f"the kernel deletes no connections on request: {error.strerror}") from error
    with netlink:
        netlink.settimeout(_WITHIN_S)
        began_ns = time.monotonic_ns()
        try:
            netlink.send(request)
            answer = netlink.recv(1 << 12)
        except OSError as error:
            raise CsitError(f"connections cannot be deleted: {error}") from error
        ended_ns = time.monotonic_ns()
    if struct.unpack_from("=H", answer, 4)[0] == _ACK and (code := -struct.unpack_from("=i", answer, 16)[0]):
        raise CsitError(f"the kernel does not delete connections: {os.strerror(code)}")
    return Deletion(entries=count, left=entries(), began_ns=began_ns, ended_ns=ended_ns)


def settled() -> int:
    """Entries that are left after a deletion: 0, or what is still there 0.2 s later."""
    deadline = time.monotonic() + _EMPTY_S
    while (left := entries()) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return left

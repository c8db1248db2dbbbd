"""TCP and UDP ports in use in the network namespace of the calling thread."""

from pathlib import Path

_LISTENING = "0A"
"""A TCP socket's state in /proc/net/tcp."""


def tcp_ports() -> frozenset[int]:
    """Return the TCP ports with a listening socket."""
    return frozenset(port for table in ("tcp", "tcp6") for port, state in _rows(table) if state == _LISTENING)


def udp_ports() -> frozenset[int]:
    """Return the UDP ports with a bound socket."""
    return frozenset(port for table in ("udp", "udp6") for port, _ in _rows(table))


def _rows(table: str) -> list[tuple[int, str]]:
    path = Path("/proc/thread-self/net", table)
    lines = path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []
    words = (line.split() for line in lines)
    return [(int(row[1].rpartition(":")[2], 16), row[3]) for row in words]

"""TCP and UDP sockets of a network namespace: ports in use, and packets that came and were sent."""

from pathlib import Path

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.request.traffic import Protocol

_LISTENING = "0A"
"""A TCP socket's state in /proc/net/tcp."""


def tcp_ports() -> frozenset[int]:
    """Return the TCP ports with a listening socket in the namespace of the calling thread."""
    return frozenset(port for table in ("tcp", "tcp6") for port, state in _rows(table) if state == _LISTENING)


def udp_ports() -> frozenset[int]:
    """Return the UDP ports with a bound socket there."""
    return frozenset(port for table in ("udp", "udp6") for port, _ in _rows(table))


def _rows(table: str) -> list[tuple[int, str]]:
    path = Path("/proc/thread-self/net", table)
    lines = path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []
    words = (line.split() for line in lines)
    return [(int(row[1].rpartition(":")[2], 16), row[3]) for row in words]


_COUNTERS = {
    Protocol.UDP: (("InDatagrams", "InErrors"), "OutDatagrams"),
    Protocol.TCP: (("InSegs",), "OutSegs"),
}


def socket_counters() -> str:
    """The kernel's counters of protocols, of the namespace of the calling thread."""
    return Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")


def socket_packets(snmp: str, protocol: Protocol) -> tuple[ProcessedPackets, int]:
    """Packets that the sockets of a namespace sent, UDP datagrams that came and were not sent on, and all that came.

    `snmp`: Counters (`socket_counters`) of a namespace where the program of an NF is the only one with sockets.

    Raises:
        CsitError: A counter is missing.
    """
    counters = [line.split()[1:] for line in snmp.splitlines() if line.upper().startswith(f"{protocol}:")]
    row = dict(zip(*counters, strict=True)) if len(counters) == 2 else {}
    received, sent = _COUNTERS[protocol]
    try:
        came, left = sum(int(row[name]) for name in received), int(row[sent])
    except KeyError as error:
        raise CsitError(f"the kernel has no counter {error} of {protocol}") from error
    return ProcessedPackets(left, max(0, came - left) if protocol is Protocol.UDP else None), came

"""The two ends of a tunnel and their configuration. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resources.libraries.python.rendering import render

CIPHER = "AES-256-GCM"
"""Of the packets: OpenVPN's own first choice."""
_TEMPLATE = "openvpn.conf.j2"
_RX_PACKETS, _TX_PACKETS, _TX_DROPPED = 1, 9, 11
"""Columns of /proc/net/dev."""


@dataclass(frozen=True, slots=True)
class TunnelEnd:
    """One of the two, the same in every NF: each has a network namespace of its own."""

    device: str
    """What packets of its side are routed into, and packets of the other side come out of."""
    role: str
    """In the handshake, of which there is one."""
    port: int
    """UDP, of loopback."""
    table: int
    """Table of the routes of packets that arrive on its side."""


LEFT, RIGHT = TunnelEnd("tun-left", "server", 1194, 101), TunnelEnd("tun-right", "client", 1195, 102)
ENDS = (LEFT, RIGHT)


@dataclass(frozen=True, slots=True)
class TunnelFiles:
    """Keys and certificates of one end by path; its configuration has the paths only."""

    certificate: str
    key: str
    fingerprint: str
    """Fingerprint of the other end's certificate, SHA-256 as `AA:BB:...`; no other one is accepted."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Packets of a tunnel, both ways together, since it was made."""

    came: int
    """Into its devices, those included that found no room there."""
    left: int
    """Out of its devices: encrypted and decrypted."""

    def __sub__(self, earlier: "Passed") -> "Passed":
        """What was counted since `earlier`."""
        return Passed(self.came - earlier.came, self.left - earlier.left)


def configuration(end: TunnelEnd, files: TunnelFiles, mtu: int) -> str:
    """The configuration file of an end.

    Args:
        end: Which one.
        files: Its own, and how it knows the other.
        mtu: Bytes of the largest IP packet.
    """
    peer = RIGHT if end is LEFT else LEFT
    return render(_TEMPLATE, {"end": end, "peer": peer, "files": files, "mtu": mtu, "cipher": CIPHER})


def passed(numbers: Mapping[str, Sequence[str]]) -> Passed:
    """Packets of a tunnel.

    Args:
        numbers: The columns of /proc/net/dev by interface.

    Raises:
        KeyError: A device of it is gone.
    """
    rows = [list(map(int, numbers[end.device])) for end in ENDS]
    came = sum(row[_TX_PACKETS] + row[_TX_DROPPED] for row in rows)
    return Passed(came, sum(row[_RX_PACKETS] for row in rows))

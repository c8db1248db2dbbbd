"""The two ends of a tunnel and their configuration. Pure."""

from dataclasses import dataclass

from resources.libraries.python.drivers.functions.tunnels import TunnelEnd
from resources.libraries.python.rendering import render

CIPHER = "AES-256-GCM"
"""Of the packets: OpenVPN's own first choice."""
_TEMPLATE = "openvpn.conf.j2"


LEFT, RIGHT = TunnelEnd("tun-left", "server", 1194, 101), TunnelEnd("tun-right", "client", 1195, 102)
ENDS = (LEFT, RIGHT)
"""The same in every NF: each has a network namespace of its own."""


@dataclass(frozen=True, slots=True)
class TunnelFiles:
    """Keys and certificates of one end by path; its configuration has the paths only."""

    certificate: str
    key: str
    fingerprint: str
    """Fingerprint of the other end's certificate, SHA-256 as `AA:BB:...`; no other one is accepted."""


def configuration(end: TunnelEnd, files: TunnelFiles, mtu: int) -> str:
    """The configuration file of an end.

    Args:
        end: Which one.
        files: Its own, and how it knows the other.
        mtu: Bytes of the largest IP packet.
    """
    peer = RIGHT if end is LEFT else LEFT
    return render(_TEMPLATE, {"end": end, "peer": peer, "files": files, "mtu": mtu, "cipher": CIPHER})

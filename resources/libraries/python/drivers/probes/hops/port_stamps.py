"""The generator's numbered probes at one port, with the time at which the kernel saw each."""

import numpy as np

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.host.sockets.packet_ring import OUTGOING, PacketRing, RingFrames
from resources.libraries.python.drivers.probes.hops.packet_delays import Packet

MAX_FRAMES = 1024
"""Frames that a port keeps, both directions together: 256 KiB."""
_SLOT_BYTES = 256
_TYPE_OFFSET = frames.ETHERNET_BYTES - 2
_NUMBER, _STAMP = frames.NUMBER_OFFSET - _TYPE_OFFSET, frames.STAMP_OFFSET - _TYPE_OFFSET
_PROBE = np.dtype(
    {
        "names": ["type", "number", "stamp", "number_6", "stamp_6"],
        "formats": [">u2", ">u4", ">u8", ">u4", ">u8"],
        "offsets": [0, _NUMBER, _STAMP, _NUMBER + frames.IPV6_MORE, _STAMP + frames.IPV6_MORE],
    }
)


def probe_filter() -> bytes:
    """Return the program that lets numbered probes of the built-in generator pass, whatever their addresses and ports.

    They are UDP datagrams over IPv4 or IPv6 whose contents begin with the mark of probes.
    """
    mark = int.from_bytes(frames.PROBE_MARK)
    # 0: ldh type; jne IPv4, 6; ldb protocol; jne UDP, 12; ld contents; ja 10
    # 6: jne IPv6, 12; ldb next header; jne UDP, 12; ld contents; 10: jne mark, 12; ret snap; 12: ret 0
    return kernel.classic_bpf(
        (0x28, 0, 0, _TYPE_OFFSET),
        (0x15, 0, 4, kernel.ETH_P_IP),
        (0x30, 0, 0, 23),
        (0x15, 0, 8, frames.PROBE_PROTOCOL),
        (0x20, 0, 0, frames.MARK_OFFSET),
        (0x05, 0, 0, 4),
        (0x15, 0, 5, kernel.ETH_P_IPV6),
        (0x30, 0, 0, 20),
        (0x15, 0, 3, frames.PROBE_PROTOCOL),
        (0x20, 0, 0, frames.MARK_OFFSET + frames.IPV6_MORE),
        (0x15, 0, 1, mark),
        (0x06, 0, 0, frames.PROBE_BYTES + frames.IPV6_MORE),
        (0x06, 0, 0, 0),
    )


class PortStamps(PacketRing):
    """Keeps the probes that pass a port, both those that arrive and those that it sends.

    `interface`: The port, in the network namespace of the calling thread.

    Raises:
        CsitError: The kernel refused.
    """

    def __init__(self, interface: str) -> None:
        super().__init__(interface, MAX_FRAMES, kernel.ETH_P_ALL, _SLOT_BYTES, probe_filter())

    def by_counter(self) -> dict[str, dict[Packet, int]]:
        """When probes passed so far, in nanoseconds since the epoch, by the counter of the port that counts them."""
        return stamps_of(self.read(_TYPE_OFFSET, _PROBE.itemsize))


def stamps_of(came: RingFrames) -> dict[str, dict[Packet, int]]:
    """When probes passed, by the counter of the port that counts them, `rx` or `tx`. Of duplicates the first counts.

    `came`: Bytes of each from its EtherType on.
    """
    found: dict[str, dict[Packet, int]] = {"rx": {}, "tx": {}}
    probes = came.parts.copy().view(_PROBE)[:, 0]
    ipv6 = probes["type"] == kernel.ETH_P_IPV6
    numbers = np.where(ipv6, probes["number_6"], probes["number"]).tolist()
    sent_ns = np.where(ipv6, probes["stamp_6"], probes["stamp"]).tolist()
    for number, sent, kind, stamp in zip(numbers, sent_ns, came.kinds.tolist(), came.stamps_ns.tolist(), strict=True):
        found["tx" if kind == OUTGOING else "rx"].setdefault((number, sent), stamp)
    return found

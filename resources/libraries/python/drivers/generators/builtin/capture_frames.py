"""Packets of a capture as load frames: with the addresses of a flow, and checksums for these. Pure.

Each source address of the capture, in order of appearance, becomes the source address of that number of the flow; all
packets go to the flow's destination. Ports, payloads and lengths stay what they were; the TTL is that of all load.
Checksums are computed anew, because those of packets captured where they were sent are left to the NIC.
"""

import ipaddress

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.model.request.capture import IP4, IP6, CapturedFrames

_TCP, _UDP, _ICMP6, _FRAGMENT = 6, 17, 58, 44
_CHECKSUM_AT = {_TCP: 16, _UDP: 6, _ICMP6: 2}
"""Offset of the checksum in headers whose checksum covers the addresses."""
_OPTIONS = (0, 43, 60)
"""Extension headers of IPv6 that have a length."""
MAX_PROBE_SIZES = 512
SMALLEST_IPV6 = 82


def probe_sizes(captured: CapturedFrames) -> tuple[int, ...]:
    """Sizes with FCS of latency probes, in turns: those of the capture, at most 512 of them at equal distances.

    A probe of IPv6 has no room for its time stamp below 82 bytes, and is that long then.
    """
    least = SMALLEST_IPV6 if captured.ip_version == IP6 else 0
    step = -(-len(captured.frames) // MAX_PROBE_SIZES)
    return tuple(max(least, len(frame) + frames.FCS_BYTES) for frame in captured.frames[::step])


class CapturedLoad:
    """Load frames without addresses, and what else is in their checksums."""

    def __init__(self, captured: CapturedFrames) -> None:
        self.ipv6 = captured.ip_version != IP4
        self.lengths = np.array([len(frame) for frame in captured.frames], dtype=np.int64)
        """Bytes of each frame without FCS, shape (n,)."""
        self.sources = np.array(captured.sources, dtype=np.int64)
        """Number of each frame's source address, shape (n,)."""
        count = len(captured.frames)
        self.data = np.zeros((count, int(self.lengths.max()) + 1 & ~1), dtype=np.uint8)
        """Frames with zeros for MAC addresses, IP addresses and those checksums, shape (n, bytes)."""
        self.header_sums, self.sums, self.offsets = (np.zeros(count, dtype=np.int64) for _ in range(3))
        """Sums of 16-bit words, not folded, without addresses, shape (n,): of the IPv4 header, and of what the checksum
        of TCP, UDP or ICMPv6 covers; where that checksum is, 0 for nowhere."""
        for row, frame in enumerate(captured.frames):
            self._take(row, bytearray(frame))

    def _take(self, row: int, frame: bytearray) -> None:
        start = frames.ETHERNET_BYTES
        frame[:12] = bytes(12)
        if self.ipv6:
            addresses, behind, protocol, fragment, first = self._ipv6(frame)
            end = start + frames.IPV6_BYTES + int.from_bytes(frame[start + 4 : start + 6])
        else:
            addresses, behind = slice(start + 12, start + 20), start + 4 * (frame[start] & 15)
            protocol, end = frame[start + 9], start + int.from_bytes(frame[start + 2 : start + 4])
            place = int.from_bytes(frame[start + 6 : start + 8]) & 0x3FFF
            fragment, first = bool(place), not place & 0x1FFF
        old = _sum(frame[addresses])
        frame[addresses] = bytes(addresses.stop - addresses.start)
        if self.ipv6:
            frame[start + 7] = frames.TTL
        else:
            frame[start + 8] = frames.TTL
            frame[start + 10 : start + 12] = bytes(2)
            self.header_sums[row] = _sum(frame[start:behind])
        at = behind + _CHECKSUM_AT.get(protocol, end)
        if at + 2 <= end and first and (protocol != _ICMP6 or self.ipv6):
            checksum = int.from_bytes(frame[at : at + 2])
            if checksum or protocol != _UDP:
                frame[at : at + 2] = bytes(2)
                self.offsets[row] = at
                # That of a fragment covers the others: only the addresses are exchanged (RFC 1624).
                whole = _sum(frame[behind:end]) + protocol + end - behind
                self.sums[row] = 0xFFFF - checksum + (0xFFFF - old % 0xFFFF) if fragment else whole
        self.data[row, : len(frame)] = np.frombuffer(bytes(frame), dtype=np.uint8)

    def _ipv6(self, frame: bytearray) -> tuple[slice, int, int, bool, bool]:
        """Place of the addresses; offset and protocol of what is behind; whether it is a fragment, and the first."""
        start = frames.ETHERNET_BYTES
        protocol, behind, fragment, first = frame[start + 6], start + frames.IPV6_BYTES, False, True
        while behind + 8 <= len(frame) and protocol in (*_OPTIONS, _FRAGMENT):
            length = 8 if protocol == _FRAGMENT else 8 * (frame[behind + 1] + 1)
            if protocol == _FRAGMENT:
                place = int.from_bytes(frame[behind + 2 : behind + 4]) & 0xFFF9
                fragment, first = bool(place), not place & 0xFFF8
            protocol, behind = frame[behind], behind + length
        return slice(start + 8, start + 40), behind, protocol, fragment, first

    def write(self, flow: FlowSpec, area: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Write the frames of a flow into every row of an area, again and again.

        `area`: zeroed room for the frames, shape (slots, at least the largest size without FCS).

        Returns:
            Bytes of each frame without FCS, shape (slots,).
        """
        rows = np.arange(len(area)) % len(self.lengths)
        width = min(self.data.shape[1], area.shape[1])
        area[:, :width] = self.data[rows, :width]
        area[:, :12] = np.frombuffer(frames.mac(flow.destination_mac) + frames.mac(flow.source_mac), dtype=np.uint8)
        source, destination = (ipaddress.ip_address(each).packed for each in (flow.source_ip, flow.destination_ip))
        start = frames.ETHERNET_BYTES + (8 if self.ipv6 else 12)
        own = len(source)
        area[:, start : start + 2 * own] = np.frombuffer(source + destination, dtype=np.uint8)
        last = int.from_bytes(source[-4:]) + self.sources[rows] % flow.sources
        area[:, start + own - 4 : start + own] = last.astype(">u4").view(np.uint8).reshape(len(area), 4)
        fixed = _sum(source[:-4]) + _sum(destination)
        of_addresses = fixed + (last >> 16) + (last & 0xFFFF)
        if not self.ipv6:
            _put(
                area, np.arange(len(area)), np.full(len(area), 24), frames.folded(self.header_sums[rows] + of_addresses)
            )
        checksums = frames.folded(self.sums[rows] + of_addresses)
        checksums[checksums == 0] = 0xFFFF
        known = np.flatnonzero(self.offsets[rows])
        _put(area, known, self.offsets[rows][known], checksums[known])
        return self.lengths[rows]


def _put(
    area: NDArray[np.uint8], rows: NDArray[np.int64], offsets: NDArray[np.int64], words: NDArray[np.int64]
) -> None:
    area[rows, offsets], area[rows, offsets + 1] = words >> 8, words & 0xFF


def _sum(data: bytes | bytearray) -> int:
    """Sum of 16-bit words in network order."""
    padded = bytes(data) + bytes(len(data) % 2)
    return int(np.frombuffer(padded, dtype=">u2").sum(dtype=np.int64))

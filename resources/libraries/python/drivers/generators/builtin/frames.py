"""Frames as bytes: load frames for a whole ring at once, probe frames one by one. Pure."""

import ipaddress
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.errors import CsitError
from resources.libraries.python.planning.address_bounds import MAX_SOURCES

FCS_BYTES = 4
ETHERNET_BYTES = 14
IPV4_BYTES, IPV6_BYTES = 20, 40
LOAD_PROTOCOL = 61
"""IPv4 protocol of load frames: any host internal protocol, so that no stack looks further."""
PROBE_PROTOCOL = UDP = 17
TCP = 6
PROBE_PORT = 49190
"""UDP destination port of probe frames."""
UDP_LOAD_PORT = 49191
"""Destination port of load frames, where they are UDP datagrams or TCP segments."""
FIRST_PORT, PORTS, PORT_FACTOR = 0x8000, 0x8000, 40503
"""Source ports of such: from 32768 on, as many, scattered over the source addresses by an odd factor."""
UDP_OFFSET, UDP_BYTES = 34, 8
_TCP_WORDS = (UDP_LOAD_PORT, 0, 1, 0, 1, 0x5010, 0xFFFF)
"""Of a TCP header behind the source port: destination port, sequence and acknowledgement numbers 1, ACK in five words,
window. A segment in the middle of a connection: a SYN would have each firewall on the path keep one half open."""
_TCP_CHECKSUM, TCP_BYTES = 8, 20
"""Word of the checksum in a TCP header, and bytes of it."""
MARK_OFFSET, NUMBER_OFFSET, STAMP_OFFSET = 42, 46, 50
"""Where an IPv4 probe carries its mark, its number within the flow (4 bytes) and, where the sender writes one, the time
it was sent in nanoseconds of TAI (8 bytes, else 0), all in network order. A frame of 64 bytes holds just that."""
PROBE_BYTES = STAMP_OFFSET + 8
IPV6_MORE = IPV6_BYTES - IPV4_BYTES
"""By how much more all of this is behind in IPv6."""
PROBE_MARK = b"csit"
DONT_FRAGMENT = 0x4000
TTL = 64
_HEADER = 34
_CHECKSUM_OFFSET, _SOURCE_6_OFFSET = 24, 34
"""Checksum of IPv4, before the source address; last 4 bytes of a source address of IPv6."""


def check_room(interface: str, mtu_bytes: int, largest_bytes: int) -> None:
    """See that frames fit through a port.

    Raises:
        CsitError: they do not.
    """
    room = mtu_bytes + ETHERNET_BYTES + FCS_BYTES
    if largest_bytes > room:
        raise CsitError(f"generator port {interface} takes frames up to {room} bytes, asked for {largest_bytes}")


def size_pattern(parts: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Spread a mix of frame sizes evenly over the shortest cycle that holds it exactly.

    `parts`: Frame size in bytes and its weight.

    Returns:
        Frame sizes in sending order; each occurs weight / gcd(weights) times.
    """
    divisor = math.gcd(*(weight for _, weight in parts))
    weights = [weight // divisor for _, weight in parts]
    total = sum(weights)
    credit = [0] * len(parts)
    pattern = []
    for _ in range(total):
        credit = [have + weight for have, weight in zip(credit, weights, strict=True)]
        chosen = max(range(len(parts)), key=credit.__getitem__)
        credit[chosen] -= total
        pattern.append(parts[chosen][0])
    return tuple(pattern)


def mac(text: str) -> bytes:
    """A MAC address as it is in a frame."""
    return bytes.fromhex(text.replace(":", ""))


@dataclass(frozen=True, slots=True)
class FlowTuples:
    """The 5-tuples of a flow, each computed from its number.

    They differ in the source address, up to 65,534 of them; beyond that each address is used again with other ports.
    """

    count: int
    sources: int

    @classmethod
    def of(cls, flow: FlowSpec, count: int = 0) -> Self:
        """So many of a flow; 0: as many as it has source addresses."""
        count = count or flow.sources
        return cls(count, min(count, MAX_SOURCES))

    @property
    def rows(self) -> int:
        """How often addresses are used, with other ports each time."""
        return -(-self.count // self.sources)

    def places(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Index of the source address and row of the frames of these numbers, which go on after the last 5-tuple."""
        row, source = np.divmod(numbers % self.count, self.sources)
        return source, row


def load_ports(addresses: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """UDP source ports of load frames, as in the XDP program.

    `rows`: How often all of them have been used before.

    The addresses are those of IPv4, or the last 32 bits of those of IPv6.
    """
    return FIRST_PORT + ((addresses & 0xFFFF) * PORT_FACTOR + rows) % PORTS


def folded(total: NDArray[np.int64]) -> NDArray[np.int64]:
    """The internet checksum of words whose sum is given."""
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def fixed_sum(flow: FlowSpec, protocol: int = UDP) -> int:
    """Sum of what is the same in the UDP or TCP checksum of all packets of a flow, not folded."""
    source, destination = (ipaddress.ip_address(each).packed for each in (flow.source_ip, flow.destination_ip))
    fixed = source[:-4] + destination
    words: tuple[int, ...] = struct.unpack(f"!{len(fixed) // 2}H", fixed)
    return sum(words) + protocol


def _last_32_bits(address: str) -> int:
    return int.from_bytes(ipaddress.ip_address(address).packed[-4:])


def _headers_ipv6(
    flow: FlowSpec, protocol: int, lengths: NDArray[np.int64], sources: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Ethernet and IPv6 headers, shape (n, 54); arguments as of `_headers`."""
    rows = np.zeros((len(lengths), (_HEADER + IPV6_MORE) // 2), dtype=np.int64)
    rows[:, :7] = np.frombuffer(mac(flow.destination_mac) + mac(flow.source_mac) + b"\x86\xdd", dtype=">u2")
    rows[:, 7] = 0x6000
    rows[:, 9] = lengths - ETHERNET_BYTES - IPV6_BYTES
    rows[:, 10] = protocol << 8 | TTL
    ends = ipaddress.IPv6Address(flow.source_ip).packed + ipaddress.IPv6Address(flow.destination_ip).packed
    rows[:, 11:] = np.frombuffer(ends, dtype=">u2")
    source = _last_32_bits(flow.source_ip) + sources
    rows[:, 17], rows[:, 18] = source >> 16, source & 0xFFFF
    return rows.astype(">u2").view(np.uint8).reshape(len(lengths), _HEADER + IPV6_MORE)


def _headers(
    flow: FlowSpec, protocol: int, lengths: NDArray[np.int64], sources: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Ethernet and IPv4 headers.

    `lengths`: Bytes of each frame without FCS, shape (n,).
    `sources`: Index of each frame's source address, shape (n,).

    Returns:
        Shape (n, 34).
    """
    rows = np.zeros((len(lengths), _HEADER // 2), dtype=np.int64)
    ethernet = mac(flow.destination_mac) + mac(flow.source_mac) + b"\x08\x00"
    rows[:, :7] = np.frombuffer(ethernet, dtype=">u2")
    source = int(ipaddress.IPv4Address(flow.source_ip)) + sources
    destination = int(ipaddress.IPv4Address(flow.destination_ip))
    rows[:, 7] = 0x4500
    rows[:, 8] = lengths - ETHERNET_BYTES
    rows[:, 10] = DONT_FRAGMENT
    rows[:, 11] = TTL << 8 | protocol
    rows[:, 13], rows[:, 14] = source >> 16, source & 0xFFFF
    rows[:, 15], rows[:, 16] = destination >> 16, destination & 0xFFFF
    rows[:, 12] = folded(rows[:, 7:].sum(axis=1))
    return rows.astype(">u2").view(np.uint8).reshape(len(lengths), _HEADER)


def load_frames(
    flow: FlowSpec,
    pattern: Sequence[int],
    area: NDArray[np.uint8],
    *,
    udp: bool = False,
    tcp: bool = False,
    count: int = 0,
) -> NDArray[np.int64]:
    """Write one load frame into every row of an area; sizes and 5-tuples cycle with the rows.

    `pattern`: Frame sizes with FCS in sending order.
    `area`: Zeroed room for the frames, shape (slots, at least the largest size without FCS).
    `tcp`: Whether they are TCP segments, which belong to no connection.
    `count`: 5-tuples; 0: one for each source address of the flow.

    Returns:
        Bytes of each frame without FCS, shape (slots,).
    """
    slots = np.arange(len(area))
    lengths = np.asarray(pattern, dtype=np.int64)[slots % len(pattern)] - FCS_BYTES
    sources, rows = FlowTuples.of(flow, count).places(slots)
    behind = _HEADER + IPV6_MORE * flow.ipv6
    protocol = TCP if tcp else UDP if udp or flow.ipv6 else LOAD_PROTOCOL
    area[:, :behind] = (_headers_ipv6 if flow.ipv6 else _headers)(flow, protocol, lengths, sources)
    if protocol == LOAD_PROTOCOL:
        return lengths
    addresses = _last_32_bits(flow.source_ip) + sources
    ports = load_ports(addresses, rows)
    header = np.zeros((len(area), (TCP_BYTES if tcp else UDP_BYTES) // 2), dtype=np.int64)
    header[:, 0] = ports
    if tcp:
        header[:, 1:_TCP_CHECKSUM] = _TCP_WORDS
        header[:, _TCP_CHECKSUM] = _tcp_checksum(fixed_sum(flow, TCP), addresses, lengths - behind, ports)
    else:
        header[:, 1] = UDP_LOAD_PORT
        header[:, 2] = lengths - behind
        if flow.ipv6:
            header[:, 3] = _udp_checksum(fixed_sum(flow), addresses, lengths - behind, ports + UDP_LOAD_PORT)
    area[:, behind : behind + 2 * header.shape[1]] = header.astype(">u2").view(np.uint8).reshape(len(area), -1)
    return lengths


def _tcp_checksum(
    fixed: int, addresses: NDArray[np.int64], lengths: NDArray[np.int64], ports: NDArray[np.int64]
) -> NDArray[np.int64]:
    """TCP checksums of load frames; arguments as of `_udp_checksum`, with the source ports."""
    return folded(fixed + sum(_TCP_WORDS) + (addresses >> 16) + (addresses & 0xFFFF) + lengths + ports)


def _udp_checksum(
    fixed: int, addresses: NDArray[np.int64], lengths: NDArray[np.int64], more: NDArray[np.int64]
) -> NDArray[np.int64]:
    """UDP checksums of IPv6 datagrams.

    `fixed`: Of `fixed_sum`.
    `addresses`: Last 32 bits of the source addresses.
    `lengths`: Of the datagrams, in bytes.
    `more`: Sum of the ports and of what is in the payload.
    """
    found = folded(fixed + (addresses >> 16) + (addresses & 0xFFFF) + 2 * lengths + more)
    return np.where(found == 0, 0xFFFF, found)


class TupleWriter:
    """Gives load frames that were written before the 5-tuples of other numbers; their checksums change with them."""

    def __init__(self, flow: FlowSpec, count: int, area: NDArray[np.uint8], *, udp: bool, tcp: bool = False) -> None:
        """Take the frames as they are.

        `area`: Frames as `load_frames` wrote them, shape (slots, bytes).
        """
        self._tuples, self._ports, self._tcp, self._ipv6 = FlowTuples.of(flow, count), udp or tcp, tcp, flow.ipv6
        self._first = _last_32_bits(flow.source_ip)
        self._fixed_above = fixed_sum(flow, TCP if tcp else UDP)
        behind = _HEADER + IPV6_MORE * flow.ipv6
        at = ETHERNET_BYTES + (4 if flow.ipv6 else 2)
        inside = area[:, at : at + 2].view(">u2")[:, 0].astype(np.int64)
        self._lengths = inside - (0 if flow.ipv6 else IPV4_BYTES)
        self._above = area[:, behind : behind + (TCP_BYTES if tcp else UDP_BYTES)].view(">u2")
        if flow.ipv6:
            self._words = area[:, _SOURCE_6_OFFSET : _SOURCE_6_OFFSET + 4].view(">u2")
            return
        self._words = area[:, _CHECKSUM_OFFSET : _CHECKSUM_OFFSET + 6].view(">u2")
        words = area[:, ETHERNET_BYTES:_HEADER].view(">u2").astype(np.int64)
        words[:, [5, 6, 7]] = 0  # checksum and source address
        self._fixed = words.sum(axis=1)

    def write(self, start: int, end: int, number: int) -> None:
        """Write the 5-tuples from one number on into the frames of some slots."""
        sources, rows = self._tuples.places(np.arange(number, number + end - start))
        addresses = self._first + sources
        high, low = addresses >> 16, addresses & 0xFFFF
        words, above, lengths = self._words[start:end], self._above[start:end], self._lengths[start:end]
        if self._ipv6:
            words[:, 0], words[:, 1] = high, low
        else:
            words[:, 0] = folded(self._fixed[start:end] + high + low)
            words[:, 1], words[:, 2] = high, low
        if not self._ports and not self._ipv6:
            return
        above[:, 0] = ports = load_ports(addresses, rows)
        if self._tcp:
            above[:, _TCP_CHECKSUM] = _tcp_checksum(self._fixed_above, addresses, lengths, ports)
        elif self._ipv6:
            above[:, 3] = _udp_checksum(self._fixed_above, addresses, lengths, ports + UDP_LOAD_PORT)


class ProbeFrames:
    """The probe frames of one flow: same path and sizes as the load, distinguished by protocol and number."""

    def __init__(self, flow: FlowSpec, pattern: Sequence[int], mark: int = 0, *, count: int = 0) -> None:
        """Make the frames.

        `mark`: A number of 32 bits; 0 for that of probes.
        `count`: 5-tuples; 0: one for each source address of the flow.
        """
        self._pattern = tuple(pattern)
        self._tuples = FlowTuples.of(flow, count)
        self._first = _last_32_bits(flow.source_ip)
        self._behind = _HEADER + IPV6_MORE * flow.ipv6
        self._ipv6 = flow.ipv6
        self._frames: dict[int, bytearray] = {}
        self._fixed: dict[int, int] = {}
        for size in set(pattern):
            length = size - FCS_BYTES
            marked = struct.pack("!I", mark) if mark else PROBE_MARK
            one = np.array([length]), np.array([0])
            if flow.ipv6:
                header = _headers_ipv6(flow, PROBE_PROTOCOL, *one)[0].tobytes()
                contents = sum(struct.unpack("!HH", marked))
                self._fixed[size] = fixed_sum(flow) + 2 * (length - self._behind) + PROBE_PORT + contents
            else:
                header = _headers(flow, PROBE_PROTOCOL, *one)[0].tobytes()
                words = struct.unpack_from("!10H", header, ETHERNET_BYTES)
                self._fixed[size] = sum(words) - sum(words[5:8])  # without checksum and source address
            # a zero UDP checksum means that there is none
            udp = struct.pack("!HHHH", PROBE_PORT, PROBE_PORT, length - self._behind, 0)
            frame = header + udp + marked
            self._frames[size] = bytearray(frame.ljust(length, b"\0"))

    def frame(self, number: int) -> bytearray:
        """The probe frame of that number, valid until the next call."""
        size = self._pattern[number % len(self._pattern)]
        frame = self._frames[size]
        row, source = divmod(number % self._tuples.count, self._tuples.sources)
        address = self._first + source
        port = PROBE_PORT + row
        total = self._fixed[size] + (address >> 16) + (address & 0xFFFF)
        if self._ipv6:
            total += port + (number >> 16) + (number & 0xFFFF)
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        if self._ipv6:
            struct.pack_into("!I", frame, _SOURCE_6_OFFSET, address)
            struct.pack_into("!H", frame, self._behind + 6, (total ^ 0xFFFF) or 0xFFFF)
        else:
            struct.pack_into("!HI", frame, _CHECKSUM_OFFSET, total ^ 0xFFFF, address)
        struct.pack_into("!H", frame, self._behind, port)
        struct.pack_into("!I", frame, self._behind + UDP_BYTES + 4, number)
        return frame

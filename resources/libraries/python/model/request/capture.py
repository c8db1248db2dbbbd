"""Frames of a packet capture, pcap or pcapng, as the load of a test. Pure.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_CAPTURED_PACKETS

SMALLEST, LARGEST = 60, 9014
"""Bytes of an Ethernet frame without FCS. Smaller ones were captured before the NIC padded them."""
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES = 14, 20, 40
IP4, IP6 = 4, 6
_IPV4, _IPV6 = 0x0800, 0x86DD
_TYPE, _TAG_BYTES = 12, 4
_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
"""Types of VLAN tags: 802.1Q, 802.1ad, and QinQ before that was a standard."""
_PCAP = {0xA1B2C3D4, 0xA1B23C4D}
_FCS_KNOWN, _FCS_WORDS = 0x04000000, 0xF0000000
"""Flag and length of the FCS above the link type of pcap."""
_FCS_KNOWN_EARLIER, _FCS_WORDS_EARLIER = 0x10000000, 0xE0000000
"""The same in drafts before 2023, of which files are still around."""
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
_END_OF_OPTIONS, _IF_FCSLEN, _EPB_FLAGS, _EPB_FCS = 0, 13, 2, 0x1E0
"""Options of an interface and of a packet, and the bits of the latter's that are the length of the FCS."""
_FCS_BYTES = 4
"""Of Ethernet. Files give the length in bits, bytes or 16-bit words, by version and writer; any but 0 is this one."""
_ETHERNET = 1
_LINK_TYPES = {0: "BSD loopback", 12: "raw IP", 101: "raw IP", 113: "Linux cooked", 276: "Linux cooked v2"}


@dataclass(frozen=True, slots=True)
class CapturedFrames:
    """Whole IP frames in the order of the file, each of at least 60 bytes, without VLAN tags and FCS."""

    frames: tuple[bytes, ...]
    ip_version: int

    @property
    def sources(self) -> tuple[int, ...]:
        """Number of each frame's source address, counted in order of appearance, from 0."""
        first, length = (ETHERNET_BYTES + 12, 4) if self.ip_version == IP4 else (ETHERNET_BYTES + 8, 16)
        numbers: dict[bytes, int] = {}
        return tuple(numbers.setdefault(frame[first : first + length], len(numbers)) for frame in self.frames)


def read_capture(data: bytes, name: str) -> CapturedFrames:
    """Read a capture.

    Raises:
        ConfigError: It is no capture of whole Ethernet frames of one version of IP, or is truncated or too large.
    """
    frames, versions = [], set()
    for number, (captured, original) in enumerate(_records(data, name), 1):
        if number > MAX_CAPTURED_PACKETS:
            raise ConfigError(f"{name}: more than {MAX_CAPTURED_PACKETS:,} packets; keep the first ones")
        where = f"{name}: packet {number}"
        if len(captured) < original:
            raise ConfigError(
                f"{where} has {len(captured)} of its {original} bytes; capture whole packets, without a snap length"
            )
        frame, length = _untagged(captured, original)
        if (most := max(length, len(frame))) > LARGEST:
            fix = "capture without segmentation offloads: ethtool -K INTERFACE tso off gro off"
            raise ConfigError(f"{where} has {most:,} bytes, more than a jumbo frame ({LARGEST:,}); {fix}")
        versions.add(_version(frame, where))
        if len(versions) > 1:
            is_ipv = f"is IPv{_version(frame, where)}, those before are not"
            raise ConfigError(f"{where} {is_ipv}; keep packets of one version of IP only")
        frames.append(frame.ljust(SMALLEST, b"\0"))
    if not frames:
        raise ConfigError(f"{name} has no packets")
    return CapturedFrames(tuple(frames), versions.pop())


def _untagged(frame: bytes, length: int) -> tuple[bytes, int]:
    """A frame and its original length without VLAN tags: like MAC addresses, those are of the plan."""
    behind = _TYPE
    while frame[behind : behind + 2] in _TAGS:
        behind += _TAG_BYTES
    return frame[:_TYPE] + frame[behind:], length - (behind - _TYPE)


def _version(frame: bytes, where: str) -> int:
    """The version of IP of a frame that is as long as its header says."""
    if len(frame) < ETHERNET_BYTES + IPV4_BYTES:
        raise ConfigError(f"{where} has {len(frame)} bytes, too few for an IP packet")
    kind = int.from_bytes(frame[12:14])
    inside = len(frame) - ETHERNET_BYTES
    if kind == _IPV4 and frame[ETHERNET_BYTES] >> 4 == IP4:
        header, total = 4 * (frame[ETHERNET_BYTES] & 15), int.from_bytes(frame[16:18])
        if IPV4_BYTES <= header <= total <= inside:
            return IP4
    elif kind == _IPV6 and frame[ETHERNET_BYTES] >> 4 == IP6 and inside >= IPV6_BYTES:
        total = IPV6_BYTES + int.from_bytes(frame[18:20])
        if total <= inside:
            return IP6
    else:
        raise ConfigError(f"{where} is no IP packet (EtherType 0x{kind:04x}); keep packets of one version of IP only")
    raise ConfigError(f"{where} has {inside} bytes behind the Ethernet header, its IP header says {total}")


def _records(data: bytes, name: str) -> Iterator[tuple[bytes, int]]:
    """Bytes and original length of each packet."""
    magic = data[:4]
    for order in "<>":
        if len(magic) == struct.calcsize("I"):
            (number,) = struct.unpack(f"{order}I", magic)
            if number in _PCAP:
                return _pcap(data, order, name)
            if number == _SECTION:
                return _pcapng(data, name)
    raise ConfigError(f"{name} is no packet capture: neither pcap nor pcapng")


def _check_link(kind: int, name: str) -> None:
    if kind != _ETHERNET:
        found = _LINK_TYPES.get(kind, "unknown")
        raise ConfigError(f"{name}: link type {kind} ({found}), not Ethernet (1); capture on an Ethernet interface")


def _part(data: bytes, start: int, length: int, name: str) -> bytes:
    if start + length > len(data):
        raise ConfigError(f"{name} is truncated: {len(data):,} bytes, and what begins at {start:,} has {length:,}")
    return data[start : start + length]


def _pcap(data: bytes, order: str, name: str) -> Iterator[tuple[bytes, int]]:
    header = struct.Struct(f"{order}IHHiIII")
    link = header.unpack(_part(data, 0, header.size, name))[6]
    _check_link(link & 0xFFFF, name)
    fcs = bool(link & (_FCS_WORDS if link & _FCS_KNOWN else _FCS_WORDS_EARLIER if link & _FCS_KNOWN_EARLIER else 0))
    place, record = header.size, struct.Struct(f"{order}IIII")
    while place < len(data):
        _, _, captured, original = record.unpack(_part(data, place, record.size, name))
        yield _without_fcs(_part(data, place + record.size, captured, name), original, fcs=fcs)
        place += record.size + captured


def _pcapng(data: bytes, name: str) -> Iterator[tuple[bytes, int]]:
    order, place = "<", 0
    has_fcs: list[bool] = []  # by interface
    while place < len(data):
        head = _part(data, place, 12, name)
        if int.from_bytes(head[:4]) == _SECTION:
            order = "<" if int.from_bytes(head[8:], "little") == _BYTE_ORDER else ">"
            has_fcs.clear()
        kind, length = struct.unpack(f"{order}II", head[:8])
        if length < len(head) or length % 4:
            raise ConfigError(f"{name}: the block at {place:,} has an invalid length, {length:,}")
        block = _part(data, place, length, name)
        interface = struct.unpack(f"{order}I", _part(block, 8, 4, name))[0] if kind == _ENHANCED else 0
        if kind in (_ENHANCED, _SIMPLE) and interface >= len(has_fcs):
            raise ConfigError(f"{name}: a packet at {place:,} before its interface is described")
        if kind == _INTERFACE:
            _check_link(struct.unpack_from(f"{order}H", _part(block, 8, 2, name))[0], name)
            has_fcs.append(bool(_option(block, 16, _IF_FCSLEN, order)))
        elif kind == _ENHANCED:
            captured, original = struct.unpack(f"{order}II", _part(block, 20, 8, name))
            frame = _part(block, 28, captured, name)
            flags = _option(block, 28 + captured + -captured % 4, _EPB_FLAGS, order)
            yield _without_fcs(frame, original, fcs=bool(flags & _EPB_FCS) or has_fcs[interface])
        elif kind == _SIMPLE:
            (original,) = struct.unpack(f"{order}I", _part(block, 8, 4, name))
            yield _without_fcs(block[12 : min(12 + original, length - 4)], original, fcs=has_fcs[0])
        place += length


def _option(block: bytes, place: int, wanted: int, order: str) -> int:
    """Number in an option of a block whose options begin at a place; 0 where it has none."""
    while place + 8 <= len(block):  # the length of the block follows
        code, length = struct.unpack_from(f"{order}HH", block, place)
        if code == wanted:
            return int.from_bytes(block[place + 4 : place + 4 + length], "little" if order == "<" else "big")
        if code == _END_OF_OPTIONS:
            break
        place += 4 + length + -length % 4
    return 0


def _without_fcs(frame: bytes, original: int, *, fcs: bool) -> tuple[bytes, int]:
    """A frame and its original length, without the FCS that both have where the file says so."""
    cut = min(_FCS_BYTES, len(frame)) * fcs
    return frame[: len(frame) - cut], original - cut

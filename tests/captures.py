"""Packet captures, made for tests."""

import socket
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

_MACS = bytes.fromhex("0a00000000020a0000000001")


def ipv4(protocol: int, contents: bytes, *, source: str = "192.0.2.1", fragment: int = 0x4000, ttl: int = 3) -> bytes:
    """An Ethernet frame; the checksum of IPv4 is wrong, as where an interface computes it."""
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(contents), 7, fragment, ttl, protocol, 0xDEAD)
    return _MACS + b"\x08\x00" + header + socket.inet_aton(source) + socket.inet_aton("198.51.100.9") + contents


def ipv6(protocol: int, contents: bytes, *, source: str = "2001:db8::1") -> bytes:
    """An Ethernet frame."""
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, "2001:db8::9")
    return _MACS + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(contents), protocol, 3) + ends + contents


def udp(payload: bytes, checksum: int = 1) -> bytes:
    """A datagram; a checksum other than 0 is wrong."""
    return struct.pack("!HHHH", 5000, 53, 8 + len(payload), checksum) + payload


def tcp(payload: bytes) -> bytes:
    """A segment with a wrong checksum."""
    return struct.pack("!HHIIBBHHH", 40000, 443, 1, 1, 0x50, 0x18, 500, 1, 0) + payload


MIX = (
    ipv4(17, udp(b"a" * 30)),
    ipv4(6, tcp(b"b" * 1001), source="192.0.2.2"),
    ipv4(1, bytes.fromhex("0800f7ff00000000")),
    ipv4(6, tcp(b"")),
    ipv4(17, udp(b"c" * 501, checksum=0), source="192.0.2.3"),
    ipv4(6, tcp(b"d" * 1460), source="192.0.2.2"),
    ipv4(132, b"e" * 77),
)
"""Protocols, sizes and hosts of all kinds: 7 frames of 60 to 1514 bytes."""
MIX6 = (ipv6(17, udp(b"a" * 30)), ipv6(6, tcp(b"b" * 1001), source="2001:db8::2"), ipv6(58, b"\x80\0\1\1" + b"c" * 61))


def with_fcs(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The same frames with padding and FCS, as some interfaces and recorders keep them."""
    padded = (frame.ljust(60, b"\0") for frame in frames)
    return tuple(frame + zlib.crc32(frame).to_bytes(4, "little") for frame in padded)


def tagged(frame: bytes, *tags: int) -> bytes:
    """A frame with VLAN tags of these types."""
    return frame[:12] + b"".join(struct.pack("!HH", kind, 0x6000 + kind % 4000) for kind in tags) + frame[12:]


def pcap(
    frames: Sequence[bytes],
    *,
    link_type: int = 1,
    lengths: Sequence[int] = (),
    order: str = "<",
    magic: int = 0xA1B2C3D4,
) -> bytes:
    """A file in the format of tcpdump; lengths are the original ones, and the link type has what is above it."""
    records = b"".join(
        struct.pack(f"{order}IIII", 0, number, len(frame), length) + frame
        for number, (frame, length) in enumerate(zip(frames, lengths or map(len, frames), strict=True))
    )
    return struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link_type) + records


def pcapng(
    frames: Sequence[bytes],
    *,
    link_type: int = 1,
    order: str = "<",
    fcs_bits: int | None = None,
    flags: int | None = None,
    simple: bool = False,
) -> bytes:
    """A file in the format of Wireshark."""

    def padded(contents: bytes) -> bytes:
        return contents + bytes(-len(contents) % 4)

    def block(kind: int, contents: bytes) -> bytes:
        contents = padded(contents)
        length = struct.pack(f"{order}I", 12 + len(contents))
        return struct.pack(f"{order}I", kind) + length + contents + length

    def options(code: int, value: bytes) -> bytes:
        each = [(1, b"comment"), (code, value), (0, b"")]
        return b"".join(struct.pack(f"{order}HH", kind, len(text)) + padded(text) for kind, text in each)

    head = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    fcs = b"" if fcs_bits is None else options(13, bytes([fcs_bits]))
    head += block(1, struct.pack(f"{order}HHI", link_type, 0, 0) + fcs)
    more = b"" if flags is None else options(2, struct.pack(f"{order}I", flags))
    if simple:
        return head + b"".join(block(3, struct.pack(f"{order}I", len(frame)) + frame) for frame in frames)
    return head + b"".join(
        block(6, struct.pack(f"{order}IIIII", 0, 0, number, len(frame), len(frame)) + padded(frame) + more)
        for number, frame in enumerate(frames)
    )


def packets_of(file: Path) -> list[bytes]:
    """Packets of a file of tcpdump on this machine, without a last one that is not yet whole."""
    data, place, found = file.read_bytes(), 24, []
    while place + 16 <= len(data):
        length = int.from_bytes(data[place + 8 : place + 12], "little")
        if place + 16 + length > len(data):
            break
        found.append(data[place + 16 : place + 16 + length])
        place += 16 + length
    return found

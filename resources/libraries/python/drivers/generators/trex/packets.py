"""Packets of a flow as bytes. Pure."""

import struct
from ipaddress import IPv4Address

from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.traffic import LoadPackets, ProbePackets

FCS_BYTES = 4
TAG_BYTES = 4
ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
STAMP_BYTES = 16
"""The end of a probe, which the server overwrites with number and time."""
SOURCE_OFFSET = 12
"""Of the source address in the IPv4 header."""
_VLAN, _IPV4 = 0x8100, 0x0800
_DONT_FRAGMENT = 0x4000


def ipv4_offset(flow: Flow) -> int:
    """Where the IPv4 header of a flow's packets begins."""
    return ETHERNET_BYTES + (0 if flow.vlan is None else TAG_BYTES)


def load_packet(flow: Flow, frame_bytes: int, packets: LoadPackets) -> bytes:
    """A packet of the load, with the first of the flow's source addresses.

    Args:
        flow: Addresses and VLAN.
        frame_bytes: L2 size with FCS, without the VLAN tag: what an NF behind the tagged cable sees.
        packets: What they are made of.

    Returns:
        Without FCS.
    """
    header = _headers(flow, frame_bytes, packets.protocol, packets.ttl, packets.dscp)
    return header.ljust(_on_the_cable(flow, frame_bytes), b"\0")


def probe_packet(flow: Flow, frame_bytes: int, packets: ProbePackets) -> bytes:
    """A probe, with the first of the flow's source addresses; arguments as of `load_packet`."""
    header = _headers(flow, frame_bytes, packets.protocol, packets.ttl, packets.dscp)
    length = frame_bytes - FCS_BYTES - ETHERNET_BYTES - IPV4_BYTES
    # A checksum of zero means that there is none.
    header += struct.pack("!HHHH", packets.port, packets.port, length, 0)
    return header.ljust(_on_the_cable(flow, frame_bytes), b"\0")


def _on_the_cable(flow: Flow, frame_bytes: int) -> int:
    return frame_bytes - FCS_BYTES + (0 if flow.vlan is None else TAG_BYTES)


def _headers(flow: Flow, frame_bytes: int, protocol: int, ttl: int, dscp: int) -> bytes:
    addresses = bytes.fromhex((flow.destination_mac + flow.source_mac).replace(":", ""))
    tag = b"" if flow.vlan is None else struct.pack("!HH", _VLAN, flow.vlan)
    length = frame_bytes - FCS_BYTES - ETHERNET_BYTES
    words = struct.pack("!BBHHHBB", 0x45, dscp << 2, length, 0, _DONT_FRAGMENT, ttl, protocol)
    ends = IPv4Address(flow.source_ip).packed + IPv4Address(flow.destination_ip).packed
    checksum = checksum_of(words + b"\0\0" + ends)
    return addresses + tag + struct.pack("!H", _IPV4) + words + struct.pack("!H", checksum) + ends


def checksum_of(header: bytes) -> int:
    """The Internet checksum of an even number of bytes; 0 for a header that has the right one in it."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

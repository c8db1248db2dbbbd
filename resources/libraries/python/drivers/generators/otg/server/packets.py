"""Headers of a flow as bytes, one for each packet until they repeat. Pure."""

import math
import struct
from collections.abc import Sequence

from resources.libraries.python.drivers.generators.otg.server.schema import (
    MOST_VALUES,
    FieldPattern,
    Header,
)
from resources.libraries.python.errors import ConfigError

FCS_BYTES = 4
_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100
_UDP = 17
_ORDERS = (
    "ethernet ipv4", "ethernet ipv4 udp", "ethernet ipv6", "ethernet ipv6 udp",
    "ethernet vlan ipv4", "ethernet vlan ipv4 udp", "ethernet vlan ipv6", "ethernet vlan ipv6 udp",
)  # fmt: skip
"""Stacks of headers. One VLAN tag at most: the kernel takes only one from a frame that arrives."""


def headers(packet: Sequence[Header], frame_bytes: int, place: str) -> list[bytes]:
    """Return the headers of a flow's packets, which repeat in this order.

    Lengths and checksums are those of a frame whose payload has the sum zero.

    Args:
        packet: The stack of headers.
        frame_bytes: FlowSize with FCS.
        place: Of the stack in the configuration, for messages.

    Raises:
        ConfigError: The stack is another one, or its values repeat too late.
    """
    stack = " ".join(header.chosen for header in packet)
    if stack not in _ORDERS:
        raise ConfigError(f"{place}: headers can be {', '.join(_ORDERS)}, not {stack}")
    given = {header.chosen: getattr(header, header.chosen) for header in packet}
    values = _values(given)
    count = math.lcm(*map(len, values.values()))
    if count > MOST_VALUES:
        raise ConfigError(f"{place}: its values make {count:,} different headers, at most {MOST_VALUES} are possible")
    return [
        _bytes(given, {name: row[index % len(row)] for name, row in values.items()}, frame_bytes)
        for index in range(count)
    ]


def _values(given: dict[str, object]) -> dict[str, list[int]]:
    """Values of all fields by `header.field`."""
    found = {}
    for name, header in given.items():
        for field in type(header).model_fields:  # type: ignore[attr-defined]
            pattern: FieldPattern[int] = getattr(header, field)
            found[f"{name}.{field}"] = pattern.numbers(_BITS.get((name, field), 16))
    return found


_BITS = {
    ("ethernet", "src"): 48, ("ethernet", "dst"): 48, ("vlan", "priority"): 3, ("vlan", "id"): 12,
    ("ipv4", "time_to_live"): 8, ("ipv4", "protocol"): 8, ("ipv4", "src"): 32, ("ipv4", "dst"): 32,
    ("ipv6", "hop_limit"): 8, ("ipv6", "next_header"): 8, ("ipv6", "src"): 128, ("ipv6", "dst"): 128,
}  # fmt: skip


def _bytes(given: dict[str, object], value: dict[str, int], frame_bytes: int) -> bytes:
    kind = _IPV4 if "ipv4" in given else _IPV6
    made = value["ethernet.dst"].to_bytes(6) + value["ethernet.src"].to_bytes(6)
    if "vlan" in given:
        made += struct.pack("!HH", _VLAN, value["vlan.priority"] << 13 | value["vlan.id"])
    made += struct.pack("!H", kind)
    network_bytes = frame_bytes - FCS_BYTES - len(made)
    by_udp = "udp" in given
    if kind == _IPV4:
        ends = value["ipv4.src"].to_bytes(4) + value["ipv4.dst"].to_bytes(4)
        protocol = _UDP if by_udp else value["ipv4.protocol"]
        first = struct.pack("!BBHHHBB", 0x45, 0, network_bytes, 0, 0x4000, value["ipv4.time_to_live"], protocol)
        made += first + struct.pack("!H", checksum(first + ends)) + ends
        transport_bytes = network_bytes - 20
    else:
        ends = value["ipv6.src"].to_bytes(16) + value["ipv6.dst"].to_bytes(16)
        transport_bytes = network_bytes - 40
        following = _UDP if by_udp else value["ipv6.next_header"]
        made += struct.pack("!IHBB", 6 << 28, transport_bytes, following, value["ipv6.hop_limit"]) + ends
    if by_udp:
        udp = struct.pack("!HHH", value["udp.src_port"], value["udp.dst_port"], transport_bytes)
        pseudo = ends + struct.pack("!HH", _UDP, transport_bytes)
        made += udp + struct.pack("!H", checksum(pseudo + udp) or 0xFFFF)
    return made


def checksum(content: bytes) -> int:
    """Return the Internet checksum of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF

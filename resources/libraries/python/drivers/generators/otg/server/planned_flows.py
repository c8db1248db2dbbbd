"""Flows of a configuration, with the headers of each flow as bytes. Pure."""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resources.libraries.python.drivers.generators.builtin.given_frames import LOAD_PAYLOAD_BYTES, PAYLOAD_BYTES
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.otg.server.schema import (
    LONGEST_S,
    MOST_VALUES,
    WORDS,
    FieldPattern,
    Header,
    OtgConfig,
    OtgFlow,
    RequestedRate,
)
from resources.libraries.python.errors import ConfigError

_LINE_BYTES = 20
"""Preamble and gap between frames."""
_BITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_DEFAULT_PPS = 1000
_PROBE_PPS = 1000.0
_LATE_S, _LITTLE_LATE_S = 5.0, 0.1
_FEWEST_PROBES, _MOST_PROBES = 100, 60_000
"""Packets of a flow whose latency is measured."""


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """A flow as the generator sends it."""

    name: str
    tx_port: str
    rx_port: str
    spec: FlowSpec
    frame_bytes: int
    pps: float
    duration_s: float
    exact: bool
    """Whether all packets are sent though it takes longer."""
    latency: bool
    reported: bool
    """Whether its metrics are enabled."""

    @property
    def trial(self) -> TrialSpec:
        """Trial of its worker; the sum of load and probes is the number of packets asked for."""
        packets = round(self.pps * self.duration_s)
        probe_pps = (
            min(self.pps, max(_PROBE_PPS, _FEWEST_PROBES / self.duration_s), _MOST_PROBES / self.duration_s)
            if self.latency
            else 0.0
        )
        load = packets - round(probe_pps * self.duration_s)
        late_s = self.duration_s + _LATE_S if self.exact else _LITTLE_LATE_S
        load_pps = load / self.duration_s
        return TrialSpec(load_pps, self.duration_s, (self.frame_bytes,), probe_pps, progress=True, late_s=late_s)


def planned_flows(config: OtgConfig, speeds_bps: Mapping[str, float | None], first_mark: int) -> list[PlannedFlow]:
    """Return the flows of a configuration.

    Args:
        config: The configuration.
        speeds_bps: Speed of each served port by its location; None where it is unknown.
        first_mark: Mark of the first flow's frames, an even number.

    Raises:
        ConfigError: A name or location is unknown or repeated, or the generator cannot send a flow; the text names the
            field.
    """
    for kind, names in (
        ("ports", [port.name for port in config.ports]),
        ("ports", [port.location for port in config.ports]),
        ("flows", [flow.name for flow in config.flows]),
    ):
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ConfigError(f"{kind}[{index}]: duplicate name '{name}'")
    for index, port in enumerate(config.ports):
        if port.location not in speeds_bps:
            raise ConfigError(f"ports[{index}].location: '{port.location}' is not served ({', '.join(speeds_bps)})")
    locations = {port.name: port.location for port in config.ports}
    return [
        _planned(flow, f"flows[{index}]", locations, speeds_bps, (first_mark + 2 * index) & 0xFFFFFFFF)
        for index, flow in enumerate(config.flows)
    ]


FCS_BYTES = 4
_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100
_TRANSPORTS = {"udp": 17, "tcp": 6}
_ORDERS = tuple(
    f"{link} {network}{transport}"
    for link in ("ethernet", "ethernet vlan")
    for network in ("ipv4", "ipv6")
    for transport in ("", " udp", " tcp")
)
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
            found[f"{name}.{field}"] = pattern.numbers(_FIELD_BITS.get((name, field), 16))
    return found


_FIELD_BITS = {
    ("ethernet", "src"): 48, ("ethernet", "dst"): 48, ("vlan", "priority"): 3, ("vlan", "id"): 12,
    ("ipv4", "time_to_live"): 8, ("ipv4", "protocol"): 8, ("ipv4", "src"): 32, ("ipv4", "dst"): 32,
    ("ipv6", "hop_limit"): 8, ("ipv6", "next_header"): 8, ("ipv6", "src"): 128, ("ipv6", "dst"): 128,
    ("tcp", "seq_num"): 32, ("tcp", "ack_num"): 32,
}  # fmt: skip
_TCP_FLAGS = ("ecn_ns", "ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack", "ctl_psh", "ctl_rst", "ctl_syn", "ctl_fin")
"""Of one bit each, the highest first."""
_FIELD_BITS |= {("tcp", flag): 1 for flag in _TCP_FLAGS}


def _bytes(given: dict[str, object], value: dict[str, int], frame_bytes: int) -> bytes:
    kind = _IPV4 if "ipv4" in given else _IPV6
    made = value["ethernet.dst"].to_bytes(6) + value["ethernet.src"].to_bytes(6)
    if "vlan" in given:
        made += struct.pack("!HH", _VLAN, value["vlan.priority"] << 13 | value["vlan.id"])
    made += struct.pack("!H", kind)
    network_bytes = frame_bytes - FCS_BYTES - len(made)
    transport = next((name for name in _TRANSPORTS if name in given), None)
    if kind == _IPV4:
        ends = value["ipv4.src"].to_bytes(4) + value["ipv4.dst"].to_bytes(4)
        protocol = _TRANSPORTS[transport] if transport else value["ipv4.protocol"]
        first = struct.pack("!BBHHHBB", 0x45, 0, network_bytes, 0, 0x4000, value["ipv4.time_to_live"], protocol)
        made += first + struct.pack("!H", checksum(first + ends)) + ends
        transport_bytes = network_bytes - 20
    else:
        ends = value["ipv6.src"].to_bytes(16) + value["ipv6.dst"].to_bytes(16)
        transport_bytes = network_bytes - 40
        protocol = _TRANSPORTS[transport] if transport else value["ipv6.next_header"]
        made += struct.pack("!IHBB", 6 << 28, transport_bytes, protocol, value["ipv6.hop_limit"]) + ends
    pseudo = ends + struct.pack("!HH", protocol, transport_bytes)
    if transport == "udp":
        udp = struct.pack("!HHH", value["udp.src_port"], value["udp.dst_port"], transport_bytes)
        made += udp + struct.pack("!H", checksum(pseudo + udp) or 0xFFFF)
    elif transport == "tcp":
        made += _tcp({name.removeprefix("tcp."): number for name, number in value.items()}, pseudo)
    return made


def _tcp(value: Mapping[str, int], pseudo: bytes) -> bytes:
    flags = sum(value[flag] << bit for bit, flag in enumerate(reversed(_TCP_FLAGS)))
    ends = struct.pack("!HHII", value["src_port"], value["dst_port"], value["seq_num"], value["ack_num"])
    first = ends + struct.pack("!HH", WORDS << 12 | flags, value["window"])
    return first + struct.pack("!HH", checksum(pseudo + first), 0)


def checksum(content: bytes) -> int:
    """Return the Internet checksum of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _planned(
    flow: OtgFlow, place: str, locations: Mapping[str, str], speeds_bps: Mapping[str, float | None], mark: int
) -> PlannedFlow:
    ends = flow.tx_rx.port
    for key, name in (("tx_name", ends.tx_name), ("rx_names", ends.rx)):
        if name not in locations:
            raise ConfigError(f"{place}.tx_rx.port.{key}: there is no port '{name}' ({', '.join(locations)})")
    size = flow.size.fixed
    made = headers(flow.packet, size, f"{place}.packet")
    latency = flow.metrics.enable and flow.metrics.latency.enable
    if size < (least := len(made[0]) + (PAYLOAD_BYTES if latency else LOAD_PAYLOAD_BYTES) + FCS_BYTES):
        stamped = " and latency" if latency else ""
        raise ConfigError(f"{place}.size.fixed: {size} bytes, with these headers{stamped} {least} or more are possible")
    tx, rx = locations[ends.tx_name], locations[ends.rx]
    pps = _pps(flow.rate, size, speeds_bps[tx], f"{place}.rate", tx)
    duration_s = _duration_s(flow, pps, place)
    return PlannedFlow(
        name=flow.name,
        tx_port=ends.tx_name,
        rx_port=ends.rx,
        spec=FlowSpec(tx, rx, "", "", "", len(made), "", tuple(each.hex() for each in made), mark),
        frame_bytes=size,
        pps=pps,
        duration_s=duration_s,
        exact=flow.duration.chosen == "fixed_packets",
        latency=latency,
        reported=flow.metrics.enable,
    )


def _pps(rate: RequestedRate, size: int, speed_bps: float | None, place: str, location: str) -> float:
    if (chosen := rate.chosen) == "pps":
        return float(rate.pps or _DEFAULT_PPS)
    if chosen == "percentage":
        if speed_bps is None:
            raise ConfigError(f"{place}.percentage: {location} reports no speed; give the rate in pps or bps")
        bps = speed_bps * (rate.percentage or 100.0) / 100
    else:
        bps = float(getattr(rate, chosen) or 10**9 / _BITS[chosen]) * _BITS[chosen]
    return bps / (8 * (size + _LINE_BYTES))


def _duration_s(flow: OtgFlow, pps: float, place: str) -> float:
    match flow.duration.chosen:
        case "fixed_packets":
            packets = flow.duration.fixed_packets.packets if flow.duration.fixed_packets else 1
            duration_s = packets / pps
            if duration_s > LONGEST_S:
                text = f"{packets:,} at {pps:,.6g} pps take {duration_s:,.0f} s, at most {LONGEST_S:,} s are possible"
                raise ConfigError(f"{place}.duration.fixed_packets.packets: {text}")
            return duration_s
        case "fixed_seconds":
            return flow.duration.fixed_seconds.seconds if flow.duration.fixed_seconds else 1.0
        case _:
            return float(LONGEST_S)

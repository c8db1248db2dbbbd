"""What a configuration asks of the generator, flow by flow. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from resources.libraries.python.drivers.generators.builtin.given_frames import PAYLOAD_BYTES
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.otg.server.packets import FCS_BYTES, headers
from resources.libraries.python.drivers.generators.otg.server.schema import LONGEST_S, OtgConfig, OtgFlow, RequestedRate
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
                raise ConfigError(f"{kind}[{index}]: '{name}' is there twice")
    for index, port in enumerate(config.ports):
        if port.location not in speeds_bps:
            raise ConfigError(f"ports[{index}].location: '{port.location}' is not served ({', '.join(speeds_bps)})")
    locations = {port.name: port.location for port in config.ports}
    return [
        _planned(flow, f"flows[{index}]", locations, speeds_bps, (first_mark + 2 * index) & 0xFFFFFFFF)
        for index, flow in enumerate(config.flows)
    ]


def _planned(
    flow: OtgFlow, place: str, locations: Mapping[str, str], speeds_bps: Mapping[str, float | None], mark: int
) -> PlannedFlow:
    ends = flow.tx_rx.port
    for key, name in (("tx_name", ends.tx_name), ("rx_names", ends.rx)):
        if name not in locations:
            raise ConfigError(f"{place}.tx_rx.port.{key}: there is no port '{name}' ({', '.join(locations)})")
    size = flow.size.fixed
    made = headers(flow.packet, size, f"{place}.packet")
    if size < (least := len(made[0]) + PAYLOAD_BYTES + FCS_BYTES):
        raise ConfigError(f"{place}.size.fixed: {size} bytes, with these headers {least} or more are possible")
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
        latency=flow.metrics.enable and flow.metrics.latency.enable,
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

"""Flows of a plan as OTG's, and OTG's metrics as the result of a trial. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from resources.libraries.python.drivers.generators.builtin.flow_results import flow_latency
from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, FlowLatency, Trial, TrialResult
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.names import GENERATOR

_PORT = 49191
"""Ports of all packets, as of the built-in generator's."""
_WINDOW = 0xFFFF
_TAG_BYTES = 4
_LONGEST_NS = 86_400 * 1e9
_SHORT = 0.005
"""Share of the packets asked for that may be missing before the generator is to blame."""
_LOAD, _PROBE = "load", "probe"
_OWN_NAME = re.compile(rf"[1-9]\d* ({'|'.join(Direction)}) [1-9]\d* ({_LOAD}|{_PROBE})")
"""Of a flow, as `sent_flows` names it, behind its sender."""
_SENDER = re.compile(r"([A-Za-z0-9-]+) ([1-9]\d{0,9})")
"""Name of a controller, and the ID of a process there."""


class ServerPort(NamedTuple):
    """A port: its name in configurations, and what the server calls it."""

    name: str
    location: str


def server_ports(plan: Plan, locations: Mapping[str, str]) -> dict[str, ServerPort]:
    """Return the ports of a plan's generator by interface. Instances that share a cable share the port, too.

    `locations`: locations by name of the port in the topology of a lab, else by interface; others have the name of the
    device, or their own.
    """
    return {
        port.interface: server_port(port.interface, None, locations)
        if port.nic is None
        else server_port(port.nic.port, port.nic.device, locations)
        for port in plan.ports(GENERATOR)
    }


def server_port(name: str, device: str | None, locations: Mapping[str, str]) -> ServerPort:
    """Return a port of the server: its location is that of the topology, else the device, else its name.

    `name`: Of the port in the topology of a lab, else of the interface.
    `device`: The kernel's name of the port; None where the topology has none.
    """
    return ServerPort(name, locations.get(name) or device or name)


@dataclass(frozen=True, slots=True)
class SentFlow:
    """One flow of OTG: a flow of the plan in one frame size, as load or as probes."""

    name: str
    flow: Flow
    frame_bytes: int
    pps: int
    sources: int
    probe: bool
    tcp: bool = False
    """Segments that belong to no connection instead of datagrams; probes are datagrams always."""


def sent_flows(flows: Sequence[Flow], trial: Trial, *, latency: bool, sender: str) -> list[SentFlow]:
    """Return the flows of a trial. OTG's rates are whole packets per second.

    `sender`: name of the controller and ID of its process, with a space between them: names of flows begin with it.

    Raises:
        Unsupported: The trial asks for something that OTG flows cannot do.
    """
    if trial.timeline_s is not None or trial.count_losses or trial.measure_gaps:
        raise Unsupported("an OTG server numbers no packets")
    if trial.on_off_s is not None:
        raise Unsupported("an OTG server sends no bursts")
    if (trial.frame.flows or 0) > (most := min(flow.sources for flow in flows)):
        raise Unsupported(f"{trial.frame.flows:,} flows: an OTG server is given as many source addresses, {most:,}")
    used = [flow for flow in flows if trial.only in (None, flow.direction)]
    total = sum(part.weight for part in trial.frame.parts)
    return [
        SentFlow(
            f"{sender} {flow.instance} {flow.direction} {part.frame_bytes} {kind}",
            flow,
            part.frame_bytes,
            pps,
            trial.frame.flows or flow.sources,
            kind == _PROBE,
            kind == _LOAD and trial.protocol is Protocol.TCP,
        )
        for flow in used
        for part in trial.frame.parts
        for kind, asked_pps in (
            (_LOAD, trial.load_pps / len(used) * part.weight / total),
            (_PROBE, trial.probe_pps * part.weight / total if latency else 0.0),
        )
        if (pps := round(asked_pps) or int(asked_pps > 0))
    ]


def sender_of(name: str) -> tuple[str, int] | None:
    """Controller and process that a flow was named after by `sent_flows`; None for a flow of another program."""
    controller, process, rest = ([*name.split(" ", 2), "", ""])[:3]
    found = _SENDER.fullmatch(f"{controller} {process}")
    return (controller, int(process)) if found and _OWN_NAME.fullmatch(rest) else None


def configuration(sent: Sequence[SentFlow], ports: Mapping[str, ServerPort], duration_s: float = 0.0) -> dict[str, Any]:
    """Return the configuration of a trial."""
    return {
        "ports": [port._asdict() for port in dict.fromkeys(ports.values())],
        "flows": [_flow(each, ports, duration_s) for each in sent],
    }


def _flow(sent: SentFlow, ports: Mapping[str, ServerPort], duration_s: float) -> dict[str, Any]:
    flow = sent.flow
    near, far = (ports[name].name for name in (flow.tx_interface, flow.rx_interface))
    version = "ipv6" if ":" in flow.source_ip else "ipv4"
    sources = {"start": flow.source_ip, "step": "::1" if version == "ipv6" else "0.0.0.1", "count": sent.sources}
    tag = [] if flow.vlan is None else [_header("vlan", id=_value(flow.vlan))]
    transport = _header("udp", src_port=_value(_PORT), dst_port=_value(_PORT))
    if sent.tcp:
        # As in the middle of a connection: a SYN would have each firewall on the path keep one half open.
        middle = {"seq_num": 1, "ack_num": 1, "ctl_ack": 1, "window": _WINDOW}
        transport = _header("tcp", **transport["udp"], **{name: _value(value) for name, value in middle.items()})
    return {
        "name": sent.name,
        "tx_rx": {"choice": "port", "port": {"tx_name": near, "rx_names": [far]}},
        "packet": [
            _header("ethernet", src=_value(flow.source_mac), dst=_value(flow.destination_mac)),
            *tag,
            _header(version, src={"choice": "increment", "increment": sources}, dst=_value(flow.destination_ip)),
            transport,
        ],
        "size": {"choice": "fixed", "fixed": sent.frame_bytes + _TAG_BYTES * len(tag)},
        "rate": {"choice": "pps", "pps": sent.pps},
        "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": duration_s}},
        "metrics": {"enable": True, "loss": True, "latency": {"enable": sent.probe}},
    }


def _header(choice: str, **fields: object) -> dict[str, Any]:
    return {"choice": choice, choice: fields}


def _value(value: object) -> dict[str, object]:
    return {"choice": "value", "value": value}


@dataclass(frozen=True, slots=True)
class OtgFigures:
    """Metrics of a flow from a server."""

    sent: int
    received: int
    running: bool
    latency_ns: tuple[float, float, float] | None
    """Minimum, mean and maximum."""


def figures(metrics: Mapping[str, Any], sent: Sequence[SentFlow]) -> dict[str, OtgFigures]:
    """Return figures by flow from snappi's metrics.

    Raises:
        CsitError: A flow or its counters are missing, or a latency is none.
    """
    found = {}
    for each in sent:
        row = metrics.get(each.name)
        if row is None or row.frames_tx is None or row.frames_rx is None:
            raise CsitError(f"the OTG server reports no counters of flow '{each.name}'")
        # snappi makes an empty object of what is not there.
        latency = row.latency if each.probe else None
        values = (latency.minimum_ns, latency.average_ns, latency.maximum_ns) if latency is not None else (None,)
        known = None if None in values else tuple(map(float, values))
        if known and not all(0 <= value <= _LONGEST_NS for value in known):
            raise CsitError(f"the OTG server reports a latency of flow '{each.name}' that is not below a day")
        found[each.name] = OtgFigures(
            int(row.frames_tx),
            int(row.frames_rx),
            row.transmit == "started",
            known,  # type: ignore[arg-type]
        )
    return found


def trial_result(
    trial: Trial,
    flows: Sequence[Flow],
    sent: Sequence[SentFlow],
    found: Mapping[str, OtgFigures],
    *,
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together the result of a trial."""
    planned = sum(each.pps * trial.duration_s for each in sent if not each.probe)
    offered = sum(found[each.name].sent for each in sent if not each.probe)
    short = bool(trial.load_pps) and offered < planned * (1 - _SHORT)
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=trial.duration_s,
        total_duration_s=total_duration_s,
        flows=tuple(_counts(flows, sent, found)),
        latency=tuple(_latencies(flows, sent, found)),
        generator_limited=short,
        note=f"the OTG server sent {offered:,} of {planned:,.0f} packets" if short else None,
    )


def _of(flow: Flow, sent: Sequence[SentFlow], *, probe: bool) -> list[SentFlow]:
    return [each for each in sent if each.flow == flow and each.probe is probe]


def _counts(flows: Sequence[Flow], sent: Sequence[SentFlow], found: Mapping[str, OtgFigures]) -> Iterator[FlowCount]:
    for flow in flows:
        rows = [found[each.name] for each in _of(flow, sent, probe=False)]
        yield FlowCount(
            instance=flow.instance,
            direction=flow.direction,
            sent=sum(row.sent for row in rows),
            received=sum(row.received for row in rows),
        )


def _latencies(
    flows: Sequence[Flow], sent: Sequence[SentFlow], found: Mapping[str, OtgFigures]
) -> Iterator[FlowLatency]:
    """Latencies have no percentiles: OTG has none."""
    for flow in flows:
        rows = [found[each.name] for each in _of(flow, sent, probe=True)]
        if not rows:
            continue
        known = [(row.received, row.latency_ns) for row in rows if row.latency_ns is not None and row.received]
        values = LatencyReport()
        if known:
            values = LatencyReport(
                min_ns=round(min(low for _, (low, _, _) in known)),
                mean_ns=sum(count * mean for count, (_, mean, _) in known) / sum(count for count, _ in known),
                max_ns=round(max(high for _, (_, _, high) in known)),
            )
        sent_all, received = sum(row.sent for row in rows), sum(row.received for row in rows)
        yield flow_latency(flow.instance, flow.direction, sent=sent_all, received=received, values=values)

"""From logs and counters of a run to the result of a trial. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from resources.libraries.python.drivers.generators.builtin.flow_results import flow_latency
from resources.libraries.python.drivers.generators.builtin.latency import report
from resources.libraries.python.drivers.generators.ditg.logs import (
    Packets,
    mean_one_way_ns,
    nothing,
    of_flows,
    one_way_ns,
)
from resources.libraries.python.drivers.generators.ditg.programs import SenderRun
from resources.libraries.python.drivers.generators.ditg.watch import Counters, PortReading
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import FlowCount, FlowLatency, Interval, Protocol, Trial, TrialResult

_INEXACT, _SHORT = 0.01, 0.05
"""Less than what was asked, relative: what is said, and what is the generator's limit. Alone on a CPU it kept rates of
500 to 16,000 packets per second within 3 %."""
_UNLOGGED = 0.001
_SAR_OFF = 0.02
_LEAST_INTERVAL_S = 0.5
"""The last reading may come just after the one before; what is shorter is counted with it."""


def trial_result(
    trial: Trial,
    flows: Sequence[Flow],
    readings: Sequence[PortReading],
    *,
    run: SenderRun,
    instances: Sequence[int],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what a run left.

    Args:
        trial: What was asked.
        flows: Of the plan, both directions.
        readings: Counters: before the run, each second of it, and after it.
        run: Logs, and what the activity reporter saw.
        instances: The service instance of each of D-ITG's flows.
        started_at: UTC, ISO 8601.
        total_duration_s: Wall time of the whole trial.
    """
    returned = nothing() if trial.protocol is Protocol.ICMP else run.returned
    flows_of = {one: [flow for flow, each in enumerate(instances, 1) if each == one] for one in instances}
    back = {instance: of_flows(returned, numbers) for instance, numbers in flows_of.items()}
    counts = tuple(_count(flow, readings[0].counters, readings[-1].counters) for flow in flows)
    sent = sum(count.sent for count in counts)
    duration_s = trial.duration_s * (sum(trial.on_off_s[:1]) / sum(trial.on_off_s) if trial.on_off_s else 1.0)
    # TCP offers what the other end takes.
    wanted = trial.load_pps * duration_s if trial.protocol is not Protocol.TCP else 0.0
    notes = []
    if sent < wanted * (1 - _INEXACT):
        notes.append(f"D-ITG offered {sent / duration_s:.1f} of {trial.load_pps:.1f} pps")
    if trial.protocol is Protocol.TCP:
        notes.append("counts include TCP's acknowledgements")
    elif trial.protocol is Protocol.ICMP:
        notes.append("D-ITG measures no delay of ICMP")
    else:
        notes += _unlogged(flows, counts, run.arrived)
    notes += _sar_differs(flows, readings, run.sender_pps)
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=trial.duration_s,
        total_duration_s=total_duration_s,
        flows=counts,
        latency=tuple(_latency(count, back[count.instance]) for count in counts if len(back[count.instance])),
        generator_limited=sent < wanted * (1 - _SHORT),
        note="; ".join(notes) or None,
        intervals=_intervals(trial, flows, readings[1:], returned),
        interface_sent=sent,
    )


def _count(flow: Flow, before: Counters, after: Counters) -> FlowCount:
    return FlowCount(
        instance=flow.instance,
        direction=flow.direction,
        sent=after[flow.tx_interface].tx_packets - before[flow.tx_interface].tx_packets,
        received=after[flow.rx_interface].rx_packets - before[flow.rx_interface].rx_packets,
    )


def _latency(count: FlowCount, returned: Packets) -> FlowLatency:
    values = report(one_way_ns(returned))
    return flow_latency(count.instance, count.direction, sent=count.sent, received=len(returned), values=values)


def _unlogged(flows: Sequence[Flow], counts: Sequence[FlowCount], arrived: Packets) -> list[str]:
    """Logs go by UDP, and may lack packets."""
    forward = [count for flow, count in zip(flows, counts, strict=True) if flow.direction == "forward"]
    received, logged = sum(count.received for count in forward), len(arrived)
    if logged >= received * (1 - _UNLOGGED):
        return []
    return [f"the log has {logged} of the {received} packets that arrived: delays are of those"]


def _sar_differs(flows: Sequence[Flow], readings: Sequence[PortReading], sender_pps: Sequence[float]) -> list[str]:
    """Two sources for one figure: the packets that left the sender, by counters and by the activity reporter."""
    first, last = readings[0].counters, readings[-1].counters
    ports = {flow.tx_interface for flow in flows if flow.direction == "forward"}
    counted = sum(last[port].tx_packets - first[port].tx_packets for port in ports)
    reported = sum(sender_pps)
    if not sender_pps or not counted or abs(reported - counted) <= _SAR_OFF * counted:
        return []
    return [f"sar reports {reported:.0f} packets sent, the interface counted {counted}"]


def _intervals(
    trial: Trial, flows: Sequence[Flow], readings: Sequence[PortReading], returned: Packets
) -> tuple[Interval, ...]:
    """Second by second, from the first packet on, as long as the trial was to send."""
    within = [each for each in readings if _since(readings, each) <= trial.duration_s + _LEAST_INTERVAL_S]
    if len(within) < 2:
        return ()
    delays = mean_one_way_ns(returned, [each.clock_s for each in within])
    return tuple(
        Interval(
            duration_s=_since((begin,), end),
            sent=_moved(flows, begin, end, "tx") / 2,
            received=_moved(flows, begin, end, "rx") / 2,
            delay_ns=delay_ns,
        )
        for (begin, end), delay_ns in zip(pairwise(within), delays, strict=True)
        if _since((begin,), end) >= _LEAST_INTERVAL_S
    )


def _since(readings: Sequence[PortReading], later: PortReading) -> float:
    return (later.clock_s - readings[0].clock_s) % 86400.0


def _moved(flows: Sequence[Flow], begin: PortReading, end: PortReading, way: str) -> int:
    """Packets of all flows of both ways that left (`tx`) or came (`rx`) between two readings."""
    if way == "tx":
        return sum(
            end.counters[flow.tx_interface].tx_packets - begin.counters[flow.tx_interface].tx_packets for flow in flows
        )
    return sum(
        end.counters[flow.rx_interface].rx_packets - begin.counters[flow.rx_interface].rx_packets for flow in flows
    )

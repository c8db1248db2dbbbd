"""What generators find out of a flow, as results of a trial. Apart from `arrivals`, as workers do not load models."""

from collections.abc import Mapping
from dataclasses import asdict

from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport, TimelineReport
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, FlowLatency, FlowTimeline, Gap
from resources.libraries.python.model.plan import Flow


def flow_latency(
    instance: int, direction: Direction, *, sent: int, received: int, values: LatencyReport | None
) -> FlowLatency:
    """Latency of a flow for the result of a trial.

    `sent`: Packets that were to be timed.
    `received`: Those that came.
    `values`: Nanoseconds; None where no packet was timed.
    """
    found = asdict(values or LatencyReport())
    return FlowLatency(instance=instance, direction=direction, sent=sent, received=received, **found)


def port_count(
    flow: Flow, before: Mapping[str, InterfaceCounters], after: Mapping[str, InterfaceCounters]
) -> FlowCount:
    """Packets of a flow by the counters of the ports, before and after it."""
    return FlowCount(
        instance=flow.instance,
        direction=flow.direction,
        sent=after[flow.tx_interface].tx_packets - before[flow.tx_interface].tx_packets,
        received=after[flow.rx_interface].rx_packets - before[flow.rx_interface].rx_packets,
    )


def flow_timeline(flow: Flow, found: TimelineReport, bin_s: float) -> FlowTimeline:
    """A worker's timeline of a flow as a result."""
    gaps = tuple(Gap(first=first, packets=count, begin_ns=begin, end_ns=end) for first, count, begin, end in found.gaps)
    columns = {**asdict(found), "gaps": gaps}
    return FlowTimeline(instance=flow.instance, direction=flow.direction, bin_s=bin_s, **columns)

"""What a trial of iperf3 came to: reports of both ends, and counters of the ports. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from resources.libraries.python.drivers.generators.iperf3 import command, run
from resources.libraries.python.drivers.generators.iperf3.run import DirectionReport, Reports, Second
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import (
    Direction,
    FlowCount,
    Interval,
    Protocol,
    SessionFigures,
    Trial,
    TrialResult,
)

_SHORT = 0.05
"""Of what was asked: less is the generator's fault."""

Counters = Mapping[str, InterfaceCounters]


def trial_result(
    trial: Trial,
    flows: Sequence[Flow],
    found: Sequence[Reports],
    *,
    before: Counters,
    after: Counters,
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what is known of a trial.

    Of UDP, packets are those of iperf3's own numbering. TCP has none: there they are those of the ports, which saw
    acknowledgements and the few packets by which both ends agree as well.

    Args:
        trial: As it was asked.
        flows: Of the plan, both ways.
        found: Of each service instance.
        before: Counters of the generator's ports before the run.
        after: The same afterwards.
        started_at: UTC, ISO 8601.
        total_duration_s: Wall time of all.
    """
    by_udp = command.protocol(trial) is Protocol.UDP
    of = {each.flow.instance: _ways(each, by_udp=by_udp) for each in found}
    counts = tuple(_count(flow, of[flow.instance].get(flow.direction), before, after) for flow in flows)
    sent_s = max(run.sent_for_s(each.client) for each in found)
    offered_pps = sum(count.sent for count in counts if count.direction in _data_ways(trial)) / sent_s
    short = by_udp and bool(trial.load_pps) and offered_pps < trial.load_pps * (1 - _SHORT)
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=sent_s,
        total_duration_s=total_duration_s,
        flows=counts,
        generator_limited=short,
        note=f"iperf3 offered {offered_pps:.0f} of {trial.load_pps:.0f} pps" if short else None,
        intervals=tuple(_intervals(trial, found, by_udp=by_udp)),
        sessions=tuple(
            SessionFigures(
                instance=instance,
                direction=direction,
                sessions=trial.sessions or 1,
                goodput_bps=way.goodput_bps,
                jitter_ns=way.jitter_ns,
                retransmits=way.retransmits,
            )
            for instance, ways in of.items()
            for direction, way in ways.items()
        ),
    )


def _data_ways(trial: Trial) -> tuple[Direction, ...]:
    return tuple(Direction)[: command.ways(trial)]


def _ways(each: Reports, *, by_udp: bool) -> dict[Direction, DirectionReport]:
    """Directions in which data went."""
    if not by_udp:
        return {Direction.FORWARD: run.tcp(each.client)}
    forward, reverse = run.udp(each.client, each.server)
    return {Direction.FORWARD: forward, Direction.REVERSE: reverse}


def _count(flow: Flow, way: DirectionReport | None, before: Counters, after: Counters) -> FlowCount:
    if way is not None and way.sent is not None and way.received is not None:
        sent, received = way.sent, way.received
    else:
        sent = after[flow.tx_interface].tx_packets - before[flow.tx_interface].tx_packets
        received = after[flow.rx_interface].rx_packets - before[flow.rx_interface].rx_packets
    return FlowCount(instance=flow.instance, direction=flow.direction, sent=sent, received=received)


def _intervals(trial: Trial, found: Sequence[Reports], *, by_udp: bool) -> Iterator[Interval]:
    """All instances together; TCP's bytes as the packets of the trial's size that they fill."""
    rows = zip(*(run.by_second(each.client, each.server, by_udp=by_udp) for each in found), strict=False)
    each_bytes = 1 if by_udp else command.payload_bytes(trial)
    for row in rows:
        yield Interval(
            duration_s=_mean_s(row),
            sent=sum(second.sent for second in row) / each_bytes,
            received=sum(second.received for second in row) / each_bytes,
            delay_ns=None,
        )


def _mean_s(row: Sequence[Second]) -> float:
    return sum(second.duration_s for second in row) / len(row)

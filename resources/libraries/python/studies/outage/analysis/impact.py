"""From the timelines of a trial to its impact on each instance."""

from collections.abc import Iterable, Iterator, Sequence

from resources.libraries.python.model.disturbance import Happened
from resources.libraries.python.model.trial import FlowTimeline, Gap
from resources.libraries.python.studies.outage.model.record import Delays, Impact, InstanceTrace

_IN_FLIGHT_NS = 2_000_000
"""The longest that packets sent before an event are taken to be still on their way when it happens."""
_SETTLED_NS = 50_000_000
"""After the end of the event and of all gaps, delays count as those after it."""
_SHOWN = 240
"""Bins of a trace."""
_NS = 1e9


def impacts(timelines: Iterable[FlowTimeline], happened: Happened) -> tuple[Impact, ...]:
    """Impact on each instance, in order.

    Args:
        timelines: Of all flows.
        happened: The event; of a trial without one, the time at which it would have begun.
    """
    return tuple(_impact(instance, row, happened) for instance, row in _by_instance(timelines))


def _by_instance(timelines: Iterable[FlowTimeline]) -> Iterator[tuple[int, list[FlowTimeline]]]:
    rows: dict[int, list[FlowTimeline]] = {}
    for timeline in timelines:
        rows.setdefault(timeline.instance, []).append(timeline)
    yield from sorted(rows.items())


def _impact(instance: int, row: Sequence[FlowTimeline], happened: Happened) -> Impact:
    began_ns = happened.began_ns
    from_ns = began_ns - min(_IN_FLIGHT_NS, _delays(row, None, began_ns).worst_ns or 0)
    lost = [_lost(line, from_ns, None) for line in row]
    gaps = [(line, gap) for line in row for gap in line.gaps if gap.end_ns is None or gap.end_ns >= from_ns]
    over_ns = max((gap.end_ns for _, gap in gaps if gap.end_ns is not None), default=began_ns)
    settled_ns = max(over_ns, happened.ended_ns) + _SETTLED_NS
    caused = filter(None, (_caused(line, from_ns, happened.ended_ns + _SETTLED_NS) for line in row))
    firsts_ns = [gap.end_ns for gap in caused]
    known_ns = [first_ns for first_ns in firsts_ns if first_ns is not None]
    is_over = all(gap.end_ns is not None for _, gap in gaps)
    is_back = bool(known_ns) and len(known_ns) == len(firsts_ns)
    return Impact(
        instance=instance,
        sent=sum(sum(line.sent) for line in row),
        lost=sum(lost),
        lost_before=sum(_lost(line, None, from_ns) for line in row),
        outage_s=max(count * _spacing_s(line) for count, line in zip(lost, row, strict=True)),
        gap_s=max((_length_s(line, gap) for line, gap in gaps), default=0.0),
        recovery_s=max(0.0, (over_ns - began_ns) / _NS) if is_over else None,
        first_packet_s=max(0.0, (max(known_ns) - began_ns) / _NS) if is_back else None,
        before=_delays(row, None, from_ns),
        during=_delays(row, from_ns, settled_ns),
        after=_delays(row, settled_ns, None),
        duplicates=sum(line.duplicates for line in row),
    )


def _length_s(line: FlowTimeline, gap: Gap) -> float:
    end_ns = line.begin_ns + round(len(line.sent) * line.bin_s * _NS) if gap.end_ns is None else gap.end_ns
    return max(0.0, (end_ns - gap.begin_ns) / _NS)


def _spacing_s(line: FlowTimeline) -> float:
    """Mean time between two packets that were sent."""
    sent = sum(line.sent)
    return len(line.sent) * line.bin_s / sent if sent else 0.0


def _caused(line: FlowTimeline, from_ns: int, to_ns: int) -> Gap | None:
    """The largest gap that reaches into the time of the event; None where there is none."""
    gaps = [gap for gap in line.gaps if gap.begin_ns < to_ns and (gap.end_ns is None or gap.end_ns >= from_ns)]
    return max(gaps, key=lambda gap: gap.packets, default=None)


def _bins(line: FlowTimeline, from_ns: int | None, to_ns: int | None) -> range:
    """Bins that begin in a period; the bin in which it begins belongs to it."""
    width_ns = line.bin_s * _NS
    first = 0 if from_ns is None else max(0, int((from_ns - line.begin_ns) // width_ns))
    last = len(line.sent) if to_ns is None else max(0, int((to_ns - line.begin_ns) // width_ns))
    return range(first, min(last, len(line.sent)))


def _lost(line: FlowTimeline, from_ns: int | None, to_ns: int | None) -> int:
    return sum(line.sent[index] - line.received[index] for index in _bins(line, from_ns, to_ns))


def _delays(row: Iterable[FlowTimeline], from_ns: int | None, to_ns: int | None) -> Delays:
    total, packets, worst = 0.0, 0, list[int]()
    for line in row:
        for index in _bins(line, from_ns, to_ns):
            mean_ns, longest_ns = line.delay_ns[index], line.worst_ns[index]
            if mean_ns is not None and longest_ns is not None:
                total += mean_ns * line.received[index]
                packets += line.received[index]
                worst.append(longest_ns)
    return Delays(mean_ns=total / packets if packets else None, worst_ns=max(worst, default=None))


def traces(timelines: Iterable[FlowTimeline], happened: Happened) -> tuple[InstanceTrace, ...]:
    """The course of a trial at each instance, in few bins."""
    return tuple(_trace(instance, row, happened) for instance, row in _by_instance(timelines))


def _trace(instance: int, row: Sequence[FlowTimeline], happened: Happened) -> InstanceTrace:
    begin_ns = row[0].begin_ns
    bins = min(len(line.sent) for line in row)
    step = max(1, -(-bins // _SHOWN))
    lost, sent, delays = list[int](), list[int](), list[float | None]()
    for first in range(0, bins, step):
        places = [(line, index) for line in row for index in range(first, min(first + step, bins))]
        arrived = sum(line.received[index] for line, index in places)
        total = sum((line.delay_ns[index] or 0) * line.received[index] for line, index in places)
        sent.append(sum(line.sent[index] for line, index in places))
        lost.append(sent[-1] - arrived)
        delays.append(round(total / arrived) if arrived else None)
    return InstanceTrace(
        instance=instance,
        begin_s=round((begin_ns - happened.began_ns) / _NS, 6),
        bin_s=step * row[0].bin_s,
        lost=tuple(lost),
        sent=tuple(sent),
        delay_ns=tuple(delays),
    )

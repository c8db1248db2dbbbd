"""Impact of events on packets, effects over repetitions beside trials without an event, their sentences and tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev

from resources.libraries.python import special_functions
from resources.libraries.python.csv_tables import Row, Tables, times
from resources.libraries.python.model.measurements.disturbance import EventOccurrence, PartEvent
from resources.libraries.python.model.measurements.trial import FlowTimeline, Gap
from resources.libraries.python.studies.outage.model import (
    CONTROL,
    Delays,
    Effect,
    EventTrial,
    Impact,
    InstanceTrace,
    MeanInterval,
    Outage,
    OutageRecord,
    OutageSpec,
    Quarantined,
)

_TWO_SIDED = 0.975
_MIN_KEPT = 2
"""Trials of an event that an interval needs."""


def quarantined(spec: OutageSpec, trials: Sequence[EventTrial]) -> Iterator[Quarantined]:
    """Find trials in which the host lost packets without the event, by `quarantine_loss` of the specification.

    These are the trials that lost them before their event, and all of a repetition whose control lost them.
    """
    hit = {strike.name: strike.instance for strike in spec.events}
    noisy: dict[int, str] = {}
    for trial in trials:
        if trial.event == CONTROL:
            shares = ((impact.lost + impact.lost_before) / max(1, impact.sent) for impact in trial.impacts)
            if found := _worst(spec, trial, shares):
                noisy[trial.repetition] = f"{found} without an event"
    before = spec.before_s / spec.duration_s
    for trial in trials:
        # One that is to be added passes nothing before its event.
        own = hit.get(trial.event) if trial.event.startswith(PartEvent.ADD) else None
        shares = (
            0.0 if impact.instance == own else impact.lost_before / max(1.0, before * impact.sent)
            for impact in trial.impacts
        )
        found = _worst(spec, trial, shares)
        if reason := noisy.get(trial.repetition) or (found and f"{found} before the event"):
            yield Quarantined(trial=trial.number, reason=reason)


def _worst(spec: OutageSpec, trial: EventTrial, shares: Iterable[float]) -> str:
    """Return the largest share of lost packets in words; empty where it is no larger than it may be."""
    share, instance = max(zip(shares, (impact.instance for impact in trial.impacts), strict=True), default=(0.0, 0))
    return f"instance {instance} lost {share:.1%} of its packets" if share > spec.quarantine_loss else ""


def effects(spec: OutageSpec, trials: Iterable[EventTrial]) -> tuple[Effect, ...]:
    """Return an effect for each event and instance that were measured, in the order of the specification.

    Quarantined trials are left out, unless fewer than two of an event would remain.
    """
    every = tuple(trials)
    left_out = {each.trial for each in quarantined(spec, every)}
    found: dict[tuple[str, int], list[Impact]] = defaultdict(list)
    for event in spec.columns:
        row = [trial for trial in every if trial.event == event]
        kept = [trial for trial in row if trial.number not in left_out]
        for trial in kept if len(kept) >= min(_MIN_KEPT, len(row)) else row:
            for impact in trial.impacts:
                found[event, impact.instance].append(impact)
    hit = {strike.name: strike.instance for strike in spec.events}
    return tuple(
        _effect(
            event,
            instance,
            found[event, instance],
            found.get((CONTROL, instance), []) if event != CONTROL else [],
            is_target=event != CONTROL and hit[event] in (None, instance),
        )
        for event in spec.columns
        for instance in range(1, spec.instances + 1)
        if (event, instance) in found
    )


def _effect(event: str, instance: int, row: Sequence[Impact], control: Sequence[Impact], *, is_target: bool) -> Effect:
    lost = [float(impact.lost) for impact in row]
    losses = [float(impact.lost) for impact in control]
    recovered = [impact.recovery_s for impact in row if impact.recovery_s is not None]
    worst = [delay for impact in row for delay in (impact.during.worst_ns, impact.after.worst_ns) if delay is not None]
    return Effect(
        event=event,
        instance=instance,
        is_target=is_target,
        lost=interval(lost),
        outage_s=interval([impact.outage_s for impact in row]),
        gap_s=interval([impact.gap_s for impact in row]),
        excess=difference(lost, losses) if losses else None,
        control=interval(losses) if losses else None,
        recovery_s=_of_known(recovered),
        recovered=len(recovered),
        first_packet_s=_of_known([impact.first_packet_s for impact in row]),
        before_ns=_of_known([impact.before.mean_ns for impact in row]),
        during_ns=_of_known([impact.during.mean_ns for impact in row]),
        after_ns=_of_known([impact.after.mean_ns for impact in row]),
        worst_ns=max(worst, default=None),
    )


def _of_known(values: Iterable[float | None]) -> MeanInterval | None:
    known = [value for value in values if value is not None]
    return interval(known) if known else None


def interval(values: Sequence[float]) -> MeanInterval:
    """Mean with its 95 % confidence interval by Student's t; without one for a single value."""
    mean, count = fmean(values), len(values)
    if count < 2:
        return MeanInterval(mean=mean, low=None, high=None, samples=count)
    half = float(special_functions.stdtrit(count - 1, _TWO_SIDED)) * stdev(values) / sqrt(count)
    return MeanInterval(mean=mean, low=mean - half, high=mean + half, samples=count)


def difference(values: Sequence[float], baseline: Sequence[float]) -> MeanInterval:
    """Difference of two means with its 95 % confidence interval by Welch's t-test."""
    mean, count = fmean(values) - fmean(baseline), len(values)
    if min(count, len(baseline)) < 2:
        return MeanInterval(mean=mean, low=None, high=None, samples=count)
    parts = [(stdev(row) ** 2 / len(row), len(row) - 1) for row in (values, baseline)]
    total = sum(part for part, _ in parts)
    if total == 0:
        return MeanInterval(mean=mean, low=mean, high=mean, samples=count)
    freedom = total**2 / sum(part**2 / degrees for part, degrees in parts)
    half = float(special_functions.stdtrit(freedom, _TWO_SIDED)) * sqrt(total)
    return MeanInterval(mean=mean, low=mean - half, high=mean + half, samples=count)


_IN_FLIGHT_NS = 2_000_000
"""The longest that packets sent before an event are taken to be still on their way when it happens."""
_SETTLED_NS = 50_000_000
"""After the end of the event and of all gaps, delays count as those after it."""
_SHOWN = 240
"""Bins of a trace."""
_NS = 1e9


def impacts(timelines: Iterable[FlowTimeline], happened: EventOccurrence) -> tuple[Impact, ...]:
    """Impact on each instance, in order.

    `happened`: the event; of a trial without one, the time at which it would have begun.
    """
    return tuple(_impact(instance, row, happened) for instance, row in _by_instance(timelines))


def _by_instance(timelines: Iterable[FlowTimeline]) -> Iterator[tuple[int, list[FlowTimeline]]]:
    rows: dict[int, list[FlowTimeline]] = {}
    for timeline in timelines:
        rows.setdefault(timeline.instance, []).append(timeline)
    yield from sorted(rows.items())


def _impact(instance: int, row: Sequence[FlowTimeline], happened: EventOccurrence) -> Impact:
    began_ns = happened.began_ns
    from_ns = began_ns - min(_IN_FLIGHT_NS, _delays(row, None, began_ns).worst_ns or 0)
    lost = [_lost_more(line, from_ns, None) for line in row]
    ends_ns = [gap.end_ns for line in row for gap in line.gaps if gap.end_ns is None or gap.end_ns >= from_ns]
    over_ns = max((end_ns for end_ns in ends_ns if end_ns is not None), default=began_ns)
    settled_ns = max(over_ns, happened.ended_ns) + _SETTLED_NS
    caused = filter(None, (_caused(line, from_ns, happened.ended_ns + _SETTLED_NS) for line in row))
    firsts_ns = [gap.end_ns for gap in caused]
    known_ns = [first_ns for first_ns in firsts_ns if first_ns is not None]
    is_over = None not in ends_ns
    is_back = bool(known_ns) and len(known_ns) == len(firsts_ns)
    return Impact(
        instance=instance,
        sent=sum(sum(line.sent) for line in row),
        lost=sum(lost),
        lost_before=sum(_lost_more(line, None, from_ns) for line in row),
        outage_s=max(count * _spacing_s(line) for count, line in zip(lost, row, strict=True)),
        gap_s=max(_silence_s(line, from_ns) for line in row),
        recovery_s=max(0.0, (over_ns - began_ns) / _NS) if is_over else None,
        first_packet_s=max(0.0, (max(known_ns) - began_ns) / _NS) if is_back else None,
        before=_delays(row, None, from_ns),
        during=_delays(row, from_ns, settled_ns),
        after=_delays(row, settled_ns, None),
        duplicates=sum(line.duplicates for line in row),
    )


def _silence_s(line: FlowTimeline, from_ns: int) -> float:
    """The longest time without an arrival, of one that had begun before only what follows.

    It is not the time around lost packets: those that a full queue drops are the last ones of a pause, and the ones
    before them have waited for its end.
    """
    bins, width_ns = _bins(line, from_ns, None), line.bin_s * _NS
    rows = zip(line.silence_ns[bins], line.worst_ns[bins], strict=True)
    closed_ns = (
        min(silence_ns, line.begin_ns + number * width_ns + worst_ns - from_ns)  # the latest arrival of those of a bin
        for number, (silence_ns, worst_ns) in enumerate(rows, bins.start + 1)
        if silence_ns is not None and worst_ns is not None
    )
    over_ns = line.begin_ns + len(line.sent) * width_ns
    open_ns = (over_ns - max(gap.begin_ns, from_ns) for gap in line.gaps if gap.end_ns is None)
    return max(0.0, *closed_ns, *open_ns) / _NS


def _spacing_s(line: FlowTimeline) -> float:
    """Mean time between two packets that were sent."""
    sent = sum(line.sent)
    return len(line.sent) * line.bin_s / sent if sent else 0.0


def _caused(line: FlowTimeline, from_ns: int, to_ns: int) -> Gap | None:
    """The largest gap that reaches into the time of the event; None where there is none."""
    gaps = [gap for gap in line.gaps if gap.begin_ns < to_ns and (gap.end_ns is None or gap.end_ns >= from_ns)]
    return max(gaps, key=lambda gap: gap.packets, default=None)


def _bins(line: FlowTimeline, from_ns: int | None, to_ns: int | None) -> slice:
    """Bins that begin in a period; the bin in which it begins belongs to it."""
    width_ns = line.bin_s * _NS
    first = 0 if from_ns is None else max(0, int((from_ns - line.begin_ns) // width_ns))
    last = len(line.sent) if to_ns is None else max(0, int((to_ns - line.begin_ns) // width_ns))
    return slice(first, min(last, len(line.sent)))


def _lost_more(line: FlowTimeline, from_ns: int | None, to_ns: int | None) -> int:
    bins = _bins(line, from_ns, to_ns)
    return sum(line.sent[bins]) - sum(line.received[bins])


def _delays(row: Iterable[FlowTimeline], from_ns: int | None, to_ns: int | None) -> Delays:
    total, packets, worst = 0.0, 0, list[int]()
    for line in row:
        bins = _bins(line, from_ns, to_ns)
        rows = zip(line.delay_ns[bins], line.worst_ns[bins], line.received[bins], strict=True)
        for mean_ns, longest_ns, received in rows:
            if mean_ns is not None and longest_ns is not None:
                total += mean_ns * received
                packets += received
                worst.append(longest_ns)
    return Delays(mean_ns=total / packets if packets else None, worst_ns=max(worst, default=None))


def traces(timelines: Iterable[FlowTimeline], happened: EventOccurrence) -> tuple[InstanceTrace, ...]:
    """The course of a trial at each instance, in few bins."""
    return tuple(_trace(instance, row, happened) for instance, row in _by_instance(timelines))


def _trace(instance: int, row: Sequence[FlowTimeline], happened: EventOccurrence) -> InstanceTrace:
    begin_ns = row[0].begin_ns
    bins = min(len(line.sent) for line in row)
    step = max(1, -(-bins // _SHOWN))
    lost, sent, delays = list[int](), list[int](), list[float | None]()
    for first in range(0, bins, step):
        part = slice(first, min(first + step, bins))
        arrived = sum(sum(line.received[part]) for line in row)
        pairs = (pair for line in row for pair in zip(line.delay_ns[part], line.received[part], strict=True))
        total = sum((mean or 0) * received for mean, received in pairs)
        sent.append(sum(sum(line.sent[part]) for line in row))
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


def headline(found: Outage) -> str | None:
    """Return the result in one sentence."""
    if not found.trials:
        return None
    others = [effect for effect in found.effects if not effect.is_target and effect.event != CONTROL]
    hurt = [effect for effect in others if effect.is_significant]
    measured = "" if len(found.trials) == found.asked else f"{found.coverage} trials were made; "
    if not hurt:
        return f"{measured}no event at one instance costs another one more packets than chance does"
    worst = max(hurt, key=lambda effect: effect.excess.mean if effect.excess else 0.0)
    assert worst.excess is not None  # noqa: S101 - significant
    return (
        f"{measured}{worst.event} costs instance {worst.instance} {worst.excess.mean:.0f} packets that it does not "
        f"lose without an event"
    )


def sentences(found: Outage) -> Iterator[str]:
    """A sentence for each event: what it cost the instance hit, and the others, or why it was refused."""
    rows: dict[str, list[Effect]] = defaultdict(list)
    for effect in found.effects:
        rows[effect.event].append(effect)
    for event, row in rows.items():
        targets = [effect for effect in row if effect.is_target]
        others = [effect for effect in row if not effect.is_target]
        parts = []
        if targets:
            worst = max(targets, key=lambda effect: effect.outage_s.mean)
            whom = "all instances" if not others else f"instance {worst.instance}"
            parts.append(f"{whom}: {_lost(worst)}, {_first(worst)}")
        if others:
            worst = max(others, key=lambda effect: effect.lost.mean)
            sure = ", more than without an event" if worst.is_significant else ""
            if worst.control is not None:
                sure += f", {worst.control.mean:,.0f} without an event"
            what = "any instance" if not targets else "the other instances"
            parts.append(f"{what}: {_lost(worst)} at most (instance {worst.instance}){sure}")
        yield f"{event}: {'; '.join(parts)}"
    yield from (f"{event}: {reason}" for event, reason in found.refused.items())


def _lost(effect: Effect) -> str:
    half = effect.lost.high - effect.lost.mean if effect.lost.high is not None else None
    spread = "" if half is None else f" ± {half:,.0f}"
    return f"{effect.lost.mean:,.0f}{spread} packets lost ({effect.outage_s.mean * 1000:.1f} ms)"


def _first(effect: Effect) -> str:
    if effect.first_packet_s is not None:
        return f"first packet after {effect.first_packet_s.mean * 1000:.1f} ms"
    return "no packet afterwards" if effect.recovered < effect.lost.samples else "never interrupted"


_MEANS = (
    "lost_packets", "no_event_packets", "excess_packets", "outage_ms", "gap_ms", "recovery_ms", "first_packet_ms",
    "delay_before_us", "delay_during_us", "delay_after_us",
)  # fmt: skip
EFFECTS = (
    "event", "instance", "is_target", "is_significant", "repetitions", "recovered",
    *(f"{name}{end}" for name in _MEANS for end in ("", "_low", "_high")), "worst_delay_us",
)  # fmt: skip
"""One line for each event and instance; `low` and `high` are the ends of the 95 % confidence interval."""
TRIALS = (
    "trial", "repetition", "event", "event_ms", "instance", "sent", "lost", "lost_before", "outage_ms", "gap_ms",
    "recovery_ms", "first_packet_ms", "delay_before_us", "worst_before_us", "delay_during_us", "worst_during_us",
    "delay_after_us", "worst_after_us", "duplicates", "clock_error_ms", "quarantined",
)  # fmt: skip
"""One line for each trial and instance."""


def outage_tables(record: OutageRecord) -> Tables:
    """Name and rows of each table, the first row with the names of the columns."""
    found = record.outage
    if found is None or not found.trials:
        return ()
    effects: list[Row] = [
        (
            each.event,
            each.instance,
            each.is_target,
            each.is_significant,
            each.lost.samples,
            each.recovered,
            *(value for packets in (each.lost, each.control, each.excess) for value in _ends(packets, 1.0)),
            *(
                value
                for time_s in (each.outage_s, each.gap_s, each.recovery_s, each.first_packet_s)
                for value in _ends(time_s, 1e3)
            ),
            *(value for delay_ns in (each.before_ns, each.during_ns, each.after_ns) for value in _ends(delay_ns, 1e-3)),
            times(each.worst_ns, 1e-3),
        )
        for each in found.effects
    ]
    reasons = {each.trial: each.reason for each in found.quarantined}
    trials: list[Row] = [
        (
            trial.number,
            trial.repetition,
            trial.event,
            times(trial.event_s, 1e3),
            *(
                impact.instance,
                impact.sent,
                impact.lost,
                impact.lost_before,
                1e3 * impact.outage_s,
                1e3 * impact.gap_s,
                times(impact.recovery_s, 1e3),
                times(impact.first_packet_s, 1e3),
                *(
                    times(delay_ns, 1e-3)
                    for period in (impact.before, impact.during, impact.after)
                    for delay_ns in (period.mean_ns, period.worst_ns)
                ),
                impact.duplicates,
            ),
            times(trial.clock_error_s, 1e3),
            reasons.get(trial.number),
        )
        for trial in sorted(found.trials, key=lambda trial: trial.number)
        for impact in trial.impacts
    ]
    return ("outage_effects", [EFFECTS, *effects]), ("outage_trials", [TRIALS, *trials])


def _ends(found: MeanInterval | None, scale: float) -> Row:
    if found is None:
        return None, None, None
    return scale * found.mean, times(found.low, scale), times(found.high, scale)

"""Page of outages: effects by event and instance, and the course of trials."""

from collections import Counter
from collections.abc import Iterator

from csit_utils.report.record_blocks import Column, Heat, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.units import count, digits3, rate
from resources.libraries.python.studies.outage.model.record import Outage
from resources.libraries.python.studies.outage.model.spec import CONTROL


def _interval(name: str, title: str, explain: tuple[str, str] = ("", "")) -> Column:
    return Column(name, title, ends=(f"{name}_low", f"{name}_high"), explain=explain)


_LOST = _interval("lost_packets", "lost packets", ("blast-radius", "blast radius"))
_EXCESS = _interval("excess_packets", "excess packets")
_OUTAGE = _interval("outage_ms", "outage, ms", ("outage-duration", "the outage"))
_GAP = _interval("gap_ms", "longest gap, ms", ("loss-gap", "the longest gap"))
_RECOVERY = _interval("recovery_ms", "recovery, ms", ("recovery-time", "the recovery time"))
_FIRST = _interval("first_packet_ms", "first packet, ms", ("first-packet", "the time to the first packet"))
_DELAYS = tuple(_interval(f"delay_{when}_us", f"delay {when}, µs") for when in ("before", "during", "after"))
_WHERE = (
    Column("event", text=True),
    Column("instance", write=str),
    Column("is_target", "hit", lambda hit: "hit" if hit else "", text=True),
)


def _setup(found: Outage) -> Iterator[str]:
    spec = found.spec
    of_ndr = "" if found.ndr_pps is None else f" ({100 * spec.share:.0f} % of NDR, {rate(found.ndr_pps)})"
    yield (
        f"{spec.instances} instances of {' + '.join(spec.nf_kinds)}, {rate(found.rate_pps)} to each in each direction"
        f"{of_ndr}; {spec.repetitions} repetition{'s' * (spec.repetitions > 1)}, a deployment for each trial; "
        f"resolution {digits3(spec.bin_s * 1000)} ms."
    )


def _course(found: Outage) -> Iterator[Row]:
    """Lost packets and delay over time at each instance, in the first repetition of each event."""
    order = (*(strike.name for strike in found.spec.events), CONTROL)
    for trial in sorted(found.trials, key=lambda trial: order.index(trial.event)):
        for trace in trial.traces:
            for index, (lost, sent, delay_ns) in enumerate(zip(trace.lost, trace.sent, trace.delay_ns, strict=True)):
                yield {
                    "event": trial.event,
                    "instance": f"instance {trace.instance}",
                    "time_s": trace.begin_s + index * trace.bin_s,
                    "loss_percent": 100 * lost / sent if sent else None,
                    "delay_ns": delay_ns,
                }


def _notes(found: Outage) -> Iterator[str]:
    if found.quarantined:
        reasons = "; ".join(f"{why} ({n})" for why, n in Counter(each.reason for each in found.quarantined).items())
        yield (
            f"{len(found.quarantined)} of {len(found.trials)} trials are quarantined, because the host lost packets "
            f"without the event: {reasons}. The effects leave them out where at least two trials of an event remain."
        )
    yield from (f"{event}: {reason}" for event, reason in found.refused.items())
    yield from found.notes


PAGE = record_page(
    "outage",
    "Outages",
    "outage",
    (
        Sentences(_setup, paragraph=True),
        Heat(
            "map",
            "Effects by event and instance",
            rows=Column("instance", "service instance"),
            columns=Column("event"),
            values=tuple((each, "outage_effects") for each in (_LOST, _EXCESS, _OUTAGE, _GAP, _RECOVERY, *_DELAYS)),
            caption=lambda found: (
                f"{found.spec.frame.name}, {found.spec.repetitions} repetitions; instances hit are in brackets"
            ),
            samples="repetitions",
            bracket="is_target",
            remark=("is_significant", "more than without an event"),
            log=True,
            explain=("blast-radius", "blast radius"),
        ),
        Plot(
            "timeline",
            "Course of a trial at each instance",
            _course,
            x=Column("time_s", "time since the event, s", options={"rangemode": "normal"}),
            y=(Column("loss_percent", "loss, %"), Column("delay_ns", "mean one-way delay, µs", scale=1e-3)),
            colour="instance",
            choose=("event",),
            mark="lines",
            style={"line": {"shape": "hv", "width": 2}},
        ),
        Table(
            "effects",
            "outage_effects",
            (
                *_WHERE,
                _LOST,
                _interval("no_event_packets", "lost without an event"),
                _EXCESS,
                _OUTAGE,
                _GAP,
                _RECOVERY,
                _FIRST,
            ),
            mark={"is_significant": "worst"},
            classes="tight",
            filter=True,
        ),
        Table(
            "delays",
            "outage_effects",
            (*_WHERE, *_DELAYS, Column("worst_delay_us", "longest from the event on, µs", count)),
            heading="Mean one-way delay",
            classes="tight",
        ),
        Sentences(_notes, "Notes"),
    ),
)

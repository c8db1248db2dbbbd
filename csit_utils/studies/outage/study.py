"""Studies of outages in reports: what an event at one network function costs every other instance."""

from collections import Counter
from collections.abc import Iterator

from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.rows import frame_text
from csit_utils.report.record_blocks import Column, Heat, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.report.units import count, digits3, rate
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.outage.analysis import EFFECTS, TRIALS, headline, outage_tables, sentences
from resources.libraries.python.studies.outage.model import CONTROL, Outage, OutageSpec
from resources.libraries.python.studies.outage.planning import cost


def _interval(name: str, title: str, explain: tuple[str, str] = ("", "")) -> Column:
    return Column(name, title, ends=(f"{name}_low", f"{name}_high"), explain=explain, lower_is_better=True)


_LOST = _interval("lost_packets", "lost, packets", ("blast-radius", "blast radius"))
_EXCESS = _interval("excess_packets", "excess, packets")
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
_EFFECTS = (
    *_WHERE,
    _LOST,
    _interval("no_event_packets", "lost without an event, packets"),
    _EXCESS,
    _OUTAGE,
    _GAP,
    _RECOVERY,
    _FIRST,
)


def _setup(found: Outage) -> Iterator[str]:
    spec = found.spec
    of_ndr = "" if found.ndr_pps is None else f" ({100 * spec.share:.0f} % of NDR, {rate(found.ndr_pps)})"
    yield (
        f"{spec.instances} instances of {' + '.join(spec.nf_kinds)}, {rate(found.rate_pps)} to each in each direction"
        f"{of_ndr}; {counted(spec.repetitions, 'repetition')}, a deployment for each trial; "
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
            "hit",
            "outage_effects",
            _EFFECTS,
            "Instances hit, and others that lose more than without an event",
            mark={"is_significant": "worst"},
            classes="tight",
            only=("is_target", "is_significant"),
        ),
        Table(
            "effects", "outage_effects", _EFFECTS, folded="Every event at every instance", classes="tight", filter=True
        ),
        Table(
            "delays",
            "outage_effects",
            (*_WHERE, *_DELAYS, Column("worst_delay_us", "longest from the event on, µs", count)),
            folded="Mean one-way delay",
            classes="tight",
        ),
        Sentences(_notes, "Notes"),
    ),
)


EXPLANATIONS = (
    Explanation(
        "blast-radius",
        "Blast radius",
        "What an event at one network function or at the vSwitch costs every service instance.",
        "Packets lost from the event on, mean over repetitions with its 95 % confidence interval (Student).",
        "All instances have the same steady load. Every packet has a number and the time at which it was sent, and "
        "the receiver keeps the time at which each arrives: losses are exact, per instance and direction. Each trial "
        "has a deployment of its own, and the order of events is shuffled in each repetition.",
        "Compare with the trials without an event, which stand beside each event: what these lose is the host's noise, "
        "and on a machine with few cores that can be much. An instance is marked where it loses more than without an "
        "event beyond the 95 % interval of the difference (Welch). Trials in which the host loses more than the "
        "specification allows (quarantine_loss), before the event or in the repetition's trial without one, are "
        "quarantined.",
    ),
    Explanation(
        "kept-in-event",
        "Kept in an event",
        "Share of the packets offered from the event on that arrive, at one instance.",
        "A ratio, 1 if nothing is lost.",
        "The mean of the repetitions, with its 95 % interval.",
        "It depends on how long packets are sent after the event: compare studies of the same `after_s`.",
    ),
    Explanation(
        "outage-duration",
        "Outage",
        "How long an instance was without service, by the packets that it lost.",
        "Milliseconds: lost packets over the offered rate, of the direction that lost more.",
        "The frame-loss method of RFC 6201 (section 4, Reset test), which RFC 6412 calls loss-derived.",
        "Losses that are spread over a trial add up to the same number as one interruption: see the longest gap.",
    ),
    Explanation(
        "loss-gap",
        "Longest gap",
        "The longest interruption of one flow.",
        "Milliseconds from one packet that arrived to the next, from the event on; to the end of the trial where none "
        "came any more.",
        "The time-stamp method of RFC 6201, by the kernel's time stamps at the receiver.",
        "Without an interruption it is the time between two packets, or as long as the host or the generator stood "
        "still. It includes pauses in which packets waited and none was lost.",
    ),
    Explanation(
        "recovery-time",
        "Recovery time",
        "From an event until an instance stops losing packets.",
        "Milliseconds from the start of the event to the packet that ends the last gap.",
        "Mean of the repetitions in which losses ended before the trial did.",
        "A single packet lost late, for any reason, counts: the trials without an event show how often that is.",
    ),
    Explanation(
        "first-packet",
        "Time to the first packet",
        "From an event until traffic passes the part that it happened to again.",
        "Milliseconds from the start of the event to the first packet after the gap that it caused.",
        "Of both directions the later one. The reset time of RFC 6201 by the time-stamp method begins at the last "
        "packet before; this one begins at the event.",
        "It includes the time that the event itself takes, such as starting a program.",
    ),
)


SURVIVED = Measure("kept-in-event", "")
"""Share of the packets from an event on that arrive, at one instance."""


def _title(found: Outage) -> str:
    return f"{found.spec.name}, {found.spec.frame.name}, {rate(found.rate_pps)} each way"


def _measured(found: Outage) -> Iterator[MeasuredSubject]:
    """For each event and instance: the share of its packets that arrive from the event on."""
    load = f"{found.spec.share:g} NDR" if found.spec.rate_pps is None else f"{found.rate_pps:g} pps"
    for effect in found.effects:
        packets = 2 * found.rate_pps * found.spec.after_s
        ends = (effect.lost.mean if each is None else each for each in (effect.lost.high, effect.lost.low))
        mean, low, high = (min(1.0, max(0.0, 1 - lost / packets)) for lost in (effect.lost.mean, *ends))
        yield MeasuredSubject(
            (MeasuredValue(SURVIVED, mean, low, high),),
            f"{found.spec.name}: instance {effect.instance}, {effect.event}",
            Dimensions(found.spec.instances, len(found.spec.nf_kinds)),
            str(found.spec.size),
            frame_text(found.spec.frame),
            f"outage at {load}",
        )


STUDY = Study(
    order=55,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "outage",
            "Outage",
            lambda record: record.outage,
            _title,
            headline,
            lines=sentences,
            measures=(SURVIVED,),
            measured=_measured,
            tables=outage_tables,
            queried=QueriedTables(
                {"outage_effects": EFFECTS, "outage_trials": TRIALS},
                texts=("event", "quarantined"),
                counts=(
                    *("instance", "repetition", "repetitions", "recovered", "trial"),
                    *("sent", "lost", "lost_before", "duplicates"),
                ),
                flags=("is_target", "is_significant"),
            ),
        ),
    ),
    explanations={"Outages": EXPLANATIONS},
    preview=lambda name, keys: cost(load_yaml(specification_file(name), OutageSpec, keys)),
)

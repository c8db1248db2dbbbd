"""Studies of outages in reports: what an event at one network function costs every other instance."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from csit_utils.analysis.measures import Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized
from csit_utils.dataset.rows import frame_text
from csit_utils.report.characterizations import DrawnRecord, page_of_records
from csit_utils.report.explanations import Explanation
from csit_utils.report.figures import Figure, Json, axis, scatter
from csit_utils.report.study import RecordKind, Study, View
from csit_utils.report.units import DASH, digits3, rate
from csit_utils.studies.density.figures.cell_maps import CellMap, CellMaps, MapSquare, Scale
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.studies.outage.analysis.effects import in_words
from resources.libraries.python.studies.outage.analysis.tables import outage_tables
from resources.libraries.python.studies.outage.model.record import (
    Effect,
    EventTrial,
    MeanInterval,
    Outage,
)
from resources.libraries.python.studies.outage.model.spec import CONTROL, load_outage
from resources.libraries.python.studies.outage.planning import cost

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


@dataclass(frozen=True)
class _Quantity:
    value: Callable[[Effect], MeanInterval | None]
    scale: float
    unit: str


_LOST = "lost packets"
_WHOLE_FROM = 100
"""Smaller means have decimals."""
_SCALE = 10_000.0
"""Highest of a map's colours over the lowest."""
_QUANTITIES: Mapping[str, _Quantity] = {
    _LOST: _Quantity(lambda effect: effect.lost, 1.0, "packets"),
    "beyond no event": _Quantity(lambda effect: effect.excess, 1.0, "packets"),
    "outage": _Quantity(lambda effect: effect.outage_s, 1e3, "ms"),
    "longest gap": _Quantity(lambda effect: effect.gap_s, 1e3, "ms"),
    "recovery": _Quantity(lambda effect: effect.recovery_s, 1e3, "ms"),
    "delay before": _Quantity(lambda effect: effect.before_ns, 1e-3, "µs"),
    "delay during": _Quantity(lambda effect: effect.during_ns, 1e-3, "µs"),
    "delay after": _Quantity(lambda effect: effect.after_ns, 1e-3, "µs"),
}


def amounts(found: MeanInterval, scale: float) -> tuple[str, str]:
    """Return a mean and half of its interval with the same number of decimals; an empty half where there is none."""
    mean = scale * found.mean
    places = 0 if abs(mean) >= _WHOLE_FROM or mean == 0 == (found.high or 0) else 1 if abs(mean) >= 1 else 2
    half = "" if found.high is None else f"{scale * (found.high - found.mean):,.{places}f}"
    return f"{mean:,.{places}f}", half


def outage_maps(anchor: str, found: Outage, *, simulated: bool) -> CellMaps:
    """Service instances in rows, events in columns."""
    events = tuple(dict.fromkeys(effect.event for effect in found.effects))
    instances = tuple(dict.fromkeys(effect.instance for effect in found.effects))
    effects = {(effect.event, effect.instance): effect for effect in found.effects}

    def square(line: int, column: int, choice: tuple[str, ...]) -> MapSquare:
        return _square(effects.get((events[column], instances[line])), choice[0])

    def scale(choice: tuple[str, ...]) -> Scale:
        quantity = _QUANTITIES[choice[0]]
        values = [
            quantity.scale * value.mean for effect in found.effects if (value := quantity.value(effect)) is not None
        ]
        # The one hit may lose 10,000 times what the others lose, and these are what the map is for.
        highest = max(values, default=0.0)
        return Scale(highest / _SCALE, highest, logarithmic=True) if highest > 0 else Scale(0.0, 1.0)

    return CellMaps(
        identity=f"{anchor}-map",
        title="Effects by event and instance",
        simulated=simulated,
        selectors=(tuple(_QUANTITIES),),
        first=(_LOST,),
        maps=(
            CellMap(
                title=f"{found.spec.frame.name}, {found.spec.repetitions} repetitions; instances hit are in brackets",
                corner=("event", "service instance"),
                columns=events,
                lines=tuple(str(instance) for instance in instances),
                hrefs=tuple((None,) * len(events) for _ in instances),
                square=square,
                named=True,
            ),
        ),
        scale=scale,
        write=digits3,
        explain=("blast-radius", "blast radius"),
    )


def _square(effect: Effect | None, choice: str) -> MapSquare:
    quantity = _QUANTITIES[choice]
    if effect is None:
        return MapSquare(DASH, "not measured", state="not-run")
    found = quantity.value(effect)
    where = f"{effect.event}, instance {effect.instance}{' (hit)' if effect.is_target else ''}"
    if found is None:
        return MapSquare(DASH, f"{where}: no {choice}", state="not-run")
    value = quantity.scale * found.mean
    shown, half = amounts(found, quantity.scale)
    half = half and f"± {half}"
    text = f"[{shown}]" if effect.is_target else shown
    more = ", more than without an event" if effect.is_significant else ""
    tip = f"{where}: {choice} {shown} {half} {quantity.unit}, {found.samples} repetitions{more}"
    return MapSquare(text, tip, value, half)


def timeline(anchor: str, found: Outage, *, simulated: bool) -> Figure | None:
    """Lost packets and delay over time at each instance, in the first repetition of each event."""
    order = (*(strike.name for strike in found.spec.events), CONTROL)
    shown = sorted((trial for trial in found.trials if trial.traces), key=lambda trial: order.index(trial.event))
    if not shown:
        return None
    what = ("loss", "delay")
    variants: Json = {
        f"{escape(trial.event)}|{quantity}": {
            "data": [_line(trial, place, quantity) for place in range(len(trial.traces))],
            "layout": _layout(quantity),
        }
        for trial in shown
        for quantity in what
    }
    events = tuple(escape(trial.event) for trial in shown)
    return Figure(f"{anchor}-timeline", "Course of a trial at each instance", simulated, (events, what), variants)


def _line(trial: EventTrial, place: int, quantity: str) -> Json:
    trace = trial.traces[place]
    if quantity == "loss":
        values = [100 * lost / sent if sent else None for lost, sent in zip(trace.lost, trace.sent, strict=True)]
    else:
        values = [None if delay is None else delay / 1000 for delay in trace.delay_ns]
    points = [(trace.begin_s + index * trace.bin_s, value) for index, value in enumerate(values)]
    return scatter(f"instance {trace.instance}", points, trace.instance - 1, mode="lines", line={"shape": "hv"})


def _layout(quantity: str) -> Json:
    title = "loss, %" if quantity == "loss" else "mean one-way delay, µs"
    return {"xaxis": {"title": {"text": "time since the event, s"}}, "yaxis": axis(title)}


def _title(found: Outage) -> str:
    return f"{found.spec.name}, {found.spec.frame.name}, {rate(found.rate_pps)} each way"


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


def _lines(found: Outage) -> Iterator[str]:
    yield from in_words(found.effects)
    yield from (f"{event}: {reason}" for event, reason in found.refused.items())


def _measured(item: Characterized, found: Outage) -> Iterator[MeasuredRow]:
    """A row for each event and instance: the share of its packets that arrive from the event on."""
    load = f"{found.spec.share:g} NDR" if found.spec.rate_pps is None else f"{found.rate_pps:g} pps"
    for effect in found.effects:
        packets = 2 * found.rate_pps * found.spec.after_s
        ends = (effect.lost.mean if each is None else each for each in (effect.lost.high, effect.lost.low))
        mean, low, high = (min(1.0, max(0.0, 1 - lost / packets)) for lost in (effect.lost.mean, *ends))
        yield measured_row(
            item,
            (MeasuredValue(SURVIVED, mean, low, high),),
            test_type=SURVIVED.value,
            service_type=f"{found.spec.name}: instance {effect.instance}, {effect.event}",
            **Dimensions(found.spec.instances, len(found.spec.nf_kinds)).columns,
            nf_size=str(found.spec.size),
            frame=frame_text(found.spec.frame),
            goals=f"outage at {load}",
        )


def _drawn(view: View) -> DrawnRecord:
    found: Outage | None = view.record.outage
    if found is None or not found.effects:
        return DrawnRecord(view)
    plot = timeline(view.anchor, found, simulated=view.simulated)
    maps = outage_maps(view.anchor, found, simulated=view.simulated)
    return DrawnRecord(view, maps, () if plot is None else (plot,))


STUDY = Study(
    order=55,
    pages=(page_of_records("outage", "Outages", "outage", "outages", _drawn, amounts=amounts),),
    kinds=(
        RecordKind(
            "outage",
            "Outage",
            lambda record: record.outage,
            _title,
            headline,
            lines=_lines,
            measured=_measured,
            tables=outage_tables,
        ),
    ),
    measures=(SURVIVED,),
    explanations=EXPLANATIONS,
    preview=lambda path, keys: cost(load_outage(path, keys)),
)

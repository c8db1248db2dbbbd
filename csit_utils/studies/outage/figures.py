"""Figures of a study of outages: a map of events and instances, and the course of trials at each instance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from csit_utils.report.figures import Figure, Json
from csit_utils.report.units import DASH, digits3
from csit_utils.studies.density.cell_maps import CellMap, CellMaps, MapSquare, Scale
from resources.libraries.python.studies.outage.model.record import Effect, EventTrial, MeanInterval, Outage
from resources.libraries.python.studies.outage.model.spec import CONTROL


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
        title="What each event costs each instance",
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
        values = [
            float(f"{100 * lost / sent:.4g}") if sent else None
            for lost, sent in zip(trace.lost, trace.sent, strict=True)
        ]
    else:
        values = [None if delay is None else float(f"{delay / 1000:.4g}") for delay in trace.delay_ns]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"instance {trace.instance}",
        "x": [float(f"{trace.begin_s + index * trace.bin_s:.4f}") for index in range(len(values))],
        "y": values,
        "line": {"shape": "hv"},
        "meta": {"colour": trace.instance - 1},
    }


def _layout(quantity: str) -> Json:
    title = "loss, %" if quantity == "loss" else "mean one-way delay, µs"
    return {
        "xaxis": {"title": {"text": "time since the event, s"}},
        "yaxis": {"title": {"text": title}, "rangemode": "tozero"},
    }

"""Indicator and CPUs of a deployment size over time, at three loads: below its capacity, at it, and beyond."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import islice

from csit_utils.report.figures import Figure, Json, Panel, stacked, step_of, thinned_words
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.model.spec import Sized, Sizing, Trace

_GAP = 0.06
"""Between two loads, of the time of one."""
_TICKS = 3
"""Of each load."""
_ROUND_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True)
class _Stretch:
    """A load on the time axis, which has the loads one after the other."""

    load: float
    trace: Trace
    begin_s: float
    """On the axis."""


def traces_figure(anchor: str, record: SizingRecord, sizing: Sizing, figures: int = 1) -> Figure | None:
    """A choice for each size whose seconds were recorded; None where none were.

    Args:
        anchor: Of the record on its page.
        record: With the sizing.
        sizing: Its sizes.
        figures: How many such figures share the page's bound of samples.
    """
    traced = [size for size in sizing.sizes if any(row.trace is not None for row in size.offered)]
    if not traced:
        return None
    samples = sum(_samples(row.trace) for size in traced for row in size.offered if row.trace is not None)
    step = step_of(samples, figures)
    variants = {size.name: _variant(sizing, size, step) for size in traced}
    title = f"{sizing.deployment.vnf_name}: performance indicator and CPU over time, by offered load"
    title += thinned_words(step, samples)
    return Figure(f"{anchor}-traces", title, record.simulated, (tuple(variants),), variants)


def _samples(trace: Trace) -> int:
    return len(trace.indicators) + sum(map(len, trace.cpu.values()))


def _variant(sizing: Sizing, size: Sized, step: int) -> Json:
    stretches = _stretches(size)
    unit = sizing.workload.unit
    panels = (
        Panel(
            {"title": {"text": escape(f"indicator, {unit}")}, "rangemode": "tozero"},
            list(_indicators(stretches, unit, step)),
        ),
        Panel(
            {"title": {"text": "CPU, % of the flavor's"}, "rangemode": "tozero"}, list(_cpus(sizing, stretches, step))
        ),
    )
    made = stacked(panels, {"title": {"text": "time since the beginning of the load, s"}, **_ticks(stretches)})
    made["layout"]["annotations"] = [_heading(size, stretch, unit) for stretch in stretches]
    return made


def _stretches(size: Sized) -> list[_Stretch]:
    rows = [(row.load, row.trace) for row in size.offered if row.trace is not None]
    long_s = max(_length_s(trace) for _, trace in rows)
    return [_Stretch(load, trace, number * (1 + _GAP) * long_s) for number, (load, trace) in enumerate(rows)]


def _length_s(trace: Trace) -> float:
    return max([float(len(trace.indicators)), *trace.ends_s])


def _ticks(stretches: Sequence[_Stretch]) -> Json:
    """Whole seconds of each load, counted from its beginning."""
    long_s = max(_length_s(stretch.trace) for stretch in stretches)
    step = next((step for step in _ROUND_S if long_s / step <= _TICKS), _ROUND_S[-1])
    found = [
        (stretch.begin_s + second, str(second))
        for stretch in stretches
        for second in range(0, int(_length_s(stretch.trace)) + 1, step)
    ]
    return {"tickvals": [_short(at) for at, _ in found], "ticktext": [text for _, text in found], "zeroline": False}


def _heading(size: Sized, stretch: _Stretch, unit: str) -> Json:
    at = ", capacity" if stretch.load == size.capacity else ""
    overload = ", overload" if size.capacity is not None and stretch.load > size.capacity else ""
    return {
        "text": escape(f"{stretch.load:g} {unit}{at}{overload}"),
        "x": _short(stretch.begin_s + _length_s(stretch.trace) / 2),
        "xref": "x",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"color": "ink", "size": 12},
    }


def _indicators(stretches: Sequence[_Stretch], unit: str, step: int) -> Iterator[Json]:
    if not any(stretch.trace.indicators for stretch in stretches):
        return
    offered = _line(stretches, lambda one: [(edge, one.load) for edge in (0.0, float(len(one.trace.indicators)))])
    yield {**offered, "name": "offered load", "hoverinfo": "skip", "line": _stroke("dash"), "meta": {"colour": 6}}
    reported = _line(stretches, lambda one: enumerate(one.trace.indicators, 1), step)
    hover = f"indicator: %{{y:.4~g}} {escape(unit)}<extra></extra>"
    yield {**reported, "name": "indicator", "hovertemplate": hover, "line": _stroke("solid"), "meta": {"colour": 0}}


def _cpus(sizing: Sizing, stretches: Sequence[_Stretch], step: int) -> Iterator[Json]:
    """A line for each instance, in the colour of its component."""
    components = [component.name for component in sizing.deployment.components]
    for instance in dict.fromkeys(name for stretch in stretches for name in stretch.trace.cpu):
        component, _, number = instance.rpartition("-")
        line = _line(stretches, partial(_cpu, instance), step)
        name = escape(instance)
        dash = _DASHES[(int(number) - 1) % len(_DASHES)] if number.isdigit() else "solid"
        yield {
            **line,
            "name": name,
            "hovertemplate": f"{name}: %{{y:.3~g}} % of its flavor's CPU<extra></extra>",
            "line": _stroke(dash),
            "meta": {"colour": 1 + components.index(component) if component in components else 7},
        }


def _cpu(instance: str, stretch: _Stretch) -> Iterator[tuple[float, float | None]]:
    for end_s, cpu in zip(stretch.trace.ends_s, stretch.trace.cpu.get(instance, ()), strict=False):
        yield end_s, None if cpu is None else 100 * cpu


def _line(
    stretches: Sequence[_Stretch], points_of: Callable[[_Stretch], Iterable[tuple[float, float | None]]], step: int = 1
) -> Json:
    """Every `step`-th point of all loads, given by seconds since the load's beginning; nothing joins two loads."""
    x: list[float | None] = []
    y: list[float | None] = []
    for stretch in stretches:
        for second, value in islice(points_of(stretch), 0, None, step):
            x.append(_short(stretch.begin_s + second))
            y.append(None if value is None else _short(value))
        x.append(None)
        y.append(None)
    return {"type": "scatter", "mode": "lines", "x": x[:-1], "y": y[:-1]}


def _stroke(dash: str) -> Json:
    return {"width": 1.5, "dash": dash}


def _short(value: float) -> float:
    return float(f"{value:.6g}")

"""Indicator and CPU usage of each second of three loads, one after the other on the time axis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import islice
from typing import Any

from csit_utils.report.figures import (
    DASHES,
    Figure,
    Json,
    Panel,
    above,
    axis,
    one_choice,
    rounded,
    scatter,
    stacked,
    step_of,
    thinned_words,
)
from csit_utils.report.record_blocks import RecordTables
from resources.libraries.python.model.service.spec import MeasuredSize, Sizing, Trace

_GAP = 0.06
"""Between two loads, of the time of one."""
_TICKS = 3
"""Of each load."""
_ROUND_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True)
class _Stretch:
    """A load on the time axis, which has the loads one after the other."""

    load: float
    trace: Trace
    begin_s: float
    """On the axis."""


def traces_figure(tables: RecordTables) -> Figure | None:
    """Return a figure with a choice for each size whose seconds were recorded; None without any."""
    sizing: Sizing = tables.content
    traced = [size for size in sizing.sizes if any(row.trace is not None for row in size.offered)]
    if not traced:
        return None
    samples = sum(_samples(row.trace) for size in traced for row in size.offered if row.trace is not None)
    step = step_of(samples, tables.records)
    variants = {size.text: _variant(sizing, size, step) for size in traced}
    title = f"{sizing.deployment.vnf_name}: performance indicator and CPU over time, by offered load"
    title += thinned_words(step, samples)
    return one_choice(f"{tables.anchor}-traces", title, variants, simulated=tables.simulated)


def _samples(trace: Trace) -> int:
    return len(trace.indicators) + sum(map(len, trace.cpu.values()))


def _variant(sizing: Sizing, size: MeasuredSize, step: int) -> Json:
    stretches = _stretches(size)
    unit = sizing.workload.unit
    panels = (
        Panel(axis(f"indicator, {unit}"), list(_indicators(stretches, unit, step))),
        Panel(axis("CPU, % of the flavor's"), list(_cpus(sizing, stretches, step))),
    )
    made = stacked(panels, {"title": {"text": "time since the beginning of the load, s"}, **_ticks(stretches)})
    made["layout"]["annotations"] = [_heading(size, stretch, unit) for stretch in stretches]
    return made


def _stretches(size: MeasuredSize) -> list[_Stretch]:
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
    return {"tickvals": [rounded(at) for at, _ in found], "ticktext": [text for _, text in found], "zeroline": False}


def _heading(size: MeasuredSize, stretch: _Stretch, unit: str) -> Json:
    at = ", capacity" if stretch.load == size.capacity else ""
    overload = ", overload" if size.capacity is not None and stretch.load > size.capacity else ""
    return above(f"{stretch.load:g} {unit}{at}{overload}", stretch.begin_s + _length_s(stretch.trace) / 2)


def _indicators(stretches: Sequence[_Stretch], unit: str, step: int) -> Iterator[Json]:
    if not any(stretch.trace.indicators for stretch in stretches):
        return
    edges = _samples_of(stretches, lambda one: [(at, one.load) for at in (0.0, float(len(one.trace.indicators)))])
    yield _sample_line("offered load", edges, "dim", "dash", hoverinfo="skip")
    reported = _samples_of(stretches, lambda one: enumerate(one.trace.indicators, 1), step)
    yield _sample_line("indicator", reported, "ink", "solid", hover=f"indicator: %{{y:.4~g}} {escape(unit)}")


def _cpus(sizing: Sizing, stretches: Sequence[_Stretch], step: int) -> Iterator[Json]:
    """A line for each instance, in the colour of its component."""
    components = [component.name for component in sizing.deployment.components]
    for instance in dict.fromkeys(name for stretch in stretches for name in stretch.trace.cpu):
        component, _, number = instance.rpartition("-")
        points = _samples_of(stretches, partial(_cpu, instance), step)
        colour = components.index(component) if component in components else 7
        dash = DASHES[(int(number) - 1) % 4] if number.isdigit() else "solid"
        yield _sample_line(
            instance, points, colour, dash, hover=f"{escape(instance)}: %{{y:.3~g}} % of its flavor's CPU"
        )


def _cpu(instance: str, stretch: _Stretch) -> Iterator[tuple[float, float | None]]:
    for end_s, cpu in zip(stretch.trace.ends_s, stretch.trace.cpu.get(instance, ()), strict=False):
        yield end_s, None if cpu is None else 100 * cpu


def _samples_of(
    stretches: Sequence[_Stretch], points_of: Callable[[_Stretch], Iterable[tuple[float, float | None]]], step: int = 1
) -> list[tuple[float | None, float | None]]:
    """Every `step`-th point of all loads, given by seconds since the load's beginning; nothing joins two loads."""
    points: list[tuple[float | None, float | None]] = []
    for stretch in stretches:
        points += [(stretch.begin_s + at, value) for at, value in islice(points_of(stretch), 0, None, step)]
        points.append((None, None))
    return points[:-1]


def _sample_line(
    name: str,
    points: Iterable[tuple[float | None, float | None]],
    colour: int | str,
    dash: str,
    **more: Any,  # noqa: ANN401 - of `scatter`
) -> Json:
    return scatter(name, points, colour, mode="lines", line={"width": 1.5, "dash": dash}, **more)

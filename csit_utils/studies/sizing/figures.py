"""Plots of a sizing: what each size carries, what its parts use, and where it begins to oscillate."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import islice
from statistics import fmean
from typing import Any

from csit_utils.report.figures import (
    DASHES,
    SYMBOLS,
    Figure,
    Json,
    Panel,
    axes,
    axis,
    bars,
    categories,
    no_choice,
    one_choice,
    rounded,
    scatter,
    stacked,
    step_of,
    thinned_words,
)
from csit_utils.studies.sizing.reported_values import reported_figure
from resources.libraries.python.model.service.spec import MeasuredSize, Offered, Sizing, Trace, Use
from resources.libraries.python.studies.sizing.model.record import SizingRecord

_SIZE = "vCPUs"
_FEW = 8
"""Largest number of sizes whose lines can be distinguished."""
_GAP = 0.06
"""Between two loads, of the time of one."""
_TICKS = 3
"""Of each load."""
_ROUND_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


def sizing_figures(anchor: str, record: SizingRecord, sizings: int = 1) -> list[Figure]:
    """Indicator, capacity, use and oscillation; none of what was not measured.

    Args:
        anchor: Of the record on its page.
        record: Of the sizing.
        sizings: How many are on the page: they share its bound of samples over time.
    """
    sizing = record.sizing
    if sizing is None or not any(size.offered for size in sizing.sizes):
        return []
    made = (
        _indicator,
        reported_figure,
        _capacity,
        _overhead,
        _use,
        partial(traces_figure, figures=sizings),
        _oscillation,
    )
    return [figure for make in made if (figure := make(anchor, record, sizing)) is not None]


def _measured(sizing: Sizing) -> list[tuple[int, MeasuredSize]]:
    return [(number, size) for number, size in enumerate(sizing.sizes) if size.offered]


def _facets(sizing: Sizing) -> tuple[str, ...]:
    """Few lines need no narrowing."""
    return (_SIZE,) if len(_measured(sizing)) > _FEW else ()


def _indicator(anchor: str, record: SizingRecord, sizing: Sizing) -> Figure:
    """Indicator against offered load, with the lines of the full load and of the threshold."""
    unit = sizing.workload.unit
    top = max(row.load for _, size in _measured(sizing) for row in size.offered)
    lines = [
        _straight(top, 1.0, "indicator = offered load", "dot"),
        _straight(top, sizing.workload.threshold, f"threshold, {100 * sizing.workload.threshold:g} %", "dash"),
    ]
    for number, size in _measured(sizing):
        texts = [
            f"{size.name}<br>offered {row.load:g} {escape(unit)}: {row.mean:.4g} ({100 * row.ratio:.3g} %)"
            + (f", standard deviation {row.stdev:.3g} of {len(row.indicators)}" if row.stdev is not None else "")
            for row in size.offered
        ]
        deviations = [row.stdev or 0.0 for row in size.offered]
        line = _line(number, size, [(row.load, row.mean) for row in size.offered], texts)
        if any(deviations):
            line["error_y"] = {"type": "data", "array": [rounded(value) for value in deviations], "thickness": 1}
        lines.append(line)
    layout = axes(f"offered load, {unit}", f"performance indicator, {unit}")
    title = f"{sizing.deployment.vnf_name}: indicator against offered load"
    simulated, facets = record.simulated, _facets(sizing)
    return no_choice(f"{anchor}-indicator", title, lines, layout, simulated=simulated, facets=facets)


def _capacity(anchor: str, record: SizingRecord, sizing: Sizing) -> Figure | None:
    """A bar for each size; what its text says is how many vCPUs it has."""
    sizes = [size for size in sizing.sizes if size.capacity is not None]
    if not sizes:
        return None
    unit = sizing.workload.unit
    ways: dict[str, tuple[str, Callable[[MeasuredSize], float]]] = {
        "capacity": (f"capacity, {unit}", lambda size: size.capacity or 0.0),
        "capacity per vCPU": (f"capacity per vCPU, {unit}", lambda size: (size.capacity or 0.0) / size.vcpus),
    }
    variants = {}
    for way, (quantity, value_of) in ways.items():
        least = [size.at_top for size in sizes]
        shown = bars(
            way,
            [(size.name, value_of(size)) for size in sizes],
            0,
            texts=[f"{'≥ ' * top}{value_of(size):.4g}" for size, top in zip(sizes, least, strict=True)],
            hover="%{x}: %{text}<br>%{customdata}",
            showlegend=False,
            textposition="outside",
            cliponaxis=False,
            customdata=[
                f"{size.vcpus:g} vCPUs, {size.memory_mb} MB{', the best' * (size.name == sizing.best)}{_interval(size)}"
                for size in sizes
            ],
            marker={"pattern": {"shape": ["/" if top else "" for top in least]}},
        )
        # A component below the other, so that many sizes fit beside each other.
        ticks = [f"{size.name.replace('-', '<br>')}<br>{size.vcpus:g} vCPU{'s' * (size.vcpus != 1)}" for size in sizes]
        layout = {
            "xaxis": {"type": "category", "tickvals": [size.name for size in sizes], "ticktext": ticks}
            | {"title": {"text": "size, in the order of measurement"}},
            "yaxis": axis(quantity),
            "meta": {"width": 100 + 60 * len(sizes)},
        }
        variants[way] = {"data": [shown], "layout": layout}
    title = f"{sizing.deployment.vnf_name}: capacity of each size"
    return one_choice(f"{anchor}-capacity", title, variants, simulated=record.simulated)


def _interval(size: MeasuredSize) -> str:
    at = size.capacities[0] if size.capacities else None
    return "" if at is None or at.estimate is None else f"<br>estimate {at.estimate:.4g}, {at.interval}"


def _overhead(anchor: str, record: SizingRecord, sizing: Sizing) -> Figure | None:
    """A bar with its interval for each size that others became by scaling."""
    if not sizing.overheads:
        return None
    traces = []
    for number, scaling in enumerate(dict.fromkeys(row.scaling for row in sizing.overheads)):
        rows = [row for row in sizing.overheads if row.scaling is scaling]
        traces.append(
            bars(
                f"scaling {scaling}",
                [(f"{row.base} to {row.size}", 100 * row.overhead_ratio) for row in rows],
                number,
                hover="%{x}: %{y:.0f} %<br>%{customdata}",
                customdata=[f"{row.vcpus_ratio:g} x vCPUs, {row.capacity_ratio:.2f} x capacity" for row in rows],
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [100 * (row.high - row.overhead_ratio) for row in rows],
                    "arrayminus": [100 * (row.overhead_ratio - row.low) for row in rows],
                },
            )
        )
    title = f"{sizing.deployment.vnf_name}: overhead of scaling, with 95 % intervals"
    layout = categories("overhead, % of the vCPUs")
    return no_choice(f"{anchor}-overhead", title, traces, layout, simulated=record.simulated)


def _use(anchor: str, record: SizingRecord, sizing: Sizing) -> Figure | None:
    """Resource use of the instances of each component at each load; the mean where there are several."""
    unit = sizing.workload.unit
    ways: dict[str, tuple[str, Callable[[Use], float | None]]] = {
        "CPU": ("CPU, % of the flavor's", lambda use: None if use.cpu is None else 100 * use.cpu),
        "memory": ("memory, % of the flavor's", lambda use: None if use.memory is None else 100 * use.memory),
        "network": (
            "network, Mbit/s sent and received",
            lambda use: None if use.network_bps is None else use.network_bps / 1e6,
        ),
    }
    components = [component.name for component in sizing.deployment.components]
    variants: Json = {}
    for way, (quantity, value_of) in ways.items():
        for _, size in _measured(sizing):
            lines = [
                line
                for number, name in enumerate(components)
                if (line := _component(size, name, number, value_of, quantity)) is not None
            ]
            variants[f"{way}|{size.name}"] = {"data": lines, "layout": axes(f"offered load, {unit}", quantity)}
    if not any(variant["data"] for variant in variants.values()):
        return None
    names = tuple(size.name for _, size in _measured(sizing))
    title = f"{sizing.deployment.vnf_name}: resource use by component"
    return Figure(f"{anchor}-use", title, record.simulated, (tuple(ways), names), variants)


def _component(
    size: MeasuredSize, name: str, colour: int, value_of: Callable[[Use], float | None], quantity: str
) -> Json | None:
    found = [(row.load, value) for row in size.offered if (value := _mean(row, name, value_of)) is not None]
    if not found:
        return None
    count = size.size.components[name].instances
    label = f"{name}, {size.size.components[name].flavor}{f' x {count}' if count > 1 else ''}"
    return scatter(
        label,
        found,
        colour,
        hover=f"{escape(label)}<br>offered %{{x:g}}: %{{y:.4~g}} ({escape(quantity)})",
        line={"width": 2},
        marker={"size": 7, "symbol": SYMBOLS[colour % len(SYMBOLS)]},
    )


def _mean(row: Offered, component: str, value_of: Callable[[Use], float | None]) -> float | None:
    values = [value for use in row.by_component().get(component, ()) if (value := value_of(use)) is not None]
    return fmean(values) if values else None


def _oscillation(anchor: str, record: SizingRecord, sizing: Sizing) -> Figure | None:
    """How far repetitions differ: beyond the capacity a service that sheds load begins to oscillate."""
    unit = sizing.workload.unit
    lines = []
    for number, size in _measured(sizing):
        rows = [(row, row.stdev) for row in size.offered if row.stdev is not None]
        texts = [
            f"{size.name}<br>offered {row.load:g} {escape(unit)}: standard deviation {stdev:.3g}" for row, stdev in rows
        ]
        lines.append(_line(number, size, [(row.load, stdev) for row, stdev in rows], texts))
    if not any(line["y"] for line in lines):
        return None
    title = f"{sizing.deployment.vnf_name}: standard deviation of repetitions"
    layout = axes(f"offered load, {unit}", f"standard deviation, {unit}")
    simulated, facets = record.simulated, _facets(sizing)
    return no_choice(f"{anchor}-oscillation", title, lines, layout, simulated=simulated, facets=facets)


def _straight(top: float, slope: float, name: str, dash: str) -> Json:
    points = [(0, 0), (top, slope * top)]
    return scatter(name, points, 6, mode="lines", hoverinfo="skip", line={"dash": dash, "width": 1.5})


def _line(number: int, size: MeasuredSize, points: Sequence[tuple[float, float]], texts: Sequence[str]) -> Json:
    return scatter(
        size.name,
        points,
        number,
        texts=texts,
        facets={_SIZE: f"{size.vcpus:g}"},
        line={"width": 2},
        marker={"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]},
    )


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
    return one_choice(f"{anchor}-traces", title, variants, simulated=record.simulated)


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
    return {
        "text": escape(f"{stretch.load:g} {unit}{at}{overload}"),
        "x": rounded(stretch.begin_s + _length_s(stretch.trace) / 2),
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
    edges = _samples_of(stretches, lambda one: [(at, one.load) for at in (0.0, float(len(one.trace.indicators)))])
    yield _sample_line("offered load", edges, 6, "dash", hoverinfo="skip")
    reported = _samples_of(stretches, lambda one: enumerate(one.trace.indicators, 1), step)
    yield _sample_line("indicator", reported, 0, "solid", hover=f"indicator: %{{y:.4~g}} {escape(unit)}")


def _cpus(sizing: Sizing, stretches: Sequence[_Stretch], step: int) -> Iterator[Json]:
    """A line for each instance, in the colour of its component."""
    components = [component.name for component in sizing.deployment.components]
    for instance in dict.fromkeys(name for stretch in stretches for name in stretch.trace.cpu):
        component, _, number = instance.rpartition("-")
        points = _samples_of(stretches, partial(_cpu, instance), step)
        colour = 1 + components.index(component) if component in components else 7
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
    colour: int,
    dash: str,
    **more: Any,  # noqa: ANN401 - of `scatter`
) -> Json:
    return scatter(name, points, colour, mode="lines", line={"width": 1.5, "dash": dash}, **more)

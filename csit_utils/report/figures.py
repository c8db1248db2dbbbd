"""Plotly figures as plain data.

Colours are indices of the page's palette; the page's script maps them to the light or the dark scheme.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import groupby
from math import ceil
from typing import Any

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.latency import POINTS_PER_DECADE, curve, merge
from csit_utils.analysis.verdicts import verdict_of_runs
from csit_utils.dataset.rows import LatencyRow
from csit_utils.report.units import common_unit, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell

Json = dict[str, Any]

ALL_INSTANCES = "all instances"
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon", "cross", "pentagon")
_AXES = ("by service instances", "by NFs per instance", "by all NFs")


FACETS = ("service type", "NF size", "vSwitch")
MOST_VALUES = 60_000
"""Upper bound of the values in the figures of a page, about 400 kB. CSV files have all samples."""
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_TEENS = (11, 12, 13)
_KEPT_VALUES = 1 << 14
_PANEL_PX = 210
"""Height of a panel."""
_GAP = 0.06
"""Gap between two panels, as a share of the figure's height."""


def facets(series: Series) -> dict[str, str]:
    """Return the properties by which a reader filters maps, lines or bars."""
    return {
        "service type": series.service_type,
        "NF size": series.nf_size or "unknown",
        "vSwitch": f"{series.vs_dtc}c" if series.vs_dtc is not None else "unknown",
    }


@dataclass(frozen=True)
class Figure:
    """A figure with variants to choose from.

    Traces are Plotly's, without colours: `meta.colour` is a number of the palette, the same for the same thing in all
    figures of a page. A trace of type `heatmap` has `meta.scale`, "sequential" (Cividis) or "diverging". Lines of
    `layout.shapes` and fonts of `layout.annotations` have a number of the palette or "ink", "dim", "grid" as colour.
    A logarithmic axis is Plotly's `"type": "log"`; `layout.height` is in pixels and 380 otherwise. Text from outside
    has to be escaped (`html.escape`), since Plotly reads a little markup.
    """

    identity: str
    title: str
    simulated: bool
    selectors: tuple[tuple[str, ...], ...]
    """Groups of choices; a variant's key is one choice of each, joined by `|`."""
    variants: Json
    """`{"data": [traces], "layout": {...}}` by key."""
    facets: tuple[str, ...] = ()
    """Names of filters of traces, each a drop-down list: a trace has its values in `meta.facets`,
    `{"NF size": "1c"}`. With too many lines, the page initially filters by the last ones."""

    def payload(self) -> Json:
        """Return the data of the page's script."""
        return {
            "title": escape(self.title),
            "simulated": self.simulated,
            "selectors": self.selectors,
            "facets": self.facets,
            "variants": self.variants,
        }


def density_figure(identity: str, title: str, found: Sequence[Matrix], called: Mapping[Series, str]) -> Figure | None:
    """Return throughput against density, a line per service length or per number of services."""
    if not found:
        return None
    variants: Json = {}
    metrics = [metric for metric in Metric if any(matrix.metric is metric for matrix in found)]
    for metric in metrics:
        chosen = [matrix for matrix in found if matrix.metric is metric]
        colours = list(called)
        factor, unit = common_unit([value for matrix in chosen for value in matrix.values()])
        for axis in _AXES:
            variants[f"{metric}|{axis}"] = {
                "data": [
                    line
                    for matrix in chosen
                    for line in _lines(matrix, called[matrix.series], colours.index(matrix.series), axis, factor)
                ],
                "layout": {
                    "xaxis": {"title": {"text": axis.removeprefix("by ")}, "dtick": 1, "rangemode": "tozero"},
                    "yaxis": {"title": {"text": f"{metric}, {unit}"}, "rangemode": "tozero"},
                },
            }
    return Figure(identity, title, found[0].series.system.simulated, (tuple(metrics), _AXES), variants, FACETS)


def _lines(matrix: Matrix, name: str, colour: int, axis: str, factor: float) -> Iterator[Json]:
    """One line per value of the other axis."""
    along = 1 if axis == _AXES[1] else 0
    valued = [
        (place, cell)
        for place, cell in matrix.cells.items()
        if cell.value_pps is not None and cell.state is not CellState.BELOW
    ]
    valued.sort(key=lambda pair: (pair[0][1 - along], pair[0][along]))
    for index, (fixed, group) in enumerate(groupby(valued, key=lambda pair: pair[0][1 - along])):
        points = list(group)
        label = f"{name}, {fixed} NF{'s' if fixed > 1 else ''} each"
        if along:
            label = f"{name}, {fixed} instance{'s' if fixed > 1 else ''}"
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": escape(label),
            "x": [place[0] * place[1] if axis == _AXES[2] else place[along] for place, _ in points],
            "y": [(cell.value_pps or 0) / factor for _, cell in points],
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [
                    ((cell.upper_pps or cell.value_pps or 0) - (cell.value_pps or 0)) / factor for _, cell in points
                ],
                "arrayminus": [0] * len(points),
                "thickness": 1,
                "width": 3,
            },
            "text": [_hover(matrix, name, place, cell) for place, cell in points],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "size": 9,
                "symbol": [
                    _SYMBOLS[index % len(_SYMBOLS)] + ("-open" if cell.oversubscribed else "") for _, cell in points
                ],
            },
            "line": {"dash": ("solid", "dash", "dot", "dashdot")[index % 4], "width": 2},
            "meta": {"colour": colour, "facets": facets(matrix.series)},
        }


def _hover(matrix: Matrix, name: str, place: tuple[int, int], cell: MatrixCell) -> str:
    mark = "<br>OVERSUBSCRIBED" if cell.oversubscribed else ""
    upper = f" … {rate(cell.upper_pps)}" if cell.upper_pps not in (None, cell.value_pps) else ""
    text = f"{name} {place[0]}x{place[1]}: {matrix.metric} {rate(cell.value_pps)}{upper}"
    return escape(f"{text} [{', '.join(verdict_of_runs(cell.runs, matrix.metric))}]") + mark


def latency_figure(identity: str, title: str, rows: Iterable[LatencyRow], *, simulated: bool) -> Figure | None:
    """Return latency by percentile, a line per load and direction; None without histograms."""
    known = [row for row in rows if row.histogram]
    by_instance: dict[int, list[LatencyRow]] = {}
    for row in known:
        by_instance.setdefault(row.instance, []).append(row)
    chosen = {ALL_INSTANCES: known} if len(by_instance) > 1 else {}
    chosen |= {str(instance): by_instance[instance] for instance in sorted(by_instance)}
    variants: Json = {}
    for choice, own in chosen.items():
        data = list(_curves(own))
        if data:
            variants[choice] = {"data": data, "layout": latency_layout(data)}
    return Figure(identity, title, simulated, (tuple(variants),), variants) if variants else None


def _curves(rows: Sequence[LatencyRow]) -> Iterator[Json]:
    lines: dict[tuple[str, str], list[LatencyRow]] = {}
    for row in rows:
        lines.setdefault((row.load, row.direction), []).append(row)
    loads = list(dict.fromkeys(load for load, _ in lines))
    for load in loads:
        for direction in ("forward", "reverse"):
            chosen = lines.get((load, direction), [])
            merged = merge(row.histogram for row in chosen if row.histogram)
            if merged is None:
                continue
            found = curve(merged)
            # The page's script computes x and texts, which would be nine tenths of a large page.
            yield {
                "type": "scatter",
                "mode": "lines",
                "name": escape(f"{load} {direction}"),
                "legendgroup": escape(load),
                "y": list(map(_drawn_us, found.values_ns)),
                "hovertemplate": f"{escape(load)} {direction}, {rate(chosen[0].load_pps)}"
                "<br>%{text}: %{y:.4~g} µs<extra></extra>",
                "line": {"dash": "solid" if direction == "forward" else "dot", "width": 2, "shape": "hv"},
                "meta": {"colour": loads.index(load), "samples": found.count, "perDecade": POINTS_PER_DECADE},
            }


@lru_cache(_KEPT_VALUES)
def _drawn_us(value_ns: int) -> float:
    """Latency in µs with as many digits as a figure shows; histograms have few different ones."""
    return float(f"{value_ns / 1000:.4g}")


def latency_layout(data: Sequence[Json]) -> Json:
    """Return the axes of latency in µs by percentile."""
    values = [value for line in data for value in line["y"]]
    reach = max(line["meta"]["samples"] for line in data)
    marks = [(1.0, "0"), (2.0, "50 %"), (10.0, "90 %")]
    marks += [(10.0**power, f"99.{'9' * (power - 2)}".rstrip(".") + " %") for power in range(2, 9)]
    shown = [mark for mark in marks if mark[0] <= reach * 1.01]
    wide = max(values) > 30 * max(min(values), 0.001)
    return {
        "xaxis": {
            "type": "log",
            "title": {"text": "percentile"},
            "tickvals": [mark[0] for mark in shown],
            "ticktext": [mark[1] for mark in shown],
        },
        "yaxis": {
            "title": {"text": "latency, µs"},
            **(_log_ticks(min(values), max(values)) if wide else {"rangemode": "tozero"}),
        },
    }


def _log_ticks(low: float, high: float) -> Json:
    """A logarithmic axis with whole numbers at 1, 2 and 5 of each decade."""
    marks = [factor * 10.0**power for power in range(-3, 9) for factor in (1, 2, 5)]
    inside = [mark for mark in marks if low / 2 <= mark <= high * 2]
    return {"type": "log", "tickvals": inside, "ticktext": [f"{mark:,g}" for mark in inside]}


def step_of(samples: int, figures: int = 1) -> int:
    """Return k, if every k-th sample is drawn: 1 for all.

    Args:
        samples: Number of samples of the figure.
        figures: Number of figures on the page.
    """
    return max(1, ceil(samples * figures / MOST_VALUES))


def thinned_words(step: int, samples: int) -> str:
    """Return a note for the title of a figure; empty if all samples are drawn."""
    ending = "th" if step % 100 in _TEENS else _ENDINGS.get(step % 10, "th")
    return f" (every {step}{ending} of {samples:,} samples)" if step > 1 else ""


@dataclass(frozen=True)
class Panel:
    """One quantity over the common axis."""

    axis: Json
    """Its vertical axis, as Plotly takes it."""
    traces: Sequence[Json]
    """Traces, named by their line in all panels; those without a value are omitted."""


def stacked(panels: Sequence[Panel], across: Json) -> Json:
    """Return a variant of a figure, the first panel on top; empty panels are omitted.

    Args:
        panels: Each with its traces.
        across: The common horizontal axis.
    """
    found = [(panel, drawn) for panel in panels if (drawn := [trace for trace in panel.traces if has_values(trace)])]
    layout: Json = {"height": 100 + _PANEL_PX * max(1, len(found))}
    data: list[Json] = []
    listed: set[str] = set()
    share = (1 + _GAP) / max(1, len(found))
    for number, (panel, traces) in enumerate(found):
        suffix = str(number + 1) if number else ""
        top = 1 - number * share
        layout[f"yaxis{suffix}"] = {**panel.axis, "domain": [round(max(0.0, top - share + _GAP), 4), round(top, 4)]}
        for trace in traces:
            # One entry in the legend stands for the line in all panels.
            legend = {"legendgroup": trace["name"], "showlegend": trace["name"] not in listed}
            listed.add(trace["name"])
            data.append({**trace, **({"yaxis": f"y{suffix}"} if suffix else {}), **legend})
    bottom = str(len(found)) if len(found) > 1 else ""
    return {"data": data, "layout": {**layout, "xaxis": {**across, "anchor": f"y{bottom}"}}}


def has_values(trace: Json) -> bool:
    """Whether a trace has a value."""
    return any(value is not None for value in trace["y"])

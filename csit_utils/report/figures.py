"""Plotly figures as plain data.

Colours are indices of the page's palette; the page's script maps them to the light or the dark scheme.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from math import ceil
from typing import Any

from csit_utils.analysis.latency import POINTS_PER_DECADE, curve, merge
from csit_utils.dataset.rows import LatencyRow
from csit_utils.report.units import rate

Json = dict[str, Any]
_Value = float | str | None
"""Coordinate of a point."""

ALL_INSTANCES = "all instances"
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon", "cross", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MAX_VALUES = 60_000
"""Upper bound of the values in the figures of a page, about 400 kB. CSV files have all samples."""
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_TEENS = (11, 12, 13)
OUTLINED = {"line": {"width": 1, "color": "rgba(127,127,127,.5)"}}
"""Marker of bars on each other."""
_KEPT_VALUES = 1 << 14
_PANEL_PX = 210
"""Height of a panel."""
_GAP = 0.06
"""Gap between two panels, as a share of the figure's height."""


@dataclass(frozen=True)
class Figure:
    """A figure with variants to choose from.

    Traces are Plotly's, without colours: `meta.colour` is a number of the palette, the same for the same thing in all
    figures of a page, or "ink" or "dim". A trace of type `heatmap` has `meta.scale`, "sequential" (Cividis) or
    "diverging". Lines of `layout.shapes` and fonts of `layout.annotations` have a number of the palette or "ink",
    "dim", "grid" as colour. A logarithmic axis is Plotly's `"type": "log"`; `layout.height` is in pixels and 380
    otherwise. Text from outside has to be escaped (`html.escape`), since Plotly reads a little markup.
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


def rounded(value: _Value) -> _Value:
    """Return a number with as many digits as a figure shows."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def scatter(
    name: str,
    points: Iterable[tuple[_Value, _Value]],
    colour: int | str,
    *,
    texts: Iterable[str] = (),
    hover: str = "%{text}",
    facets: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401 - attributes of Plotly
) -> Json:
    """Return a line with dots; with `mode`, a line or dots.

    `name`: its name in the legend, which is escaped; all other texts have to be.
    `colour`: number of the palette, or a word for a grey of the scheme, such as "dim".
    `texts`: a text for each point, to show while the pointer is on it.
    `hover`: template of the text; without `texts`, Plotly's own unless it is given.
    `facets`: values by which readers filter, see `Figure.facets`.
    """
    own, shown = list(points), list(texts)
    trace: Json = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name),
        "x": [rounded(x) for x, _ in own],
        "y": [rounded(y) for _, y in own],
        "meta": {"colour": colour, **({} if facets is None else {"facets": facets})},
    }
    if shown:
        trace["text"] = shown
    if shown or hover != "%{text}":
        trace["hovertemplate"] = f"{hover}<extra></extra>"
    return trace | more


def bars(
    name: str,
    points: Iterable[tuple[_Value, _Value]],
    colour: int | str,
    **more: Any,  # noqa: ANN401 - of `scatter`
) -> Json:
    """Return bars; arguments as for `scatter`. Texts are shown while the pointer is there, or by `textposition`."""
    trace = scatter(name, points, colour, **{"textposition": "none", **more})
    del trace["mode"]
    return trace | {"type": "bar"}


def axis(title: str) -> Json:
    """Return an axis from zero with its title, which is escaped."""
    return {"title": {"text": escape(title)}, "rangemode": "tozero"}


def one_choice(identity: str, title: str, variants: Json, *, simulated: bool) -> Figure | None:
    """Return a figure with a choice for each variant; None without any."""
    return Figure(identity, title, simulated, (tuple(variants),), variants) if variants else None


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
    return one_choice(identity, title, variants, simulated=simulated)


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
    """Return k, if every k-th sample is drawn: 1 for all."""
    return max(1, ceil(samples * figures / MAX_VALUES))


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

    `panels`: each with its traces.
    """
    drawn = ((panel, [trace for trace in panel.traces if _has_values(trace)]) for panel in panels)
    found = [(panel, traces) for panel, traces in drawn if traces]
    layout: Json = {"height": 100 + _PANEL_PX * max(1, len(found))}
    share = (1 + _GAP) / max(1, len(found))
    for number, (panel, _) in enumerate(found):
        top = 1 - number * share
        domain = [round(max(0.0, top - share + _GAP), 4), round(top, 4)]
        layout[f"yaxis{_suffix(number)}"] = {**panel.axis, "domain": domain}
    layout["xaxis"] = {**across, "anchor": f"y{_suffix(max(0, len(found) - 1))}"}
    return {"data": list(_on_axes("y", [traces for _, traces in found])), "layout": layout}


def side_by_side(panels: Mapping[str, Sequence[Json]], across: Json, up: Json) -> Json:
    """Return a variant of a figure: traces by the title of their panel, all panels with the same axes."""
    layout: Json = {"annotations": [], "meta": {"width": 100 + _PANEL_PX * len(panels)}}
    share = (1 + _GAP / 2) / max(1, len(panels))
    for number, title in enumerate(panels):
        suffix, left = _suffix(number), number * share
        domain = [round(left, 4), round(min(1.0, left + share - _GAP / 2), 4)]
        x: Json = {"matches": "x"} if number else {}
        y: Json = {"matches": "y", "showticklabels": False, "title": {"text": ""}} if number else {}
        layout[f"xaxis{suffix}"] = {**across, "domain": domain, "anchor": f"y{suffix}", **x}
        layout[f"yaxis{suffix}"] = {**up, "anchor": f"x{suffix}", **y}
        layout["annotations"].append(above(title, sum(domain) / 2, xref="paper"))
    return {"data": list(_on_axes("xy", panels.values())), "layout": layout}


def above(text: str, x: float, **more: object) -> Json:
    """Return a text above the plot, which is escaped."""
    place = {"x": rounded(x), "xref": "x", "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    return {"text": escape(text), "font": {"color": "ink", "size": 12}, **place, **more}


def _suffix(number: int) -> str:
    """End of the names of a panel's axes."""
    return str(number + 1) if number else ""


def _on_axes(letters: str, panels: Iterable[Sequence[Json]]) -> Iterator[Json]:
    """Traces on the axes of their panels; one entry in the legend stands for the line in all of them."""
    listed: set[str] = set()
    for number, traces in enumerate(panels):
        axes = {f"{letter}axis": f"{letter}{_suffix(number)}" for letter in letters if number}
        for trace in traces:
            yield {**trace, **axes, "legendgroup": trace["name"], "showlegend": trace["name"] not in listed}
            listed.add(trace["name"])


def _has_values(trace: Json) -> bool:
    return any(value is not None for value in trace["y"])

"""Throughput by the number of cores, with the lines that it cannot cross."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import inf

from csit_utils.dataset.rows import THROUGHPUTS, TestRow
from csit_utils.report.figures import Figure, Json, axis, scatter
from csit_utils.report.units import common_unit, rate
from csit_utils.studies.density.analysis.density import Matrix
from csit_utils.studies.density.analysis.efficiency import NF, VSWITCH, Speedup, speedups

_RATE, _FACTOR = "throughput", "relative to the fewest cores"
_ABOVE = 1.6
"""Limits further above the highest figure than this are said and not drawn: they would flatten the rest."""


@dataclass(frozen=True)
class SpeedupLimits:
    """Upper bounds of the testbed, in packets per second, sum of both directions; None where it is unknown."""

    line_pps: float | None = None
    """Both links at their line rate."""
    generator_pps: float | None = None
    """The highest rate that the generator offered in any test."""

    def named(self) -> Iterator[tuple[str, float]]:
        """Those that are known."""
        if self.line_pps is not None:
            yield "line rate of both links", self.line_pps
        if self.generator_pps is not None:
            yield "highest rate that the generator offered", self.generator_pps


def generator_limit(rows: Sequence[TestRow]) -> float | None:
    """Highest load offered by MRR tests with these frames."""
    offered = (pps for row in rows for pps in (row.mrr_offered_pps, row.orr_offered_pps) if pps is not None)
    return max(offered, default=None)


def speedup_figure(identity: str, title: str, found: Sequence[Matrix], limits: SpeedupLimits) -> Figure | None:
    """A line per cell, with its perfect scaling dotted beside it; None where no cell has two sizes.

    `found`: matrices that may be compared.
    """
    every = speedups(found)
    axes = [each for each in (VSWITCH, NF) if any(one.axis == each for one in every)]
    metrics = [metric for metric in THROUGHPUTS if any(one.metric == metric for one in every)]
    variants = {}
    for metric in metrics:
        for each in axes:
            chosen = [one for one in every if (one.metric, one.axis) == (metric, each)]
            if chosen:
                variants[f"{metric}|{each}|{_RATE}"] = _rates(chosen, limits)
                variants[f"{metric}|{each}|{_FACTOR}"] = _factors(chosen)
    if not variants:
        return None
    # Every metric has every axis: all metrics of a block come from the same sizes, or nearly so.
    kept = [metric for metric in metrics if all(f"{metric}|{each}|{_RATE}" in variants for each in axes)]
    selectors = (tuple(kept), tuple(axes), (_RATE, _FACTOR))
    facets = ("service type", "other size", "cell")
    return Figure(identity, title, found[0].series.system.simulated, selectors, variants, facets) if kept else None


def _rates(chosen: Sequence[Speedup], limits: SpeedupLimits) -> Json:
    highest = max(point.rate_pps for one in chosen for point in one.points)
    factor, unit = common_unit([highest])
    shapes, notes = [], []
    for name, value in limits.named():
        if value <= _ABOVE * highest:
            shapes.append(_line(value / factor))
            notes.append(_note(f"{name}: {rate(value)}", value / factor))
    kinds = list(dict.fromkeys(map(_kind, chosen)))
    perfect = max(one.perfect_pps(one.points[-1].cores) for one in chosen)
    drawn = (value for _, value in limits.named() if value <= _ABOVE * highest)
    top = max(highest, min(perfect, _ABOVE * highest), *drawn) / factor
    data = [line for one in chosen for line in _lines(one, kinds.index(_kind(one)), factor, top)]
    yaxis = {"title": {"text": f"{chosen[0].metric}, {unit}"}, "range": [0, top * 1.08]}
    return {"data": data, "layout": {**_cores_axis(chosen), "yaxis": yaxis, "shapes": shapes, "annotations": notes}}


def _factors(chosen: Sequence[Speedup]) -> Json:
    kinds = list(dict.fromkeys(map(_kind, chosen)))
    data = [line for one in chosen for line in _lines(one, kinds.index(_kind(one)))]
    yaxis = axis(f"{chosen[0].metric} relative to the fewest cores")
    return {"data": data, "layout": {**_cores_axis(chosen), "yaxis": yaxis}}


def _kind(one: Speedup) -> tuple[str, str]:
    """What has a colour of its own; its cells are chosen one by one."""
    return one.service_type, one.other


def _cores_axis(chosen: Sequence[Speedup]) -> Json:
    cores = sorted({point.cores for one in chosen for point in one.points})
    return {"xaxis": {"title": {"text": chosen[0].axis}, "tickvals": cores, "range": [0, cores[-1] * 1.1]}}


def _line(at: float) -> Json:
    across = {"xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at}
    return {"type": "line", **across, "line": {"dash": "dashdot", "width": 1.5, "color": "ink"}}


def _note(text: str, at: float) -> Json:
    where = {"xref": "paper", "x": 0.01, "xanchor": "left", "y": at, "yanchor": "bottom"}
    return {"text": escape(text), **where, "showarrow": False, "font": {"size": 11, "color": "ink"}}


def _lines(one: Speedup, number: int, factor: float | None = None, top: float = inf) -> Iterator[Json]:
    """The figures, and perfect scaling from the first of them, up to the top; by multiples with `factor` None."""
    cell = f"{one.place[0]}x{one.place[1]}"
    name = f"{one.service_type} {cell}, {one.other}"
    common: Json = {
        "facets": {"service type": one.service_type, "other size": one.other, "cell": cell},
        "legendgroup": escape(name),
    }
    cores = [point.cores for point in one.points]
    hover = [
        escape(f"{one.service_type} {cell}, {one.other}, {point.cores:g} {one.axis}: {rate(point.rate_pps)}")
        + f"<br>{one.factor(point):.2f} times, linear would be {point.cores / cores[0]:g}"
        + ("<br>OVERSUBSCRIBED" if point.cell.oversubscribed else "")
        for point in one.points
    ]
    yield scatter(
        name,
        [(point.cores, one.factor(point) if factor is None else point.rate_pps / factor) for point in one.points],
        number,
        texts=hover,
        marker={"size": 9, "symbol": ["circle-open" if p.cell.oversubscribed else "circle" for p in one.points]},
        line={"width": 2},
        **common,
    )
    slope = 1 / cores[0] if factor is None else one.perfect_pps(1) / factor
    last = min(cores[-1], top / slope)
    yield scatter(
        "perfect scaling",
        [(at, at * slope) for at in (cores[0], last)],
        number,
        mode="lines",
        showlegend=False,
        hoverinfo="skip",
        line={"width": 1.5, "dash": "dot"},
        **common,
    )

"""Spread of repeated runs: a box plot per cell and level, with all points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from statistics import fmean, median, quantiles, stdev
from types import MappingProxyType

from csit_utils.analysis.cells import CellFigure, CellMetric, resolution
from csit_utils.analysis.grouping import Series, blocks_of, series_names
from csit_utils.analysis.trends.steps import MIN_D, Step, TwoBands, find_two_bands, unseen_two_bands
from csit_utils.dataset.rows import THROUGHPUTS
from csit_utils.report.figures import Figure, Json
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import common_unit
from resources.libraries.python.search.findings.unseen_bands import UnseenBands

_WHISKER = 1.5
"""Reach of whiskers in interquartile ranges (Tukey)."""
_NO_STEPS: Mapping[CellMetric, Sequence[Step]] = MappingProxyType({})


@dataclass(frozen=True)
class Box:
    """Box-plot statistics; quartiles are interpolated linearly, with both ends included."""

    count: int
    low: float
    """Lowest figure within 1.5 interquartile ranges below the first quartile."""
    first: float
    median: float
    third: float
    high: float


@dataclass(frozen=True)
class Repeats:
    """Runs of one cell at one level."""

    cell: CellMetric
    figures: tuple[CellFigure, ...]
    """In the order of time, at least two."""
    mean_pps: float
    stdev_pps: float
    box: Box
    bands: TwoBands | None
    unseen: UnseenBands | None
    """Chance that so many runs miss two bands; None where they show them."""
    level: int = 1
    """Number of the level, from 1 for the oldest."""
    levels: int = 1
    """Number of levels: one more than steps."""

    @property
    def variation(self) -> float:
        """Coefficient of variation: standard deviation over mean; 0.0 for a mean of 0."""
        return self.stdev_pps / self.mean_pps if self.mean_pps else 0.0

    @property
    def visible_gap(self) -> float:
        """Smallest distance of two bands that is seen beside such a variation, relative to the mean."""
        return MIN_D * self.variation

    @property
    def nights(self) -> tuple[str, str] | None:
        """First and last day such as `2026-11-01`; None if unknown."""
        days = [each.row.started_at[:10] for each in self.figures if each.row.started_at]
        return (days[0], days[-1]) if days else None


def box(values: Sequence[float]) -> Box:
    """Return the box-plot statistics of at least one figure."""
    ordered = sorted(values)
    first, middle, third = quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else [ordered[0]] * 3
    reach = _WHISKER * (third - first)
    inside = [value for value in ordered if first - reach <= value <= third + reach]
    return Box(len(ordered), inside[0], first, middle, third, inside[-1])


def repeats(
    figures: Mapping[CellMetric, Sequence[CellFigure]], steps: Mapping[CellMetric, Sequence[Step]] = _NO_STEPS
) -> list[Repeats]:
    """Return cells with repeated runs, largest variation first; one entry per level, which begin at steps.

    `figures`: by cell, in the order of time, see `cells.figures`.
    """
    found = []
    for cell, every in figures.items():
        ends = [0, *(step.index for step in steps.get(cell, ())), len(every)]
        for level, (begin, end) in enumerate(pairwise(ends), 1):
            own = every[begin:end]
            if len(own) > 1:
                found.append(_repeats(cell, own, level, len(ends) - 1))
    return sorted(found, key=lambda each: -each.variation)


def _repeats(cell: CellMetric, found: Sequence[CellFigure], level: int, levels: int) -> Repeats:
    values, least_pps = [each.value_pps for each in found], resolution(found, cell.metric)
    bands = find_two_bands(values, least_pps)
    return Repeats(
        cell,
        tuple(found),
        fmean(values),
        stdev(values),
        box(values),
        bands,
        None if bands else unseen_two_bands(values, least_pps),
        level,
        levels,
    )


FEWEST = 3
"""Fewest runs for a box."""
_LISTED = 100
AGAINST = "against the median"
RATES = "rates"
_MIN_PX = 100
_BOX_PX = 22
"""Width of a box with its label."""


@dataclass(frozen=True)
class OfSeries:
    """Repeated cells of a series."""

    series: Series
    cells: tuple[Repeats, ...]


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    of_tests = [trend for trend in shown.trends if trend.cell.metric in THROUGHPUTS]
    figures = {trend.cell: trend.figures for trend in of_tests}
    steps = {trend.cell: trend.steps for trend in of_tests if trend.steps}
    found = [each for each in repeats(figures, steps=steps) if each.box.count >= FEWEST]
    if not found:
        return None
    by_series: dict[Series, list[Repeats]] = {}
    for each in found:
        by_series.setdefault(each.cell.series, []).append(each)
    plots: list[Figure] = []
    parts = [OfSeries(series, tuple(own)) for series, own in sorted(by_series.items())]
    for number, (heading, own) in enumerate(blocks_of(parts), 1):
        called = series_names([part.series for part in own])
        figure = boxes_figure(
            f"spread-{number}", f"Repeated runs, {heading}", {called[part.series]: part.cells for part in own}
        )
        if figure is not None:
            plots.append(figure)
    stepped = sum(each.levels > 1 and each.level == each.levels for each in found)
    banded = sum(each.bands is not None for each in found)
    return {
        "cells": found[:_LISTED],
        "all_cells": len(found),
        "banded": banded,
        "stepped": stepped,
        "level_text": level_text,
        "fewest": FEWEST,
        "resolution": _resolution(found),
        "plots": plots,
        "figures": plots,
    }


def _resolution(found: Iterable[Repeats]) -> float | None:
    """Median of what searches resolve, as a share of the rate and to either side; None without a search."""
    searched = [each for each in found if each.cell.metric.goal and each.cell.metric.complete and each.box.median > 0]
    return (
        median(resolution(each.figures, each.cell.metric) / each.box.median for each in searched) if searched else None
    )


PAGE = Page("spread", "Repeated runs", _build, group="History")


def boxes_figure(identity: str, title: str, found: Mapping[str, Sequence[Repeats]]) -> Figure | None:
    """Return a figure with a box and its points for every level of every cell.

    Its reader selects series, metric, and rates or their distance from the median.

    `found`: repeated cells by the name of their series, all of one system.
    """
    present = {each.cell.metric for own in found.values() for each in own}
    metrics = [metric for metric in THROUGHPUTS if metric in present]
    variants: Json = {}
    for name, own in found.items():
        for metric in metrics:
            chosen = sorted(
                (each for each in own if each.cell.metric == metric and each.box.median > 0),
                key=lambda each: (each.cell.dimensions, each.level),
            )
            factor, unit = common_unit([figure.value_pps for each in chosen for figure in each.figures])
            for way in (AGAINST, RATES):
                scales = [(100 / each.box.median, -100.0) if way == AGAINST else (1 / factor, 0.0) for each in chosen]
                axis = f"{metric} off its median, %" if way == AGAINST else f"{metric}, {unit}"
                variants[f"{way}|{name}|{metric}"] = _variant(chosen, scales, axis)
    if not variants:
        return None
    simulated = next(iter(found.values()))[0].cell.series.system.simulated
    return Figure(identity, title, simulated, ((AGAINST, RATES), tuple(found), tuple(metrics)), variants)


def place(each: Repeats) -> str:
    """Return the name of a cell on the axis, with nights if it has several levels: `to 11-12`, `from 11-13`."""
    cell = str(each.cell.dimensions)
    if each.levels == 1:
        return cell
    text = level_text(each)
    if each.nights is not None and each.level in (1, each.levels):
        first, _, last = text.partition(" to ")
        text = f"to {last}" if each.level == 1 else f"from {first}"
    return f"{cell}<br>{text}"


def level_text(each: Repeats) -> str:
    """Return the nights of a level: `11-01 to 11-12`, with years if they differ."""
    if each.nights is None:
        return f"level {each.level} of {each.levels}"
    first, last = each.nights
    return f"{first[5:]} to {last[5:]}" if first[:4] == last[:4] else f"{first} to {last}"


def _variant(chosen: Sequence[Repeats], scales: Sequence[tuple[float, float]], axis: str) -> Json:
    """Boxes of cells, whose rates are scaled by a factor and an offset each."""

    def scaled(values: Iterable[float]) -> list[float]:
        return [_short(value * by + more) for value, (by, more) in zip(values, scales, strict=True)]

    boxes = [each.box for each in chosen]
    trace = {
        "type": "box",
        "name": axis,
        "showlegend": False,
        "x": [place(each) for each in chosen],
        "q1": scaled(box.first for box in boxes),
        "median": scaled(box.median for box in boxes),
        "q3": scaled(box.third for box in boxes),
        "lowerfence": scaled(box.low for box in boxes),
        "upperfence": scaled(box.high for box in boxes),
        "mean": scaled(each.mean_pps for each in chosen),
        "y": [
            [_short(figure.value_pps * by + more) for figure in each.figures]
            for each, (by, more) in zip(chosen, scales, strict=True)
        ],
        "text": [[_run_label(each, index) for index in range(len(each.figures))] for each in chosen],
        "hovertemplate": "%{x}: %{y:.4~g}, %{text}<extra></extra>",
        "hoveron": "points",
        "boxpoints": "all",
        "jitter": 0.6,
        "pointpos": 0,
        "marker": {"size": 4, "opacity": 0.65},
        "meta": {"colour": 0},
    }
    counts = {each.box.count for each in chosen}
    runs = f", {min(counts)} runs each" if len(counts) == 1 else ""
    # Show the number of runs above each box if it varies.
    tops = scaled(max(figure.value_pps for figure in each.figures) for each in chosen)
    marks = [
        {
            "x": place(each),
            "y": top,
            "text": "<br>".join([*([] if runs else [f"n {each.box.count}"]), *(["two bands"] if each.bands else [])]),
            "showarrow": False,
            "yanchor": "bottom",
            "yshift": 4,
            "font": {"size": 10, "color": 1 if each.bands else "dim"},
        }
        for each, top in zip(chosen, tops, strict=True)
        if each.bands or not runs
    ]
    layout = {
        "xaxis": {"title": {"text": f"cell: instances x NFs{runs}"}, "type": "category", "tickangle": "auto"},
        "yaxis": {"title": {"text": axis}},
        "annotations": marks,
        "meta": {"width": _MIN_PX + _BOX_PX * len(chosen)},
    }
    return {"data": [trace] if chosen else [], "layout": layout}


def _short(value: float) -> float:
    """Round to five digits, to keep pages small."""
    return float(f"{value:.5g}")


def _run_label(each: Repeats, index: int) -> str:
    row = each.figures[index].row
    band = "" if each.bands is None else ", lower band" if each.bands.in_lower[index] else ", upper band"
    return escape((row.label or row.started_at or "")[:16].replace("T", " ") + band)

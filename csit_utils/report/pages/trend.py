"""History of every cell, and its changes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import median

from markupsafe import Markup

from csit_utils.analysis.cells import CellMetric
from csit_utils.analysis.grouping import System, asks_for
from csit_utils.analysis.runs import History, Run, called
from csit_utils.analysis.trends.events import (
    CHANCE,
    NEIGHBOURS,
    CellEvent,
    events,
    level_around,
    newest_first,
    probable_events,
)
from csit_utils.analysis.trends.trend import ALPHA, FEWEST, SUSPICION, Trend, TrendState
from csit_utils.dataset.measures import PPS
from csit_utils.dataset.rows import MEASURES, TestRow
from csit_utils.report.figures import Figure, Json
from csit_utils.report.links import CellNames
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from csit_utils.report.report_context import ReportContents
from csit_utils.report.stack_sides import CellStacks, cells_with_stacks, difference_graphs
from csit_utils.report.study import Page
from csit_utils.report.trend_events import event_groups
from csit_utils.report.units import amount, percent, unit
from csit_utils.studies.registry import measures
from resources.libraries.python.studies.density.model import DensityRecord

WIDTH, HEIGHT = 150, 34
_MARGIN = 5.0
_MIN_SPAN = 0.06
"""Least range of the axis relative to the middle value, so that small noise does not fill the plot."""

_Place = Callable[[float], float]


class SmallTrend:
    """The sparkline of a cell."""

    def __init__(self, trend: Trend, found: Sequence[CellEvent], names: CellNames, line: "Timeline") -> None:
        marks = [
            Mark(line.number(event.after.row), event.level_after_pps, event.better, bool(event.doubt))
            for event in found
        ]  # fmt: skip
        levels = [
            (line.number(trend.figures[first].row), line.number(trend.figures[last].row), value)
            for first, last, value in levels_of(trend, found)
        ]
        cell = trend.cell
        self.address, self.name = names.address(cell), f"{names.short(cell)} {cell.metric}"
        self.spark = sparkline(line.values(trend), levels, marks, line.failed(cell))
        self.latest = amount(cell.metric, cell.series, trend.values[-1])
        doubts = dict.fromkeys(event.doubt for event in found if event.doubt)
        self.kinds = (trend.state.replace(" ", "-"), *doubts)
        """CSS classes: its state, and whether a change is suspected or probable."""
        self.note = _note(trend, found)
        """The change as short text."""


class SteadyCell:
    """A cell without a change, in a line of a table."""

    def __init__(self, trend: Trend, names: CellNames, line: "Timeline") -> None:
        usual = [value for index, value in enumerate(trend.values) if index not in trend.outliers]
        middle = median(usual)
        cell = trend.cell
        self.trend, self.address, self.name = trend, names.address(cell), names.short(cell)
        self.latest = amount(cell.metric, cell.series, trend.values[-1])
        self.spread = (max(usual) - min(usual)) / middle if middle else None
        """Difference of its highest and lowest figure without outliers, relative to the median."""
        self.note = describe(trend, (), len(line.failed(cell)))


class Timeline:
    """Runs of a system, and the tests that did not pass in them."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._numbers = {run.rows[0].run: number for number, run in enumerate(runs)}
        self._bad: dict[tuple[str, object, object], list[TestRow]] = {}
        for run in runs:
            for row in run.rows:
                if row.status != "PASS":
                    self._bad.setdefault((row.run, row.service_type, row.dimensions), []).append(row)

    def number(self, row: TestRow) -> int:
        """Return the number of the run of a test."""
        return self._numbers[row.run]

    def values(self, trend: Trend) -> list[float | None]:
        """Return the last figure of each run; None without one."""
        found: list[float | None] = [None] * len(self.runs)
        for each in trend.figures:
            found[self.number(each.row)] = each.value_pps
        return found

    def failed(self, cell: CellMetric) -> dict[int, TestRow]:
        """Return tests for a figure of a cell that did not pass, by number of the run."""
        sizes = {(cell.series.nf_size, cell.series.vs_dtc), (None, None)}
        return {
            number: row
            for number, run in enumerate(self.runs)
            for row in self._bad.get(
                (run.rows[0].run, cell.series.service_type, cell.dimensions), ()
            )
            if asks_for(row, cell.metric) and (row.nf_size, row.vs_dtc) in sizes
        }  # fmt: skip


def timelines(history: History, trends: Iterable[Trend]) -> dict[System, Timeline]:
    """Return the timelines of all systems with a trend."""
    found = {}
    for system in dict.fromkeys(trend.cell.series.system for trend in trends):
        testbed = next(
            one
            for one in history.testbeds
            if (one.name, one.simulated, one.world, one.origin)
            == (system.testbed, system.simulated, system.world, system.origin)
        )
        found[system] = Timeline(history.of(testbed))
    return found


def trend_groups(
    trends: Sequence[Trend], found: Sequence[CellEvent], names: CellNames, lines: Mapping[System, Timeline]
) -> list[tuple[System, list[SmallTrend]]]:
    """Return cells, given in their order, by testbed."""
    by_cell = _by_cell(found)
    return [
        (system, [SmallTrend(each, by_cell.get(each.cell, []), names, lines[system]) for each in own])
        for system, own in groupby(trends, key=lambda trend: trend.cell.series.system)
    ]


def _by_cell(found: Iterable[CellEvent]) -> Mapping[CellMetric, list[CellEvent]]:
    by_cell: dict[CellMetric, list[CellEvent]] = {}
    for event in found:
        by_cell.setdefault(event.trend.cell, []).append(event)
    return by_cell


def _note(trend: Trend, found: Iterable[CellEvent]) -> str:
    if trend.suspected is not None:
        return f"{percent(trend.suspected, signed=True)} ?"
    if trend.steps:
        return percent(trend.steps[-1].change, signed=True)
    for event in found:
        return f"{percent(event.change, signed=True)} {event.doubt}"
    if trend.drift is not None:
        return f"drift {percent(trend.drift.change, signed=True)}"
    return "two bands" if trend.bands is not None else ""


def levels_of(trend: Trend, found: Iterable[CellEvent]) -> list[tuple[int, int, float]]:
    """Return first index, last index and value of each level; two constant levels for two bands.

    `found`: its events, of which probable ones begin a level as steps do.
    """
    if trend.bands is not None:
        last = len(trend.figures) - 1
        return [(0, last, trend.bands.upper), (0, last, trend.bands.lower)]
    if len(trend.figures) < 2 or trend.state is TrendState.TOO_FEW or trend.drift is not None:
        return []
    places = {step.index for step in trend.steps} | {event.index for event in found if event.probable}
    return [
        (one, two - 1, median(trend.values[one:two])) for one, two in pairwise((0, *sorted(places), len(trend.figures)))
    ]


@dataclass(frozen=True)
class Mark:
    """An event of a series."""

    index: int
    value: float
    better: bool
    hollow: bool = False
    """Suspected or probable."""


def sparkline(
    values: Sequence[float | None],
    levels: Sequence[tuple[int, int, float]] = (),
    marks: Iterable[Mark] = (),
    failed: Iterable[int] = (),
) -> Markup:
    """Return the SVG of a series.

    Args:
        values: One per night in the order of time; None is a gap.
        levels: First and last night, inclusive, and value of each, drawn as a step line.
        marks: Triangles in the direction of the change, hollow ones if it is not confirmed.
        failed: Nights whose test did not pass, each a tick.
    """
    known = [value for value in values if value is not None]
    if not known:
        return _svg(_ticks(failed, len(values)))
    low, high = _reach(known)

    def x(index: float) -> float:
        return _MARGIN + index * (WIDTH - 2 * _MARGIN) / max(1, len(values) - 1)

    def y(value: float) -> float:
        return HEIGHT - _MARGIN - (value - low) * (HEIGHT - 2 * _MARGIN) / (high - low)

    parts = [f'<path class="v" d="{_line(values, x, y)}"/>']
    if levels:
        steps = "".join(f"M{_at(x(first))} {_at(y(value))}H{_at(x(last))}" for first, last, value in levels)
        parts.append(f'<path class="l" d="{steps}"/>')
    for mark in marks:
        way = -1 if mark.better else 1
        kind = ("up" if mark.better else "down") + (" open" if mark.hollow else "")
        tip = min(HEIGHT - 1.0, max(1.0, y(mark.value) + 4 * way))
        parts.append(f'<path class="{kind}" d="M{_at(x(mark.index))} {_at(tip)}l-4 {-6 * way}h8z"/>')
    return _svg([*parts, *_ticks(failed, len(values))])


def _reach(known: Sequence[float]) -> tuple[float, float]:
    low, high = min(known), max(known)
    middle = (low + high) / 2
    half = max((high - low) / 2, _MIN_SPAN / 2 * abs(middle)) or 1.0
    return middle - half, middle + half


def _line(values: Sequence[float | None], x: _Place, y: _Place) -> str:
    """A path with gaps; a single night is a dot."""
    parts, pen = [], False
    for index, value in enumerate(values):
        if value is not None:
            parts.append(f"{'L' if pen else 'M'}{_at(x(index))} {_at(y(value))}")
            alone = not pen and (index + 1 == len(values) or values[index + 1] is None)
            parts += ["h.1"] if alone else []
        pen = value is not None
    return "".join(parts)


def _ticks(failed: Iterable[int], count: int) -> Iterator[str]:
    step = (WIDTH - 2 * _MARGIN) / max(1, count - 1)
    lines = "".join(f"M{_at(_MARGIN + index * step)} {HEIGHT}v-6" for index in failed)
    if lines:
        yield f'<path class="f" d="{lines}"/>'


def _at(value: float) -> str:
    """A coordinate with 0.1 pixel resolution, as short text."""
    return f"{value:.1f}".removesuffix(".0")


def _svg(parts: Iterable[str]) -> Markup:
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true"'
    # Contains numbers and constants only, so it needs no escaping.
    return Markup(f'<svg class="spark" {box}>{"".join(parts)}</svg>')  # noqa: S704


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    trends = [trend for trend in shown.trends if len({each.row.run for each in trend.figures}) > 1]
    if not trends:
        return None
    judged = [trend for trend in trends if trend.state is not TrendState.TOO_FEW]
    every = newest_first([*events(judged), *probable_events(judged)])
    found = [event for event in every if event.acknowledged is None]
    known = [event for event in every if event.acknowledged is not None]
    names = CellNames(trend.cell for trend in trends)
    lines = timelines(shown.whole_history, trends)
    with_event = _by_cell(every)
    steady = [
        SteadyCell(trend, names, lines[trend.cell.series.system])
        for trend in judged
        if trend.state is TrendState.STEADY and trend.cell not in with_event
    ]
    even = {each.trend.cell for each in steady}
    few = list(_few(trends, names))
    return {
        "groups": trend_groups([trend for trend in judged if trend.cell not in even], every, names, lines),
        "steady": steady,
        "widest": max((each for each in steady if each.spread is not None), key=attrgetter("spread"), default=None),
        "changes": event_groups(found, names, shown.contents.environments),
        "acknowledged": event_groups(known, names, shown.contents.environments),
        "stacks": difference_graphs(_stacks_at(found, names, shown.contents.record)),
        "common": names.common,
        "judged": len(judged),
        "few": few,
        "with_few": len(trends) - len(judged),
        "counts": Counter(
            [
                *(str(trend.state) for trend in judged if trend.state is not TrendState.STEADY),
                *(event.doubt for event in every if event.doubt),
            ]
        ),
        "fewest": FEWEST,
        "alpha": ALPHA,
        "suspicion": SUSPICION,
        "neighbours": NEIGHBOURS,
        "chance": CHANCE,
        "data": payload(trends, every, names, lines),
        "figures": few,
    }


def _few(trends: Iterable[Trend], names: CellNames) -> Iterator[Figure]:
    """Yield for each system a plot of the cells with too few runs to distinguish a step from noise."""
    metrics = (*MEASURES, *measures())
    systems: dict[System, list[Row]] = {}
    for trend in sorted(trends, key=lambda trend: metrics.index(trend.cell.metric)):
        first = trend.values[0]
        if trend.state is TrendState.TOO_FEW and first:
            cell, series = trend.cell, trend.cell.series
            kind = series.service_type if cell.of_matrix else ""
            systems.setdefault(series.system, []).extend(
                {
                    "shown": " · ".join(filter(None, (kind, cell.metric))),
                    "cell": names.short(cell),
                    "run": f"{each.at:%Y-%m-%d %H:%M}",
                    "change": each.value_pps / first - 1,
                    "amount": amount(cell.metric, series, each.value_pps),
                }
                for each in trend.figures
            )
    for number, (system, rows) in enumerate(systems.items(), 1):
        plot = Plot(
            str(number),
            f"{system.title}: change since the first run",
            "few",
            Column("run", options={"type": "date"}),
            Column("change", "change since the first run, %", scale=100),
            colour="cell",
            choose=("shown",),
            mark="markers",
            hover=("amount",),
        )
        figure = plot.draw(RecordTables("trend-few", system.simulated, None, {"few": rows}))
        if figure is not None:
            yield figure


PAGE = Page("trend", "Trend", _build, group="History")


def _stacks_at(
    found: Sequence[CellEvent], names: CellNames, record: Callable[[str], DensityRecord]
) -> Iterator[tuple[str, CellStacks]]:
    """Yield the cells with call stacks on both sides of a step, each cell once for a run in which it changed."""
    seen = set()
    for event in found:
        key = names.short(event.trend.cell), event.after.row.run
        if key in seen:
            continue
        seen.add(key)
        figures, first, last = event.trend.figures, *level_around(event)
        before, after = (
            [each.row for each in some] for some in (figures[first : event.index], figures[event.index : last])
        )
        for cell in cells_with_stacks(before, after, record):
            change = percent(event.change, signed=True)
            yield (
                f"{cell.name}: {change} {event.trend.cell.metric} since {(event.after.row.started_at or '')[:10]}",
                cell,
            )


def payload(
    trends: Sequence[Trend], found: Sequence[CellEvent], names: CellNames, lines: Mapping[System, Timeline]
) -> Json:  # fmt: skip
    """Return the data of the large plot. Rates have four digits, more than are visible."""
    systems, by_cell = list(lines), _by_cell(found)
    return {
        "systems": [
            {
                "name": system.title,
                "simulated": system.simulated,
                "runs": [
                    [
                        run.name.removeprefix(f"{called(run.testbed)} "),
                        f"{run.started_at:%Y-%m-%d %H:%M}" if run.started_at else "",
                        ", ".join([*run.versions, *run.revisions]),
                    ]
                    for run in line.runs
                ],
            }
            for system, line in lines.items()
        ],
        "cells": {
            names.address(trend.cell): _cell(
                trend, systems, names, lines[trend.cell.series.system], by_cell.get(trend.cell, [])
            )
            for trend in trends
        },
    }  # fmt: skip


def _cell(
    trend: Trend, systems: list[System], names: CellNames, line: Timeline, found: Sequence[CellEvent]
) -> dict[str, object]:
    failed = line.failed(trend.cell)
    cell: dict[str, object] = {
        "s": systems.index(trend.cell.series.system),
        "n": f"{names.short(trend.cell)} {trend.cell.metric}",
        "r": [line.number(each.row) for each in trend.figures],
        "v": [_short(each.value_pps) for each in trend.figures],
        "a": _anchors(trend),
        "l": [[first, last, _short(value)] for first, last, value in levels_of(trend, found)],
        "e": [[event.index, _short(event.level_after_pps), event.better, event.doubt] for event in found],
        "o": list(trend.outliers),
        "f": [[number, row.message[:120]] for number, row in failed.items()],
        "d": describe(trend, found, len(failed)),
        "c": None if trend.cell.of_matrix else 1,
        "u": None if (of := unit(trend.cell.metric, trend.cell.series)) == PPS else of,
    }
    return {key: value for key, value in cell.items() if value not in ([], None)}


def describe(trend: Trend, found: Iterable[CellEvent], failed: int) -> str:
    """Return the state of a cell in a sentence or two."""
    figures = f"{len(trend.figures)} runs"
    texts = {
        TrendState.TOO_FEW: f"{figures}: too few to distinguish a step from noise",
        TrendState.STEADY: f"{figures}, no step",
        TrendState.TWO_BANDS: "",
        TrendState.DRIFT: f"{figures}, drifting",
    }
    level = partial(amount, trend.cell.metric, trend.cell.series)
    text = texts.get(trend.state, f"{figures}, {len(trend.steps)} step{'s' if len(trend.steps) > 1 else ''}")
    if trend.bands is not None:
        text = (
            f"{figures} in two bands: {level(trend.bands.upper)} and, in {percent(trend.bands.lower_share)} of them, "
            f"{level(trend.bands.lower)}. A change between the bands is no regression"
        )
    if trend.drift is not None:
        text += f" by {percent(trend.drift.change, signed=True)} over all"
    if causes := [f"{known.cause} since {known.day}" for known in trend.acknowledged if known]:
        text += f"; acknowledged: {', '.join(causes)}"
    if relations := [each for each in trend.relations if each]:
        text += f"; {', '.join(relations)}"
    if trend.suspected is not None:
        text += f"; the newest differs by {percent(trend.suspected, signed=True)}: not confirmed yet"
    for event in found:
        if event.probable:
            change, day = percent(event.change, signed=True), f"{event.after.at:%Y-%m-%d}"
            text += f"; probably {change} since {day}: same night as {event.probable} others"
    if trend.outliers:
        text += f"; {len(trend.outliers)} outlier{'s' if len(trend.outliers) > 1 else ''}"
    missing = len(trend.gaps) - failed
    text += f"; did not pass in {failed} run{'s' if failed > 1 else ''}" if failed else ""
    text += f"; not measured in {missing}" if missing > 0 else ""
    return text + "."


def _anchors(trend: Trend) -> list[str]:
    """Common prefix of the anchors of all tests, then the rest of each: they differ in their digests."""
    parts = [each.row.anchor.rpartition("-") for each in trend.figures]
    if len({head for head, _, _ in parts}) == 1:
        return [f"{parts[0][0]}-", " ".join(tail for _, _, tail in parts)]
    return ["", " ".join(each.row.anchor for each in trend.figures)]


def _short(value: float) -> float:
    return float(f"{value:.4g}")

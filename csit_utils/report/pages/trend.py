"""History of every cell, and its changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from csit_utils.analysis.cells import CellMetric
from csit_utils.analysis.grouping import System
from csit_utils.analysis.runs import Run, called
from csit_utils.analysis.trends.events import CellEvent, events, level_around
from csit_utils.analysis.trends.trend import ALPHA, FEWEST, SUSPICION, Trend, TrendState
from csit_utils.dataset.items import RecordedTest
from csit_utils.dataset.measures import PPS
from csit_utils.report.figures import Json
from csit_utils.report.report_context import ReportContents
from csit_utils.report.stack_sides import CellStacks, cells_with_stacks, difference_graphs
from csit_utils.report.study import Page
from csit_utils.report.trends.cell_names import CellNames
from csit_utils.report.trends.event_view import event_groups
from csit_utils.report.trends.trend_view import Timeline, levels_of, timelines, trend_groups
from csit_utils.report.units import amount, percent, unit


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    trends = shown.trends
    if not any(len(trend.figures) > 1 for trend in trends):
        return None
    every = events(trends)
    found = [event for event in every if event.acknowledged is None]
    known = [event for event in every if event.acknowledged is not None]
    names = CellNames(trend.cell for trend in trends)
    lines = timelines(shown.whole_history, trends)
    return {
        "groups": trend_groups(trends, found, names, lines),
        "changes": event_groups(found, names, shown.contents.environments),
        "acknowledged": event_groups(known, names, shown.contents.environments),
        "stacks": difference_graphs(_stacks_at(found, names, shown.contents.record)),
        "common": names.common,
        "looked_at": len(trends),
        "judged": sum(len(trend.figures) >= FEWEST for trend in trends),
        "counts": {state: sum(trend.state is state for trend in trends) for state in TrendState},
        "suspected": sum(trend.suspected is not None for trend in trends),
        "fewest": FEWEST,
        "alpha": ALPHA,
        "suspicion": SUSPICION,
        "data": payload(trends, found, names, lines),
    }


PAGE = Page("trend", "Trend", _build)


def _stacks_at(
    found: Sequence[CellEvent], names: CellNames, record: Callable[[str], RecordedTest]
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
    systems = list(lines)
    marks: dict[CellMetric, list[list[object]]] = {}
    for event in found:
        marks.setdefault(event.trend.cell, []).append(
            [event.index, _short(event.level_after_pps), event.better, event.suspected]
        )
    return {
        "systems": [
            {
                "name": system.name,
                "simulated": system.simulated,
                "runs": [
                    [run.name.removeprefix(f"{called(run.testbed)} "), _stamp(run), _version(run)] for run in line.runs
                ],
            }
            for system, line in lines.items()
        ],
        "cells": {
            names.address(trend.cell): _cell(trend, systems, names, lines[trend.cell.series.system], marks)
            for trend in trends
        },
    }  # fmt: skip


def _cell(
    trend: Trend,
    systems: list[System],
    names: CellNames,
    line: Timeline,
    marks: Mapping[CellMetric, list[list[object]]],
) -> dict[str, object]:  # fmt: skip
    failed = line.failed(trend.cell)
    cell: dict[str, object] = {
        "s": systems.index(trend.cell.series.system),
        "n": f"{names.short(trend.cell)} {trend.cell.metric}",
        "r": [line.number(each.row) for each in trend.figures],
        "v": [_short(each.value_pps) for each in trend.figures],
        "a": _anchors(trend),
        "l": [[first, last, _short(value)] for first, last, value in levels_of(trend)],
        "e": marks.get(trend.cell, []),
        "o": list(trend.outliers),
        "f": [[number, row.message[:120]] for number, row in failed.items()],
        "d": describe(trend, len(failed)),
        "c": None if trend.cell.of_matrix else 1,
        "u": None if (of := unit(trend.cell.metric, trend.cell.series)) == PPS else of,
    }
    return {key: value for key, value in cell.items() if value not in ([], None)}


def describe(trend: Trend, failed: int) -> str:
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


def _stamp(run: Run) -> str:
    return f"{run.started_at:%Y-%m-%d %H:%M}" if run.started_at else ""


def _version(run: Run) -> str:
    return ", ".join([*run.versions, *run.revisions])


def _short(value: float) -> float:
    return float(f"{value:.4g}")

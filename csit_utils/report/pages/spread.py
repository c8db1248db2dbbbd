"""Spread of repeated runs: a box plot per cell and level, with all points."""

from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.analysis.grouping import Series, System
from csit_utils.analysis.repeats import Repeats, repeats
from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.series_blocks import blocks_of
from csit_utils.report.spread_figures import boxes_figure, level_text
from csit_utils.report.study import Page
from csit_utils.studies.density.sentences import names

FEWEST = 3
"""Fewest runs for a box."""
_LISTED = 100


@dataclass(frozen=True)
class OfSeries:
    """Repeated cells of a series."""

    series: Series
    cells: tuple[Repeats, ...]


@dataclass(frozen=True)
class SpreadBlock:
    """Comparable cells."""

    system: System
    heading: str
    figure: Figure


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    steps = {trend.cell: trend.steps for trend in shown.trends if trend.steps}
    found = [each for each in repeats(shown.rows, steps=steps) if each.box.count >= FEWEST]
    if not found:
        return None
    by_series: dict[Series, list[Repeats]] = {}
    for each in found:
        by_series.setdefault(each.cell.series, []).append(each)
    blocks = []
    parts = [OfSeries(series, tuple(own)) for series, own in sorted(by_series.items())]
    for number, (heading, own) in enumerate(blocks_of(parts), 1):
        called = names([part.series for part in own])
        title = f"Repeated runs, {heading}"
        figure = boxes_figure(f"spread-{number}", title, {called[part.series]: part.cells for part in own})
        if figure is not None:
            blocks.append(SpreadBlock(own[0].series.system, heading, figure))
    stepped = sum(each.levels > 1 and each.level == each.levels for each in found)
    banded = sum(each.bands is not None for each in found)
    return {
        "blocks": blocks,
        "cells": found[:_LISTED],
        "all_cells": len(found),
        "banded": banded,
        "stepped": stepped,
        "level_text": level_text,
        "fewest": FEWEST,
        "figures": [block.figure for block in blocks],
    }


PAGE = Page("spread", "Repeated runs", _build)

"""Whether all service instances get the same: Jain's index over the matrix, and the shares of instances in overload."""

from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.analysis.grouping import System
from csit_utils.dataset.rows import TestRow
from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.series_blocks import blocks_of
from csit_utils.report.study import Page
from csit_utils.studies.density.analysis.fairness import Fairness, fairness_of
from csit_utils.studies.density.analysis.placing import SeriesLayout, layouts
from csit_utils.studies.density.cell_maps import CellMaps
from csit_utils.studies.density.fairness_maps import NO_COUNTS, fairness_maps, shares_figure

_LISTED = 100
_GROUPS = (("Fairness at the bounds of the search and beyond", "NDRPDR"), ("Fairness in trials of MRR", "MRR"))


@dataclass(frozen=True)
class FairnessBlock:
    """Comparable tests."""

    system: System
    heading: str
    maps: tuple[CellMaps, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Unfair:
    """A line of the table of the least fair."""

    row: TestRow
    cell: str
    sizes: str
    fairness: Fairness


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = {anchor: fairness_of(rows) for anchor, rows in shown.evidence.instances.items()}
    blocks: dict[str, FairnessBlock] = {}
    lines: dict[tuple[str, str], Unfair] = {}
    for group, (title, test_type) in enumerate(_GROUPS):
        mrr = test_type == "MRR"

        def has(row: TestRow, mrr: bool = mrr) -> bool:
            return row.anchor in found and (row.test_type == "MRR") == mrr

        placed = layouts(shown.latest, has, shown.contents.refused, NO_COUNTS, test_type)
        for number, (heading, own) in enumerate(blocks_of(placed), 1):
            identity = f"fairness-{number}-{group}"
            maps = fairness_maps(identity, title, own, found)
            figure = shares_figure(
                f"shares-{number}-{group}", f"Shares of instances in overload, {heading}", own, found
            )
            old = blocks.get(heading, FairnessBlock(own[0].series.system, heading, (), ()))
            more = tuple(each for each in (figure,) if each), tuple(each for each in (maps,) if each)
            blocks[heading] = FairnessBlock(old.system, heading, (*old.maps, *more[1]), (*old.figures, *more[0]))
            lines |= {(line.row.anchor, line.fairness.number): line for line in _lines(own, found)}
    shown_blocks = [block for block in blocks.values() if block.maps]
    if not shown_blocks:
        return None
    worst = sorted(lines.values(), key=lambda line: line.fairness.index or 0.0)
    figures = [figure for block in shown_blocks for figure in (*(each.figure for each in block.maps), *block.figures)]
    return {"blocks": shown_blocks, "worst": worst[:_LISTED], "cells": len(worst), "figures": figures}


def _lines(own: list[SeriesLayout], found: Mapping[str, Mapping[str, Fairness]]) -> list[Unfair]:
    return [
        Unfair(
            test,
            f"{layout.series.service_type} {place[0]}x{place[1]}",
            f"{layout.series.nf_name}, {layout.series.vswitch_name}, {layout.series.frame}",
            each,
        )
        for layout in own
        for place, test in layout.found()
        for each in found[test.anchor].values()
        if each.index is not None
    ]


PAGE = Page("fairness", "Fairness", _build)

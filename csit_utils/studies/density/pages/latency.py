"""Latency over the matrix: heat maps by percentile, load and direction, and curves of cells beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import System
from csit_utils.dataset.rows import LatencyRow
from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.series_blocks import blocks_of
from csit_utils.report.study import Page
from csit_utils.studies.density.analysis.placing import SeriesLayout, layouts
from csit_utils.studies.density.cell_maps import CellMaps
from csit_utils.studies.density.latency_curves import cells_figure
from csit_utils.studies.density.latency_maps import NO_LATENCY, matrix_maps

_MOST_CURVES = 24
"""Blocks with curves. Histograms are large, and every test has its own curves on its page."""


@dataclass(frozen=True)
class LatencyBlock:
    """Comparable tests: one system, frame size and profile."""

    system: System
    heading: str
    maps: CellMaps
    figure: Figure | None


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    latencies = shown.evidence.latencies
    found = layouts(shown.latest, lambda row: row.anchor in latencies, shown.contents.refused, NO_LATENCY)
    parts = blocks_of(found)
    curves = _with_histograms(shown, [layout for _, own in parts[:_MOST_CURVES] for layout in own])
    blocks: list[LatencyBlock] = []
    for number, (heading, own) in enumerate(parts, 1):
        maps = matrix_maps(f"latency-map-{number}", own, latencies)
        if maps is None:
            continue
        figure = None
        if number <= _MOST_CURVES:
            title = f"Latency by percentile, {heading}"
            figure = cells_figure(f"latency-cells-{number}", title, own, curves)
        blocks.append(LatencyBlock(own[0].series.system, heading, maps, figure))
    if not blocks:
        return None
    figures = [each for block in blocks for each in (block.maps.figure, block.figure) if each is not None]
    return {"blocks": blocks, "figures": figures}


def _with_histograms(shown: ReportContents, own: Sequence[SeriesLayout]) -> dict[str, list[LatencyRow]]:
    anchors = {test.anchor for layout in own for _, test in layout.found()}
    rows: dict[str, list[LatencyRow]] = {}
    for row in shown.contents.latency(anchors):
        rows.setdefault(row.anchor, []).append(row)
    return rows


PAGE = Page("latency", "Latency", _build)

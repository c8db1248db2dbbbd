"""Latency over the matrix: heat maps by percentile, load and direction, and curves of cells beside each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from csit_utils.analysis.grouping import blocks_of, series_names
from csit_utils.analysis.latency import curve, merge
from csit_utils.dataset.rows import LatencyRow
from csit_utils.report.figures import Figure, Json, latency_layout
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import rate
from csit_utils.studies.density.analysis.density import Place, SeriesLayout, layouts
from csit_utils.studies.density.analysis.latency_cells import loads_of
from csit_utils.studies.density.latency_maps import NO_LATENCY, MatrixBlock, matrix_maps
from resources.libraries.python.quantities import counted

_MAX_CURVES = 24
"""Blocks with curves. Histograms are large, and every test has its own curves on its page."""
PER_DECADE = 8
"""Points along the axis 1 / (1 - q). A test's own curves have twice as many."""
_PREFERRED = ("PDR50", "SOAK50")
_DIRECTIONS = ("forward", "reverse")
FACETS = ("instances", "NFs each", "series")


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    latencies = shown.evidence.latencies
    found = layouts(shown.latest, lambda row: row.anchor in latencies, shown.contents.refused, NO_LATENCY)
    parts = blocks_of(found)
    curves = _with_histograms(shown, [layout for _, own in parts[:_MAX_CURVES] for layout in own])
    blocks: list[MatrixBlock] = []
    for number, (heading, own) in enumerate(parts, 1):
        maps = matrix_maps(f"latency-map-{number}", own, latencies)
        if maps is None:
            continue
        figure = None
        if number <= _MAX_CURVES:
            title = f"Latency by percentile, {heading}"
            figure = cells_figure(f"latency-cells-{number}", title, own, curves)
        blocks.append(MatrixBlock(own[0].series.system, heading, (maps,), (figure,) if figure else ()))
    return {"blocks": blocks, "figures": [each for block in blocks for each in block.figures]} if blocks else None


def _with_histograms(shown: ReportContents, own: Sequence[SeriesLayout]) -> Mapping[str, Sequence[LatencyRow]]:
    if shown.latest_anchors is not None:
        return shown.evidence.latencies
    anchors = {test.anchor for layout in own for _, test in layout.found()}
    rows: dict[str, list[LatencyRow]] = {}
    for row in shown.contents.rows(LatencyRow, anchors=anchors):
        rows.setdefault(row.anchor, []).append(row)
    return rows


PAGE = Page("latency", "Latency", _build)


def cells_figure(
    identity: str, title: str, layouts: Sequence[SeriesLayout], latencies: Mapping[str, Sequence[LatencyRow]]
) -> Figure | None:
    """A curve per cell, all instances together; load and direction are chosen. None without histograms.

    `latencies`: by anchor of the test, with histograms.
    """
    rows = [row for layout in layouts for _, test in layout.found() for row in latencies.get(test.anchor, ())]
    loads = loads_of(row for row in rows if row.histogram)
    loads.sort(key=lambda load: load not in _PREFERRED)
    variants: Json = {}
    for load in loads:
        for direction in _DIRECTIONS:
            data = list(_traces(layouts, latencies, load, direction))
            variants[f"{load}|{direction}"] = {"data": data, "layout": latency_layout(data) if data else {}}
    if not any(variant["data"] for variant in variants.values()):
        return None
    simulated = layouts[0].series.system.simulated
    return Figure(identity, title, simulated, (tuple(loads), _DIRECTIONS), variants, FACETS)


def _traces(
    layouts: Sequence[SeriesLayout], latencies: Mapping[str, Sequence[LatencyRow]], load: str, direction: str
) -> Iterator[Json]:
    called = series_names([layout.series for layout in layouts])
    for layout in layouts:
        for place, test in layout.found():
            rows = [row for row in latencies.get(test.anchor, ()) if (row.load, row.direction) == (load, direction)]
            yield from _trace(place, called[layout.series], rows, layout.chains.index(place[0]))


def _trace(place: Place, name: str, rows: Iterable[LatencyRow], colour: int) -> Iterator[Json]:
    rows = list(rows)
    merged = merge(row.histogram for row in rows if row.histogram)
    if merged is None:
        return
    found = curve(merged, PER_DECADE)
    lost = sum(max(0, (row.sent or 0) - (row.received or 0)) for row in rows)
    label = f"{name} {place[0]}x{place[1]}, {rate(rows[0].load_pps)}" + (f", {lost:,} probes lost" if lost else "")
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": escape(f"{name} {place[0]}x{place[1]}"),
        "y": [float(f"{value / 1000:.4g}") for value in found.values_ns],
        "hovertemplate": f"{escape(label)}<br>%{{text}}: %{{y:.4~g}} µs<extra></extra>",
        "line": {"dash": ("solid", "dash", "dot", "dashdot")[place[1] % 4 - 1], "width": 2, "shape": "hv"},
        "meta": {
            "colour": colour,
            "samples": found.count,
            "perDecade": PER_DECADE,
            "facets": {"instances": counted(place[0], "instance"), "NFs each": counted(place[1], "NF"), "series": name},
        },
    }

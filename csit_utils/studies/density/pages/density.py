"""Matrices of throughput, curves, and what density costs."""

from collections.abc import Mapping, Sequence
from itertools import product

from csit_utils.analysis.comparisons.comparability import likeness
from csit_utils.analysis.grouping import Series
from csit_utils.dataset.rows import THROUGHPUTS
from csit_utils.report.cell_maps import shades
from csit_utils.report.report_context import ReportContents, runs_shown
from csit_utils.report.study import Page
from csit_utils.studies.density.blocks import kind_of

Likenesses = dict[str, dict[str, dict[str, tuple[str, ...]]]]


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    if not shown.systems:
        return None
    figures = [figure for view in shown.systems for block in view.blocks for figure in block.figures]
    figures += [view.flows for view in shown.systems if view.flows]
    series = [matrix.series for view in shown.systems for block in view.blocks for matrix in block.matrices]
    return {
        "systems": shown.systems,
        "figures": figures,
        "runs": runs_shown(shown),
        "heat": {"shades": shades(), "unlike": _unlike(series)},
    }


def _unlike(series: Sequence[Series]) -> Likenesses:
    """By metric, what stands between figures of two kinds of series, where there is anything."""
    kinds = {kind_of(one): one for one in series}
    found: Likenesses = {}
    for metric in THROUGHPUTS:
        for (one, a), (other, b) in product(kinds.items(), repeat=2):
            between = likeness(a, b, metric)
            if between.differences or between.remarks:
                notes = {"differences": between.differences, "remarks": between.remarks}
                found.setdefault(metric, {})[f"{one}|{other}"] = notes
    return found


PAGE = Page("density", "Density", _build)

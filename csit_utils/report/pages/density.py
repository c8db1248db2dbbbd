"""Matrices of throughput, curves, and what density costs."""

from collections.abc import Mapping

from csit_utils.report.shown import Page, Shown


def _build(shown: Shown) -> Mapping[str, object] | None:
    if not shown.systems:
        return None
    figures = [figure for view in shown.systems for block in view.blocks for figure in block.figures]
    return {"systems": shown.systems, "figures": figures}


PAGE = Page("density", "Density", _build)

"""History of every cell, and its changes."""

from collections.abc import Mapping

from csit_utils.analysis.events import events
from csit_utils.analysis.trend import ALPHA, FEWEST, SUSPICION, TrendState
from csit_utils.report.cell_names import CellNames
from csit_utils.report.event_view import event_groups
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.trend_data import payload
from csit_utils.report.trend_view import timelines, trend_groups


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    trends = shown.trends
    if not any(len(trend.figures) > 1 for trend in trends):
        return None
    found = events(trends)
    names = CellNames(trend.cell for trend in trends)
    lines = timelines(shown.whole_history, trends)
    return {
        "groups": trend_groups(trends, found, names, lines),
        "changes": event_groups(found, names, shown.contents.environments),
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

"""Environments of the measurements, and the differences between two."""

from collections import Counter
from collections.abc import Mapping

from csit_utils.report.environments import IDENTITY, differences, environment_views, first_pair, payload, side_by_side
from csit_utils.report.facts import GOAL_COLUMNS, profiles
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page

_SIDE_BY_SIDE = 6
"""Largest number of environments side by side."""
_SOURCES = 5


def _build(shown: ReportContents) -> Mapping[str, object]:
    known = shown.contents.environments
    others = shown.contents.characterizations
    counted = Counter(row.environment for row in shown.rows if row.environment)
    counted.update(item.record.environment.digest for item in others)
    views = environment_views(known, shown.history.runs, counted)
    pair = first_pair(views)
    sources = list(dict.fromkeys((*(row.source for row in shown.rows), *(item.source for item in others))))
    return {
        "views": views,
        "pair": pair,
        "differences": differences(views, pair) if pair else [],
        "identity": IDENTITY,
        "shown": views[:_SIDE_BY_SIDE],
        "facts": side_by_side(views[:_SIDE_BY_SIDE]),
        "profiles": profiles(shown.contents),
        "goal_columns": GOAL_COLUMNS,
        "sources": sources[:_SOURCES],
        "more_sources": max(0, len(sources) - _SOURCES),
        "figures": [payload(views)] if pair else [],
    }


PAGE = Page("environment", "Environment", _build)

"""Where and how it was measured."""

from collections.abc import Mapping

from csit_utils.report.facts import GOAL_COLUMNS, environments, profiles
from csit_utils.report.shown import Page, Shown


def _build(shown: Shown) -> Mapping[str, object]:
    return {
        "environments": environments(shown.contents),
        "profiles": profiles(shown.contents),
        "goal_columns": GOAL_COLUMNS,
        "sources": list(dict.fromkeys(row.source for row in shown.rows)),
    }


PAGE = Page("environment", "Environment", _build)

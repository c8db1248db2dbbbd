"""What was found, in sentences."""

from collections.abc import Mapping

from csit_utils.report.shown import Page, Shown


def _build(shown: Shown) -> Mapping[str, object]:
    return {
        "systems": shown.systems,
        "tests": len(shown.rows),
        "oversubscribed": sum(bool(row.oversubscribed) for row in shown.rows),
        "problems": shown.contents.problems,
    }


PAGE = Page("overview", "Overview", _build)

"""Tests that did not pass, and files that could not be read."""

from collections.abc import Mapping

from csit_utils.report.shown import Page, Shown


def _build(shown: Shown) -> Mapping[str, object] | None:
    problems, not_passed = shown.contents.problems, shown.not_passed
    if not problems and not not_passed:
        return None
    return {"not_passed": not_passed, "problems": problems, "count": len(not_passed) + len(problems)}


PAGE = Page("failures", "Not passed", _build)

"""Tests that did not pass, by cause, and files that could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.analysis.causes import Cause, causes
from csit_utils.dataset.rows import TestRow
from csit_utils.report.advice import advice
from csit_utils.report.shown import Page, Shown

_LISTED = 50
"""Tests of one cause that are listed; the table of results has all of them."""
_LINES = 6
"""Of evidence of a test; its page has all of it."""


@dataclass(frozen=True)
class CauseView:
    """One cause."""

    cause: Cause
    advice: str
    listed: int = _LISTED
    most: int = _LINES

    @staticmethod
    def lines(row: TestRow) -> list[str]:
        """Evidence of a test that its message does not say."""
        return [line for line in row.evidence.splitlines() if line not in row.message]


def _build(shown: Shown) -> Mapping[str, object] | None:
    problems, not_passed = shown.contents.problems, shown.not_passed
    if not problems and not not_passed:
        return None
    views = [CauseView(cause, advice(cause)) for cause in causes(not_passed)]
    return {"causes": views, "problems": problems, "count": len(not_passed) + len(problems)}


PAGE = Page("failures", "Not passed", _build)

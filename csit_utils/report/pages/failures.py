"""Tests that failed or were skipped, by cause, and files that could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.analysis.causes import Cause, causes, condensed
from csit_utils.dataset.rows import TestRow
from csit_utils.report.outcomes import advice
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import DASH

_LISTED = 50
"""Listed tests per cause; the table of results has all."""
_LINES = 6
"""Lines of evidence per test; its page has all."""


@dataclass(frozen=True)
class CauseView:
    """One cause."""

    cause: Cause
    sentence: str
    advice: str
    begun: Mapping[str, str]
    """Start time of the run of a test by its anchor; ISO 8601."""
    listed: int = _LISTED
    most: int = _LINES

    @property
    def failed(self) -> bool:
        """Whether any of its tests failed; others were skipped."""
        return any(row.status != "SKIP" for row in self.cause.tests)

    @property
    def seen(self) -> tuple[str, str]:
        """First and last time for a table; times of runs if those of tests are unknown."""
        times = sorted(found for row in self.cause.tests if (found := row.started_at or self.begun.get(row.anchor)))
        return (_minute(times[0]), _minute(times[-1])) if times else (DASH, DASH)

    def started(self, row: TestRow) -> str:
        """Return the start time of a test, or of its run for a test without a record."""
        if row.started_at:
            return _minute(row.started_at)
        begun = self.begun.get(row.anchor)
        return f"in the run from {_minute(begun)}" if begun else DASH

    @staticmethod
    def lines(row: TestRow) -> list[str]:
        """Return evidence of a test that its message does not contain."""
        return [line for line in row.evidence.splitlines() if line not in row.message]


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    problems, not_passed = shown.contents.problems, shown.not_passed
    records = [view for view in shown.characterizations if not view.passed]
    if not problems and not not_passed and not records:
        return None
    begun = {
        row.anchor: run.started_at.isoformat()
        for run in shown.history.runs
        for row in run.rows
        if run.started_at is not None and row.started_at is None
    }
    views = [CauseView(cause, *advice(cause), begun) for cause in causes(not_passed)]
    return {
        "causes": views,
        "problems": condensed(problem.text for problem in problems),
        "records": records,
        "tally": shown.tally,
        "earlier": len(not_passed) + len(records) - shown.tally.failed - shown.tally.skipped,
        "count": shown.tally.failed + len(problems),
    }


def _minute(stamp: str) -> str:
    return stamp[:16].replace("T", " ")


PAGE = Page("failures", "Failures", _build)

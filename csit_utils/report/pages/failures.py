"""Tests that did not pass, by cause, and files that could not be read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.analysis.causes import Cause, CauseKind, causes
from csit_utils.dataset.rows import TestRow
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import DASH

_LISTED = 50
"""Listed tests per cause; the table of results has all."""
_LINES = 6
"""Lines of evidence per test; its page has all."""
_BY_WORDS = (
    (
        r"'robot:skip' tag",
        "The suite leaves these tests out unless asked, as they take longer: run it with -v MORE:yes.",
    ),
    (
        r"needs world \w+; testbed",
        "The test is of another kind of testbed. Choose its topology, such as -v TOPOLOGY:topologies/local.yaml.",
    ),
    (r"has been measured by", "Nothing: the run has the result, of the test that is named."),
    (
        r"terminated by signal|run (was )?(stopped|interrupted)|in a row broke",
        "The run was interrupted. Fix the reason, then resume the run: ./csit robot --resume FOLDER.",
    ),
    (
        r"space (left|for results)|cannot be written",
        "Free disk space, or choose another folder by -d, then resume: ./csit robot --resume FOLDER.",
    ),
    (
        r"did not arrive|no traffic|no packet|never arrived",
        "The evidence names the last hop that saw packets and the first that did not: check the path between them. "
        "The page of the test has a table of losses by hop.",
    ),
    (
        r"host key|ssh|connection|unreachable|cannot be reached|agent",
        "Check that the node is reachable: ./csit doctor TOPOLOGY. For requirements of nodes see "
        "docs/how-to/reach-nodes.md.",
    ),
    (
        r"not ready|within \S+ s|did not answer|last (seen|said)|nothing from",
        "A component was slow or hung. Run the test by the command on its page; ./csit doctor TOPOLOGY reports "
        "missing requirements. If it is only slow, raise the deadline in the topology.",
    ),
)
_BY_KIND = {
    CauseKind.QUARANTINED: "The cell broke the system under test in every attempt, so its other tests were skipped. "
    "See the attempts, then run the cell by the command on the page of its test.",
    CauseKind.DOES_NOT_FIT: "This is a result, not a fault: the cell does not fit on the testbed. ./csit plan "
    "TOPOLOGY shows which cells fit; try smaller NFs or fewer services.",
    CauseKind.SKIPPED: "The testbed does not meet a requirement of the test. ./csit doctor TOPOLOGY shows it and how "
    "to fix it.",
    CauseKind.FAILED: "See evidence, trials and core map on the page of the test, and run it by the command there.",
}


def advice(cause: Cause) -> str:
    """Return the advice on a cause."""
    if cause.kind is not CauseKind.DOES_NOT_FIT:
        text = f"{cause.sentence} {cause.tests[0].message}"
        for words, advice_text in _BY_WORDS:
            if re.search(words, text, re.IGNORECASE):
                return advice_text
    return _BY_KIND[cause.kind]


@dataclass(frozen=True)
class CauseView:
    """One cause."""

    cause: Cause
    advice: str
    begun: Mapping[str, str]
    """Start time of the run of a test by its anchor; ISO 8601."""
    listed: int = _LISTED
    most: int = _LINES

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
    failed = [view for view in shown.characterizations if not view.passed]
    if not problems and not not_passed and not failed:
        return None
    begun = {
        row.anchor: run.started_at.isoformat()
        for run in shown.history.runs
        for row in run.rows
        if run.started_at is not None and row.started_at is None
    }
    views = [CauseView(cause, advice(cause), begun) for cause in causes(not_passed)]
    count = len(not_passed) + len(problems) + len(failed)
    return {"causes": views, "problems": problems, "failed": failed, "count": count}


def _minute(stamp: str) -> str:
    return stamp[:16].replace("T", " ")


PAGE = Page("failures", "Not passed", _build)

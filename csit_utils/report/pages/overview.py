"""Overview: verdicts, changes, failures."""

from collections.abc import Mapping

from csit_utils.report.report_context import ReportContents
from csit_utils.report.runs_shown import runs_shown
from csit_utils.report.study import Page
from csit_utils.studies.density.headlines import testbed_views
from csit_utils.studies.registry import record_kinds


def _build(shown: ReportContents) -> Mapping[str, object]:
    return {
        "testbeds": testbed_views(shown.systems),
        "systems": shown.systems,
        "runs": runs_shown(shown),
        "changes": shown.changes,
        "compared": shown.has_earlier_runs,
        "tests": len(shown.latest),
        "failed": sum(row.status not in {"PASS", "SKIP"} for row in shown.latest),
        "skipped": sum(row.status == "SKIP" for row in shown.latest),
        "oversubscribed": sum(bool(row.oversubscribed) for row in shown.latest),
        "problems": shown.contents.problems,
        "characterizations": shown.characterizations,
        "kinds": {kind.kind: kind.name for kind in record_kinds().values()},
    }


PAGE = Page("overview", "Overview", _build)

"""Pages of the report: the overview and the explanations here, the others one module each; studies have theirs."""

from collections.abc import Mapping
from functools import cache

from csit_utils.report.pages import compare, environment, failures, spread, trend
from csit_utils.report.report_context import ReportContents
from csit_utils.report.runs_shown import runs_shown
from csit_utils.report.study import Page
from csit_utils.studies.density.headlines import testbed_views
from csit_utils.studies.registry import explanations, record_kinds, studies


def _overview(shown: ReportContents) -> Mapping[str, object]:
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


OVERVIEW = Page("overview", "Overview", _overview)


def _metrics(_shown: ReportContents) -> Mapping[str, object]:
    return {"explanations": list(explanations().values())}


_METRICS = Page("metrics", "How to read", _metrics)


@cache
def pages() -> tuple[Page[ReportContents], ...]:
    """Return all pages in the order of the navigation.

    Links between them are written as within one page, `#anchor`; the site resolves them to files.
    """
    of_studies = (page for study in studies() for page in study.pages)
    after = (compare.PAGE, trend.PAGE, spread.PAGE, failures.PAGE, environment.PAGE, _METRICS)
    return (OVERVIEW, *of_studies, *after)


def pages_for_two() -> tuple[Page[ReportContents], ...]:
    """Return all pages in an order for two processes, one of which begins with the first and one with the last.

    Those with trends, which take a fifth of the time of all pages, come first: only one process makes the trends.
    """
    first = (OVERVIEW, trend.PAGE, spread.PAGE)
    return (*first, *(page for page in pages() if page not in first))

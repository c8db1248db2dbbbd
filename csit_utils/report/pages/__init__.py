"""Pages of the report: the explanations here, the others one module each; studies have theirs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from csit_utils.report.pages import compare, environment, failures, overview, spread, trend
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.studies.registry import explanations_by_heading, studies


def _metrics(_shown: ReportContents) -> Mapping[str, object]:
    return {"sections": explanations_by_heading()}


_HELP = Page("metrics", "Help", _metrics)


@cache
def pages() -> tuple[Page[ReportContents], ...]:
    """Return all pages in the order of the navigation.

    Links between them are written as within one page, `#anchor`; the site resolves them to files.
    """
    of_studies = (replace(page, group=study.group) for study in studies() for page in study.pages)
    after = (compare.PAGE, trend.PAGE, spread.PAGE, failures.PAGE, environment.PAGE, _HELP)
    return (overview.PAGE, *of_studies, *after)


def pages_for_two() -> tuple[Page[ReportContents], ...]:
    """Return all pages in an order for two processes, one of which begins with the first and one with the last.

    Those with trends, which take a fifth of the time of all pages, come first: only one process makes the trends.
    """
    first = (overview.PAGE, trend.PAGE, spread.PAGE)
    return (*first, *(page for page in pages() if page not in first))

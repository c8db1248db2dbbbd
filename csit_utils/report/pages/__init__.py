"""The pages of a report, one module each, in the order of the navigation."""

from csit_utils.report.pages import density, environment, failures, metrics, overview, results
from csit_utils.report.shown import Page

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    density.PAGE,
    results.PAGE,
    failures.PAGE,
    environment.PAGE,
    metrics.PAGE,
)
"""Links between them are written as to one page, `#anchor`: the site turns them into links to the right file."""

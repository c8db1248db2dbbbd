"""The pages of a report, one module each, in the order of the navigation."""

from csit_utils.report.pages import compare, environment, failures, metrics, overview, results, spread, trend
from csit_utils.report.report_context import Page
from csit_utils.studies.chains.pages import chain_study
from csit_utils.studies.density.pages import density, fairness, latency, losses
from csit_utils.studies.interference.pages import interference
from csit_utils.studies.sizing.pages import sizings
from csit_utils.studies.sweep.pages import bursts, predictions, profiles

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    density.PAGE,
    results.PAGE,
    latency.PAGE,
    fairness.PAGE,
    losses.PAGE,
    profiles.PAGE,
    predictions.PAGE,
    bursts.PAGE,
    sizings.PAGE,
    chain_study.PAGE,
    interference.PAGE,
    compare.PAGE,
    trend.PAGE,
    spread.PAGE,
    failures.PAGE,
    environment.PAGE,
    metrics.PAGE,
)
"""Links between them are written as to one page, `#anchor`: the site turns them into links to the right file."""

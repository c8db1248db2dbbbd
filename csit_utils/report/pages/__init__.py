"""The pages of a report, one module each, in the order of the navigation."""

from csit_utils.report.pages import (
    bursts,
    chain_study,
    chains,
    compare,
    density,
    environment,
    failures,
    fairness,
    interference,
    latency,
    losses,
    metrics,
    overview,
    profiles,
    results,
    sizings,
    spread,
    trend,
)
from csit_utils.report.shown import Page

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    density.PAGE,
    results.PAGE,
    latency.PAGE,
    fairness.PAGE,
    losses.PAGE,
    profiles.PAGE,
    chains.PAGE,
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

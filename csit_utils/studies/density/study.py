"""Density tests in reports."""

from csit_utils.report.study import Study
from csit_utils.studies.density.explanations import EXPLANATIONS
from csit_utils.studies.density.pages import density, energy, fairness, latency, losses, results

STUDY = Study(
    order=10,
    pages=(density.PAGE, results.PAGE, latency.PAGE, fairness.PAGE, losses.PAGE, energy.PAGE),
    group="Density",
    explanations=EXPLANATIONS,
)

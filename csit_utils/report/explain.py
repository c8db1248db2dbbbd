"""How to read each metric, once, for the report and for `csit_utils explain`."""

from csit_utils.report.explaining.characterizations import CHARACTERIZATIONS
from csit_utils.report.explaining.explanation import Explanation
from csit_utils.report.explaining.marks import MARKS
from csit_utils.report.explaining.rates import RATES
from csit_utils.report.explaining.runs import RUNS
from csit_utils.report.explaining.studies import STUDIES
from csit_utils.report.explaining.tests import TESTS

__all__ = ["EXPLANATIONS", "Explanation"]

EXPLANATIONS = {text.name: text for text in (*RATES, *TESTS, *RUNS, *CHARACTERIZATIONS, *STUDIES, *MARKS)}
"""By name, in the order of the page."""

"""Figures for people: rates, and what a service of several components carries."""

from csit_utils.analysis.grouping import Measure, Metric, Series
from csit_utils.report.units import digits3, rate


def amount(metric: Metric | Measure, series: Series, value: float) -> str:
    """`212 kpps`; the capacity of a size in the unit of its workload: `600 calls/s`."""
    if metric is Measure.NORMALIZED:
        return digits3(value)
    return f"{digits3(value)} {series.frame}" if metric is Measure.CAPACITY else rate(value)

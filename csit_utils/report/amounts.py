"""Figures for people: rates, and what a service of several components carries."""

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.measures import OF_WORKLOAD, Measure
from csit_utils.report.units import digits3, rate


def unit(metric: Metric | Measure, series: Series) -> str | None:
    """Of a figure that is no packet rate: that of its workload, nothing for a ratio; None for packets per second."""
    if isinstance(metric, Metric):
        return None
    return series.frame if metric.unit == OF_WORKLOAD else metric.unit


def amount(metric: Metric | Measure, series: Series, value: float) -> str:
    """`212 kpps`; the capacity of a size in the unit of its workload: `600 calls/s`."""
    of = unit(metric, series)
    return rate(value) if of is None else f"{digits3(value)} {of}".rstrip()

"""Formatted figures: rates, and capacities in the unit of a workload."""

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.measures import OF_WORKLOAD, Measure
from csit_utils.report.units import digits3, rate


def unit(metric: Metric | Measure, series: Series) -> str | None:
    """Return the unit of a figure: that of its workload, empty for a ratio, None for packets per second."""
    if isinstance(metric, Metric):
        return None
    return series.frame if metric.unit == OF_WORKLOAD else metric.unit


def amount(metric: Metric | Measure, series: Series, value: float) -> str:
    """Return a figure with its unit: `212 kpps`, `600 calls/s`."""
    of = unit(metric, series)
    return rate(value) if of is None else f"{digits3(value)} {of}".rstrip()

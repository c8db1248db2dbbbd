"""Change of one cell between two sides, its confidence interval and p-value.

- **Several runs on both sides**: Welch's t-test (Biometrika 34 (1947) 28), which permits unequal variances.
- **One run against several**: the same, with the variance of the side with several runs and `n - 1` degrees of freedom.
- **One run on both sides, many cells**: the spread of changes over the matrix estimates the noise, see `spread`.
- **One run on both sides, few cells**: the noise is unknown. Intervals are the bounds of the figures (for MRR the 95 %
  interval of the mean of trials); whether they overlap says nothing about the next run.

The standard deviation is at least the resolution of a run (half of the width between the bounds of a search), because
rounded figures may agree by chance. The interval is of the ratio of the means, by propagation of errors (first order).
It is 95 % for a single cell; `comparison` adjusts p-values for the number of cells.
"""

from collections.abc import Sequence
from math import hypot, inf, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.special import stdtr, stdtrit

from csit_utils.analysis.alike import without_bounds
from csit_utils.analysis.cells import CellFigure, CellMetric, resolution
from csit_utils.analysis.change import CONFIDENCE, CellSide, Method
from csit_utils.analysis.grouping import RECEIVE_RATES, Metric, trials_of
from csit_utils.analysis.measures import Measure


class Judgement(NamedTuple):
    """A change relative to the first side."""

    method: Method
    change: float
    low: float
    """Of its confidence interval."""
    high: float
    probability: float | None
    """p-value; None if the noise is unknown."""


def side(cell: CellMetric, found: Sequence[CellFigure]) -> CellSide:
    """Summarize the figures of a cell."""
    values = [each.value_pps for each in found]
    lows, highs = zip(*(_interval(each, cell.metric) for each in found), strict=True)
    several = len(values) > 1
    return CellSide(
        cell.series,
        tuple(found),
        fmean(values),
        stdev(values) if several else None,
        min(values) if several else lows[0],
        max(values) if several else highs[0],
        resolution(found, cell.metric),
    )


def _interval(found: CellFigure, metric: Metric | Measure) -> tuple[float, float]:
    if not isinstance(metric, Metric):
        lowest = found.value_pps if found.lowest_pps is None else found.lowest_pps
        return lowest, inf if found.upper_pps is None else found.upper_pps
    if found.error_pps > 0:
        reach = float(stdtrit(max(1, (trials_of(found.row, metric) or 2) - 1), (1 + CONFIDENCE) / 2)) * found.error_pps
        return found.value_pps - reach, found.value_pps + reach
    if metric not in RECEIVE_RATES and found.upper_pps == found.value_pps:
        return without_bounds(found.row, metric, found.value_pps)
    return found.value_pps, inf if found.upper_pps is None else found.upper_pps


def judge_sides(a: CellSide, b: CellSide) -> Judgement:
    """Judge the change from one side to the other."""
    change = b.mean_pps / a.mean_pps - 1 if a.mean_pps else inf
    if a.runs == b.runs == 1:
        low = b.low_pps / a.high_pps - 1 if a.high_pps else inf
        high = b.high_pps / a.low_pps - 1 if a.low_pps > 0 else inf
        return Judgement(Method.BOUNDS, change, low, high, None)
    spread_a = max(a.stdev_pps if a.stdev_pps is not None else b.stdev_pps or 0.0, a.resolution_pps)
    spread_b = max(b.stdev_pps if b.stdev_pps is not None else a.stdev_pps or 0.0, b.resolution_pps)
    error_a, error_b = spread_a / sqrt(a.runs), spread_b / sqrt(b.runs)
    method = Method.RUNS if min(a.runs, b.runs) > 1 else Method.ONE_RUN
    freedom = _freedom(error_a, error_b, a.runs, b.runs) if method is Method.RUNS else max(a.runs, b.runs) - 1
    error = hypot(error_a, error_b)
    if not error or not a.mean_pps:
        same = a.mean_pps == b.mean_pps
        return Judgement(method, change, change, change, 1.0 if same else 0.0)
    probability = 2 * float(stdtr(freedom, -abs(b.mean_pps - a.mean_pps) / error))
    relative = hypot(error_b / a.mean_pps, b.mean_pps * error_a / a.mean_pps**2)
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * relative
    return Judgement(method, change, change - reach, change + reach, probability)


def _freedom(error_a: float, error_b: float, runs_a: int, runs_b: int) -> float:
    """Degrees of freedom by Welch and Satterthwaite."""
    parts = error_a**4 / (runs_a - 1) + error_b**4 / (runs_b - 1)
    return (error_a**2 + error_b**2) ** 2 / parts if parts else runs_a + runs_b - 2.0

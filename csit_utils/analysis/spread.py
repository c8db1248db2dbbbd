"""Noise of single runs, estimated from the spread of changes over a matrix."""

from collections.abc import Sequence
from math import exp, expm1, hypot, inf, log
from statistics import median
from typing import NamedTuple

from scipy.special import stdtr, stdtrit

FEWEST_CELLS = 8
"""Fewest cells of a matrix for an estimate."""
_NORMAL = 1.4826
"""Standard deviation of normal noise over its median absolute deviation."""


class SpreadRatio(NamedTuple):
    """Change of a cell between two single runs."""

    a_pps: float
    b_pps: float
    error: float
    """Relative difference without a change of the system, such as the resolution of a search."""


class Judged(NamedTuple):
    """A change judged against those of the other cells."""

    low: float
    """Bound of the confidence interval of the relative change."""
    high: float
    probability: float
    """p-value: probability that runs of equal systems differ as much."""


def relative(resolution_a: float, mean_a: float, resolution_b: float, mean_b: float) -> float:
    """Return the relative error of a ratio; infinite if one side is 0."""
    return hypot(resolution_a / mean_a, resolution_b / mean_b) if mean_a > 0 and mean_b > 0 else inf


def judge(ratios: Sequence[SpreadRatio], confidence: float) -> list[Judged] | None:
    """Judge cells of one matrix by the spread of their changes.

    Two single runs have no variance of their own. Most cells of a matrix change alike, if at all, so the spread of
    their changes estimates the noise: it is the median absolute deviation of the logarithms of the ratios about their
    median, and at least the error of the cell. Each change is tested against no change by Student's t with one degree
    of freedom less than cells. A change of all cells is detected; if about half of them changed, the spread is as large
    as the change, and nothing is reported.

    Args:
        ratios: Changes of all cells.
        confidence: Of the interval, in (0, 1).

    Returns:
        One judgement per cell; None with fewer than `FEWEST_CELLS`, or with a rate of 0.
    """
    if len(ratios) < FEWEST_CELLS or any(each.a_pps <= 0 or each.b_pps <= 0 for each in ratios):
        return None
    logs = [log(each.b_pps / each.a_pps) for each in ratios]
    middle = median(logs)
    noise = _NORMAL * median([abs(each - middle) for each in logs])
    freedom = len(logs) - 1
    quantile = float(stdtrit(freedom, (1 + confidence) / 2))
    found = []
    for change, ratio in zip(logs, ratios, strict=True):
        error = max(noise, ratio.error)
        if not error:
            found.append(Judged(expm1(change), expm1(change), 0.0 if change else 1.0))
            continue
        probability = 2 * float(stdtr(freedom, -abs(change) / error))
        found.append(Judged(exp(change - quantile * error) - 1, exp(change + quantile * error) - 1, probability))
    return found

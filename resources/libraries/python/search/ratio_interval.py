"""Ratio of two independent estimates, with its confidence interval. Pure."""

from math import exp, hypot, log
from typing import NamedTuple

_MIN = 0.01
"""Of an estimate: an interval that reaches further down says no more."""


class IntervalEstimate(NamedTuple):
    """A positive value with its confidence interval."""

    value: float
    low: float
    high: float


def relative_gain(before: IntervalEstimate, after: IntervalEstimate) -> IntervalEstimate:
    """Return `after` over `before`, less 1.

    The interval of the ratio follows from those of both values: MOVER of Zou and Donner, Statistics in Medicine 27
    (2008) 1693, on logarithms.
    """
    (x, x_low, x_high), (y, y_low, y_high) = _logarithms(before), _logarithms(after)
    middle = y - x
    low, high = middle - hypot(y - y_low, x_high - x), middle + hypot(y_high - y, x - x_low)
    return IntervalEstimate(exp(middle) - 1, exp(low) - 1, exp(high) - 1)


def _logarithms(found: IntervalEstimate) -> tuple[float, float, float]:
    return log(found.value), log(max(found.low, _MIN * found.value)), log(found.high)

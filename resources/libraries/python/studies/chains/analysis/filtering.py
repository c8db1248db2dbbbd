"""Seconds in which a reading was off, by the interquartile range (Probius, section 6.1)."""

from collections.abc import Sequence
from math import isfinite
from statistics import quantiles

REACH = 1.5
"""Interquartile ranges below the first and above the third quartile that still count (Tukey's fences)."""
LEAST_VALUES = 4
"""Fewest samples in which an outlier can be identified."""


def ordinary(values: Sequence[float | None]) -> tuple[list[float], int]:
    """The values inside the fences, in their order, and how many were outside.

    Quartiles are interpolated linearly. Unknown values count neither as the one nor as the other.
    """
    known = [value for value in values if value is not None and isfinite(value)]
    if len(known) < LEAST_VALUES:
        return known, 0
    first, _, third = quantiles(known, method="inclusive")
    reach = REACH * (third - first)
    kept = [value for value in known if first - reach <= value <= third + reach]
    return kept, len(known) - len(kept)

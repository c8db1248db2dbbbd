"""Sparklines of trends on a terminal."""

from collections.abc import Sequence
from datetime import datetime

_BLOCKS = "▁▂▃▄▅▆▇█"
GAP = "·"
"""A run without a figure."""
LEAST_RANGE = 0.05
"""Least range of heights relative to the largest figure, so that small noise looks flat."""


def history(points: Sequence[tuple[datetime, float]], gaps: Sequence[datetime] = ()) -> str:
    """Return one character per run in the order of time; heights scale from the lowest to the highest figure."""
    if not points:
        return ""
    values = [value for _, value in points]
    top = max(values)
    low = min(*values, top - LEAST_RANGE * abs(top))
    every = sorted([*((at, _block(value, low, top)) for at, value in points), *((at, GAP) for at in gaps)])
    return "".join(character for _, character in every)


def _block(value: float, low: float, top: float) -> str:
    share = (value - low) / (top - low) if top > low else 1.0
    return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]

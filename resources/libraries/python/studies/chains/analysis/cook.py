"""Cook's distance of each point from a straight line through all: how much the line would move without it.

Equations 1 to 5 of Probius (Nam et al., SOSR 2018), section 6.2, after Cook (1979). With one independent variable
(k = 1), least squares give residuals r and leverages h, and

    MSE = sum r^2 / (n - k - 1)        D = r^2 / ((k + 1) MSE) * h / (1 - h)^2

which is the squared change of all fitted values when the point is left out, over (k + 1) MSE. A point is influential
above 4/n (Bollen and Jackman). The code that was published with the paper divides the sum of squares by n instead, so
that its distances are n / (n - 2) times these, and compares them with 0.7.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

VARIABLES = 1
LEAST_POINTS = VARIABLES + 2
"""With fewer, every line goes through all of them."""
_EXACT = 1e-10
"""Residuals this small beside the values are rounding."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A straight line through points, and how much each of them holds it."""

    expected: tuple[float, ...]
    """On the line, one for each point."""
    distances: tuple[float | None, ...]
    """None for a point that fixes the line alone (leverage 1): without it there would be none."""
    threshold: float
    """4/n."""


def regression(x: Sequence[float], y: Sequence[float]) -> Regression | None:
    """Cook's distances of points (x, y).

    Returns:
        None where they say nothing: fewer than three points, all at one x, or all on the line.
    """
    count = len(x)
    if count < LEAST_POINTS:
        return None
    # Distances stay the same when either axis is scaled; squares of bits per second would lose digits.
    scale = max(map(abs, x)) or 1.0
    offsets = np.asarray(x, float) / scale
    offsets -= offsets.mean()
    values = np.asarray(y, float)
    spread = float(offsets @ offsets)
    if spread <= _EXACT**2 * count:
        return None
    height = float(np.abs(values).max()) or 1.0
    heights = values / height
    line = heights.mean() + (offsets @ (heights - heights.mean())) / spread * offsets
    residuals = heights - line
    if float(np.abs(residuals).max()) <= _EXACT:
        return None
    mean_squared_error = float(residuals @ residuals) / (count - VARIABLES - 1)
    leverages = 1 / count + offsets**2 / spread
    distances = tuple(
        None
        if 1 - leverage <= _EXACT
        else float(residual**2 / ((VARIABLES + 1) * mean_squared_error) * leverage / (1 - leverage) ** 2)
        for residual, leverage in zip(residuals, leverages, strict=True)
    )
    return Regression(tuple(map(float, line * height)), distances, 4 / count)

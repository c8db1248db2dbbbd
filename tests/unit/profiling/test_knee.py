"""Knees of rows of points: found where a line bends, none where noise or a smooth curve only looks like one."""

from collections.abc import Callable

import numpy as np
import pytest

from resources.libraries.python.profiling.knee import find_knee
from resources.libraries.python.profiling.observed import Array

LAST = 3.5
SMOOTH: dict[str, Callable[[Array], Array]] = {
    "level from the first point on": lambda r: np.full_like(r, 0.6),
    "a parabola that is level at the last point": lambda r: 1 - (1 - r / LAST) ** 2,
    "an exponential that comes close to its limit": lambda r: 1 - np.exp(-r / 1.2),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("points", "noise"), [(30, 0.05), (30, 0.15)])
def test_a_curve_without_a_knee_has_one_in_one_of_twenty_rows_at_most(name: str, points: int, noise: float) -> None:
    rates = np.linspace(LAST / points, LAST, points)
    seen = [
        SMOOTH[name](rates) * (1 + noise * np.random.default_rng(seed).standard_normal(points)) for seed in range(40)
    ]
    assert sum(find_knee(rates, row) is not None for row in seen) <= 2

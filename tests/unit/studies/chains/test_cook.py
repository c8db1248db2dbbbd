"""Cook's distance: the closed form is the change of the line without a point, and what statsmodels computes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.regression.linear_model import OLS  # type: ignore[import-untyped]
from statsmodels.tools.tools import add_constant  # type: ignore[import-untyped]

from resources.libraries.python.studies.chains.analysis.points import Regression, regression

Floats = NDArray[np.float64]
VOLUMES = (200e6, 400e6, 600e6, 800e6, 1000e6)


def line(x: Floats, y: Floats, at: Floats) -> Floats:
    spread = x - x.mean()
    return np.asarray(y.mean() + (spread @ y) / (spread @ spread) * (at - x.mean()))


def left_out(x: Floats, y: Floats) -> Floats:
    """Equation 5, left side: the line made again without each point."""
    fitted = line(x, y, x)
    mse = float(((y - fitted) ** 2).sum()) / (len(x) - 2)
    rest = [np.arange(len(x)) != index for index in range(len(x))]
    return np.array([((fitted - line(x[keep], y[keep], x)) ** 2).sum() for keep in rest]) / (2 * mse)


def noisy(seed: int, count: int = 24) -> tuple[Floats, Floats]:
    draw = np.random.default_rng(seed)
    x = draw.choice(VOLUMES, count)
    return x, 3 + x / 2e7 + draw.normal(0, 4, count)


def known(x: Floats, y: Floats) -> Regression:
    found = regression(list(x), list(y))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(8))
def test_closed_form_leave_one_out_and_statsmodels_agree(seed: int) -> None:
    x, y = noisy(seed)
    found = known(x, y)
    assert found.distances == pytest.approx(left_out(x, y), rel=1e-9)
    peer = OLS(y, add_constant(x / 1e9)).fit()
    assert found.distances == pytest.approx(peer.get_influence().cooks_distance[0], rel=1e-9)
    assert found.expected == pytest.approx(peer.fittedvalues, rel=1e-9)
    assert found.threshold == 4 / len(x)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-50, 50)), min_size=4, max_size=12),
    st.floats(1e-6, 1e9),
    st.floats(1e-6, 1e9),
)
def test_scaling_an_axis_changes_no_distance(points: list[tuple[int, int]], wide: float, high: float) -> None:
    x, y = (np.array(row, float) for row in zip(*points, strict=True))
    found, scaled = regression(list(x), list(y)), regression(list(x * wide), list(y * high))
    assume(found is not None and scaled is not None)
    for one, other in zip(found.distances, scaled.distances, strict=True):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, rel=1e-6, abs=1e-9)


def test_the_published_code_is_off_by_a_known_factor_and_has_another_threshold() -> None:
    """It divides the sum of squares by n, not by n - 2, and takes 0.7 for 4/n."""
    x, y = noisy(3)
    fitted = line(x, y, x)
    published = left_out(x, y) * (((y - fitted) ** 2).sum() / (len(x) - 2)) / (((y - fitted) ** 2).sum() / len(x))
    assert published == pytest.approx(np.array(known(x, y).distances) * len(x) / (len(x) - 2), rel=1e-9)
    assert known(x, y).threshold < 0.7


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1, 2], [1, 5]),
        ([3, 3, 3, 3], [1, 2, 3, 9]),
        ([1e9, 1e9 * (1 + 1e-13), 1e9], [1, 2, 3]),
        ([1, 2, 3, 4], [10, 20, 30, 40]),
        ([1, 2, 3, 4], [7, 7, 7, 7]),
        ([1e8, 2e8, 3e8], [0.1, 0.2, 0.1 * 3]),
        ([0, 0, 0], [0, 0, 1]),
    ],
)
def test_points_that_say_nothing_have_no_distances(x: list[float], y: list[float]) -> None:
    assert regression(x, y) is None


def test_a_point_that_fixes_the_line_alone_has_no_distance_and_the_others_have() -> None:
    found = regression([1, 1, 1, 5], [1, 2, 4, 100])
    assert found.distances[3] is None
    assert all(each is not None and each >= 0 for each in found.distances[:3])

"""Steps of noisy series, on series whose truth is known."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.analysis.trends.steps import MIN_RUNS, find_steps, noise, tail
from tests.unit.examples import share

ALPHA = 1e-5
"""As one of a thousand cells has it where the whole is to be right with 99 %."""


def series(levels: list[tuple[int, float]], spread: float = 0.6, seed: int = 1) -> list[float]:
    """Levels for so many nights each, with Gaussian noise."""
    rng = np.random.default_rng(seed)
    return [float(level + rng.normal(0, spread)) for nights, level in levels for _ in range(nights)]


def places(values: list[float], alpha: float = ALPHA) -> list[int]:
    return [step.index for step in find_steps(values, noise(values), alpha)]


def test_a_fall_is_found_in_its_night_with_its_size() -> None:
    values = series([(12, 100.0), (18, 92.0)])
    (step,) = find_steps(values, noise(values), ALPHA)
    assert step.index == 12
    assert step.change == pytest.approx(-0.08, abs=0.01)
    assert step.probability < ALPHA


def test_a_short_episode_between_equal_levels_is_two_steps() -> None:
    assert places(series([(12, 100.0), (6, 90.0), (12, 100.0)])) == [12, 18]


def test_three_levels_are_two_steps() -> None:
    assert places(series([(10, 100.0), (10, 95.0), (10, 102.0)])) == [10, 20]


@pytest.mark.parametrize("bad", [1, 2])
def test_nights_that_went_wrong_are_no_step_however_wrong(bad: int) -> None:
    assert places(series([(15, 100.0), (bad, 10.0), (14, 100.0)])) == []


def test_a_large_fall_is_confirmed_by_its_third_night_and_not_before() -> None:
    assert places(series([(27, 100.0), (2, 85.0)])) == []
    assert places(series([(27, 100.0), (3, 85.0)])) == [27]


def test_a_small_fall_needs_more_nights() -> None:
    small = [places(series([(30, 100.0), (nights, 97.0)])) for nights in (3, 6, 15)]
    assert small[0] == []
    assert small[2] == [30]


def test_too_few_values_have_no_steps() -> None:
    assert find_steps([1.0] * (2 * MIN_RUNS - 1), 1.0, 0.5) == ()
    assert find_steps([], 1.0, 0.5) == ()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "heavy tails", "rounded"])
def test_noise_alone_is_called_a_step_less_often_than_promised(kind: str) -> None:
    rng, alpha, count = np.random.default_rng(7), 0.05, 400
    called = 0
    for _ in range(count):
        drawn = rng.standard_t(3, 30) if kind == "heavy tails" else rng.normal(0, 1, 30)
        values = [100 + float(value) for value in (np.round(drawn) if kind == "rounded" else drawn)]
        called += bool(find_steps(values, noise(values, 0.5 if kind == "rounded" else 0.0), alpha))
    assert called / count <= alpha


def test_noise_is_that_of_the_series_and_not_of_its_steps() -> None:
    calm = noise(series([(30, 100.0)]))
    assert noise(series([(15, 100.0), (15, 50.0)])) == pytest.approx(calm, rel=0.3)


def test_noise_is_never_below_the_resolution() -> None:
    assert noise([5.0] * 20, 0.25) == 0.25
    assert noise([5.0], 0.25) == 0.25


def test_tail_is_two_sided() -> None:
    assert tail(0.0, 1.0) == 1.0
    assert tail(2.776, 1.0) == pytest.approx(0.05, abs=1e-4)  # table of Student's t, 4 degrees of freedom
    assert tail(-2.776, 1.0) == tail(2.776, 1.0)


values_ = st.lists(st.floats(1, 100), min_size=6, max_size=40)


@settings(max_examples=share(60), deadline=None)
@given(values_, st.floats(0.1, 1000))
def test_units_do_not_matter(values: list[float], factor: float) -> None:
    scale = max(noise(values), 1e-3)
    plain = [step.index for step in find_steps(values, scale, 0.05)]
    assert [step.index for step in find_steps([factor * x for x in values], factor * scale, 0.05)] == plain


@settings(max_examples=share(60), deadline=None)
@given(values_)
def test_parts_are_long_enough_and_evidence_is_as_asked(values: list[float]) -> None:
    steps = find_steps(values, 0.05, 0.01)
    ends = [0, *(step.index for step in steps), len(values)]
    assert all(two - one >= MIN_RUNS for one, two in pairwise(ends)) or not steps
    assert all(0 <= step.probability <= 0.01 for step in steps)


def test_noise_is_the_mean_of_the_middle_half_of_differences_of_neighbours() -> None:
    values = np.cumsum([0.0, 64, 1, 49, 4, 36, 9, 25, 16])
    assert noise(values.tolist()) == pytest.approx((9 + 16 + 25 + 36) / 4 / 1.1815 * (1 + 6 / 8))

"""Differences between blocks: the estimate is the published one, and its interval keeps what it promises."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from csit_utils.bench.traffic.watching_cost import BLOCKS, costs, estimate, orders

DIFFERENCES = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=6, max_size=25)
HAMILTON = (0.952, -0.147, 1.022, 0.430, 0.620, 0.590, 0.490, -0.080, 0.010)
"""Scores before less those after of nine patients: the example of Hollander and Wolfe, table 3.1, signs turned."""


def test_the_books_example_has_the_books_estimate_and_interval() -> None:
    found = estimate(HAMILTON)
    assert found.middle == pytest.approx(0.46, abs=0.001)
    # Of 45 means the sixth at each end: 0.0195 of each tail is outside, which is as near to 0.025 as nine values get.
    means = sorted((one + other) / 2 for i, one in enumerate(HAMILTON) for other in HAMILTON[i:])
    assert found.interval == (means[5], means[-6])


@given(DIFFERENCES)
def test_what_the_signed_rank_test_refuses_is_what_lies_outside_the_interval(differences: list[float]) -> None:
    rounded = np.round(differences, 2) + np.arange(len(differences)) * 1e-5  # no ties, for which the test has no table
    interval = estimate(rounded.tolist()).interval
    assert interval is not None
    low, high = interval
    for value, outside in ((low - 1e-7, True), (low + 1e-7, False), (high - 1e-7, False), (high + 1e-7, True)):
        if low < high or outside:
            assert (wilcoxon(rounded - value, method="exact").pvalue <= 0.05) == outside


def test_one_disturbed_block_moves_a_mean_and_not_the_estimate() -> None:
    quiet = [0.001 * number for number in range(-5, 6)]
    assert estimate([*quiet[:-1], 5.0]).middle == pytest.approx(0.0, abs=0.002)


@pytest.mark.parametrize("number", [1, 5])
def test_too_few_differences_have_no_interval(number: int) -> None:
    assert estimate([0.5] * number) == (0.5, None)
    assert estimate([0.5] * number).divided(10) == (0.05, None)


def test_a_part_of_a_difference_has_that_part_of_its_interval() -> None:
    assert estimate([1.0] * 6).divided(10) == (0.1, (0.1, 0.1))


def test_an_interval_of_noise_has_the_truth_in_it_19_times_of_20() -> None:
    chance = np.random.default_rng(3)
    rows = [estimate(row.tolist()).interval for row in chance.normal(0.3, 1.0, (400, 12))]
    inside = sum(low <= 0.3 <= high for low, high in filter(None, rows))
    assert 0.92 <= inside / 400 <= 0.98


@given(st.integers(1, 9))
def test_each_order_has_all_blocks_and_the_next_one_is_its_reverse(rounds: int) -> None:
    found = list(orders(tuple(BLOCKS), rounds))
    assert len(found) == rounds
    assert all(sorted(order) == sorted(BLOCKS) for order in found)
    assert all(after == before[::-1] for before, after in zip(found[::2], found[1::2], strict=False))


def test_costs_are_found_in_spite_of_a_drift_and_of_a_disturbed_round() -> None:
    taken = {"nothing": 0.0, "nothing again": 0.0, "sampler": 0.002, "tracer": 0.006, "both": 0.008, "stacks": 0.004}
    rounds = [
        {name: 3e5 * exp(-taken[name] - 0.001 * (8 * number + place)) for place, name in enumerate(order)}
        for number, order in enumerate(orders(tuple(BLOCKS), 12))
    ]
    rounds[3]["tracer"] *= 0.5
    found = costs(rounds)
    assert found["sampler"].middle == pytest.approx(0.002, abs=2e-4)
    assert found["tracer"].middle == pytest.approx(0.006, abs=7e-4)
    assert found["both"].middle == pytest.approx(0.008, abs=2e-4)
    assert found["stacks"].middle == pytest.approx(0.004, abs=7e-4)
    assert found["nothing"].middle == pytest.approx(0.0, abs=2e-4)
    assert all(
        row.interval and row.interval[0] <= taken.get(name, 0.0) <= row.interval[1] for name, row in found.items()
    )

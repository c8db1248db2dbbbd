"""Estimates of a capacity between the loads, against services whose capacity is known."""

from collections.abc import Callable
from itertools import count
from math import sin
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.service.spec import Offered
from resources.libraries.python.studies.sizing.search.capacity_estimate import Crossing, crossing, lasting_drift
from tests.unit.examples import share

Carry = Callable[[float, Random], float]


def offered(carry: Carry, seed: int, *, step: float, repeat: int) -> list[Offered]:
    """Loads on a service that is described by what it carries of one."""
    rng, rows, load = Random(seed), [], 500.0
    while load <= 1300:
        values = tuple(carry(load, rng) for _ in range(repeat))
        deviation = stdev(values) if repeat > 1 else None
        rows.append(Offered(load=load, indicators=values, mean=fmean(values), stdev=deviation))
        load += step
    return rows


def drifting(load: float, rng: Random) -> float:
    """Carries 900, with a deviation of 5 %: 0.9 of 1000."""
    return min(load, rng.gauss(900, 45))


def sagging(load: float, rng: Random) -> float:
    """Half of what is too much costs capacity: 0.9 of 900 + 30."""
    limit = rng.gauss(855, 8)
    return min(load, limit - 0.5 * max(0.0, load - limit))


def falling(load: float, rng: Random) -> float:
    """Carries 900, and only 600 to 700 of more."""
    return load if load <= 900 else rng.uniform(600, 700)


def lossy(load: float, rng: Random) -> float:
    """Loses 3 % at any load, and carries 900."""
    return min(0.97 * load * rng.gauss(1, 0.003), rng.gauss(900, 9))


def found(carry: Carry, seed: int = 1, threshold: float = 0.9, step: float = 20, repeat: int = 3) -> Crossing:
    at = crossing(offered(carry, seed, step=step, repeat=repeat), threshold)
    assert at is not None
    return at


@pytest.mark.parametrize(
    ("carry", "threshold", "truth"),
    [(drifting, 0.9, 1000), (drifting, 0.8, 1125), (sagging, 0.9, 855 * 1.5 / 1.4), (lossy, 0.9, 1000)],
)
def test_a_capacity_is_estimated_between_the_loads(carry: Carry, threshold: float, truth: float) -> None:
    estimates = [found(carry, seed, threshold) for seed in range(8)]
    assert fmean(each.load for each in estimates) == pytest.approx(truth, rel=0.01)
    assert sum(each.low <= truth <= each.high for each in estimates) >= 6


def test_more_repetitions_narrow_the_interval() -> None:
    once, often = (found(drifting, repeat=repeat) for repeat in (1, 10))
    assert 2 < (once.high - once.low) / (often.high - often.low) < 5


def test_a_capacity_at_which_the_indicator_falls_at_once_is_between_two_loads() -> None:
    at = found(falling, step=70)
    assert (at.low, at.high) == (850, 920)
    assert at.low < at.load < at.high


def test_a_share_below_which_the_indicator_falls_later_is_estimated_there() -> None:
    at = found(falling, threshold=0.6, step=20)
    assert at.low < 650 / 0.6 < at.high


@pytest.mark.parametrize("ratio", [1.0, 0.95])
def test_there_is_no_estimate_where_all_loads_are_carried(ratio: float) -> None:
    assert crossing(offered(lambda load, _: ratio * load, 0, step=100, repeat=2), 0.9) is None


def test_repetitions_that_drift_together_are_told_from_independent_ones() -> None:
    drift = count()
    rows = offered(lambda load, _: min(load, 900 + 40 * sin(next(drift) / 3)), 1, step=20, repeat=5)
    assert lasting_drift(rows, 0.9) > 0.5
    independent = [lasting_drift(offered(drifting, seed, step=20, repeat=5), 0.9) for seed in range(20)]
    assert independent.count(None) >= 17


def test_the_interval_allows_for_drift_that_few_repetitions_do_not_show() -> None:
    held = 0
    for seed in range(60):
        drift = 0.0

        def lasting(load: float, rng: Random) -> float:
            nonlocal drift
            drift = 0.7 * drift + rng.gauss(0, 32)
            return min(load, 900 + drift)

        at = found(lasting, seed, step=60, repeat=2)
        held += at.low <= 1000 <= at.high
    assert held >= 52


def test_there_is_no_interval_from_one_repetition_beyond_the_capacity() -> None:
    rows = offered(drifting, 0, step=500, repeat=1)
    assert [row.ratio < 0.9 for row in rows] == [False, True][: len(rows)]
    assert crossing(rows, 0.9) is None
    assert crossing([], 0.9) is None


def test_a_capacity_below_all_loads_is_estimated_from_what_is_carried() -> None:
    rows = offered(lambda load, rng: min(load, rng.gauss(400, 4)), 0, step=50, repeat=3)
    at = crossing(rows, 0.9)
    assert at.load == pytest.approx(400 / 0.9, rel=0.02)


@settings(max_examples=share(25), deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1.1), min_size=1, max_size=3), max_size=12), st.floats(0.05, 1), st.floats(0.01, 500)
)
def test_any_indicators_have_an_ordered_interval_or_none(
    shares: list[list[float]], threshold: float, unit: float
) -> None:
    rows = [
        Offered(
            load=number * unit,
            indicators=tuple(each * number * unit for each in row),
            mean=fmean(row) * number * unit,
            stdev=None,
        )
        for number, row in enumerate(shares, 1)
    ]
    at = crossing(rows, threshold)
    if at is not None:
        assert 0 <= at.low <= at.load <= at.high

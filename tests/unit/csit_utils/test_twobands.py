"""Two levels that a figure goes back and forth between."""

from itertools import pairwise, permutations
from random import Random

import pytest

from csit_utils.analysis.trends.twobands import chance_of_runs, find_two_bands


def flipping(count: int, share: float, seed: int, gap: float = 0.1) -> list[float]:
    rng = Random(seed)
    return [rng.gauss(1.0, 0.006) - (gap if rng.random() < share else 0.0) for _ in range(count)]


def test_both_levels_and_their_shares_are_reported() -> None:
    values = flipping(40, 0.25, seed=3)
    found = find_two_bands(values)
    assert found.upper == pytest.approx(1.0, abs=0.01)
    assert found.lower == pytest.approx(0.9, abs=0.01)
    assert found.lower_share == sum(value < 0.95 for value in values) / 40
    assert found.in_lower == tuple(value < 0.95 for value in values)


def test_a_level_that_changed_and_stayed_is_no_band() -> None:
    rng = Random(1)
    values = [rng.gauss(1.0 if night < 15 else 0.9, 0.006) for night in range(30)]
    assert find_two_bands(values) is None


def test_a_level_that_changed_after_an_early_bad_night_is_no_band() -> None:
    rng = Random(1)
    values = [rng.gauss(1.0 if night < 15 else 0.9, 0.006) for night in range(30)]
    values[4] = 0.9
    assert find_two_bands(values) is None


def test_noise_is_no_band() -> None:
    called = sum(find_two_bands(gaussian(seed)) is not None for seed in range(300))
    assert called / 300 <= 0.01


def gaussian(seed: int) -> list[float]:
    rng = Random(seed)
    return [rng.gauss(1.0, 0.006) for _ in range(30)]


def test_two_neighbouring_rounded_levels_are_no_bands() -> None:
    rng = Random(5)
    assert find_two_bands([rng.choice([1.0, 1.005]) for _ in range(40)], resolution=0.0025) is None


def test_most_cells_in_two_bands_are_recognized() -> None:
    found = sum(find_two_bands(flipping(30, 0.25, seed)) is not None for seed in range(200))
    assert found / 200 >= 0.95


@pytest.mark.parametrize(("one", "other"), [(2, 3), (3, 3), (1, 4)])
def test_the_chance_of_runs_is_that_of_all_orders(one: int, other: int) -> None:
    orders = set(permutations("a" * one + "b" * other))

    def runs(order: tuple[str, ...]) -> int:
        return 1 + sum(x != y for x, y in pairwise(order))

    for most in range(2, one + other + 1):
        share = sum(runs(order) <= most for order in orders) / len(orders)
        assert chance_of_runs(most, one, other) == pytest.approx(share)


@pytest.mark.parametrize("level", [0.9, 1.1])
@pytest.mark.parametrize(("visits", "is_band"), [(2, False), (3, True)])
def test_two_values_are_no_band_on_either_side(level: float, visits: int, is_band: bool) -> None:
    values = [1.0 + 0.001 * (place % 3) for place in range(20)]
    for place in (4, 9, 14)[:visits]:
        values[place] = level
    assert (find_two_bands(values) is not None) is is_band


def test_a_band_has_a_tenth_of_the_values() -> None:
    for count, is_band in ((46, False), (40, True)):
        values = [1.0 + 0.001 * (place % 3) for place in range(count)]
        for place in (4, 12, 20, 30):
            values[place] = 0.9
        assert (find_two_bands(values) is not None) is is_band

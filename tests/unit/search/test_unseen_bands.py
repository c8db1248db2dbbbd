"""The chance that few values miss two bands, and how many more settle it."""

from itertools import product

import pytest

from resources.libraries.python.search.findings.unseen_bands import SETTLED, SHARE, fewest, unseen_bands


def chance(count: int, share: float, low: int = 0, further: int = 0) -> float:
    """By counting all outcomes: probability that a band has too few of all values."""
    total = 0.0
    for outcome in product((0, 1), repeat=count):
        ones = sum(outcome)
        if min(low + ones, count + further - low - ones) < fewest(count + further):
            total += share**ones * (1 - share) ** (count - ones)
    return total


@pytest.mark.parametrize("count", [6, 10, 13])
def test_the_chance_is_that_of_all_outcomes(count: int) -> None:
    assert unseen_bands(count).chance == pytest.approx(chance(count, 0.3))


def test_fewer_than_six_values_show_no_bands() -> None:
    assert [unseen_bands(count).chance for count in (1, 5)] == pytest.approx([1.0, 1.0])
    assert unseen_bands(6).chance < 1


@pytest.mark.parametrize(("count", "low"), [(8, 1), (8, 2), (6, 2)])
def test_a_hint_settles_with_so_many_further_values_and_not_with_fewer(count: int, low: int) -> None:
    found = unseen_bands(count, low)
    assert found.share == max(SHARE, low / count)
    assert found.further is not None
    assert chance(found.further, found.share, low, count) <= SETTLED
    assert chance(found.further - 1, found.share, low, count) > SETTLED


def test_without_a_hint_all_lower_values_have_to_come_yet() -> None:
    found = unseen_bands(10)
    assert found.further is not None
    assert found.further > 14, "3 of 20 values at 30 % come with 96 %"
    assert unseen_bands(10, 2).further < found.further


def test_bands_in_an_improbable_order_are_missed_too() -> None:
    assert unseen_bands(12, missed=lambda _low, _high: 1.0).chance == pytest.approx(1.0)
    assert unseen_bands(12, missed=lambda _low, _high: 0.1).chance > unseen_bands(12).chance


def test_the_sentence_has_the_numbers() -> None:
    assert unseen_bands(13).text("run", "runs") == (
        "no two bands seen in 13 runs; a lower band with 30 % of them is missed with a probability of 20 %; "
        f"{unseen_bands(13).further} further runs settle it (95 %)"
    )
    assert "1 of 8 runs lies apart, too few to call it two bands" in unseen_bands(8, 1).text("run", "runs")

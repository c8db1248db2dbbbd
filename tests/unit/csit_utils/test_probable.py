"""Cells that changed together with others, on histories whose truth is known."""

import numpy as np
import pytest

from csit_utils.analysis.trends.events import CHANCE, probable_events
from csit_utils.analysis.trends.steps import noise, split_chance
from csit_utils.analysis.trends.trend import trends
from csit_utils.dataset.rows import TestRow
from tests.unit.csit_utils.histories import nights

STEP = 6
NIGHTS = 16


def fallen(night: int) -> float:
    return 3e6 if night < STEP else 0.92 * 3e6


def neighbours(count: int) -> list[TestRow]:
    """Cells whose falls are confirmed."""
    return [each for chains in range(1, count + 1) for each in nights(NIGHTS, fallen, cell=("CSC", chains, 1))]


NOISY = nights(NIGHTS, fallen, cell=("CSP", 1, 1), noise=0.03)
"""The same fall, which noise hides from the search over all places."""
STEADY = nights(NIGHTS, lambda _: 3e6, cell=("VSC", 1, 1))
ELSEWHERE = nights(NIGHTS, fallen, "lab-b", ("CSP", 1, 1), noise=0.03)


def test_a_fall_in_the_same_run_as_others_is_probable_and_no_other_is() -> None:
    found = trends([*neighbours(2), *NOISY, *STEADY, *ELSEWHERE])
    events = probable_events(found)
    cells = {(each.trend.cell.series.system.testbed, each.trend.cell.series.service_type) for each in events}
    assert cells == {("lab-a", "CSP")}
    assert [each.trend.cell.metric for each in events] == ["NDR", "PDR"]
    assert not any(each.trend.steps for each in events)
    assert {each.after.row.run for each in events} == {f"lab-a/{STEP}/output.xml"}
    assert {(each.probable, each.doubt) for each in events} == {(4, "probable")}
    assert all(each.change == pytest.approx(-0.08, abs=0.04) for each in events)


def test_two_confirmed_series_make_no_other_probable() -> None:
    assert probable_events(trends([*neighbours(1), *NOISY])) == []


def test_a_change_in_the_other_direction_is_not_probable() -> None:
    rise = nights(NIGHTS, lambda night: 6e6 - fallen(night), cell=("CSP", 1, 1), noise=0.03)
    assert probable_events(trends([*neighbours(2), *rise])) == []


def test_the_place_alone_has_the_promised_rate_of_false_marks() -> None:
    rng = np.random.default_rng(1)
    drawn = [[float(value) for value in rng.normal(100, 1, NIGHTS)] for _ in range(400)]
    chances = [split_chance(values[:STEP], values[STEP:], noise(values)) / 2 for values in drawn]
    assert sum(chance <= CHANCE for chance in chances) / len(drawn) <= 2 * CHANCE

"""Loads hang on nothing that changes from run to run."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.search.algorithms.laddersearch import Ladder
from tests.unit.examples import share


@settings(deadline=None, max_examples=share(30))
@given(
    width=st.sampled_from([0.005, 0.02, 0.1]),
    max_load_pps=st.floats(100.0, 1e9),
    span=st.floats(10.0, 1e6),
)
def test_neighbours_are_as_close_as_asked_and_no_closer_than_needed(
    width: float, max_load_pps: float, span: float
) -> None:
    ladder = Ladder(width, max_load_pps / span, max_load_pps)
    loads = [ladder.load_pps(rung) for rung in range(ladder.bottom, ladder.top + 1)]
    assert loads == sorted(set(loads))
    assert (loads[0], loads[-1]) == (max_load_pps / span, max_load_pps)
    ratios = [lower / upper for lower, upper in pairwise(loads)]
    assert min(ratios) >= (1 - width) * (1 - 1e-9)
    assert ratios[1:-1] == pytest.approx([1 - width] * (len(ratios) - 2))


@given(st.floats(2e4, 3e7), st.floats(2e4, 3e7))
def test_a_load_is_on_the_rung_below_it(load_pps: float, max_load_pps: float) -> None:
    ladder = Ladder(0.005, 18002.0, max_load_pps)
    rung = ladder.below(load_pps)
    assert ladder.load_pps(rung) <= load_pps
    assert rung == ladder.top or load_pps < ladder.load_pps(rung + 1) * (1 + 1e-9)
    for each in (ladder.bottom, ladder.bottom + 1, rung, ladder.top - 1, ladder.top):
        assert ladder.below(ladder.load_pps(each)) == each


def test_another_highest_load_leaves_the_rungs_where_they_are() -> None:
    one, other = Ladder(0.005, 18002.0, 29.76e6), Ladder(0.005, 20000.0, 11.11e6)
    rungs = range(other.bottom + 1, other.top)
    assert [one.load_pps(rung) for rung in rungs] == [other.load_pps(rung) for rung in rungs]


def test_ends_that_are_rungs_are_not_there_twice() -> None:
    wide = Ladder(0.005, 1.0, 1e6)
    ladder = Ladder(0.005, wide.load_pps(500), wide.load_pps(900))
    assert (ladder.bottom, ladder.top) == (500, 900)

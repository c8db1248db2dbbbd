"""Interval of a ratio of two estimates."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.search.ratio_interval import IntervalEstimate, relative_gain

estimates = st.builds(
    lambda value, down, up: IntervalEstimate(value, value * (1 - down), value * (1 + up)),
    st.floats(1e-3, 1e6),
    st.floats(0, 0.95),
    st.floats(0, 3),
)


def test_intervals_add_up_by_their_squares_in_logarithms_and_are_cut_at_zero() -> None:
    found = relative_gain(IntervalEstimate(100, 100, 100), IntervalEstimate(150, 120, 200))
    assert found == pytest.approx(IntervalEstimate(0.5, 0.2, 1.0))
    each = IntervalEstimate(1.0, 1 / 1.01, 1.01)
    assert relative_gain(each, each).high == pytest.approx(1.01 ** (2**0.5) - 1)
    found = relative_gain(IntervalEstimate(1, -5, 2), IntervalEstimate(1, 1, 1))
    assert found.high == pytest.approx(99) and found.high < inf


@given(estimates, estimates)
def test_the_ratio_the_other_way_round_is_the_inverse(one: IntervalEstimate, other: IntervalEstimate) -> None:
    there, back = relative_gain(one, other), relative_gain(other, one)
    assert there.low <= there.value <= there.high
    for end, inverse in ((there.value, back.value), (there.low, back.high), (there.high, back.low)):
        assert (1 + end) * (1 + inverse) == pytest.approx(1, rel=1e-6)

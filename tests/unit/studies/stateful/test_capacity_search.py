"""The search of a table's capacity: right for every capacity, whatever it begins with."""

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.studies.stateful.run import search_capacity

MAX_ENTRIES = 100_000


@given(st.integers(0, MAX_ENTRIES), st.integers(1, MAX_ENTRIES), st.sampled_from([0.001, 0.01, 0.2]))
def test_the_bounds_hold_the_capacity_and_are_as_close_as_asked(capacity: int, guess: int, width: float) -> None:
    tried: list[int] = []

    def passes(entries: int) -> bool:
        tried.append(entries)
        return entries <= capacity

    low, high = search_capacity(passes, guess, MAX_ENTRIES, width)
    assert low <= capacity
    assert low in tried or low == 0
    if capacity == MAX_ENTRIES:
        assert (low, high) == (MAX_ENTRIES, None)
    else:
        assert high in tried
        assert high is not None and capacity < high <= low + max(1, int(width * max(1, low)))
    assert len(tried) <= 40
    assert all(1 <= entries <= MAX_ENTRIES for entries in tried)


def test_a_guess_that_is_right_takes_two_attempts() -> None:
    tried: list[int] = []

    def passes(entries: int) -> bool:
        tried.append(entries)
        return entries <= 5000

    assert search_capacity(passes, 5000, MAX_ENTRIES, 0.01) == (5000, 5050)
    assert tried == [5000, 5050]

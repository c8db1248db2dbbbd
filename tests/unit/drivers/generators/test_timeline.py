"""What becomes of the numbered frames of a flow, in bins and gaps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin.arrivals import timeline
from resources.libraries.python.drivers.generators.builtin.wire import TimelineReport

BEGIN_NS = 1_700_000_000_000_000_000
SPACING_NS = 250_000
DELAY_NS = 30_000


def report(came: list[bool], *, knows: bool = True, bin_ns: int = 1_000_000) -> TimelineReport:
    """Of frames at equal distances; only those that arrive carry the time at which they left."""
    left_ns = BEGIN_NS + SPACING_NS * np.arange(len(came))
    arrived_ns = np.where(came, left_ns + DELAY_NS, 0)
    sent_ns = left_ns if knows else np.where(came, left_ns, 0)
    frames = sum(came)
    return timeline(arrived_ns, sent_ns, (BEGIN_NS - 7_000, SPACING_NS), bin_ns, sent=len(came), frames=frames)


@given(came=st.lists(st.booleans(), min_size=1, max_size=400))
def test_no_frame_is_forgotten_or_counted_twice(came: list[bool]) -> None:
    found = report(came)
    assert sum(found.sent) == len(came)
    assert sum(found.received) == sum(came)
    assert sum(packets for _, packets, _, _ in found.gaps) == came.count(False)
    assert len(found.sent) == len(found.received) == len(found.delay_ns) == (len(came) - 1) // 4 + 1
    assert {delay for delay in found.delay_ns if delay is not None} <= {DELAY_NS}
    for first, packets, begin_ns, end_ns in found.gaps:
        assert not any(came[first : first + packets])
        assert first == 0 or came[first - 1]
        assert begin_ns == BEGIN_NS + (SPACING_NS * (first - 1) + DELAY_NS if first else 0)
        assert end_ns is None if first + packets == len(came) else end_ns is not None and came[first + packets]


@given(came=st.lists(st.booleans(), min_size=1, max_size=400), late=st.lists(st.integers(0, 20), min_size=400))
def test_the_longest_silences_are_those_between_arrivals_in_time(came: list[bool], late: list[int]) -> None:
    """Packets may wait, and overtake each other."""
    left_ns = BEGIN_NS + SPACING_NS * np.arange(len(came))
    arrived_ns = np.where(came, left_ns + DELAY_NS + SPACING_NS * np.array(late[: len(came)]), 0)
    found = timeline(arrived_ns, left_ns, (BEGIN_NS, SPACING_NS), 1_000_000, sent=len(came), frames=sum(came))
    in_time = [BEGIN_NS, *sorted(arrived_ns[arrived_ns > 0].tolist())]
    expected = max((after - before for before, after in pairwise(in_time)), default=None)
    assert max((each for each in found.silence_ns if each is not None), default=None) == expected
    assert [each is None for each in found.silence_ns] == [not each for each in found.received]


@given(came=st.lists(st.booleans(), min_size=2, max_size=200).filter(any))
def test_frames_that_took_their_time_stamp_with_them_are_placed_by_the_schedule(came: list[bool]) -> None:
    known, guessed = report(came), report(came, knows=False)
    assert sum(guessed.sent) == len(came)
    assert sum(guessed.received) == sum(came)
    assert abs(guessed.begin_ns - known.begin_ns) < 1000


def test_a_flow_of_which_nothing_arrives_is_placed_by_the_schedule() -> None:
    found = report([False] * 8, knows=False)
    assert found.begin_ns == BEGIN_NS - 7_000
    assert found.sent == [4, 4]
    assert found.gaps == [(0, 8, BEGIN_NS - 7_000, None)]
    assert found.arrivals_ns is None


def test_the_largest_gaps_are_kept_and_the_others_counted() -> None:
    came = ([True, False] * 1200) + [True, False, False, True]
    found = report(came)
    assert len(found.gaps) == 1000
    assert found.more_gaps == 201
    assert max(packets for _, packets, _, _ in found.gaps) == 2


def test_a_frame_that_comes_twice_counts_once() -> None:
    left_ns = BEGIN_NS + SPACING_NS * np.arange(4)
    found = timeline(left_ns + 1, left_ns, (BEGIN_NS, SPACING_NS), 1_000_000, sent=4, frames=5)
    assert (sum(found.received), found.duplicates) == (4, 1)


def test_half_a_trial_of_nothing_is_one_gap_of_its_length() -> None:
    found = report([True] * 100 + [False] * 100 + [True] * 100)
    ((first, packets, begin_ns, end_ns),) = found.gaps
    assert (first, packets) == (100, 100)
    assert end_ns is not None
    assert (end_ns - begin_ns) / 1e9 == pytest.approx(101 * SPACING_NS / 1e9)

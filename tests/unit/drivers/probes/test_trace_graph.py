"""Transitions counted as a stream: as by hand, in whatever pieces the events come."""

import itertools
import random
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.probes.tracer.graph import Rows, Transitions

OWNERS = (0, 0, 1)
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50), st.integers(0, 100)), max_size=60)


def rows(events: list[tuple[int, int, int]]) -> Rows:
    columns = np.array(events, np.int64).reshape(-1, 3).T
    return Rows(*columns)


def by_hand(
    events: list[tuple[int, int, int]], gaps: list[tuple[int, int]], owner: int
) -> dict[tuple[int, int], tuple[int, int]]:
    last: dict[int, tuple[int, int]] = {}
    found: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for thread, time, vertex in events:
        if thread in last and OWNERS[thread] == owner:
            before, earlier = last[thread]
            if not any(begin < time and end > earlier for begin, end in gaps):
                count, spent = found[before, vertex]
                found[before, vertex] = (count + 1, spent + time - earlier)
        last[thread] = (vertex, time)
    return dict(found)


@given(EVENTS, st.lists(st.integers(0, 60), max_size=3), st.lists(st.integers(0, 3000), max_size=2), st.randoms())
def test_pairs_are_those_counted_by_hand(
    steps: list[tuple[int, int, int]], cuts: list[int], starts: list[int], chance: random.Random
) -> None:
    now, events = 0, []
    for thread, step, vertex in steps:
        now += step
        events.append((thread, now, vertex))
    gaps = [(start, start + 20) for start in starts]
    transitions = Transitions(OWNERS)
    bounds = sorted({0, *(cut for cut in cuts if cut < len(events)), len(events)})
    for begin, end in itertools.pairwise(bounds):
        piece = events[begin:end]
        until = piece[-1][1]
        chance.shuffle(piece)  # CPUs come one after the other
        given_gaps = [gap for gap in gaps if begin == 0]
        transitions.feed(rows(piece), until, given_gaps)
    for owner in (0, 1):
        wanted = by_hand(events, gaps, owner)
        got = {(before, after): (count, round(s * 1e9)) for before, after, count, s in transitions.pairs(owner)}
        assert got == wanted
    assert transitions.events.sum() == len(events)


def test_events_newer_than_what_was_read_of_all_cpus_wait() -> None:
    transitions = Transitions([0])
    transitions.feed(rows([(0, 10, 1), (0, 30, 3)]), 15)
    assert transitions.pairs(0) == []
    transitions.feed(rows([(0, 20, 2)]), 30)
    assert [pair[:3] for pair in transitions.pairs(0)] == [(1, 2, 1), (2, 3, 1)]


def test_a_pair_across_a_gap_is_no_pair() -> None:
    transitions = Transitions([0, 0])
    transitions.feed(rows([(0, 10, 1), (0, 20, 2), (1, 10, 1), (1, 12, 2)]), 30, [(15, 18)])
    assert [pair[:3] for pair in transitions.pairs(0)] == [(1, 2, 1)]


def test_there_is_room_for_more_kinds_of_events_than_at_first() -> None:
    transitions = Transitions([0])
    transitions.feed(rows([(0, time, time) for time in range(200)]), 200)
    assert len(transitions.pairs(0)) == 199
    assert all(count == 1 and seconds == 1e-9 for _, _, count, seconds in transitions.pairs(0))

"""When a trial ends early."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin.sender import LossWatch


class Flows:
    """Counters that a test sets."""

    def __init__(self, *received: int) -> None:
        self.received: Sequence[int] = received

    def __call__(self) -> Sequence[int]:
        return self.received


def test_what_was_sent_since_the_last_look_is_on_its_way_not_lost() -> None:
    counters = Flows(0, 0)
    watch = LossWatch(counters, (0, 0), 0)
    assert not watch.ends_it((100, 100))
    counters.received = (100, 100)
    assert not watch.ends_it((900, 900))
    counters.received = (900, 899)
    assert watch.ends_it((1000, 1000))


def test_one_flows_early_packets_do_not_hide_anothers_loss() -> None:
    counters = Flows(50, 50)
    watch = LossWatch(counters, (50, 50), 9)
    assert not watch.ends_it((100, 100))
    counters.received = (50 + 200, 50 + 90)
    assert watch.ends_it((200, 200))


@pytest.mark.parametrize(("most_lost", "ended"), [(9, True), (10, False), (None, False)])
def test_the_limit_may_be_reached_but_not_exceeded(most_lost: int | None, ended: bool) -> None:
    counters = Flows(0)
    watch = LossWatch(counters, (0,), most_lost)
    assert watch.needed is (most_lost is not None)
    watch.ends_it((100,))
    counters.received = (90,)
    assert watch.ends_it((110,)) is ended


def test_a_watch_can_be_ended_from_outside() -> None:
    assert LossWatch(Flows(0), (0,), 5, lambda: True).ends_it((1,))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=20))
def test_a_lossless_path_that_holds_less_than_one_look_never_ends_a_trial(steps: list[tuple[int, int]]) -> None:
    counters, sent, before = Flows(0), 0, 0
    watch = LossWatch(counters, (0,), 0)
    for more, held in steps:
        before, sent = sent, sent + more
        counters.received = (max(before, sent - held),)
        assert not watch.ends_it((sent,))

"""When packets are due."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin.sender import LossWatch, Schedule
from resources.libraries.python.drivers.generators.ring.sender import Pacer

RATES = st.floats(1.0, 5e6)
FLOWS = st.integers(1, 40)


@given(rate_pps=RATES, flows=FLOWS, duration_s=st.floats(0.01, 30.0), elapsed_s=st.floats(-1.0, 40.0))
def test_due_packets_are_within_the_plan_and_shared(
    rate_pps: float, flows: int, duration_s: float, elapsed_s: float
) -> None:
    schedule = Schedule.of(rate_pps, flows, duration_s)
    due = schedule.due(elapsed_s)
    assert 0 <= due <= schedule.total
    shares = [schedule.share(flow, due) for flow in range(flows)]
    assert sum(shares) == due
    assert max(shares) - min(shares) <= 1


@given(rate_pps=RATES, flows=FLOWS, duration_s=st.floats(0.01, 30.0))
def test_all_is_due_at_the_end_and_rates_are_met(rate_pps: float, flows: int, duration_s: float) -> None:
    schedule = Schedule.of(rate_pps, flows, duration_s)
    assume(schedule.total)
    assert schedule.due(schedule.length_s * (1 + 1e-9)) == schedule.total
    assert abs(schedule.total / schedule.length_s / rate_pps - 1) < 1e-9
    assert abs(schedule.per_flow - rate_pps / flows * duration_s) <= 0.5000001


def test_a_load_of_zero_has_no_packets() -> None:
    schedule = Schedule.of(0.0, 2, 1.0)
    assert (schedule.total, schedule.length_s, schedule.due(0.5)) == (0, 0.0, 0)
    assert Pacer(schedule).allowed(0.5, 0) == 0


@given(rate_pps=st.floats(1e3, 2e6), steps=st.lists(st.floats(1e-6, 2e-4), min_size=1, max_size=60))
def test_a_sender_on_time_follows_the_schedule(rate_pps: float, steps: list[float]) -> None:
    schedule = Schedule.of(rate_pps, 2, 10.0)
    pacer = Pacer(schedule)
    elapsed_s, sent = 0.0, 1
    for step in steps:
        elapsed_s += step
        sent = pacer.allowed(elapsed_s, sent)
        assert sent == schedule.due(elapsed_s)
    assert pacer.worst_lag_s <= 2.1e-4 + 1 / rate_pps


def run(pacer: Pacer, start_s: float, end_s: float, sent: int) -> list[tuple[float, int]]:
    """A sender that looks at the clock every 10 us and sends all it may."""
    seen = []
    steps = round((end_s - start_s) / 10e-6)
    for step in range(steps):
        elapsed_s = start_s + step * 10e-6
        sent = max(sent, pacer.allowed(elapsed_s, sent))
        seen.append((elapsed_s, sent))
    return seen


def test_after_a_stall_it_catches_up_gently() -> None:
    schedule = Schedule.of(200_000, 2, 1.0)
    pacer = Pacer(schedule)
    sent = run(pacer, 0.0, 0.3, 0)[-1][1]
    seen = run(pacer, 0.31, 1.0001, sent)  # 10 ms are missing: 2000 packets
    assert seen[0][1] - sent == 64  # two flows, 32 each, at once
    later = next(count for elapsed_s, count in seen if elapsed_s >= 0.33)
    assert later - seen[0][1] <= 0.02 * 200_000 * 1.1 + 2
    caught = next(elapsed_s for elapsed_s, count in seen if count == schedule.due(elapsed_s))
    assert 0.31 + 0.08 < caught < 0.31 + 0.12
    assert seen[-1][1] == schedule.total
    assert 0.0099 < pacer.worst_lag_s < 0.0101


@pytest.mark.parametrize(
    ("left_s", "back_s", "until_s", "least", "most"), [(0.97, 0.98, 1.0002, 1.0, 1.0), (0.9, 0.99, 1.0008, 0.5, 0.95)]
)
def test_a_stall_near_the_end_is_made_up_for_where_there_is_time(
    left_s: float, back_s: float, until_s: float, least: float, most: float
) -> None:
    schedule = Schedule.of(200_000, 2, 1.0)
    pacer = Pacer(schedule)
    sent = run(pacer, back_s, until_s, run(pacer, 0.0, left_s, 0)[-1][1])[-1][1]
    assert least <= sent / schedule.total <= most


def watching(base: tuple[int, ...], most_lost: int | None) -> tuple[LossWatch, list[int]]:
    """A watch, and the counters that a test sets."""
    counters = list(base)
    return LossWatch(lambda: counters, base, most_lost), counters


def test_what_was_sent_since_the_last_look_is_on_its_way_not_lost() -> None:
    watch, received = watching((0, 0), 0)
    assert not watch.ends_it((100, 100))
    received[:] = 100, 100
    assert not watch.ends_it((900, 900))
    received[:] = 900, 899
    assert watch.ends_it((1000, 1000))


def test_one_flows_early_packets_do_not_hide_anothers_loss() -> None:
    watch, received = watching((50, 50), 9)
    assert not watch.ends_it((100, 100))
    received[:] = 50 + 200, 50 + 90
    assert watch.ends_it((200, 200))


@pytest.mark.parametrize(("most_lost", "ended"), [(9, True), (10, False), (None, False)])
def test_the_limit_may_be_reached_but_not_exceeded(most_lost: int | None, ended: bool) -> None:
    watch, received = watching((0,), most_lost)
    assert watch.needed is (most_lost is not None)
    watch.ends_it((100,))
    received[:] = [90]
    assert watch.ends_it((110,)) is ended
    assert LossWatch(lambda: received, (0,), 5, lambda: True).ends_it((1,)), "it can be ended from outside"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=20))
def test_a_lossless_path_that_holds_less_than_one_look_never_ends_a_trial(steps: list[tuple[int, int]]) -> None:
    sent, before = 0, 0
    watch, received = watching((0,), 0)
    for more, held in steps:
        before, sent = sent, sent + more
        received[:] = [max(before, sent - held)]
        assert not watch.ends_it((sent,))

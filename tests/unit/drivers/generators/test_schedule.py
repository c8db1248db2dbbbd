"""When packets are due."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators import overload
from resources.libraries.python.drivers.generators.builtin.sender import LossWatch, Schedule
from resources.libraries.python.drivers.generators.ring.sender import Pacer
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.linerate import MaxRate
from tests.builders import cpus, finished, plan_of

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


def collapsing(capacity_pps: float, per_pps: float) -> Callable[[float], float]:
    """Forwards all up to a capacity, and of every packet beyond it so much less."""
    return lambda load_pps: max(0.0, min(load_pps, capacity_pps - per_pps * max(0.0, load_pps - capacity_pps)))


@pytest.mark.parametrize("per_pps", [0.12, 0.6])
def test_mrr_is_measured_at_all_the_generator_can_and_a_search_begins_at_what_the_system_can(per_pps: float) -> None:
    """With 0.6 it collapses to nothing, and what it can do lies between the last two loads that are tried."""
    forwards = collapsing(400_000, per_pps)
    found = overload.highest_loads(3_800_000, forwards(3_800_000), lambda load_pps, _: forwards(load_pps))
    assert found.offered_pps == 3_800_000
    assert found.search_pps == pytest.approx(4 * 400_000, rel=0.2)


def test_a_system_that_keeps_up_or_forwards_nothing_is_searched_from_the_same_load() -> None:
    found = overload.highest_loads(1e6, 0.6e6, lambda *_: pytest.fail("half came back: nothing to look for"))
    assert (found.offered_pps, found.search_pps) == (1e6, 1e6)
    asked: list[float] = []
    found = overload.highest_loads(3_800_000, 0.0, lambda load_pps, _: asked.append(load_pps) or 3.0)
    assert asked == [10_000], "once more, and at the lowest load"
    assert (found.offered_pps, found.search_pps) == (3_800_000, 3_800_000)


@pytest.mark.parametrize("capacity_pps", [8_000, 15_000, 20_000, 70_000, 400_000])
def test_far_above_what_a_system_can_every_second_load_is_left_out(capacity_pps: float) -> None:
    asked: list[float] = []

    def forwarded(load_pps: float, _: float) -> float:
        asked.append(load_pps)
        return min(load_pps, capacity_pps)

    found = overload.highest_loads(5_120_000, capacity_pps, forwarded)
    halved = [5_120_000 / 2**number for number in range(1, 10)]
    best_pps = max(min(load_pps, capacity_pps) for load_pps in halved)
    assert found.search_pps == 4 * best_pps, "as if it had been halved all the way"
    assert set(asked) <= set(halved)
    halvings = next(number for number, load in enumerate(halved, 1) if capacity_pps >= load / 2 or load <= 10_000)
    assert len(asked) <= halvings // 2 + 2


@given(st.floats(1e4, 1e8), st.floats(0, 2e8), st.floats(0.0, 2.0))
def test_a_search_begins_above_what_the_system_can_and_not_above_what_is_offered(
    offered_pps: float, capacity_pps: float, per_pps: float
) -> None:
    forwards = collapsing(capacity_pps, per_pps)
    found = overload.highest_loads(offered_pps, forwards(offered_pps), lambda load_pps, _: forwards(load_pps))
    assert found.offered_pps == offered_pps
    assert 0 < found.search_pps <= offered_pps
    assert found.search_pps >= min(offered_pps, capacity_pps * 0.99) or capacity_pps < 10_000


class Generator(overload.SearchedByTrials):
    """One with a limit in front of a system with a limit that collapses beyond twice its capacity."""

    _plan = plan_of("sim", "CSC", cores=cpus(32))

    def __init__(self, capacity_pps: float, offers_pps: float) -> None:
        self._capacity_pps, self._offers_pps = capacity_pps, offers_pps
        self.asked: list[Trial] = []

    def run(self, trial: Trial) -> TrialResult:
        self.asked.append(trial)
        offered_pps = min(trial.load_pps, self._offers_pps)
        collapses = offered_pps > 2 * self._capacity_pps
        forwarded_pps = self._capacity_pps / 20 if collapses else min(self._capacity_pps, offered_pps)
        counts = round(offered_pps * trial.duration_s), round(forwarded_pps * trial.duration_s)
        return finished(trial, counts, generator_limited=offered_pps < trial.load_pps)


@pytest.mark.parametrize(("trial_s", "duration_s"), [(0.1, 0.1), (10.0, 0.3)])
def test_trials_of_the_highest_load_are_no_longer_than_the_one_that_is_asked_for(
    trial_s: float, duration_s: float
) -> None:
    generator = Generator(1e9, 1e9)
    assert generator.highest_loads(Trial(load_pps=0.0, duration_s=trial_s, frame=frame("64B"))).offered_pps > 0
    assert [trial.duration_s for trial in generator.asked] == [duration_s]


@pytest.mark.parametrize(
    ("capacity_pps", "offers_pps", "line_pps", "least_pps", "most_pps"),
    [
        (1e9, 600_000, None, 0.85 * 600_000, 600_000),  # a cable: what the generator can, a little less
        (1e9, 1e9, 14.88e6, 14.88e6, 14.88e6),  # a cable of known rate that can be filled
        (100_000, 600_000, None, 200_000, 400_000),  # a system that collapses: not more than four times what it can
    ],
)
def test_the_highest_load_that_makes_sense(
    capacity_pps: float, offers_pps: float, line_pps: float | None, least_pps: float, most_pps: float
) -> None:
    generator = Generator(capacity_pps, offers_pps)
    line = None if line_pps is None else MaxRate(line_pps / 2, line_pps / 2, line_pps, "the cable")
    with patch.object(overload, "max_rate", return_value=line):
        found = generator.highest_loads(Trial(load_pps=1e6, duration_s=1.0, frame=frame("64B")))
    assert least_pps <= found.search_pps <= most_pps
    assert found.offered_pps == pytest.approx(line_pps or 0.9 * offers_pps, rel=0.11), "MRR is measured there"
    assert len(generator.asked) < 12

"""Loads are classified as MLRsearch classifies them, with the goal's evidence and with less."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from MLRsearch.target_stat import TargetStat

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.model.request.goal import Goal
from resources.libraries.python.search.algorithms.bounds import (
    GoalReading,
    LoadEvidence,
    best_known,
    gather,
    in_order,
    likely_bounds,
    proven_bounds,
)
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import remaining_s, search_throughput
from tests.unit.search.search_fakes import FRAME, LINE_PPS, Bench, of_model, trial_result

NDR = Goal(name="NDR", loss_ratio=0.0, duration_sum_s=10.0)
STRICT = NDR.model_copy(update={"exceed_ratio": 0.0})


@pytest.mark.parametrize(
    ("goal", "good_s", "bad_s", "reading"),
    [
        (NDR, 4.0, 0.0, GoalReading.OPEN),
        (NDR, 5.0, 0.0, GoalReading.GOOD),
        (NDR, 0.0, 5.0, GoalReading.OPEN),
        (NDR, 0.0, 6.0, GoalReading.BAD),
        (NDR, 5.0, 5.0, GoalReading.GOOD),
        (NDR, 8.0, 9.0, GoalReading.BAD),
        (STRICT, 9.0, 0.0, GoalReading.OPEN),
        (STRICT, 10.0, 0.0, GoalReading.GOOD),
        (STRICT, 9.0, 1.0, GoalReading.BAD),
    ],
)
def test_a_load_is_decided_when_further_trials_cannot_change_it(
    goal: Goal, good_s: float, bad_s: float, reading: GoalReading
) -> None:
    assert LoadEvidence(1.0, good_s, bad_s).proven(goal) is reading


def test_good_loads_above_a_bad_one_do_not_count() -> None:
    results = [trial_result(load, lost) for load, lost in [(100, 0), (200, 1), (300, 0)] for _ in range(10)]
    assert proven_bounds(gather(results, NDR), NDR).pair == (100, 200)


def test_without_enough_trials_the_majority_decides() -> None:
    results = [trial_result(100, 0), trial_result(200, 1), trial_result(200, 0), trial_result(300, 1)]
    rows = gather(results, NDR)
    assert proven_bounds(rows, NDR).pair == (None, None)
    assert likely_bounds(rows, NDR).pair == (200, 300)
    known = best_known(results, NDR)
    assert (known.lower_pps, known.upper_pps, known.complete) == (200, 300, False)


def test_trials_that_say_nothing_are_left_out() -> None:
    silent = trial_result(100, sent=0)
    limited = trial_result(200, 5).model_copy(update={"generator_limited": True})
    assert gather([silent, limited], NDR) == []
    known = best_known([silent, limited], NDR)
    assert (known.lower_pps, known.upper_pps, known.throughput_pps, known.lowest_tried_pps) == (None,) * 4


def test_short_trials_count_only_where_there_is_no_long_one() -> None:
    results = [trial_result(100, 1, duration_s=0.1), trial_result(100, 0), trial_result(200, 1, duration_s=0.1)]
    assert [(row.load_pps, row.good_s, row.bad_s) for row in gather(results, NDR)] == [(100, 1.0, 0.0), (200, 0.0, 0.1)]


def test_throughput_takes_the_loss_that_the_exceed_ratio_leaves_over() -> None:
    pdr = Goal(name="PDR", loss_ratio=0.005)
    (row,) = gather([trial_result(1000, lost) for lost in (0, 2, 4, 6, 8)], pdr)
    assert row.throughput_pps(pdr) == pytest.approx(996)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 1)), max_size=60))
def test_proven_bounds_are_likely_bounds_or_wider(trials: list[tuple[int, int]]) -> None:
    """More evidence can only be asked for, never contradicted: a proven reading is also the likely one."""
    for row in gather([trial_result(100.0 * load, lost) for load, lost in trials], NDR):
        assert row.proven(NDR) in (GoalReading.OPEN, row.likely(NDR))
        assert (row.missing_s(NDR) == 0) or row.proven(NDR) is GoalReading.OPEN


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.25, 0.5]),
    st.sampled_from([0.0, 0.005]),
)
def test_a_load_reads_as_in_mlrsearch(trials: list[tuple[int, int]], exceed_ratio: float, loss_ratio: float) -> None:
    """Half seconds sum without rounding, so there is no excuse."""
    goal = Goal(name="G", loss_ratio=loss_ratio, exceed_ratio=exceed_ratio, duration_sum_s=10.0)
    target = SimpleNamespace(loss_ratio=loss_ratio, exceed_ratio=exceed_ratio, duration_sum=10.0, trial_duration=1.0)
    theirs = TargetStat(target)
    results = []
    for lost, halves in trials:
        result = trial_result(100.0, lost).model_copy(update={"total_duration_s": 1 + halves / 2})
        results.append(result)
        theirs.add(
            SimpleNamespace(duration_with_overheads=1 + halves / 2, loss_ratio=result.loss_ratio, intended_duration=1.0)
        )
    (ours,) = gather(results, goal)
    optimistic, pessimistic = theirs.estimates()
    expected = GoalReading.OPEN if optimistic != pessimistic else GoalReading.GOOD if optimistic else GoalReading.BAD
    assert ours.proven(goal) is expected
    if expected is GoalReading.GOOD:
        assert ours.throughput_pps(goal) == 100.0 * (1 - theirs.pessimistic_loss_ratio)


def test_rounding_of_durations_loses_no_throughput() -> None:
    """Ten times 0.4 s is not quite 4 s to a computer; the library then takes the loss ratio 1 of a missing trial."""
    goal = Goal(name="NDR", loss_ratio=0.0, duration_sum_s=8.0)
    result = trial_result(100.0).model_copy(update={"total_duration_s": 0.30000000000000004 + 0.1 - 1e-16})
    for count in range(1, 60):
        (row,) = gather([result] * count, goal)
        assert row.throughput_pps(goal) == 100.0


@pytest.mark.parametrize("name", ModelName)
@pytest.mark.parametrize("seed", range(5))
def test_our_reading_of_a_whole_search_is_the_librarys(name: ModelName, seed: int) -> None:
    bench = Bench(of_model(make_model(Simulation(model=name), 6e6), seed))
    outcome = search_throughput(bench.measure, LADDER, FRAME, LINE_PPS, bench.clock.now)
    assert in_order(best_known(outcome.trials, result.goal) for result in outcome.goals) == outcome.goals
    for result in outcome.goals:
        assert remaining_s(gather(outcome.trials, result.goal), result.goal) == 0.0


@pytest.mark.parametrize(
    ("trials", "seconds"),
    [
        ([], 12.0),
        ([(100, 1, 3)], 12.0),
        ([(100, 0, 3)], 2.0),
        ([(100, 0, 3), (100 / 0.995, 1, 4)], 2.0 + 1.0),
        ([(100, 0, 3), (100 / 0.995**8, 1, 4)], 2.0 + 1.0 + 3 * 3.0),
        ([(100, 0, 9), (100 / 0.995**9, 1, 9)], 4 * 3.0),
        ([(100, 0, 9), (100 / 0.995**3, 1, 9)], 2 * 3.0),
        ([(100, 0, 9), (100 / 0.995, 1, 9)], 0.0),
    ],
)
def test_the_rest_of_a_search_is_what_two_loads_lack_and_the_halvings_between_them(
    trials: list[tuple[float, int, int]], seconds: float
) -> None:
    """Of 10 s 5 decide a good load and 5 a bad one; a halving takes half of a decision of 6 s."""
    results = [trial_result(load_pps, lost) for load_pps, lost, count in trials for _ in range(count)]
    assert remaining_s(gather(results, NDR), NDR) == pytest.approx(seconds)

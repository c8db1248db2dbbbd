"""The ladder of loads: rungs, evidence for a goal, estimates of its threshold; loads read as in MLRsearch."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
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
from resources.libraries.python.search.algorithms.laddersearch import (
    GoalEvidence,
    Guess,
    Ladder,
)
from resources.libraries.python.search.throughput import remaining_s
from tests.unit.examples import share
from tests.unit.search.search_fakes import Bench, of_model, search, trial_result


@settings(max_examples=share(30))
@given(width=st.sampled_from([0.005, 0.02, 0.1]), max_load_pps=st.floats(100.0, 1e9), span=st.floats(10.0, 1e6))
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


GOAL = Goal(name="PDR", loss_ratio=0.005, duration_sum_s=3.0)
"""Two trials of one second decide a rung."""
BASE = Ladder(0.1, 1000, 2000)
RUNGS = range(BASE.bottom, BASE.top + 1)
TRIALS = st.lists(st.tuples(st.sampled_from(RUNGS), st.booleans()), max_size=25)
GUESSES = st.none() | st.builds(
    Guess,
    st.sampled_from(RUNGS),
    st.sampled_from([0.5, 1.0, 4.0]),
    st.sampled_from([0.25, 4.0]),
    st.sampled_from([0.0, 0.25]),
)


def evidence(trials: list[tuple[int, bool]]) -> GoalEvidence:
    """Trials of one second each: their rung, and whether they met the goal."""
    made = GoalEvidence(GOAL, BASE)
    for rung, good in trials:
        made.add(rung, GOAL.loss_ratio if good else GOAL.loss_ratio + 1e-9, 1.0)
    return made


def test_bounds_are_complete_as_neighbours_and_at_the_ends_of_the_ladder() -> None:
    low, high = RUNGS[0], RUNGS[-1]
    cases = {
        ((low, True), (low + 1, False)): True,
        ((low, True), (low + 2, False)): False,
        ((low, True),): False,
        ((high, True),): True,
        ((high, False),): False,
        ((low, False),): True,
        ((low + 1, False),): False,
        ((low + 1, True), (low, False)): True,
    }
    for trials, complete in cases.items():
        assert evidence([trial for trial in trials for _ in range(2)]).complete is complete, trials


@given(TRIALS)
def test_relevant_bounds_are_the_lowest_bad_rung_and_the_highest_good_one_below_it(
    trials: list[tuple[int, bool]],
) -> None:
    found = evidence(trials)
    upper = min((rung for rung in RUNGS if found.reading(rung) is GoalReading.BAD), default=None)
    below = [rung for rung in RUNGS if upper is None or rung < upper]
    lower = max((rung for rung in below if found.reading(rung) is GoalReading.GOOD), default=None)
    assert found.relevant == (lower, upper)


@given(TRIALS, GUESSES)
def test_likely_thresholds_contradict_fewest_trials(trials: list[tuple[int, bool]], guess: Guess | None) -> None:
    found = evidence(trials)
    lower, upper = found.relevant
    first = RUNGS[0] - 1 if lower is None else lower
    last = RUNGS[-1] if upper is None else upper - 1
    contradicted = {
        threshold: sum(good if rung > threshold else not good for rung, good in trials)
        for threshold in range(first, last + 1)
    }

    def count(rung: int, *, good: bool) -> int:
        return trials.count((rung, good))

    # So many trials help to prove the bounds of a threshold.
    progress = {at: count(at, good=True) + count(at + 1, good=False) for at in contradicted}
    cost = {
        at: number + (guess.penalty(at) - guess.progress * progress[at] if guess else 0.0)
        for at, number in contradicted.items()
    }
    least = {at for at in cost if cost[at] == min(cost.values())}
    ranges = found.likely(guess)
    inside = [set(range(each.lowest, each.highest + 1)) for each in ranges]
    assert least <= set().union(*inside) <= set(cost)
    for each, rungs in zip(ranges, inside, strict=True):
        assert rungs & least
        assert len({contradicted[at] for at in rungs}) == 1
        if guess is None:
            assert rungs <= least
            assert each.guessed is None
        elif each.guessed is None:
            assert min(guess.penalty(at) for at in rungs) == guess.weight
        else:
            assert each.guessed in least
            assert guess.penalty(each.guessed) < guess.weight


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


def test_without_enough_trials_the_majority_decides_and_trials_that_say_nothing_are_left_out() -> None:
    results = [trial_result(100, 0), trial_result(200, 1), trial_result(200, 0), trial_result(300, 1)]
    rows = gather(results, NDR)
    assert proven_bounds(rows, NDR).pair == (None, None)
    assert likely_bounds(rows, NDR).pair == (200, 300)
    known = best_known(results, NDR)
    assert (known.lower_pps, known.upper_pps, known.complete) == (200, 300, False)
    silent = trial_result(100, sent=0)
    limited = trial_result(200, 5).model_copy(update={"generator_limited": True})
    assert gather([silent, limited], NDR) == []
    known = best_known([silent, limited], NDR)
    assert (known.lower_pps, known.upper_pps, known.throughput_pps, known.lowest_tried_pps) == (None,) * 4


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
    outcome = search(Bench(of_model(make_model(Simulation(model=name), 6e6), seed)))
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

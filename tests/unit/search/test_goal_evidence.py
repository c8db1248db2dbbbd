"""Evidence for one goal on the ladder, against the definitions of bounds and of thresholds that fit trials best."""

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.request.goal import Goal
from resources.libraries.python.search.algorithms.bounds import GoalReading
from resources.libraries.python.search.algorithms.laddersearch import GoalEvidence, Guess, Ladder, ThresholdRange

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


def test_a_rung_is_decided_by_the_duration_sum_and_ends_of_the_ladder_are_known() -> None:
    rung = RUNGS[2]
    found = evidence([(rung, True)])
    assert found.reading(rung) is GoalReading.OPEN
    found.add(rung, 0.0, 0.5)
    assert found.reading(rung) is GoalReading.GOOD
    assert evidence([(rung, False)] * 2).reading(rung) is GoalReading.BAD
    assert [found.reading(at) for at in (RUNGS[0] - 1, RUNGS[0], RUNGS[-1], RUNGS[-1] + 1)] == [
        GoalReading.GOOD,
        GoalReading.OPEN,
        GoalReading.OPEN,
        GoalReading.BAD,
    ]


def test_the_margin_is_by_how_many_trials_one_reading_leads() -> None:
    found = evidence([(RUNGS[1], True)] * 3 + [(RUNGS[1], False)] + [(RUNGS[2], False)] * 2)
    assert [found.margin(rung) for rung in RUNGS[:4]] == [None, 2, 2, None]


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


def test_a_guess_costs_by_distance_and_at_most_its_weight() -> None:
    guess = Guess(10, weight=2.0, per_rung=0.5)
    assert [guess.penalty(rung) for rung in (10, 9, 12, 14, 30)] == [0.0, 0.5, 1.0, 2.0, 2.0]


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


def test_without_trials_every_threshold_is_likely() -> None:
    assert evidence([]).likely(None) == [ThresholdRange(RUNGS[0] - 1, RUNGS[-1], None)]
    near = Guess(RUNGS[3], 1.0, 0.25)
    assert evidence([]).likely(near) == [ThresholdRange(RUNGS[0] - 1, RUNGS[-1], RUNGS[3])]


def test_a_guess_does_not_overrule_what_is_proven() -> None:
    low, high = RUNGS[1], RUNGS[4]
    found = evidence([(low, True)] * 2 + [(high, False)] * 2)
    assert found.likely(Guess(high, 10.0, 4.0)) == [ThresholdRange(low, high - 1, high - 1)]
    assert found.likely(Guess(low - 1, 10.0, 4.0)) == [ThresholdRange(low, high - 1, low)]

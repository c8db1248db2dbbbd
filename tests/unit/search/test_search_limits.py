"""What a search says when the generator or the time was too little."""

import pytest
from search_fakes import FRAME, LINE_PPS, Bench, capped, found, search

from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.search.profiles import CSIT
from resources.libraries.python.search.throughput import search_throughput


class SlowGenerator(Bench):
    """Offers no more than it can, and says so or not."""

    def __init__(self, capacity_pps: float, reach_pps: float, *, honest: bool) -> None:
        super().__init__(capped(capacity_pps))
        self.reach_pps = reach_pps
        self.honest = honest

    def measure(self, trial: Trial) -> TrialResult:
        limited = trial.load_pps > self.reach_pps
        load_pps = min(trial.load_pps, self.reach_pps)
        result = super().measure(trial.model_copy(update={"load_pps": load_pps}))
        return result.model_copy(update={"trial": trial, "generator_limited": limited and self.honest})


@pytest.mark.parametrize("honest", [True, False])
def test_what_was_not_sent_is_not_lost(honest: bool) -> None:
    """A system faster than the generator: bounded by the generator, never by loss."""
    outcome = search(SlowGenerator(10e6, 5e6, honest=honest))
    assert outcome.generator_bound
    assert outcome.max_load_pps == pytest.approx(5e6, rel=0.011)
    for result in outcome.goals:
        assert result.lower_pps == pytest.approx(outcome.max_load_pps)
        assert result.upper_pps is None
    assert any("offered 5000000 pps" in line for line in outcome.evidence)
    assert all(trial.generator_limited == (trial.trial.load_pps > 5e6 * 1.01) for trial in outcome.trials)


def test_a_slow_generator_does_not_disturb_a_slower_system() -> None:
    outcome = search(SlowGenerator(2e6, 5e6, honest=True))
    assert not outcome.generator_bound
    lower, upper = found(outcome.ndr)
    assert lower <= 2e6 <= upper
    assert sum(trial.generator_limited for trial in outcome.trials) == 2
    assert outcome.evidence != ()


def test_a_generator_that_gets_ever_slower_is_given_up() -> None:
    class Tiring(Bench):
        def measure(self, trial: Trial) -> TrialResult:
            result = super().measure(trial.model_copy(update={"load_pps": trial.load_pps / 2}))
            return result.model_copy(update={"trial": trial, "generator_limited": True})

    bench = Tiring(capped(10e6))
    outcome = search(bench)
    assert outcome.generator_bound
    assert len(bench.asked) == 4 * 2
    assert not any(result.complete for result in outcome.goals)
    assert all(result.lower_pps is None and result.upper_pps is None for result in outcome.goals)
    assert any("given up" in line for line in outcome.evidence)


def test_a_generator_that_sends_nothing_is_given_up_at_once() -> None:
    bench = Bench(lambda *_: (0, 0))
    outcome = search(bench)
    assert outcome.generator_bound
    assert len(bench.asked) == 2


def test_a_disturbed_generator_is_asked_again() -> None:
    """Every fifth trial is limited; loads that were offered before are repeated, the search goes on."""

    class Disturbed(Bench):
        def measure(self, trial: Trial) -> TrialResult:
            result = super().measure(trial)
            return result.model_copy(update={"generator_limited": len(self.asked) % 5 == 0})

    outcome = search(Disturbed(capped(4e6)))
    assert not outcome.generator_bound
    assert outcome.max_load_pps == LINE_PPS
    lower, upper = found(outcome.ndr)
    assert lower <= 4e6 <= upper


@pytest.mark.parametrize("limit_s", [1.0, 10.0, 20.0, 30.0])
def test_a_search_that_is_cut_short_keeps_what_it_knows(limit_s: float) -> None:
    bench = Bench(capped(4e6))
    profile = CSIT.model_copy(update={"duration_max_s": limit_s})
    outcome = search_throughput(bench.measure, profile, FRAME, LINE_PPS, bench.clock.now)
    assert outcome.elapsed_s <= max(limit_s, 1.5)
    assert any("time limit" in line for line in outcome.evidence)
    assert not outcome.generator_bound
    for result in outcome.goals:
        assert result.upper_pps is not None
        assert result.upper_pps >= 4e6
        if result.lower_pps is None:
            assert result.lowest_tried_pps is not None
        else:
            assert result.lower_pps <= 4e6 / (1 - result.goal.loss_ratio)
            assert result.throughput_pps is not None
    assert not all(result.complete for result in outcome.goals)


def test_a_goal_that_was_proven_before_the_time_ran_out_is_complete() -> None:
    bench = Bench(capped(4e6))
    last = search(bench).elapsed_s
    bench = Bench(capped(4e6))
    profile = CSIT.model_copy(update={"duration_max_s": last - 1.0})
    outcome = search_throughput(bench.measure, profile, FRAME, LINE_PPS, bench.clock.now)
    assert [result.complete for result in outcome.goals] in ([True, False], [False, True])

"""The choice of loads: what a search costs, what a prior may do, when a trial ends early."""

from random import Random

import pytest

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.goal import Prior, SearchProfile
from resources.libraries.python.search.algorithms.bounds import effective_s, gather
from resources.libraries.python.search.profiles import LADDER, REFERENCE
from resources.libraries.python.search.throughput import SearchOutcome
from tests.benchmarks import search_time as bench_search
from tests.unit.search.search_fakes import LINE_PPS, Bench, capped, found, of_model, search

NDR, PDR = LADDER.goals
CAPACITY = 0.4 * LINE_PPS
STEADY = [ModelName.SHARP, ModelName.STALL, ModelName.KNEE, ModelName.SAG]


def prior_of(cells: int | None = None, **lower_pps: float) -> Prior:
    return Prior(test_id="t", started_at="2000-01-01T00:00:00Z", lower_pps=lower_pps, cells=cells)


def after(outcome: SearchOutcome, bench: Bench, factor: float = 1.0) -> SearchOutcome:
    known = {name: factor * found(outcome.goal(name))[0] for name in ("NDR", "PDR")}
    return search(bench, prior=prior_of(**known))


def test_a_sharp_system_takes_23_trials_from_its_prior_and_5_more_without() -> None:
    """7 for each lower bound, 8 for each upper one, one load serving both goals; cold, 5 more at the highest load."""
    cold = search(Bench(capped(CAPACITY)))
    assert len(cold.trials) == 28
    warm = after(cold, Bench(capped(CAPACITY)))
    assert len(warm.trials) == 23
    assert [found(result) for result in warm.goals] == [found(result) for result in cold.goals]
    assert (warm.record.prior is not None, warm.record.prior_refuted) == (True, False)
    assert cold.record.prior is None


@pytest.mark.parametrize("name", STEADY)
@pytest.mark.parametrize("factor", [0.5, 0.95, 0.99, 1.0, 1.01, 1.05, 2.0])
def test_bounds_of_a_steady_system_do_not_depend_on_the_prior(name: ModelName, factor: float) -> None:
    model = make_model(Simulation(model=name), CAPACITY)
    cold = search(Bench(of_model(model, seed=1)))
    warm = after(cold, Bench(of_model(model, seed=2)), factor)
    assert [found(result) for result in warm.goals] == [found(result) for result in cold.goals]
    assert warm.record.prior_refuted == (abs(factor - 1) > 0.02)


def misled(factor: float) -> bench_search.Search:
    """A search that starts from the result of an earlier one times a factor."""

    def search(make: bench_search.MakeSystem, rng: Random, earlier: Random) -> bench_search.SearchRun:
        known = bench_search.cold(make, earlier, earlier)
        return bench_search.with_prior(make, rng, bench_search.prior_of(known, factor))

    return search


def mean_s(search: bench_search.Search) -> float:
    return sum(bench_search.figures(search, name, 6)["mean_s"] for name in ModelName) / len(ModelName)


@pytest.fixture(scope="module")
def most_s() -> float:
    return min(mean_s(bench_search.cold) * 1.2, mean_s(bench_search.plain_mlrsearch))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_prior_that_is_far_off_costs_less_than_mlrsearch_does(factor: float, most_s: float) -> None:
    """Mean over the six systems. It costs a few trials to refute it; after them the search is a cold one.

    With 60 seeds: 45 s for twice the truth, 46 s for half of it, 43 s cold, 55 s MLRsearch.
    """
    assert mean_s(misled(factor)) <= most_s


@pytest.mark.parametrize(("profile", "known", "trials"), [(LADDER, ["NDR"], 28), (REFERENCE, ["NDR", "PDR"], 25)])
def test_a_prior_without_all_goals_is_left_out_and_the_reference_takes_none(
    profile: SearchProfile, known: list[str], trials: int
) -> None:
    bench = Bench(capped(CAPACITY))
    outcome = search(bench, profile=profile, prior=prior_of(**dict.fromkeys(known, CAPACITY)))
    assert (outcome.record.prior, bench.asked[0].load_pps, len(outcome.trials)) == (None, LINE_PPS, trials)


def test_trials_end_early_and_weigh_as_if_they_had_not() -> None:
    bench = Bench(capped(CAPACITY))
    outcome = search(bench)
    aborted = [result for result in outcome.trials if result.aborted]
    assert outcome.record.aborted_trials == len(aborted) >= 5
    assert {effective_s(result) for result in outcome.trials} == {1.5}
    assert all(result.total_duration_s < 1.5 for result in aborted)


def test_where_no_trial_ends_early_bounds_are_the_same() -> None:
    """A generator that cannot look at its counters while it sends."""

    class Patient(Bench):
        def measure(self, trial: Trial) -> TrialResult:
            result = super().measure(trial.model_copy(update={"abort_loss_ratio": None}))
            return result.model_copy(update={"trial": trial})

    for name in STEADY:
        model = make_model(Simulation(model=name), CAPACITY)
        impatient, patient = search(Bench(of_model(model))), search(Patient(of_model(model)))
        assert [found(result) for result in impatient.goals] == [found(result) for result in patient.goals]
        assert patient.record.aborted_trials == 0


def test_only_loads_that_pdr_cannot_need_end_at_the_first_lost_packet() -> None:
    """On a knee NDR is a fifth below PDR."""
    model = make_model(Simulation(model=ModelName.KNEE), CAPACITY)
    outcome = search(Bench(of_model(model)))
    at_once = [result for result in outcome.trials if result.trial.abort_loss_ratio == 0.0]
    assert at_once
    pdr_lower, _ = found(outcome.pdr)
    assert all(result.trial.load_pps < 0.99 * pdr_lower for result in at_once)
    assert {row.load_pps for row in gather(at_once, PDR)} == set()
    assert len({row.load_pps for row in gather(at_once, NDR)}) > 0


def test_a_restart_below_the_generators_reach_keeps_the_trials() -> None:
    """Loads above 0.5 of the line cannot be offered; what was tried below counts on."""

    class Slow(Bench):
        def measure(self, trial: Trial) -> TrialResult:
            result = super().measure(trial)
            return result.model_copy(update={"generator_limited": trial.load_pps > 0.5 * LINE_PPS})

    outcome = search(Slow(capped(0.45 * LINE_PPS)), prior=prior_of(NDR=0.45 * LINE_PPS, PDR=0.45 * LINE_PPS))
    assert [result.complete for result in outcome.goals] == [True, True]
    assert len(outcome.trials) <= 28

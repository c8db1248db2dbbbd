"""Binary search: one trial of full length decides, and what that means on systems of known truth."""

import pytest

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.search.profiles import RFC2544, profile
from resources.libraries.python.search.throughput import MIN_LOAD_PPS
from tests.unit.search.search_fakes import LINE_PPS, Bench, capped, found, of_model, search

CAPACITY = 0.4 * LINE_PPS


@pytest.mark.parametrize("name", [ModelName.SHARP, ModelName.KNEE, ModelName.SAG])
@pytest.mark.parametrize("share", [0.06, 0.4, 0.9])
def test_the_truth_of_steady_systems_is_found(name: ModelName, share: float) -> None:
    model = make_model(Simulation(model=name), share * LINE_PPS)
    outcome = search(Bench(of_model(model)), profile=RFC2544)
    for result in outcome.goals:
        lower, upper = found(result)
        assert result.complete
        assert upper * (1 - result.goal.relative_width) * (1 - 1e-9) <= lower
        assert lower <= model.truth_pps(result.goal.loss_ratio) * (1 + 1e-6)
        assert upper >= model.truth_pps(result.goal.loss_ratio) * (1 - 1e-6)


def test_the_lower_bound_has_passed_a_trial_of_full_length() -> None:
    outcome = search(Bench(capped(CAPACITY)), profile=RFC2544)
    for result in outcome.goals:
        full = [each for each in outcome.trials if each.trial.load_pps == result.lower_pps and not each.aborted]
        assert max(each.trial.duration_s for each in full) == 60.0
    assert max(each.trial.duration_s for each in outcome.trials if each.aborted) == 10.0
    assert outcome.elapsed_s < 400


def test_a_load_that_passes_a_short_trial_only_is_no_lower_bound() -> None:
    """A stall every 5 s: of trials of 10 s one in eight passes, of those of 60 s none. RFC 2544 reports nothing."""
    model = make_model(Simulation(model=ModelName.STALL, stall_hz=0.2), CAPACITY)
    outcome = search(Bench(of_model(model, seed=3)), profile=RFC2544)
    ndr = outcome.ndr
    assert ndr is not None
    assert ndr.lower_pps is None
    passed = {each.trial.duration_s for each in outcome.trials if each.loss_ratio == 0}
    assert passed == {10.0}
    assert found(outcome.pdr)[0] > 0.99 * CAPACITY


def test_resolution_and_length_can_be_chosen() -> None:
    chosen = profile("rfc2544,width=0.02,trial=30")
    outcome = search(Bench(capped(CAPACITY)), profile=chosen)
    lower, upper = found(outcome.ndr)
    assert 0.005 < 1 - lower / upper <= 0.02
    assert {each.trial.duration_s for each in outcome.trials} == {10.0, 30.0}
    assert chosen.name == "rfc2544,width=0.02,trial=30"


def test_ends_of_the_range_are_results() -> None:
    fast, dead = search(Bench(capped(40e6)), profile=RFC2544), search(Bench(lambda *_: (1000, 0)), profile=RFC2544)
    assert fast.generator_bound
    assert [(result.lower_pps, result.upper_pps) for result in fast.goals] == [(LINE_PPS, None)] * 2
    dead = search(Bench(lambda load_pps, duration_s: (round(load_pps * duration_s), 0)), profile=RFC2544)
    for result in dead.goals:
        assert (result.lower_pps, result.complete) == (None, True)
        assert result.lowest_tried_pps == pytest.approx(MIN_LOAD_PPS)


def test_a_goal_that_allows_bad_trials_is_refused() -> None:
    lax = RFC2544.goals[0].model_copy(update={"exceed_ratio": 0.5})
    with pytest.raises(ValueError, match="NDR: in a binary search one trial decides"):
        search(Bench(capped(1e6)), profile=RFC2544.model_copy(update={"goals": (lax,)}))

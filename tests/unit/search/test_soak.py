"""Soak: the loss ratio is kept over the whole series, on systems of known truth."""

import pytest

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.search.profiles import SOAK, profile
from resources.libraries.python.search.soak import series_of
from tests.unit.search.search_fakes import LINE_PPS, Bench, capped, found, of_model, search

CAPACITY = 0.4 * LINE_PPS
(GOAL,) = SOAK.goals


@pytest.mark.parametrize("name", [ModelName.SHARP, ModelName.KNEE, ModelName.SAG])
@pytest.mark.parametrize("share", [0.06, 0.4, 0.9])
def test_steady_systems_soak_at_their_no_drop_rate(name: ModelName, share: float) -> None:
    model = make_model(Simulation(model=name), share * LINE_PPS)
    outcome = search(Bench(of_model(model)), profile=SOAK)
    result = outcome.goal("SOAK")
    lower, upper = found(result)
    assert result is not None
    assert result.complete
    assert lower <= model.truth_pps(GOAL.loss_ratio) * (1 + 1e-6)
    assert upper >= model.truth_pps(GOAL.loss_ratio) * (1 - 1e-6)
    assert lower >= upper * (1 - GOAL.relative_width) * (1 - 1e-9)
    assert outcome.elapsed_s < 500


def test_the_series_at_the_lower_bound_is_whole_and_keeps_the_ratio() -> None:
    outcome = search(Bench(of_model(make_model(Simulation(model=ModelName.STALL), CAPACITY))), profile=SOAK)
    lower, upper = found(outcome.goal("SOAK"))
    series = series_of(outcome.trials)
    assert series[lower].seconds == pytest.approx(GOAL.duration_sum_s)
    assert series[lower].lost <= GOAL.loss_ratio * series[lower].sent
    assert series[upper].lost > GOAL.loss_ratio * upper * GOAL.duration_sum_s
    # 15 stalls of 20 packets are 300 packets in 300 s; 357 are allowed at this rate.
    assert series[lower].lost > 0


def test_losses_that_no_load_avoids_are_below_range() -> None:
    """A stall a second loses the same at any load."""
    model = make_model(Simulation(model=ModelName.STALL, stall_hz=1.0), CAPACITY)
    result = search(Bench(of_model(model)), profile=SOAK).goal("SOAK")
    assert result is not None
    assert result.lower_pps is None
    assert result.lowest_tried_pps == pytest.approx(18002.0)


def test_a_lucky_majority_is_not_enough() -> None:
    """Of two bands three trials of four lose nothing: NDR is the high band's, the soak rate the low one's."""
    model = make_model(Simulation(model=ModelName.TWO_BAND), CAPACITY)
    lower, upper = found(search(Bench(of_model(model)), profile=SOAK).goal("SOAK"))
    assert lower <= 0.9 * CAPACITY <= upper
    ndr_lower, _ = found(search(Bench(of_model(model))).ndr)
    assert ndr_lower > 0.95 * CAPACITY


def test_a_trial_that_fails_the_series_ends_at_once() -> None:
    outcome = search(Bench(capped(CAPACITY)), profile=SOAK)
    ended = [each for each in outcome.trials if each.trial.purpose == "soak" and each.aborted]
    assert ended
    assert all(each.offered_duration_s <= 0.2 for each in ended)


def test_a_soak_that_is_cut_short_says_what_held() -> None:
    chosen = profile("soak,time=330")
    model = make_model(Simulation(model=ModelName.NOISY), CAPACITY)
    outcome = search(Bench(of_model(model)), profile=chosen)
    (result,) = outcome.goals
    assert not result.complete
    assert outcome.elapsed_s <= 330
    assert any("time limit" in line for line in outcome.evidence)
    assert result.upper_pps is not None


def test_other_targets_can_be_chosen() -> None:
    (goal,) = profile("soak,loss=1e-3,sum=60,trial=5").goals
    assert (goal.loss_ratio, goal.duration_sum_s, goal.final_trial_duration_s) == (1e-3, 60.0, 5.0)


def test_a_soak_has_one_goal() -> None:
    two = SOAK.model_copy(update={"goals": (GOAL, GOAL.model_copy(update={"name": "TWIN"}))})
    with pytest.raises(ValueError, match="one goal, not 2"):
        search(Bench(capped(1e6)), profile=two)

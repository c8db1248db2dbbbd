"""Each simulated system behaves as its name says."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.models import Model, make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation

CAPACITY = 1e6


def model(name: ModelName, **parameters: object) -> Model:
    return make_model(Simulation(model=name, **parameters), CAPACITY)


def loss_ratios(system: Model, load_pps: float, trials: int = 400) -> list[float]:
    rng = Random(3)
    counts = [system.forward(load_pps, 1.0, rng) for _ in range(trials)]
    return [1 - received / sent for sent, received in counts]


@given(st.sampled_from(ModelName), st.floats(0.0, 3e7), st.floats(0.01, 60.0), st.integers(0, 2**32))
def test_no_more_comes_back_than_was_sent(name: ModelName, load_pps: float, duration_s: float, seed: int) -> None:
    sent, received = model(name).forward(load_pps, duration_s, Random(seed))
    assert sent == round(load_pps * duration_s)
    assert 0 <= received <= sent


@pytest.mark.parametrize("name", ModelName)
@pytest.mark.parametrize("loss_ratio", [0.0, 0.005])
def test_the_truth_parts_good_loads_from_bad(name: ModelName, loss_ratio: float) -> None:
    system = model(name)
    truth_pps = system.truth_pps(loss_ratio)

    def bad_share(load_pps: float) -> float:
        ratios = loss_ratios(system, load_pps)
        return sum(ratio > loss_ratio for ratio in ratios) / len(ratios)

    assert bad_share(truth_pps * 0.995) < 0.5 < bad_share(truth_pps * 1.005)


def test_noise_is_as_wide_as_asked() -> None:
    rng = Random(1)
    system = model(ModelName.NOISY, noise=0.03)
    rates = [system.forward(2 * CAPACITY, 1.0, rng)[1] for _ in range(2000)]
    mean = sum(rates) / len(rates)
    assert mean == pytest.approx(CAPACITY, rel=0.003)
    assert (sum((rate - mean) ** 2 for rate in rates) / len(rates)) ** 0.5 == pytest.approx(0.03 * CAPACITY, rel=0.1)


def test_stalls_are_rare_and_small() -> None:
    ratios = loss_ratios(model(ModelName.STALL), 0.5 * CAPACITY, 4000)
    hit = [ratio for ratio in ratios if ratio > 0]
    assert len(hit) / len(ratios) == pytest.approx(0.05, abs=0.01)
    assert max(hit) < 0.001


def test_a_long_trial_of_a_stalling_system_nearly_always_loses() -> None:
    rng = Random(1)
    counts = [model(ModelName.STALL).forward(0.1 * CAPACITY, 60.0, rng) for _ in range(100)]
    assert sum(received < sent for sent, received in counts) > 85


def test_the_knee_keeps_ndr_far_below_pdr() -> None:
    system = model(ModelName.KNEE)
    assert system.truth_pps(0.0) == pytest.approx(0.8 * CAPACITY)
    assert system.truth_pps(0.005) == pytest.approx(0.9 * CAPACITY)
    assert system.truth_pps(0.02) > CAPACITY
    assert max(loss_ratios(system, CAPACITY)) == pytest.approx(0.01)


def test_two_bands_are_two() -> None:
    ratios = loss_ratios(model(ModelName.TWO_BAND), CAPACITY)
    assert {round(ratio, 6) for ratio in ratios} == {0.0, 0.1}
    assert sum(ratio > 0 for ratio in ratios) / len(ratios) == pytest.approx(0.25, abs=0.06)


def test_overload_makes_a_sagging_system_slower() -> None:
    rng = Random(1)
    system = model(ModelName.SAG)
    at_capacity, twice, far = (system.forward(load * CAPACITY, 1.0, rng)[1] for load in (1, 2, 100))
    assert (at_capacity, twice, far) == (1_000_000, 900_000, 200_000)


@pytest.mark.parametrize("name", ModelName)
def test_the_same_seed_gives_the_same_counts(name: ModelName) -> None:
    assert loss_ratios(model(name), 1.01 * CAPACITY) == loss_ratios(model(name), 1.01 * CAPACITY)

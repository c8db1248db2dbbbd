"""Simulated trials end early as real ones do: at a look at the counters, and only when it is certain."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.models import POLL_S, forward, make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation

CAPACITY = 1e6


@given(
    name=st.sampled_from(ModelName),
    load_pps=st.floats(1e4, 5e6),
    duration_s=st.sampled_from([0.3, 1.0, 10.0]),
    ratio=st.sampled_from([0.0, 0.001, 0.005, 0.2]),
    seed=st.integers(0, 1000),
)
def test_an_abort_is_the_beginning_of_the_whole_trial(
    name: ModelName, load_pps: float, duration_s: float, ratio: float, seed: int
) -> None:
    model = make_model(Simulation(model=name), CAPACITY)
    whole = forward(model, load_pps, duration_s, Random(seed))
    done = forward(model, load_pps, duration_s, Random(seed), ratio)
    assert (whole.duration_s, whole.aborted) == (duration_s, False)
    if whole.sent - whole.received <= ratio * whole.sent:
        assert done == whole
    elif not done.aborted:
        assert done == whole  # certain only after the last look
    else:
        polls = done.duration_s / POLL_S
        assert polls == pytest.approx(round(polls))
        assert done.duration_s < duration_s
        assert done.sent == round(whole.sent * done.duration_s / duration_s)
        assert ratio * whole.sent < done.sent - done.received <= whole.sent - whole.received


@pytest.mark.parametrize(("overload", "ratio", "ends_s"), [(1.5, 0.005, 0.1), (1.01, 0.005, 0.6), (1.01, 0.0, 0.1)])
def test_the_more_is_lost_the_earlier_it_ends(overload: float, ratio: float, ends_s: float) -> None:
    """At 1.01 of the capacity 0.99 % is lost: 0.5 % of the whole by 0.505 s, seen at the look after it."""
    done = forward(make_model(Simulation(model=ModelName.SHARP), CAPACITY), overload * CAPACITY, 1.0, Random(1), ratio)
    assert done.aborted
    assert done.duration_s == pytest.approx(ends_s)


def test_a_stall_ends_a_trial_when_it_happens() -> None:
    model = make_model(Simulation(model=ModelName.STALL, stall_hz=2.0), CAPACITY)
    ends = [forward(model, CAPACITY / 2, 1.0, Random(seed), 0.0) for seed in range(300)]
    times = [done.duration_s for done in ends if done.aborted]
    assert {done.sent - done.received for done in ends if done.aborted} <= {20, 40, 60}
    assert len(set(times)) == 9
    assert 0.25 < sum(times) / len(times) < 0.5  # of stalls with 2 per second the first one

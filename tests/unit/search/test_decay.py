"""Decay of a system during a search: called where repeated loads fall, and by nothing else."""

from collections.abc import Callable, Sequence
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.search.findings.decay import Decay, DecayWatch

FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
LOADS = (900e3, 1000e3, 1100e3)


def watched(rates: Sequence[tuple[float, float, float]]) -> Decay | None:
    """What a watch says of trials by time, load and forwarded rate; nothing is said after the first time."""
    watch = DecayWatch()
    for at_s, load_pps, forwarded_pps in rates:
        received = round(min(load_pps, forwarded_pps))
        flows = (FlowCount(instance=1, direction=Direction.FORWARD, sent=round(load_pps), received=received),)
        trial = Trial(load_pps=load_pps, duration_s=1.0, frame=FRAME, purpose="search")
        result = TrialResult(trial=trial, started_at="", offered_duration_s=1.0, total_duration_s=1.5, flows=flows)
        if (found := watch.add(result, at_s)) is not None:
            return found
    return None


def trials(capacity: Callable[[float], float], count: int = 40) -> list[tuple[float, float, float]]:
    return [(1.5 * number, LOADS[number % 3], capacity(1.5 * number)) for number in range(count)]


@pytest.mark.parametrize("percent", [4.0, 10.0, 30.0])
def test_a_leak_is_called_with_its_rate(percent: float) -> None:
    found = watched(trials(lambda at_s: 950e3 * (1 - percent / 100) ** (at_s / 60)))
    assert found is not None
    assert found.per_minute == pytest.approx(percent, rel=0.1)
    assert f"{found.per_minute:.2g} % per minute" in str(found)


@pytest.mark.parametrize(
    "capacity",
    [
        lambda _: 950e3,
        lambda at_s: 950e3 if at_s < 30 else 800e3,  # a step
        lambda at_s: 950e3 * (1 - 0.02 * (at_s % 9 < 3)),  # two bands
        lambda at_s: 950e3 * exp(0.001 * at_s),  # it warms up
        lambda at_s: 950e3 * exp(-1e-4 * at_s),  # by less than 2 % in all
    ],
)
def test_a_level_a_step_two_bands_and_a_small_loss_are_no_decay(capacity: Callable[[float], float]) -> None:
    assert watched(trials(capacity)) is None


@given(st.lists(st.floats(0.97, 1.03), min_size=6, max_size=6))
def test_six_trials_decide_nothing(rates: list[float]) -> None:
    assert watched([(1.5 * number, 1e6, 900e3 * rate) for number, rate in enumerate(rates)]) is None


def test_different_loads_are_not_compared() -> None:
    assert watched([(1.5 * number, 1e6 - 10e3 * number, 1e6 - 10e3 * number) for number in range(40)]) is None

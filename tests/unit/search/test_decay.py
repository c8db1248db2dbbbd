"""Decay of a system during a search, and what changes together with a rate: named where planted, and nowhere else."""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.search.findings.correlates import BAND_TRIALS, DECAYED_TRIALS, Repeat, differing, rising
from resources.libraries.python.search.findings.decay import Decay, DecayWatch
from tests.builders import finished
from tests.unit.search.search_fakes import FRAME

LOADS = (900e3, 1000e3, 1100e3)


def watched(rates: Sequence[tuple[float, float, float]]) -> Decay | None:
    """What a watch says of trials by time, load and forwarded rate; nothing is said after the first time."""
    watch = DecayWatch()
    for at_s, load_pps, forwarded_pps in rates:
        trial = Trial(load_pps=load_pps, duration_s=1.0, frame=FRAME, purpose="search")
        result = finished(trial, (round(load_pps), round(min(load_pps, forwarded_pps))))
        if (found := watch.add(result, at_s)) is not None:
            return found
    return None


def trials(capacity: Callable[[float], float], count: int = 40) -> list[tuple[float, float, float]]:
    return [(1.5 * number, LOADS[number % 3], capacity(1.5 * number)) for number in range(count)]


@pytest.mark.parametrize("percent", [4.0, 10.0, 30.0])
def test_a_leak_is_called_with_its_rate(percent: float) -> None:
    found = watched(trials(lambda at_s: 950e3 * (1 - percent / 100) ** (at_s / 60)))
    assert found is not None and found.per_minute == pytest.approx(percent, rel=0.1)
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
    leak = trials(lambda at_s: 950e3 * 0.7 ** (at_s / 60))
    assert watched(leak[:6]) is None, "six trials decide nothing"
    assert watched([(at_s, pps, pps) for at_s, _, pps in leak]) is None, "different loads are not compared"


LEAK, WAIT = ("memory of nf-1-1", "MiB"), ("waiting time", "ms/s")


def noise(rng: Random, count: int = 60) -> dict[tuple[str, str], float]:
    return {(f"counter {number}", "per second"): rng.gauss(1000, 50) for number in range(count)}


def trial(number: int, forwarded_pps: float, readings: Mapping[tuple[str, str], float]) -> Repeat:
    return Repeat(1.5 * number, forwarded_pps, readings)


@given(st.integers(0, 10_000))
@settings(max_examples=50)
def test_a_leak_is_named_first_among_noise_and_a_fall_is_not(seed: int) -> None:
    rng = Random(seed)
    repeats = [
        trial(number, 1e6 * 0.99**number, noise(rng) | {LEAK: 60 + 4.0 * number, ("free memory", "MiB"): 900 - number})
        for number in range(DECAYED_TRIALS)
    ]
    first, *_ = rising(repeats)
    assert first.of == LEAK
    assert first.before < 70 and first.after > 90
    assert all(each.of != ("free memory", "MiB") for each in rising(repeats))


@given(st.integers(0, 10_000))
@settings(max_examples=50)
def test_what_only_the_lower_band_has_is_named_whatever_its_direction(seed: int) -> None:
    rng = Random(seed)
    low = set(rng.sample(range(BAND_TRIALS), 6))
    repeats = [
        trial(
            number,
            0.9e6 if number in low else 1e6,
            noise(rng)
            | {WAIT: 100.0 if number in low else 1.0, ("clock rate", "MHz"): 2000 if number in low else 3000},
        )
        for number in range(BAND_TRIALS)
    ]
    found = differing(repeats)
    assert found is not None and [each.of for each in found[:2]] == [WAIT, ("clock rate", "MHz")]


def test_noise_alone_is_named_in_one_of_a_hundred_tests_at_most() -> None:
    alarms = 0
    for seed in range(400):
        rng = Random(seed)
        decay = [trial(number, 1e6 * 0.99**number, noise(rng)) for number in range(DECAYED_TRIALS)]
        bands = [trial(number, (0.9, 1.0, 1.0)[number % 3] * 1e6, noise(rng)) for number in range(BAND_TRIALS)]
        alarms += bool(rising(decay)) + bool(differing(bands))
    assert alarms <= 8


def test_one_band_is_no_two_and_two_low_trials_are_too_few() -> None:
    one = [trial(number, 1e6 + number, {WAIT: float(number)}) for number in range(BAND_TRIALS)]
    few = [trial(number, 0.9e6 if number < 2 else 1e6, {WAIT: float(number)}) for number in range(BAND_TRIALS)]
    assert differing(one) is None
    assert differing(few) is None
    assert differing([]) is None
    assert rising([]) == ()

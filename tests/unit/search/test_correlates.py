"""What changes together with a rate: planted readings are named, and none where everything is noise."""

from collections.abc import Mapping
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.search.findings.correlates import BAND_TRIALS, DECAYED_TRIALS, Repeat, differing, rising

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
    assert found is not None
    assert [each.of for each in found[:2]] == [WAIT, ("clock rate", "MHz")]


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

"""Two bands are seen where they are, and only there; the chance that few values miss them."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.search.findings.unseen_bands import SETTLED, SHARE, fewest, unseen_bands
from resources.libraries.python.search.findings.verdict import (
    MIN_NDR,
    Bands,
    find_bands,
    ndr_share,
    of_bounds,
    of_unseen,
)
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.search.throughput import SearchOutcome
from tests.unit.search.search_fakes import Bench, capped, of_model, search, trial_result

CAPACITY_PPS = 5e6
SEARCHES = 30


def outcome(name: ModelName, seed: int, profile_name: str) -> SearchOutcome:
    forward = of_model(make_model(Simulation(model=name), CAPACITY_PPS), seed)
    return search(Bench(forward, 0.5 if profile_name == "ladder" else 0.08), profile=profile(profile_name))


def flagged(found: SearchOutcome) -> bool:
    bounds = [load for goal in found.goals for load in (goal.lower_pps, goal.upper_pps) if load is not None]
    return isinstance(find_bands(found.trials, bounds), Bands)


@pytest.mark.slow
@pytest.mark.parametrize("profile_name", ["ladder", "quick"])
@pytest.mark.parametrize("name", ModelName)
def test_bands_are_seen_in_the_two_band_system_and_in_no_other(name: ModelName, profile_name: str) -> None:
    outcomes = [outcome(name, seed, profile_name) for seed in range(SEARCHES)]
    share = sum(map(flagged, outcomes)) / SEARCHES
    if name is ModelName.TWO_BAND:
        assert share >= 0.8
    else:
        assert share == 0
    assert not [each for each in outcomes if ndr_share(each.ndr, each.pdr) is not None]


def bands(*losses: int) -> bool:
    return isinstance(find_bands([trial_result(1e6, lost) for lost in losses]), Bands)


def test_what_makes_two_bands() -> None:
    assert bands(0, 0, 0, 100, 100, 100)
    assert bands(0, 5, 10, 100, 105, 110)
    assert not bands(0, 0, 0, 0, 0, 0)
    assert not bands(0, 0, 0, 15, 15, 15), "closer than 2 %"
    assert not bands(0, 0, 0, 0, 100, 100), "two trials are an accident"
    assert not bands(0, 20, 40, 60, 80, 100, 120), "a spread, and no gap in it"
    assert not bands(0, 0, 0, 60, 100, 140), "the gap is narrower than the group behind it"
    assert not bands(*[0] * 40, 100, 100, 100), "less than a tenth of the trials"
    trials = [trial_result(load, lost) for load in (1e6, 2e6) for lost in (200, 220, 360, 380)]
    found = find_bands([*trials, trial_result(3e6, 0)])
    assert isinstance(found, Bands), "shares of the 800 that the best forwarded: 0, 2.5, 20 and 22.5 % less"
    assert (found.upper_trials, found.lower_trials, found.loads) == (4, 4, 2)
    assert (found.gap, found.upper, found.lower) == pytest.approx((0.175, 0.9875, 0.7875))


def test_loads_of_one_trial_and_loads_far_away_are_ignored() -> None:
    at = [
        trial_result(1e6 * factor, 100 * (index % 2)) for index, factor in enumerate([1, 1.01, 1.02, 1.03, 1.04, 1.05])
    ]
    assert find_bands(at) is None
    far = [trial_result(5e5, lost) for lost in (0, 0, 0, 100, 100, 100)]
    assert isinstance(find_bands(far), Bands)
    assert find_bands(far, [1e6]) is None
    assert isinstance(find_bands(far, [2e6, 4.86e5]), Bands), "2.9 % away"
    assert find_bands(far, [5.16e5]) is None, "3.1 % away"
    for changes in ({"generator_limited": True}, {"offered_duration_s": 0.01}):
        assert find_bands([trial.model_copy(update=changes) for trial in far]) is None, "nor what was ended at once"


@given(st.lists(st.floats(0.0, 0.3), min_size=6, max_size=30), st.floats(1e3, 1e8))
def test_neither_order_nor_load_matter(losses: list[float], load_pps: float) -> None:
    def found(values: list[float], load: float) -> bool:
        trials = [trial_result(load, round(1e5 * loss), sent=10**5) for loss in values]
        return isinstance(find_bands(trials), Bands)

    assert found(losses, load_pps) == found(losses[::-1], 1e6)


@pytest.mark.parametrize(("bound_pps", "numbers"), [(5e5, [("NDR", "PDR")]), (MIN_NDR * 1e6, [])])
def test_an_ndr_far_under_pdr_makes_both_unstable(bound_pps: float, numbers: list[tuple[str, str]]) -> None:
    found = search(Bench(capped(1e6)))
    assert found.ndr is not None and found.pdr is not None
    far = found.ndr.model_copy(update={"lower_pps": bound_pps / 2, "upper_pps": bound_pps})
    pdr = found.pdr.model_copy(update={"lower_pps": 1e6})
    assert [each.numbers for each in of_bounds(found.model_copy(update={"goals": (far, pdr)}))] == numbers


def test_a_search_that_misses_two_bands_says_how_likely_that_was() -> None:
    system = Simulation(model=ModelName.TWO_BAND, low_band=0.93, low_band_share=0.3)

    def searched(seed: int) -> SearchOutcome:
        return search(Bench(of_model(make_model(system, CAPACITY_PPS), seed)), profile=profile("quick"))

    missed = next(found for seed in range(20) if not flagged(found := searched(seed)))
    (finding,) = of_unseen(missed)
    assert (finding.kind, finding.numbers) == (VerdictKind.MEASURED, ("NDR", "PDR"))
    assert re.search(
        r"is missed with a probability of [\d.]+ %; \d+ further trials settle it \(95 %\)|too few", finding.text
    )
    seen = next(found for seed in range(20) if flagged(found := searched(seed)))
    assert of_unseen(seen) == []


def chance(count: int, share: float, low: int = 0, further: int = 0) -> float:
    """By counting all outcomes: probability that a band has too few of all values."""
    total = 0.0
    for outcome in product((0, 1), repeat=count):
        ones = sum(outcome)
        if min(low + ones, count + further - low - ones) < fewest(count + further):
            total += share**ones * (1 - share) ** (count - ones)
    return total


@pytest.mark.parametrize("count", [1, 5, 6, 10, 13])
def test_the_chance_is_that_of_all_outcomes(count: int) -> None:
    assert unseen_bands(count).chance == pytest.approx(chance(count, 0.3))
    assert (unseen_bands(count).chance == pytest.approx(1.0)) is (count < 6)


@pytest.mark.parametrize(("count", "low"), [(8, 1), (8, 2), (6, 2)])
def test_a_hint_settles_with_so_many_further_values_and_not_with_fewer(count: int, low: int) -> None:
    found = unseen_bands(count, low)
    assert found.share == max(SHARE, low / count)
    assert found.further is not None and chance(found.further, found.share, low, count) <= SETTLED
    assert chance(found.further - 1, found.share, low, count) > SETTLED

"""Every result names the requirements of the MLRsearch specification that it does not meet."""

import pytest

from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.algorithms.conformance import REQUIREMENTS
from resources.libraries.python.search.profiles import LADDER, REFERENCE, RFC2544, profile
from tests.unit.search.search_fakes import Bench, capped, search


def words(profile: SearchProfile, capacity_pps: float) -> dict[str, str]:
    found = search(Bench(capped(capacity_pps)), profile=profile).record.deviations
    assert found is not None
    assert [each.requirement for each in found] == sorted(
        (each.requirement for each in found), key=list(REQUIREMENTS).index
    )
    return {each.requirement: each.text for each in found}


def test_the_library_deviates_by_trials_alone() -> None:
    assert set(words(REFERENCE, 4e6)) == {"trial", "trial-forwarding-ratio"}


@pytest.mark.parametrize("profile", [LADDER, RFC2544], ids=lambda each: each.name)
def test_trials_that_end_early_are_counted(profile: SearchProfile) -> None:
    outcome = search(Bench(capped(4e6)), profile=profile)
    aborted = sum(each.aborted for each in outcome.trials)
    assert words(profile, 4e6)["trial-duration"].startswith(f"{aborted} of {len(outcome.trials)} trials")


def test_what_is_irregular_is_named() -> None:
    assert "no load was an upper bound" in words(REFERENCE, 40e6)["goal-width"]
    assert "irregular, there is none" in words(REFERENCE, 0.0)["relevant-lower-bound"]
    short = LADDER.model_copy(update={"duration_max_s": 10.0})
    assert "ended early" in words(short, 4e6)["goal-width"]


def test_a_soak_is_decided_otherwise() -> None:
    assert "functions are fitted" in words(profile("soak,time=60"), 4e6)["load-classification"]


def test_partial_trials_of_the_ladder_are_named() -> None:
    """NDR's own trials end at the first lost packet, and say nothing about PDR."""

    def forward(load_pps: float, duration_s: float) -> tuple[int, int]:
        sent, received = capped(4e6)(load_pps, duration_s)
        return sent, min(received, sent - (1 if load_pps > 2e6 else 0))

    record = search(Bench(forward)).record
    texts = [each.text for each in record.deviations or () if each.requirement == "load-classification"]
    assert any("below a loss ratio of 0.005" in text for text in texts)

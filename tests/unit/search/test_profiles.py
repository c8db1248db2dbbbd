"""Presets mean what their documentation says; results name requirements of MLRsearch that they do not meet."""

from random import Random

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.algorithms.conformance import REQUIREMENTS
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544, profile
from tests.unit.search.search_fakes import Bench, capped, search


def test_csit_is_csit() -> None:
    goals = {goal.name: goal for goal in profile("ladder").goals}
    assert {name: goal.loss_ratio for name, goal in goals.items()} == {"NDR": 0.0, "PDR": 0.005}
    for goal in goals.values():
        assert (goal.exceed_ratio, goal.relative_width, goal.duration_sum_s) == (0.5, 0.005, 21.0)
        assert goal.initial_trial_duration_s == goal.final_trial_duration_s == 1.0
    assert (LADDER.duration_max_s, LADDER.latency_duration_s) == (1200.0, 5.0)
    assert (LADDER.mrr_trials, LADDER.mrr_duration_s) == (10, 1.0)


@pytest.mark.slow
def test_quick_is_quick_on_a_rough_machine() -> None:
    """Capacity varies by 8 % and a stall a second loses a few packets."""
    times = []
    for seed in range(20):
        rng = Random(seed)

        def forward(load_pps: float, duration_s: float, rng: Random = rng) -> tuple[int, int]:
            sent = round(load_pps * duration_s)
            received = min(sent, round(4e5 * rng.gauss(1.0, 0.08) * duration_s))
            return sent, received - (5 if rng.random() < duration_s else 0)

        bench = Bench(forward, overhead_s=0.08)
        times.append(search(bench, 1.2e6, QUICK).elapsed_s)
    assert max(times) < 60
    assert 20 < sum(times) / len(times) < 45


def test_the_reference_is_csits_settings_with_mlrsearch_as_in_results_before_there_were_algorithms() -> None:
    assert profile("reference").model_copy(update={"name": "ladder", "algorithm": LADDER.algorithm}) == LADDER
    assert (profile("reference").algorithm, LADDER.algorithm, QUICK.algorithm) == ("mlrsearch", "ladder", "ladder")
    old = LADDER.model_dump(exclude={"algorithm"})
    assert SearchProfile.model_validate(old).algorithm == "mlrsearch"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("ladder,width=0.01", "relative_width", 0.01),
        ("rfc2544,trial=120", "final_trial_duration_s", 120.0),
        ("rfc2544,trial=120", "duration_sum_s", 120.0),
        ("rfc2544,trial=120", "initial_trial_duration_s", 10.0),
        ("ladder,sum=42", "duration_sum_s", 42.0),
        ("ladder,trial=2", "initial_trial_duration_s", 2.0),
        ("ladder,trial=2", "duration_sum_s", 21.0),
        ("ladder,time=60", "duration_max_s", 60.0),
        ("quick,latency=0.5", "latency_duration_s", 0.5),
        ("quick,mrr=1,mrr_trial=0.1", "mrr_duration_s", 0.1),
    ],
)
def test_settings_may_follow_a_profiles_name(text: str, field: str, value: float) -> None:
    chosen = profile(text)
    assert chosen.name == text
    assert {getattr(each, field) for each in (chosen, *chosen.goals) if hasattr(each, field)} == {value}
    assert SearchProfile.model_validate_json(chosen.model_dump_json()) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ladder,speed=9", "unknown setting 'speed=9'; choose from width, .*, latency, mrr, mrr_trial"),
        ("ladder,width=2", "'width=2' does not fit: 2 is not below 1"),
        ("rfc2544,trial=long", "'trial=long' does not fit: .*number"),
        ("ladder,loss=0.1", "'loss=0.1' fits a profile with one goal"),
        ("ladder,time", "'time' does not fit"),
        ("slow", "profile 'slow'; choose from ladder, quick, reference, rfc2544, soak"),
    ],
)
def test_a_wrong_setting_is_reported(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        profile(text)


def words(profile: SearchProfile, capacity_pps: float) -> dict[str, str]:
    found = search(Bench(capped(capacity_pps)), profile=profile).record.deviations
    assert found is not None
    assert [each.requirement for each in found] == sorted(
        (each.requirement for each in found), key=list(REQUIREMENTS).index
    )
    return {each.requirement: each.text for each in found}


@pytest.mark.parametrize(
    ("profile", "capacity_pps", "requirement", "said"),
    [
        (REFERENCE, 40e6, "goal-width", "no load was an upper bound"),
        (REFERENCE, 0.0, "relevant-lower-bound", "irregular, there is none"),
        (LADDER.model_copy(update={"duration_max_s": 10.0}), 4e6, "goal-width", "ended early"),
        (profile("soak,time=60"), 4e6, "load-classification", "functions are fitted"),
    ],
)
def test_what_is_irregular_is_named(profile: SearchProfile, capacity_pps: float, requirement: str, said: str) -> None:
    assert said in words(profile, capacity_pps)[requirement]
    assert set(words(REFERENCE, 4e6)) == {"trial", "trial-forwarding-ratio"}, "the library deviates by trials alone"


@pytest.mark.parametrize("profile", [LADDER, RFC2544], ids=lambda each: each.name)
def test_trials_that_end_early_are_counted(profile: SearchProfile) -> None:
    outcome = search(Bench(capped(4e6)), profile=profile)
    aborted = sum(each.aborted for each in outcome.trials)
    assert words(profile, 4e6)["trial-duration"].startswith(f"{aborted} of {len(outcome.trials)} trials")


def test_partial_trials_of_the_ladder_are_named() -> None:
    """NDR's own trials end at the first lost packet, and say nothing about PDR."""

    def forward(load_pps: float, duration_s: float) -> tuple[int, int]:
        sent, received = capped(4e6)(load_pps, duration_s)
        return sent, min(received, sent - (1 if load_pps > 2e6 else 0))

    record = search(Bench(forward)).record
    texts = [each.text for each in record.deviations or () if each.requirement == "load-classification"]
    assert any("below a loss ratio of 0.005" in text for text in texts)

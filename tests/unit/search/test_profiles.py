"""Presets mean what their documentation says."""

from random import Random

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.profiles import LADDER, QUICK, profile
from resources.libraries.python.search.throughput import search_throughput
from tests.unit.search.search_fakes import FRAME, Bench


def test_csit_is_csit() -> None:
    goals = {goal.name: goal for goal in profile("ladder").goals}
    assert {name: goal.loss_ratio for name, goal in goals.items()} == {"NDR": 0.0, "PDR": 0.005}
    for goal in goals.values():
        assert (goal.exceed_ratio, goal.relative_width, goal.duration_sum_s) == (0.5, 0.005, 21.0)
        assert goal.initial_trial_duration_s == goal.final_trial_duration_s == 1.0
    assert (LADDER.duration_max_s, LADDER.latency_duration_s) == (1200.0, 5.0)
    assert (LADDER.mrr_trials, LADDER.mrr_duration_s) == (10, 1.0)


def test_quick_asks_the_same_question() -> None:
    for quick, csit in zip(QUICK.goals, LADDER.goals, strict=True):
        assert (quick.name, quick.loss_ratio, quick.exceed_ratio) == (csit.name, csit.loss_ratio, csit.exceed_ratio)
    assert QUICK.latency_duration_s == 2.0
    assert (QUICK.mrr_trials, QUICK.mrr_duration_s) == (3, 0.5)


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
        times.append(search_throughput(bench.measure, QUICK, FRAME, 1.2e6, bench.clock.now).elapsed_s)
    assert max(times) < 60
    assert 20 < sum(times) / len(times) < 45


def test_the_reference_differs_from_csit_in_the_algorithm_alone() -> None:
    assert profile("reference").model_copy(update={"name": "ladder", "algorithm": LADDER.algorithm}) == LADDER
    assert (profile("reference").algorithm, LADDER.algorithm, QUICK.algorithm) == ("mlrsearch", "ladder", "ladder")


def test_results_from_before_there_were_algorithms_were_searched_by_mlrsearch() -> None:
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
    ],
)
def test_settings_may_follow_a_profiles_name(text: str, field: str, value: float) -> None:
    chosen = profile(text)
    assert chosen.name == text
    assert {getattr(goal, field) for goal in chosen.goals} == {value}
    assert SearchProfile.model_validate_json(chosen.model_dump_json()) == chosen


def test_the_time_limit_is_a_setting() -> None:
    assert profile("ladder,time=60").duration_max_s == 60.0


def test_how_long_latency_is_measured_is_a_setting() -> None:
    assert profile("quick,latency=0.5").latency_duration_s == 0.5


def test_how_many_trials_mrr_has_is_a_setting() -> None:
    assert profile("quick,mrr=12").mrr_trials == 12


def test_how_long_a_trial_of_mrr_takes_is_a_setting() -> None:
    chosen = profile("quick,mrr=1,mrr_trial=0.1")
    assert (chosen.mrr_trials, chosen.mrr_duration_s, chosen.goals) == (1, 0.1, QUICK.goals)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ladder,speed=9", "unknown setting 'speed=9'; choose from width, .*, latency, mrr, mrr_trial"),
        ("ladder,width=2", "'width=2' does not fit: 2 is not below 1"),
        ("rfc2544,trial=long", "'trial=long' does not fit: .*number"),
        ("ladder,loss=0.1", "'loss=0.1' fits a profile with one goal"),
        ("ladder,time", "'time' does not fit"),
    ],
)
def test_a_wrong_setting_is_reported(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        profile(text)


def test_an_unknown_profile_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="profile 'slow'; choose from ladder, quick, reference, rfc2544, soak"):
        profile("slow")

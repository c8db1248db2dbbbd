"""Presets mean what their documentation says."""

from random import Random

import pytest
from search_fakes import FRAME, Bench

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.search.profiles import CSIT, QUICK, profile
from resources.libraries.python.search.throughput import search_throughput


def test_csit_is_csit() -> None:
    goals = {goal.name: goal for goal in profile("csit").goals}
    assert {name: goal.loss_ratio for name, goal in goals.items()} == {"NDR": 0.0, "PDR": 0.005}
    for goal in goals.values():
        assert (goal.exceed_ratio, goal.relative_width, goal.duration_sum_s) == (0.5, 0.005, 21.0)
        assert goal.initial_trial_duration_s == goal.final_trial_duration_s == 1.0
    assert (CSIT.duration_max_s, CSIT.latency_duration_s) == (1200.0, 5.0)
    assert (CSIT.mrr_trials, CSIT.mrr_duration_s) == (10, 1.0)


def test_quick_asks_the_same_question() -> None:
    for quick, csit in zip(QUICK.goals, CSIT.goals, strict=True):
        assert (quick.name, quick.loss_ratio, quick.exceed_ratio) == (csit.name, csit.loss_ratio, csit.exceed_ratio)
    assert QUICK.latency_duration_s == 2.0
    assert (QUICK.mrr_trials, QUICK.mrr_duration_s) == (3, 0.5)


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
    assert 25 < sum(times) / len(times) < 45


def test_an_unknown_profile_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no search profile 'slow'; there are csit, quick"):
        profile("slow")

"""What a search says when the time was too little."""

import pytest

from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.profiles import LADDER, REFERENCE, RFC2544
from resources.libraries.python.search.throughput import search_throughput
from tests.unit.search.search_fakes import FRAME, LINE_PPS, Bench, capped, found, search


@pytest.mark.parametrize("limit_s", [1.0, 10.0, 20.0, 30.0])
def test_a_search_that_is_cut_short_keeps_what_it_knows(limit_s: float) -> None:
    bench = Bench(capped(4e6))
    profile = LADDER.model_copy(update={"duration_max_s": limit_s})
    outcome = search_throughput(bench.measure, profile, FRAME, LINE_PPS, bench.clock.now)
    assert outcome.elapsed_s <= max(limit_s, 1.5)
    assert any("time limit" in each.text for each in outcome.findings)
    assert not outcome.generator_bound
    for result in outcome.goals:
        assert result.upper_pps is not None
        assert result.upper_pps >= 4e6
        if result.lower_pps is None:
            assert result.lowest_tried_pps is not None
        else:
            assert result.lower_pps <= 4e6 / (1 - result.goal.loss_ratio)
            assert result.throughput_pps is not None
    assert not all(result.complete for result in outcome.goals)


def test_a_goal_that_was_proven_before_the_time_ran_out_is_complete() -> None:
    bench = Bench(capped(4e6))
    last = search(bench).elapsed_s
    bench = Bench(capped(4e6))
    profile = LADDER.model_copy(update={"duration_max_s": last - 1.0})
    outcome = search_throughput(bench.measure, profile, FRAME, LINE_PPS, bench.clock.now)
    assert [result.complete for result in outcome.goals] in ([True, False], [False, True])


@pytest.mark.parametrize("chosen", [REFERENCE, RFC2544], ids=lambda each: each.name)
def test_searches_of_another_algorithm_keep_what_they_know_too(chosen: SearchProfile) -> None:
    whole = search(Bench(capped(4e6)), profile=chosen)
    short = chosen.model_copy(update={"duration_max_s": whole.elapsed_s - 1})
    outcome = search(Bench(capped(4e6)), profile=short)
    assert any("time limit" in each.text for each in outcome.findings)
    assert [result.goal.name for result in outcome.goals] == ["NDR", "PDR"]
    for result in outcome.goals:
        lower, upper = found(result)
        assert lower <= 4e6 / (1 - result.goal.loss_ratio) <= upper

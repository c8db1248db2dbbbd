"""Time of a run: planned, refused without end, and left; corrected by its tests, never growing by more than a tenth."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.cost import RunPlan, StudyCost, TimedTest, TimeLeft
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.density.planning.extras import Extras
from resources.libraries.python.studies.density.planning.extras import test_s as planned_s
from resources.libraries.python.studies.density.planning.selection import parse_selection

LOCAL_RUN_S = (41.0, 52.6, 44.3, 38.2, 57.0, 43.1, 49.9)
"""Tests of `./csit local` as two cores take them, the virtual machine last."""
STEP_S = 2.0


def replayed(planned: list[float], took: list[float]) -> list[tuple[float, float]]:
    """Time left as shown, and as it was, every few seconds of a run."""
    left, now_s, shown = TimeLeft(), 100.0, []
    left.plan(RunPlan([TimedTest(str(number), each) for number, each in enumerate(planned)]))
    end_s = now_s + sum(took)
    for number, test_s in enumerate(took):
        left.begin(str(number), now_s)
        for step in range(int(test_s / STEP_S) + 1):
            at_s = now_s + step * STEP_S
            seconds = left.left_s(at_s)
            assert seconds is not None
            shown.append((seconds, end_s - at_s))
        now_s += test_s
        left.end(now_s)
    return shown


def growth(shown: list[tuple[float, float]]) -> float:
    """The largest ratio of a time left to an earlier one."""
    least, most = shown[0][0], 1.0
    for seconds, _ in shown:
        most = max(most, seconds / least if least else float(seconds > 0) * 2)
        least = min(least, seconds)
    return most


def test_the_time_left_of_a_local_run_is_right_from_its_first_test_on() -> None:
    topology = load_topology(LOCAL_TOPOLOGY)
    cells = parse_selection(service_types="CSC,CSP,VSC", cells="1x1,1x2,2x1", nf_sizes="1c").cells()
    cells = [each for each in cells if each.service_type != "VSC" or each.locator == "1R1C"]
    planned = [planned_s(topology, cell, QUICK, TestType.NDRPDR, Extras()) for cell in cells]
    assert len(planned) == len(LOCAL_RUN_S)
    shown = replayed(planned, list(LOCAL_RUN_S))
    assert sum(planned) == pytest.approx(sum(LOCAL_RUN_S), rel=0.05)
    assert growth(shown) <= 1.1
    for seconds, true_s in shown:
        assert abs(seconds - true_s) <= 0.1 * true_s + 30, "minutes are rounded"


def test_a_machine_twice_as_slow_as_planned_corrects_the_time_left() -> None:
    shown = replayed([20.0] * 10, [40.0] * 10)
    assert growth(shown) <= 1.1
    first, last = shown[len(shown) // 2], shown[-40]
    assert last[0] == pytest.approx(last[1], rel=0.35)
    assert first[0] < first[1]


@given(st.lists(st.tuples(st.floats(0, 5000), st.floats(0.1, 500)), min_size=1, max_size=8))
def test_the_time_left_never_grows_by_more_than_a_tenth(tests: list[tuple[float, float]]) -> None:
    planned, took = map(list, zip(*tests, strict=True))
    assert growth(replayed(planned, took)) <= 1.1


def test_tests_that_are_passed_over_take_no_time_and_say_nothing_about_others() -> None:
    left = TimeLeft()
    left.plan(RunPlan([TimedTest(name, seconds) for name, seconds in (("a", 60.0), ("b", 0.0), ("c", 60.0))]))
    left.begin("a", 0.0)
    assert left.left_s(0.0) == 120
    left.begin("b", 1.0)
    assert left.left_s(1.0) == 60
    left.end(2.0)
    left.begin("c", 2.0)
    assert left.left_s(2.0) == 60
    left.plan(RunPlan([TimedTest("a", 30.0), TimedTest("b", 30.0)]))
    left.begin("a", 0.0)
    assert left.left_s(10.0, present_s=12.0) == 12 + 30, "steps of the present test take the place of its plan"
    assert left.left_s(29.0, least_s=8.0) == 8 + 30, "a search that takes longer than planned"


STUDY = StudyCost("pairs", steps=4, runs=20, unit="measurements", seconds=100.0, counted={"pairs": 4})


def test_a_step_takes_its_share_and_too_many_measurements_or_too_much_time_are_refused() -> None:
    assert (STUDY.step_s, replace(STUDY, steps=0).step_s) == (25.0, 100.0)
    with pytest.raises(ConfigError, match=r"^pairs: 1,000,000,000 measurements; at most"):
        replace(STUDY, runs=10**9)
    with pytest.raises(ConfigError, match=r"^pairs: 20 measurements take about 11,574 days; at most"):
        replace(STUDY, seconds=1e9)

"""Trends of cells over nights whose truth is known: steps, outliers, two bands, new failures, and twins."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations
from math import inf, nan
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from csit_utils.analysis.causes import outcomes
from csit_utils.analysis.cells import figures
from csit_utils.analysis.trends.events import events, probable_events
from csit_utils.analysis.trends.steps import FREEDOM, MIN_RUNS, chance_of_runs, find_steps, find_two_bands, noise
from csit_utils.analysis.trends.trend import FEWEST, SUSPICION, Findings, Trend, TrendState, look, trend_of, trends
from csit_utils.bisection.spec import write_steps
from csit_utils.commands.results.trend import _called
from csit_utils.commands.results.trend import _line as line_of_trend
from csit_utils.commands.runs.twin import TwinVerdict, _cells_of, paired, unpaired
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import PDR, TestRow
from csit_utils.report.pages.spread import repeats
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.histories import FIRST, nights, row
from tests.unit.examples import share

RATE = 5e6


def pdr(rows: list[TestRow], alpha: float = 0.01) -> Trend:
    """The PDR trend of the only cell."""
    (found,) = (each for each in trends(rows, alpha) if each.cell.metric == PDR)
    return found


def test_steps_are_dated_and_sized_and_the_last_gives_the_state() -> None:
    found = pdr(nights(30, lambda night: RATE if night < 14 else 0.92 * RATE))
    (step,) = found.steps
    assert (found.state, found.figures[step.index].row.run) == (TrendState.REGRESSION, "lab-a/14/output.xml")
    assert step.change == pytest.approx(-0.08, abs=0.01)
    assert found.levels[13] == step.before != found.levels[14] == step.after
    found = pdr(nights(36, lambda night: RATE * (1.0 if night < 12 or night >= 24 else 0.9)))
    assert [step.index for step in found.steps] == [12, 24]
    assert found.state is TrendState.PROGRESSION


def test_the_table_names_what_changed_with_a_step() -> None:
    rows = nights(8, lambda _: RATE, version="VPP 26.06") + nights(14, lambda _: 0.8 * RATE, version="VPP 26.10")[8:]
    lines = [line_of_trend(found, {}) for found in trends(rows) if found.steps]
    assert lines and all("VPP 26.06 → VPP 26.10" in line.texts for line in lines)


def test_failed_nights_are_gaps_and_no_zeros() -> None:
    """Gaps lie between the first figure and the last run."""
    others = nights(30, lambda _: RATE, cell=("CSC", 2, 1))
    found = trends([*nights(30, lambda night: RATE if night in range(5, 25) and night != 6 else None), *others])
    failed = next(each for each in found if each.cell.dimensions.instances == 1)
    assert (failed.state, len(failed.figures)) == (TrendState.STEADY, 19)
    assert [(at.date() - FIRST.date()).days for at in failed.gaps] == [6, 25, 26, 27, 28, 29]


def test_two_bands_and_one_bad_night_are_no_regression() -> None:
    low = {night for night in range(30) if Random(night).random() < 0.25}
    found = pdr(nights(30, lambda night: 0.9 * RATE if night in low else RATE))
    assert (found.state, found.steps) == (TrendState.TWO_BANDS, ())
    assert found.bands.lower == pytest.approx(0.9 * RATE, rel=0.01)
    found = pdr(nights(30, lambda night: 0.7 * RATE if night == 20 else RATE))
    assert (found.state, found.outliers) == (TrendState.STEADY, (20,))
    # Noise of a standard deviation of 0.5 %, as Student's t of 4 degrees of freedom, widened as nights are few.
    assert 0.002 * RATE < found.scale < 0.008 * RATE


def test_a_slow_change_is_a_drift_few_nights_are_not_judged_and_equal_ones_steady() -> None:
    found = pdr(nights(40, lambda night: RATE * (1 - 0.003 * night)))
    assert found.state is TrendState.DRIFT
    assert found.drift.change == pytest.approx(-0.117, abs=0.01)
    assert found.drift.slope_per_day == pytest.approx(-0.003 * RATE, rel=0.1)
    few = pdr(nights(FEWEST - 1, lambda night: RATE if night < 4 else 0.5 * RATE))
    assert few.state is TrendState.TOO_FEW
    assert pdr(nights(20, lambda _: RATE, noise=0.0)).state is TrendState.STEADY


@pytest.mark.slow
def test_many_cells_share_one_false_alarm_rate() -> None:
    """What a single cell would call a step is chance among a hundred."""
    fall = nights(30, lambda night: RATE if night < 20 else 0.982 * RATE)
    crowd = [each for chains in range(2, 102) for each in nights(30, lambda _: RATE, cell=("CSC", chains, 1))]
    together = next(each for each in trends([*fall, *crowd], 0.05) if each.cell.dimensions.instances == 1)
    assert pdr(fall, alpha=0.05).steps and not together.steps


def test_a_latency_tests_pdr_counts_only_where_no_test_asked_for_it() -> None:
    """What is only known to be below a load is no figure at all."""
    asked, by_the_way = nights(12, lambda _: RATE), nights(12, lambda _: 0.5 * RATE, test_type="LATENCY")
    assert {each.row.test_type for each in pdr([*asked, *by_the_way]).figures} == {"NDRPDR"}
    assert len(pdr(by_the_way).figures) == 12
    below = row(RATE, 12, pdr_lower_pps=None, pdr_lowest_tried_pps=1e5)
    assert len(pdr([*asked, below]).figures) == 12


def test_a_rise_of_what_is_better_the_less_there_is_is_a_regression(tmp_path: Path) -> None:
    """States, events and the steps for a bisection go by the direction of the metric."""
    fallen = pdr(nights(30, lambda night: RATE if night < 14 else 0.92 * RATE))
    cell = replace(fallen.cell, metric=Measure("recovery", "s", less_is_better=True))

    def time_of(after_s: float) -> Trend:
        times_s = [1.0] * 14 + [after_s] * 16
        every = zip(fallen.figures, times_s, strict=True)
        return trend_of(cell, [replace(each, value_pps=time_s, upper_pps=None) for each, time_s in every], {}, 0.01)

    slower = time_of(1.5)
    found = [fallen, slower, time_of(0.5)]
    assert [each.state for each in found] == [TrendState.REGRESSION, TrendState.REGRESSION, TrendState.PROGRESSION]
    assert [event.better for each in found for event in events([each])] == [False, False, True]
    write_steps(tmp_path / "steps.json", [_called(each) for each in (fallen, slower)])
    steps = json.loads((tmp_path / "steps.json").read_text(encoding="utf-8"))
    assert [step["metric"] for step in steps] == ["recovery", "PDR"]


def made(chains: int, rate_pps: float | None = 1e6, **changes: Any) -> TestRow:
    """A test of a cell with so many services."""
    return row(rate_pps, cell=("CSC", chains, 1), **changes)


def chains_of(*tests: tuple[TestRow, ...]) -> list[list[int]]:
    return [[one.nf_chains for one in each] for each in tests]


def test_what_is_new_in_how_tests_end_without_those_kept_out_or_skipped() -> None:
    before = [made(1), made(2), made(3, None), made(4), made(5, None), made(6)]
    gone = made(4, None, quarantined="vswitch: the process is gone")
    found = outcomes(before, [made(1), made(2, None), made(3), gone, made(5, None), made(7)])
    assert chains_of(found.failing, found.passing, found.quarantined) == [[2], [3], [4]]
    assert outcomes([made(1)], [made(1, None), made(1)]).failing == (), "the last of two attempts counts"
    kept_out = made(1, None, status="SKIP", message="quarantined: CSC 1x1: vswitch: the process is gone")
    assert outcomes([kept_out], [kept_out]).quarantined == ()
    found = outcomes([made(1), made(2)], [kept_out, made(2, None, status="SKIP", message="not asked for")])
    assert chains_of(found.quarantined, found.failing) == [[1], []]


def test_bounds_contain_the_change_and_one_figure_decides_nothing() -> None:
    rounds = [(pps, pps * (0.96 + 0.002 * (number % 2))) for number, pps in enumerate((5e6, 5.1e6, 5.2e6, 5.3e6))]
    found = paired({"1x1": rounds, "2x1": rounds})
    assert found.verdict is TwinVerdict.DIFFERENT
    assert all(each.low < each.change < each.high < 0 for each in found.cells)
    assert found.cells[0].change == pytest.approx(-0.039, abs=1e-4)
    alone = paired({"1x1": [(1e6, 0.5e6)]})
    assert (alone.verdict, alone.cells[0].change) == (TwinVerdict.CANNOT_TELL, pytest.approx(-0.5))


@pytest.mark.parametrize(
    ("stored", "other", "verdict"),
    [
        ([1e6, 1.001e6, 0.999e6, 1e6], [0.9e6], TwinVerdict.DIFFERENT),
        ([1e6, 1.2e6, 0.8e6, 1e6], [0.9e6], TwinVerdict.CANNOT_TELL), ([1e6], [0.9e6], TwinVerdict.CANNOT_TELL),
        ([1e6] * 3, [1e12, 1e-300], TwinVerdict.CANNOT_TELL),  # as far apart as numbers can be
    ],
)  # fmt: skip
def test_stored_figures_are_compared_by_spread(stored: list[float], other: list[float], verdict: TwinVerdict) -> None:
    assert unpaired({"1x1": (stored, other)}).verdict is verdict


@pytest.mark.parametrize("mrr_pps", [None, 0.0, -5.0, nan, inf, 1e308])
def test_a_stored_run_whose_rates_cannot_be_is_refused(mrr_pps: float | None) -> None:
    one = SimpleNamespace(service_type="CSC", nf_size="1c", nf_chains=1, nf_nodes=1, mrr_pps=mrr_pps)
    with pytest.raises(ConfigError, match="no result of MRR"):
        _cells_of(SimpleNamespace(tests=[one]), Path("stored"))


def series(levels: list[tuple[int, float]]) -> list[float]:
    """Levels for so many nights each, with Gaussian noise."""
    rng = np.random.default_rng(1)
    return [float(level + rng.normal(0, 0.6)) for nights, level in levels for _ in range(nights)]


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        ([(12, 100.0), (6, 90.0), (12, 100.0)], [12, 18]),
        ([(10, 100.0), (10, 95.0), (10, 102.0)], [10, 20]),
        ([(15, 100.0), (1, 10.0), (14, 100.0)], []),  # nights that went wrong, however wrong
        ([(15, 100.0), (2, 10.0), (14, 100.0)], []),
        ([(27, 100.0), (2, 85.0)], []),
        ([(27, 100.0), (3, 85.0)], [27]),
        ([(30, 100.0), (3, 97.0)], []),  # a small fall needs more nights
        ([(30, 100.0), (15, 97.0)], [30]),
    ],
)
def test_steps_are_changes_of_level_for_three_nights_or_more(levels: list[tuple[int, float]], found: list[int]) -> None:
    values = series(levels)
    assert [step.index for step in find_steps(values, noise(values), 1e-5)] == found


def test_noise_is_that_of_the_series_and_not_of_its_steps_and_never_below_the_resolution() -> None:
    calm = noise(series([(30, 100.0)]))
    assert noise(series([(15, 100.0), (15, 50.0)])) == pytest.approx(calm, rel=0.3)
    assert noise([5.0] * 20, 0.25) == noise([5.0], 0.25) == 0.25


values_ = st.lists(st.floats(1, 100), min_size=6, max_size=40)


@settings(max_examples=share(60), deadline=None)
@given(values_, st.floats(0.1, 1000))
def test_units_do_not_matter(values: list[float], factor: float) -> None:
    scale = max(noise(values), 1e-3)
    plain = [step.index for step in find_steps(values, scale, 0.05)]
    assert [step.index for step in find_steps([factor * x for x in values], factor * scale, 0.05)] == plain


@settings(max_examples=share(60), deadline=None)
@given(values_)
def test_parts_are_long_enough_and_evidence_is_as_asked(values: list[float]) -> None:
    steps = find_steps(values, 0.05, 0.01)
    ends = [0, *(step.index for step in steps), len(values)]
    assert all(two - one >= MIN_RUNS for one, two in pairwise(ends)) or not steps
    assert all(0 <= step.probability <= 0.01 for step in steps)


LEVEL = 10_000.0
SCALE = LEVEL * 1e-4
"""Of series that repeat exactly."""


def looked_at(values: Sequence[float]) -> Findings:
    return look(values, [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(len(values))], 0, 0.01)


def departure(chance: float) -> float:
    """Which noise reaches to either side with this probability."""
    return float(t.isf(chance / 2, FREEDOM)) * SCALE


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("fresh", [1, 2])
def test_last_values_are_suspected_below_a_chance_of_one_in_thousand(fresh: int, sign: int) -> None:
    """Noise makes `fresh` values on one side that far with the probability 2 (chance / 2) ^ fresh."""
    limit = 2 * (SUSPICION / 2) ** (1 / fresh)
    for chance, suspected in ((1.05 * limit, False), (0.95 * limit, True)):
        away = sign * departure(chance)
        found = looked_at([LEVEL] * 20 + [LEVEL + away] * fresh)
        assert found.scale == SCALE
        assert found.suspected == (pytest.approx(away / LEVEL) if suspected else None)
        assert found.fresh == (fresh if suspected else 0)


def test_last_values_are_suspected_on_one_side_only_and_are_no_outliers_which_noise_makes_once_in_thousand() -> None:
    away = departure(1e-3)
    assert looked_at([*[LEVEL] * 20, LEVEL + away, LEVEL - away]).fresh < 2
    found = looked_at([*[LEVEL] * 20, 0.9 * LEVEL])
    assert (found.fresh, found.outliers) == (1, ())
    for chance, outliers in ((1.05e-3, ()), (0.95e-3, (8,))):
        values = [LEVEL] * 20
        values[8] += departure(chance)
        assert looked_at(values).outliers == outliers


@pytest.mark.parametrize(("settled", "fresh"), [(MIN_RUNS, 0), (MIN_RUNS + 1, 1)])
def test_after_a_step_a_last_value_is_suspected_once_the_new_level_is_settled(settled: int, fresh: int) -> None:
    """The last value is held against the three or more of the new level, not against values before the step."""
    values = [LEVEL] * 15 + [0.8 * LEVEL] * (settled - 1) + [0.5 * LEVEL]
    found = looked_at(values)
    assert [step.index for step in found.steps] == [15]
    assert found.fresh == fresh


@pytest.mark.parametrize("bad", [None, 4])
def test_a_level_that_changed_and_stayed_is_no_band_also_after_an_early_bad_night(bad: int | None) -> None:
    rng = Random(1)
    values = [rng.gauss(1.0 if night < 15 else 0.9, 0.006) for night in range(30)]
    if bad is not None:
        values[bad] = 0.9
    assert find_two_bands(values) is None


@pytest.mark.parametrize(("one", "other"), [(2, 3), (3, 3), (1, 4)])
def test_the_chance_of_runs_is_that_of_all_orders(one: int, other: int) -> None:
    orders = set(permutations("a" * one + "b" * other))

    def runs(order: tuple[str, ...]) -> int:
        return 1 + sum(x != y for x, y in pairwise(order))

    for most in range(2, one + other + 1):
        share = sum(runs(order) <= most for order in orders) / len(orders)
        assert chance_of_runs(most, one, other) == pytest.approx(share)


@pytest.mark.parametrize("level", [0.9, 1.1])
@pytest.mark.parametrize(("visits", "is_band"), [(2, False), (3, True)])
def test_two_values_are_no_band_on_either_side(level: float, visits: int, is_band: bool) -> None:
    values = [1.0 + 0.001 * (place % 3) for place in range(20)]
    for place in (4, 9, 14)[:visits]:
        values[place] = level
    assert (find_two_bands(values) is not None) is is_band


def test_a_band_has_a_tenth_of_the_values_and_is_no_rounding_and_no_level_that_stayed() -> None:
    for count, is_band in ((46, False), (40, True)):
        values = [1.0 + 0.001 * (place % 3) for place in range(count)]
        for place in (4, 12, 20, 30):
            values[place] = 0.9
        assert (find_two_bands(values) is not None) is is_band
    rng = Random(5)
    assert find_two_bands([rng.choice([1.0, 1.005]) for _ in range(40)], resolution=0.0025) is None


STEP_NIGHT = 6
PROBABLE_NIGHTS = 16


def fallen(night: int) -> float:
    return 3e6 if night < STEP_NIGHT else 0.92 * 3e6


def neighbours(count: int) -> list[TestRow]:
    """Cells whose falls are confirmed."""
    return [each for chains in range(1, count + 1) for each in nights(PROBABLE_NIGHTS, fallen, cell=("CSC", chains, 1))]


NOISY = nights(PROBABLE_NIGHTS, fallen, cell=("CSP", 1, 1), noise=0.03)
"""The same fall, which noise hides from the search over all places."""
STEADY = nights(PROBABLE_NIGHTS, lambda _: 3e6, cell=("VSC", 1, 1))
ELSEWHERE = nights(PROBABLE_NIGHTS, fallen, "lab-b", ("CSP", 1, 1), noise=0.03)


def test_a_fall_in_the_same_run_as_others_is_probable_and_no_other_is() -> None:
    found = trends([*neighbours(2), *NOISY, *STEADY, *ELSEWHERE])
    events = probable_events(found)
    cells = {(each.trend.cell.series.system.testbed, each.trend.cell.series.service_type) for each in events}
    assert cells == {("lab-a", "CSP")}
    assert not any(each.trend.steps for each in events)
    assert {each.after.row.run for each in events} == {f"lab-a/{STEP_NIGHT}/output.xml"}
    assert {(each.probable, each.doubt) for each in events} == {(4, "probable")}


def test_two_confirmed_series_or_a_change_in_the_other_direction_make_no_other_probable() -> None:
    rise = nights(PROBABLE_NIGHTS, lambda night: 6e6 - fallen(night), cell=("CSP", 1, 1), noise=0.03)
    for rows in ([*neighbours(1), *NOISY], [*neighbours(2), *rise]):
        assert probable_events(trends(rows)) == []


def test_runs_before_and_after_a_step_are_distinguished() -> None:
    rows = nights(20, lambda night: 2e6 if night < 12 else 1.8e6)
    rows += nights(20, lambda _: 5e6, cell=("CSC", 2, 1))
    steps = {trend.cell: trend.steps for trend in trends(rows)}
    found = [each for each in repeats(figures(rows), steps=steps) if each.cell.metric == PDR]
    assert sorted((each.cell.dimensions.instances, each.level, each.levels, *each.nights) for each in found) == [
        (1, 1, 2, "2026-11-01", "2026-11-12"),
        (1, 2, 2, "2026-11-13", "2026-11-20"),
        (2, 1, 1, "2026-11-01", "2026-11-20"),
    ]
    assert all(each.variation < 0.01 for each in found), "and none of them is as wide as the step"

"""Where figures of one cell lie: Student's interval of a mean of trials, the bounds of a search, the range of runs."""

from math import inf
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest
from scipy import stats

from csit_utils.analysis.cells import CellFigure, CellMetric, figures
from csit_utils.analysis.comparisons.comparison import CellSide, Method, judge_sides, side
from csit_utils.analysis.grouping import Series
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, PDR, TestRow
from csit_utils.studies.sizing.study import CAPACITY
from resources.libraries.python.model.request.cell import Dimensions
from tests.unit.csit_utils.histories import row

RATE = 5e6


def mrr(mean: float, deviation: float | None, trials: int | None, **changes: Any) -> TestRow:
    return row(RATE, mrr_pps=mean, mrr_stdev_pps=deviation, mrr_trials=trials, test_type="MRR", **changes)


def sides(*rows: TestRow, metric: Measure = MRR) -> CellSide:
    ((cell, found),) = ((cell, found) for cell, found in figures(rows).items() if cell.metric == metric)
    return side(cell, found)


def series() -> Series:
    return next(iter(figures([row(RATE)]))).series


@pytest.mark.parametrize(("trials", "quantile"), [(2, 12.706), (3, 4.303), (10, 2.262), (30, 2.045)])
def test_a_mean_of_trials_lies_in_students_interval_of_95_percent(trials: int, quantile: float) -> None:
    """The quantiles are those of printed tables, for one degree of freedom less than trials."""
    found = sides(mrr(8e6, 1e4, trials))
    reach = quantile * 1e4 / trials**0.5
    assert found.low_pps == pytest.approx(8e6 - reach, abs=3e-4 * reach)
    assert found.high_pps == pytest.approx(8e6 + reach, abs=3e-4 * reach)


@pytest.mark.slow
def test_the_interval_holds_the_truth_in_95_of_100_tests() -> None:
    rng = Random(3)
    held = 0
    for _ in range(1000):
        trials = [rng.gauss(8e6, 2e4) for _ in range(4)]
        found = sides(mrr(fmean(trials), stdev(trials), len(trials)))
        held += found.low_pps <= 8e6 <= found.high_pps
    assert 0.93 <= held / 1000 <= 0.97


def test_trials_of_an_unknown_number_are_taken_for_the_fewest() -> None:
    few, unknown = sides(mrr(8e6, 1e4, 1)), sides(mrr(8e6, 1e4, None))
    assert (few.low_pps, few.high_pps) == (unknown.low_pps, unknown.high_pps)
    assert few.high_pps - 8e6 == pytest.approx(12.706 * 1e4, rel=1e-4)


def test_a_search_lies_between_its_bounds_and_has_no_end_where_nothing_above_was_offered() -> None:
    found = sides(row(RATE), metric=PDR)
    assert (found.low_pps, found.high_pps, found.stdev_pps) == (RATE, 1.005 * RATE, None)
    assert sides(row(RATE, pdr_upper_pps=None), metric=PDR).high_pps == inf


def test_two_runs_lie_in_the_range_of_both() -> None:
    found = sides(row(RATE), row(1.1 * RATE, night=1), metric=PDR)
    assert (found.low_pps, found.high_pps) == (RATE, 1.1 * RATE)
    assert found.mean_pps == pytest.approx(1.05 * RATE)
    assert found.stdev_pps == pytest.approx(stdev([RATE, 1.1 * RATE]))


@pytest.mark.parametrize(
    ("lowest", "highest", "range_pps"),
    [(9e5, 1.1e6, (9e5, 1.1e6)), (None, 1.1e6, (1e6, 1.1e6)), (9e5, None, (9e5, inf))],
)
def test_a_number_of_a_characterization_lies_where_it_says(
    lowest: float | None, highest: float | None, range_pps: tuple[float, float]
) -> None:
    cell = CellMetric(series(), Dimensions(1, 1), CAPACITY)
    found = side(cell, [CellFigure(row(RATE), 1e6, highest, 0.0, lowest)])
    assert (found.low_pps, found.high_pps) == range_pps


def test_runs_without_any_variation_differ_beyond_chance_or_not_at_all() -> None:
    same, other = (made(3, mean, 0.0, mean, mean) for mean in (RATE, 1.001 * RATE))
    assert judge_sides(same, same).probability == 1.0
    assert judge_sides(same, other).probability == 0.0
    assert judge_sides(same, other)[1:4] == pytest.approx((0.001,) * 3)


def made(runs: int, mean: float, deviation: float | None, low: float, high: float) -> CellSide:
    return CellSide(
        series(), (CellFigure(row(RATE), mean, high, 0.0),) * runs, mean, deviation, low, high, resolution_pps=0.0
    )


def test_widened_bounds_of_single_runs_give_the_least_and_the_greatest_ratio() -> None:
    found = judge_sides(made(1, 100, None, 90, 110), made(1, 120, None, 115, 130))
    assert (found.method, found.probability) == (Method.BOUNDS, None)
    expected = 0.2, 115 * 0.995 / 110.55 - 1, 130 * 1.005 / 89.55 - 1
    assert (found.change, found.low, found.high) == pytest.approx(expected)
    from_nothing = judge_sides(made(1, 0, None, 0, 0), made(1, 120, None, 115, 130))
    assert (from_nothing.change, from_nothing.low, from_nothing.high) == (inf, inf, inf)


@pytest.mark.parametrize("runs", [1, 3])
def test_nothing_on_both_sides_is_no_change(runs: int) -> None:
    nothing = made(runs, 0, None if runs == 1 else 0.0, 0, 0)
    found = judge_sides(nothing, nothing)
    assert (found.change, found.low, found.high) == (0, 0, 0)
    assert found.probability in (None, 1.0)


@pytest.mark.parametrize("runs", [2, 3, 8])
@pytest.mark.parametrize("single_first", [True, False])
def test_one_run_is_held_against_the_prediction_interval_of_several(*, runs: int, single_first: bool) -> None:
    one, several = made(1, 104, None, 104, 104), made(runs, 100, 2.0, 97, 103)
    found = judge_sides(one, several) if single_first else judge_sides(several, one)
    assert found.method is Method.ONE_RUN
    beyond = stats.t.cdf(-4 / (2.0 * (1 + 1 / runs) ** 0.5), runs - 1)
    assert found.probability == pytest.approx(2 * beyond)
    assert judge_sides(several, several).method is Method.RUNS

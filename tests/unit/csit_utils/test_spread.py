"""Single runs judged by the spread of their matrix: held against the formula computed another way, and its limits."""

from math import exp, inf, log

import pytest
from scipy.stats import median_abs_deviation, t

from csit_utils.analysis.comparisons.comparison import FEWEST_CELLS, JudgedChange, SpreadRatio, judge, relative

CHANGES = [-0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.5]
"""Logarithms of the ratios of eight cells; the last one has changed."""


def ratios(error: float = 0.0, changes: list[float] = CHANGES) -> list[SpreadRatio]:
    return [SpreadRatio(2e6, 2e6 * exp(change), error) for change in changes]


def judged(found: list[JudgedChange] | None) -> list[JudgedChange]:
    assert found is not None
    return found


def test_a_change_is_held_against_the_spread_of_all_by_students_t() -> None:
    noise = float(median_abs_deviation(CHANGES, scale="normal"))
    assert noise == pytest.approx(0.02 * 1.4826, rel=1e-4)
    quantile = t.ppf(0.975, 7)
    for change, one in zip(CHANGES, judged(judge(ratios(), 0.95)), strict=True):
        assert log(1 + one.low) == pytest.approx(change - quantile * noise, abs=1e-6)
        assert log(1 + one.high) == pytest.approx(change + quantile * noise, abs=1e-6)
        assert one.probability == pytest.approx(2 * t.sf(abs(change) / noise, 7), rel=1e-3)
    assert judged(judge(ratios(), 0.95))[-1].probability < 1e-5


def test_the_interval_is_of_the_confidence_that_is_asked_for() -> None:
    narrow, wide = (judged(judge(ratios(), confidence))[3] for confidence in (0.5, 0.99))
    assert log(1 + narrow.high) / log(1 + wide.high) == pytest.approx(t.ppf(0.75, 7) / t.ppf(0.995, 7))


def test_what_all_cells_have_in_common_is_no_spread() -> None:
    common = judged(judge(ratios(changes=[change - 0.3 for change in CHANGES]), 0.95))
    assert log(1 + common[3].high) - log(1 + common[3].low) == pytest.approx(
        log(1 + judged(judge(ratios(), 0.95))[3].high) - log(1 + judged(judge(ratios(), 0.95))[3].low)
    )
    assert all(one.probability < 1e-4 for one in common[:-1]), "all of them fell by a quarter"


def test_a_cells_own_error_counts_where_it_is_larger_than_the_spread() -> None:
    first, *others = ratios()
    found = judged(judge([first._replace(error=0.1), *others], 0.95))
    assert found[0].probability == pytest.approx(2 * t.sf(0.03 / 0.1, 7))
    assert found[1:] == judged(judge(ratios(), 0.95))[1:]
    assert judge([first._replace(error=0.001), *others], 0.95) == judge(ratios(), 0.95)


def test_cells_without_any_spread_have_changed_or_have_not() -> None:
    found = judged(judge(ratios(changes=[0.0] * 7 + [0.1]), 0.95))
    assert found[0] == JudgedChange(0.0, 0.0, 1.0)
    assert found[-1].probability == 0.0
    assert found[-1].low == found[-1].high == pytest.approx(exp(0.1) - 1)


def test_too_few_cells_or_a_rate_of_zero_give_no_spread() -> None:
    assert len(CHANGES) == FEWEST_CELLS
    assert judge(ratios()[:-1], 0.95) is None
    for side in ({"a_pps": 0.0}, {"b_pps": 0.0}):
        assert judge([*ratios(), ratios()[0]._replace(**side)], 0.95) is None
    assert judge([*ratios(), SpreadRatio(0.5, 0.5, 0.0)], 0.95) is not None


def test_the_error_of_a_ratio_adds_up_both_sides() -> None:
    assert relative(3.0, 10.0, 8.0, 20.0) == pytest.approx(0.5)
    assert relative(3.0, 0.0, 8.0, 20.0) == inf
    assert relative(3.0, 10.0, 8.0, 0.0) == inf
    assert relative(0.3, 0.5, 0.4, 0.5) == pytest.approx(1.0)

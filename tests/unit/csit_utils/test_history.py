"""Outliers and suspected last values of series whose noise is known exactly."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from scipy.stats import t

from csit_utils.analysis.trends.history import FEWEST, SUSPICION, Findings, look
from csit_utils.analysis.trends.steps import FREEDOM, MIN_RUNS

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


def test_last_values_on_both_sides_are_not_suspected_together() -> None:
    away = departure(1e-3)
    found = looked_at([*[LEVEL] * 20, LEVEL + away, LEVEL - away])
    assert found.fresh < 2


def test_an_outlier_is_what_noise_makes_once_in_thousand_values() -> None:
    for chance, outliers in ((1.05e-3, ()), (0.95e-3, (8,))):
        values = [LEVEL] * 20
        values[8] += departure(chance)
        assert looked_at(values).outliers == outliers


def test_a_suspected_last_value_is_no_outlier() -> None:
    found = looked_at([*[LEVEL] * 20, 0.9 * LEVEL])
    assert (found.fresh, found.outliers) == (1, ())


@pytest.mark.parametrize(("settled", "fresh"), [(MIN_RUNS, 0), (MIN_RUNS + 1, 1)])
def test_after_a_step_a_last_value_is_suspected_once_the_new_level_is_settled(settled: int, fresh: int) -> None:
    """The last value is held against the three or more of the new level, not against values before the step."""
    values = [LEVEL] * 15 + [0.8 * LEVEL] * (settled - 1) + [0.5 * LEVEL]
    found = looked_at(values)
    assert [step.index for step in found.steps] == [15]
    assert found.fresh == fresh


def test_few_values_are_not_judged() -> None:
    wild = [LEVEL] * (FEWEST - 2) + [0.5 * LEVEL]
    assert looked_at(wild) == Findings(SCALE)
    assert looked_at([LEVEL, *wild]).fresh == 1

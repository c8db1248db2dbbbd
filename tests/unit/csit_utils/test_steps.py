"""Steps, outliers, two bands and repeats of noisy series whose truth is known."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from csit_utils.analysis.cells import figures
from csit_utils.analysis.trends.events import CHANCE, probable_events
from csit_utils.analysis.trends.steps import FREEDOM, MIN_RUNS, find_steps, noise, split_chance, tail
from csit_utils.analysis.trends.trend import FEWEST, SUSPICION, Findings, look, trends
from csit_utils.analysis.trends.twobands import chance_of_runs, find_two_bands
from csit_utils.dataset.rows import PDR, TestRow
from csit_utils.report.pages.spread import box, repeats
from tests.unit.csit_utils.histories import nights
from tests.unit.examples import share

ALPHA = 1e-5
"""As one of a thousand cells has it where the whole is to be right with 99 %."""


def series(levels: list[tuple[int, float]], spread: float = 0.6, seed: int = 1) -> list[float]:
    """Levels for so many nights each, with Gaussian noise."""
    rng = np.random.default_rng(seed)
    return [float(level + rng.normal(0, spread)) for nights, level in levels for _ in range(nights)]


def places(values: list[float], alpha: float = ALPHA) -> list[int]:
    return [step.index for step in find_steps(values, noise(values), alpha)]


def test_a_fall_is_found_in_its_night_with_its_size() -> None:
    values = series([(12, 100.0), (18, 92.0)])
    (step,) = find_steps(values, noise(values), ALPHA)
    assert step.index == 12
    assert step.change == pytest.approx(-0.08, abs=0.01)
    assert step.probability < ALPHA


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
def test_steps_are_where_the_level_changes_for_three_nights_or_more(
    levels: list[tuple[int, float]], found: list[int]
) -> None:
    assert places(series(levels)) == found


def test_noise_is_that_of_the_series_and_not_of_its_steps_and_never_below_the_resolution() -> None:
    """It is the mean of the middle half of differences of neighbours."""
    calm = noise(series([(30, 100.0)]))
    assert noise(series([(15, 100.0), (15, 50.0)])) == pytest.approx(calm, rel=0.3)
    assert noise([5.0] * 20, 0.25) == noise([5.0], 0.25) == 0.25
    values = np.cumsum([0.0, 64, 1, 49, 4, 36, 9, 25, 16])
    assert noise(values.tolist()) == pytest.approx((9 + 16 + 25 + 36) / 4 / 1.1815 * (1 + 6 / 8))


def test_tail_is_two_sided_and_too_few_values_have_no_steps() -> None:
    assert tail(0.0, 1.0) == 1.0
    assert tail(2.776, 1.0) == pytest.approx(0.05, abs=1e-4)  # table of Student's t, 4 degrees of freedom
    assert tail(-2.776, 1.0) == tail(2.776, 1.0)
    assert find_steps([1.0] * (2 * MIN_RUNS - 1), 1.0, 0.5) == find_steps([], 1.0, 0.5) == ()


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


def test_last_values_on_both_sides_are_not_suspected_together_and_a_suspected_one_is_no_outlier() -> None:
    away = departure(1e-3)
    assert looked_at([*[LEVEL] * 20, LEVEL + away, LEVEL - away]).fresh < 2
    found = looked_at([*[LEVEL] * 20, 0.9 * LEVEL])
    assert (found.fresh, found.outliers) == (1, ())


def test_an_outlier_is_what_noise_makes_once_in_thousand_values() -> None:
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


def test_few_values_are_not_judged() -> None:
    wild = [LEVEL] * (FEWEST - 2) + [0.5 * LEVEL]
    assert looked_at(wild) == Findings(SCALE)
    assert looked_at([LEVEL, *wild]).fresh == 1


def flipping(count: int, share: float, seed: int, gap: float = 0.1) -> list[float]:
    rng = Random(seed)
    return [rng.gauss(1.0, 0.006) - (gap if rng.random() < share else 0.0) for _ in range(count)]


def test_both_levels_and_their_shares_are_reported() -> None:
    values = flipping(40, 0.25, seed=3)
    found = find_two_bands(values)
    assert found.upper == pytest.approx(1.0, abs=0.01)
    assert found.lower == pytest.approx(0.9, abs=0.01)
    assert found.lower_share == sum(value < 0.95 for value in values) / 40
    assert found.in_lower == tuple(value < 0.95 for value in values)


@pytest.mark.parametrize("bad", [None, 4])
def test_a_level_that_changed_and_stayed_is_no_band_also_after_an_early_bad_night(bad: int | None) -> None:
    rng = Random(1)
    values = [rng.gauss(1.0 if night < 15 else 0.9, 0.006) for night in range(30)]
    if bad is not None:
        values[bad] = 0.9
    assert find_two_bands(values) is None


def test_noise_and_neighbouring_rounded_levels_are_no_bands_and_most_cells_in_two_are_recognized() -> None:
    noisy, flipped = ([find_two_bands(flipping(30, share, seed)) for seed in range(200)] for share in (0.0, 0.25))
    assert sum(each is not None for each in noisy) <= 2
    assert sum(each is not None for each in flipped) >= 190
    rng = Random(5)
    assert find_two_bands([rng.choice([1.0, 1.005]) for _ in range(40)], resolution=0.0025) is None


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


def test_a_band_has_a_tenth_of_the_values() -> None:
    for count, is_band in ((46, False), (40, True)):
        values = [1.0 + 0.001 * (place % 3) for place in range(count)]
        for place in (4, 12, 20, 30):
            values[place] = 0.9
        assert (find_two_bands(values) is not None) is is_band


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
    assert [each.trend.cell.metric for each in events] == ["NDR", "PDR"]
    assert not any(each.trend.steps for each in events)
    assert {each.after.row.run for each in events} == {f"lab-a/{STEP_NIGHT}/output.xml"}
    assert {(each.probable, each.doubt) for each in events} == {(4, "probable")}
    assert all(each.change == pytest.approx(-0.08, abs=0.04) for each in events)


def test_two_confirmed_series_or_a_change_in_the_other_direction_make_no_other_probable() -> None:
    rise = nights(PROBABLE_NIGHTS, lambda night: 6e6 - fallen(night), cell=("CSP", 1, 1), noise=0.03)
    for rows in ([*neighbours(1), *NOISY], [*neighbours(2), *rise]):
        assert probable_events(trends(rows)) == []


def test_the_place_alone_has_the_promised_rate_of_false_marks() -> None:
    rng = np.random.default_rng(1)
    drawn = [[float(value) for value in rng.normal(100, 1, PROBABLE_NIGHTS)] for _ in range(400)]
    chances = [split_chance(values[:STEP_NIGHT], values[STEP_NIGHT:], noise(values)) / 2 for values in drawn]
    assert sum(chance <= CHANCE for chance in chances) / len(drawn) <= 2 * CHANCE


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 2.0, 3.0, 4.0, 5.0, 30.0], (1.0, 2.25, 3.5, 4.75, 5.0, 6)), ([7.0], (7.0, 7.0, 7.0, 7.0, 7.0, 1))],
)
def test_a_box_has_quartiles_and_whiskers_of_tukey(values: list[float], expected: tuple[float, ...]) -> None:
    found = box(values)
    assert (found.low, found.first, found.median, found.third, found.high, found.count) == expected


def test_cells_that_vary_most_come_first_and_lone_runs_are_left_out() -> None:
    calm = nights(8, lambda _: 5e6, noise=0.001)
    wild = nights(8, lambda _: 5e6, cell=("CSC", 2, 1), noise=0.05)
    once = nights(1, lambda _: 5e6, cell=("CSC", 4, 1))
    found = [each for each in repeats(figures([*calm, *wild, *once])) if each.cell.metric == PDR]
    assert [each.cell.dimensions.instances for each in found] == [2, 1]
    assert found[0].variation == pytest.approx(0.05, rel=0.5)
    assert found[1].variation == pytest.approx(0.001, rel=0.5)


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
    (mixed, _) = (each for each in repeats(figures(rows)) if each.cell.metric == PDR)
    assert mixed.variation > 0.04, "the one that varies most comes first"


@pytest.mark.parametrize(("low", "told"), [((), 0), ((3,), 1), ((1, 6), 2)])
def test_runs_without_two_bands_say_what_they_would_have_missed(low: tuple[int, ...], told: int) -> None:
    rows = nights(8, lambda night: 4.65e6 if night in low else 5e6, noise=0.002)
    (found,) = (each for each in repeats(figures(rows)) if each.cell.metric == PDR)
    assert found.bands is None
    assert (found.unseen.count, found.unseen.low) == (8, told)
    assert found.unseen.chance > 0.5
    assert found.visible_gap == pytest.approx(6 * found.variation)

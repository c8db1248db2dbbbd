"""Repeated runs of a cell."""

from random import Random

import pytest

from csit_utils.analysis.cells import figures
from csit_utils.analysis.repeats import box, repeats
from csit_utils.analysis.trends.trend import trends
from csit_utils.dataset.rows import PDR
from tests.unit.csit_utils.histories import nights


def test_a_box_has_quartiles_and_whiskers_of_tukey() -> None:
    found = box([1.0, 2.0, 3.0, 4.0, 5.0, 30.0])
    assert (found.first, found.median, found.third) == (2.25, 3.5, 4.75)
    assert (found.low, found.high) == (1.0, 5.0)


def test_a_box_of_one_figure_is_that_figure() -> None:
    found = box([7.0])
    assert (found.low, found.first, found.median, found.third, found.high, found.count) == (7.0, 7.0, 7.0, 7.0, 7.0, 1)


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
    levels = sorted(
        (each.cell.dimensions.instances, each.level, each.levels, each.box.count, each.nights) for each in found
    )
    assert levels == [
        (1, 1, 2, 12, ("2026-11-01", "2026-11-12")),
        (1, 2, 2, 8, ("2026-11-13", "2026-11-20")),
        (2, 1, 1, 20, ("2026-11-01", "2026-11-20")),
    ]
    assert all(each.variation < 0.01 for each in found), "and none of them is as wide as the step"
    pdr = [each for each in repeats(figures(rows)) if each.cell.metric == PDR]
    (mixed,) = (each for each in pdr if each.cell.dimensions.instances == 1)
    assert mixed.variation > 0.04


def test_two_bands_are_seen() -> None:
    low = {night for night in range(20) if Random(night).random() < 0.3}
    rows = nights(20, lambda night: 4.5e6 if night in low else 5e6)
    (found,) = (each for each in repeats(figures(rows)) if each.cell.metric == PDR)
    assert found.bands
    assert found.unseen is None


@pytest.mark.parametrize(("low", "told"), [((), 0), ((3,), 1), ((1, 6), 2)])
def test_runs_without_two_bands_say_what_they_would_have_missed(low: tuple[int, ...], told: int) -> None:
    rows = nights(8, lambda night: 4.65e6 if night in low else 5e6, noise=0.002)
    (found,) = (each for each in repeats(figures(rows)) if each.cell.metric == PDR)
    assert found.bands is None
    assert (found.unseen.count, found.unseen.low) == (8, told)
    assert found.unseen.chance > 0.5
    assert found.visible_gap == pytest.approx(6 * found.variation)

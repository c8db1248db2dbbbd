"""Trends of cells over nights whose truth is known, new failures, and testbeds that are twins."""

import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from csit_utils.analysis.causes import outcomes
from csit_utils.analysis.trends.events import events
from csit_utils.analysis.trends.trend import FEWEST, Trend, TrendState, trend_of, trends
from csit_utils.bisection.spec import write_steps
from csit_utils.commands.results.trend import _called
from csit_utils.commands.runs.twin import TwinVerdict, _cells_of, paired, unpaired
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import PDR, TestRow
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.histories import FIRST, nights, row

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


@pytest.mark.parametrize("fresh", [1, 2])
def test_a_fall_of_the_last_nights_is_suspected_only(fresh: int) -> None:
    found = pdr(nights(30, lambda night: 0.9 * RATE if night >= 30 - fresh else RATE))
    assert (found.state, found.fresh, found.outliers) == (TrendState.STEADY, fresh, ())
    assert found.suspected == pytest.approx(-0.1, abs=0.02)


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

"""Trends of cells over nights whose truth is known, and which tests began to fail or to pass."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from csit_utils.analysis.causes import outcomes
from csit_utils.analysis.trends.events import events
from csit_utils.analysis.trends.trend import FEWEST, Trend, TrendState, trend_of, trends
from csit_utils.bisection.spec import write_steps
from csit_utils.commands.results.trend import _called
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import PDR, TestRow
from resources.libraries.python.model.request.cell import ServiceType
from tests.loaded import rows_of_tests
from tests.planted_nights import BANDS, FIRST_NIGHT, FRESH, GAP, NOISE, STEP, PlantedEvent, records_of, story
from tests.unit.csit_utils.datasets import dataset_of
from tests.unit.csit_utils.histories import FIRST, nights, row

RATE = 5e6


def pdr(rows: list[TestRow], alpha: float = 0.01) -> Trend:
    """The PDR trend of the only cell."""
    (found,) = (each for each in trends(rows, alpha) if each.cell.metric == PDR)
    return found


def test_a_regression_is_dated_and_sized() -> None:
    found = pdr(nights(30, lambda night: RATE if night < 14 else 0.92 * RATE))
    (step,) = found.steps
    assert found.state is TrendState.REGRESSION
    assert found.figures[step.index].row.run == "lab-a/14/output.xml"
    assert step.change == pytest.approx(-0.08, abs=0.01)
    assert found.levels[13] == step.before != found.levels[14] == step.after


def test_the_last_step_gives_the_state() -> None:
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


def test_a_cell_in_two_bands_is_called_that_and_no_regression() -> None:
    low = {night for night in range(30) if Random(night).random() < 0.25}
    found = pdr(nights(30, lambda night: 0.9 * RATE if night in low else RATE))
    assert (found.state, found.steps) == (TrendState.TWO_BANDS, ())
    assert found.bands.lower == pytest.approx(0.9 * RATE, rel=0.01)


def test_one_bad_night_is_an_outlier() -> None:
    found = pdr(nights(30, lambda night: 0.7 * RATE if night == 20 else RATE))
    assert (found.state, found.outliers) == (TrendState.STEADY, (20,))


@pytest.mark.parametrize("fresh", [1, 2])
def test_a_fall_of_the_last_nights_is_suspected_only(fresh: int) -> None:
    found = pdr(nights(30, lambda night: 0.9 * RATE if night >= 30 - fresh else RATE))
    assert (found.state, found.fresh, found.outliers) == (TrendState.STEADY, fresh, ())
    assert found.suspected == pytest.approx(-0.1, abs=0.02)


def test_a_slow_change_is_a_drift_and_no_staircase() -> None:
    found = pdr(nights(40, lambda night: RATE * (1 - 0.003 * night)))
    assert found.state is TrendState.DRIFT
    assert found.drift.change == pytest.approx(-0.117, abs=0.01)
    assert found.drift.slope_per_day == pytest.approx(-0.003 * RATE, rel=0.1)


def test_few_nights_are_not_judged_and_runs_that_agree_exactly_are_steady() -> None:
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
    asked = nights(12, lambda _: RATE)
    by_the_way = nights(12, lambda _: 0.5 * RATE, test_type="LATENCY")
    assert {each.row.test_type for each in pdr([*asked, *by_the_way]).figures} == {"NDRPDR"}
    assert len(pdr(by_the_way).figures) == 12


def test_what_is_only_known_to_be_below_a_load_is_no_figure() -> None:
    below = row(RATE, 3, pdr_lower_pps=None, pdr_lowest_tried_pps=1e5)
    assert len(pdr([*nights(3, lambda _: RATE), below]).figures) == 3


def test_the_scale_of_the_noise_is_reported() -> None:
    """Noise of a standard deviation of 0.5 %, as Student's t of 4 degrees of freedom, widened as nights are few."""
    found = pdr(nights(30, lambda _: RATE))
    assert 0.002 * RATE < found.scale_pps < 0.008 * RATE


def test_a_rise_of_what_is_better_the_less_there_is_is_a_regression(tmp_path: Path) -> None:
    """States, events and the steps for a bisection go by the direction of the metric."""
    fallen = pdr(nights(30, lambda night: RATE if night < 14 else 0.92 * RATE))
    cell = replace(fallen.cell, metric=Measure("recovery", "s", less_is_better=True))

    def time_of(after_s: float) -> Trend:
        figures = [
            replace(each, value_pps=1.0 if number < 14 else after_s, upper_pps=None)
            for number, each in enumerate(fallen.figures)
        ]
        return trend_of(cell, figures, {}, 0.01)

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


def test_what_is_new_in_how_tests_end() -> None:
    before = [made(1), made(2), made(3, None), made(4), made(5, None), made(6)]
    gone = made(4, None, quarantined="vswitch: the process is gone")
    found = outcomes(before, [made(1), made(2, None), made(3), gone, made(5, None), made(7)])
    assert chains_of(found.failing, found.passing, found.quarantined) == [[2], [3], [4]]
    assert outcomes([made(1)], [made(1, None), made(1)]).failing == (), "the last of two attempts counts"


def test_a_cell_that_stays_in_quarantine_is_not_reported_again_and_a_skipped_test_did_not_fail() -> None:
    kept_out = made(1, None, status="SKIP", message="quarantined: CSC 1x1: vswitch: the process is gone")
    assert outcomes([kept_out], [kept_out]).quarantined == ()
    found = outcomes([made(1), made(2)], [kept_out, made(2, None, status="SKIP", message="not asked for")])
    assert chains_of(found.quarantined, found.failing) == [[1], []]


@pytest.fixture(scope="module")
def rows() -> list[TestRow]:
    events, every = story(30), [(testbed, night) for testbed in NOISE for night in range(30)]
    gaps = {(each.testbed, night) for each in events if each.kind == GAP for night in range(each.first, each.last + 1)}
    records = [made for each in every if each not in gaps for made in records_of(*each, events, chains=2)]
    return rows_of_tests(dataset_of(*records))


def planted(trend: Trend, kind: str) -> list[PlantedEvent]:
    series = trend.cell.series
    service, chains = ServiceType(series.service_type), trend.cell.dimensions.instances
    return [each for each in story(30) if each.kind == kind and each.meets(series.system.testbed, service, chains)]


@pytest.mark.slow
def test_planted_events_are_found_and_nothing_else_is(rows: list[TestRow]) -> None:
    found = trends(rows)
    assert len(found) == 3 * 3 * 2 * 3
    for trend in found:
        steps = [((trend.figures[step.index].at - FIRST_NIGHT).days, step.change > 0) for step in trend.steps]
        assert steps == [(each.first, each.factor > 1) for each in planted(trend, STEP)], trend.cell.name
        assert (trend.state is TrendState.TWO_BANDS) == bool(planted(trend, BANDS)), trend.cell.name
        assert (trend.suspected is not None) == bool(planted(trend, FRESH)), trend.cell.name
        assert trend.drift is None

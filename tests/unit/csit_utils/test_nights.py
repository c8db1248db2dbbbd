"""A simulated history: what is planted, what its files hold, and what is found in it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from csit_utils.analysis.cells import CellFigure
from csit_utils.analysis.trends.trend import Trend, TrendState, trends
from csit_utils.bench.results.nights import FIRST_NIGHT, EventHistory, EventKind, PlantedEvent, story, write_story
from csit_utils.dataset.flatten import rows_of_tests
from csit_utils.dataset.items import Dataset
from csit_utils.dataset.load import load
from resources.libraries.python.model.request.cell import Cell, ServiceType

NIGHTS = 18
CSC = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)


_NEAR = 1
"""Largest error of the night of a step."""


@dataclass(frozen=True)
class NightJudgement:
    """Names of trends, such as `sim-a (simulated) CSC 1R1C ... PDR`."""

    found: tuple[str, ...]
    """Planted steps that were found, with their direction."""
    missed: tuple[str, ...]
    """Planted steps that were not found."""
    false: tuple[str, ...]
    """Findings that were not planted."""
    bands: tuple[str, ...]
    """Planted bands that were found."""
    bands_missed: tuple[str, ...]
    suspected: tuple[str, ...]
    """Planted falls of the last night that are suspected."""


def night_of(found: CellFigure) -> int:
    """The night of a figure, from 0."""
    return (found.at - FIRST_NIGHT) // timedelta(days=1)


def judge(history: EventHistory, found: Iterable[Trend]) -> NightJudgement:
    """Compare trends with the planted events."""
    rows: dict[str, list[str]] = {name: [] for name in NightJudgement.__dataclass_fields__}
    for trend in found:
        planted = _planted(history, trend)
        name = trend.cell.name
        steps = [event for event in planted if event.kind is EventKind.STEP]
        for event in steps:
            rows["found" if any(_is(event, trend, step.index) for step in trend.steps) else "missed"].append(name)
        banded = any(event.kind is EventKind.TWO_BANDS for event in planted)
        if banded:
            rows["bands" if trend.state is TrendState.TWO_BANDS else "bands_missed"].append(name)
        strange = [step for step in trend.steps if not any(_is(event, trend, step.index) for event in steps)]
        if strange or trend.drift is not None or (trend.bands is not None and not banded):
            rows["false"].append(f"{name}: {trend.state}")
        if trend.suspected is not None:
            fresh = any(event.kind is EventKind.FRESH for event in planted)
            rows["suspected" if fresh else "false"].append(name if fresh else f"{name}: suspected")
    return NightJudgement(**{name: tuple(own) for name, own in rows.items()})


def _planted(history: EventHistory, trend: Trend) -> Sequence[PlantedEvent]:
    series = trend.cell.series
    cell = Cell(
        service_type=ServiceType(series.service_type),
        **trend.cell.dimensions.columns,
    )
    return [event for event in history.events if event.meets(series.system.testbed, event.first, cell)]


def _is(event: PlantedEvent, trend: Trend, index: int) -> bool:
    """Whether the step at a figure is an event."""
    step = next(step for step in trend.steps if step.index == index)
    return abs(night_of(trend.figures[index]) - event.first) <= _NEAR and (step.change > 0) == (event.factor > 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nights")
    tests = write_story(story(NIGHTS), made, cells="1x1,2x1", search="quick")
    assert tests == (3 * NIGHTS - 2) * 12
    return made


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return load([folder])


def test_every_kind_of_event_is_planted_and_the_same_whenever_it_is_asked_for() -> None:
    told = story(30)
    assert {event.kind for event in told.events} == set(EventKind)
    conditions = [told.condition("sim-b", night, CSC) for night in range(30)]
    assert conditions == [told.condition("sim-b", night, CSC) for night in range(30)]
    low = sum(condition.capacity_scale < 0.95 for condition in conditions)
    assert 3 <= low <= 15


def test_a_history_of_one_testbed_says_nothing_about_others() -> None:
    assert {event.testbed for event in story(20, testbeds=1).events} == {"sim-a"}


@pytest.mark.slow
def test_planted_failures_gaps_and_quarantine_are_in_the_files(dataset: Dataset) -> None:
    rows = rows_of_tests(dataset)
    assert all(row.simulated for row in rows if row.recorded)
    failed = Counter((row.testbed, row.service_type, row.nf_chains) for row in rows if row.status == "FAIL")
    assert failed == {("sim-b", "CSP", 2): 3 * 2, ("sim-c", "VSC", 1): 4}
    assert {row.message.split(":")[0] for row in rows if row.status == "FAIL"} == {
        "no traffic",
        "quarantined after 2 attempts",
    }
    assert sum(row.status == "SKIP" for row in rows) == 4
    nights = Counter(
        row.testbed for row in rows if row.recorded and row.test_name.endswith("1ch-2mif-1dcr2t-simip4-mrr")
    )
    assert nights == {"sim-a": NIGHTS - 2, "sim-b": NIGHTS, "sim-c": NIGHTS}


@pytest.mark.slow
def test_figures_come_from_searches_with_their_trials(dataset: Dataset) -> None:
    searched = [item.result for item in dataset.recorded if item.result.ndr is not None]
    assert searched
    assert all(len(result.trials) > 10 and result.latency and result.plan for result in searched)
    assert len({result.ndr.lower_pps for result in searched if result.ndr}) > 10


@pytest.mark.slow
def test_robot_reads_what_was_written(folder: Path) -> None:
    path = next(folder.rglob("output.xml"))
    suite = ExecutionResult(path).suite
    assert suite.test_count == 12
    names = {f"{kind}-{test}" for kind in ("Vsc", "Csc", "Csp") for test in ("Ndrpdr", "Mrr")}
    assert {each.name for each in suite.suites} == names


@pytest.mark.slow
def test_planted_steps_and_bands_are_found_and_nothing_else_is(dataset: Dataset) -> None:
    told = story(NIGHTS)
    found = judge(told, trends(rows_of_tests(dataset)))
    assert found.false == ()
    # A quick search has bounds 2 % apart, and 18 nights are few: events of 5 % are seen in some of their cells only.
    assert {tuple(name.split()[0:3:2]) for name in found.found} == {
        ("sim-a", "CSC"),
        ("sim-b", "VSC"),
        ("sim-c", "CSP"),
    }
    assert {name.split()[0] for name in found.bands} == {"sim-a", "sim-c"}
    assert found.suspected


@pytest.mark.slow
def test_the_judge_sees_what_is_missed_and_what_is_false(dataset: Dataset) -> None:
    shifted = EventHistory(NIGHTS, story(NIGHTS).testbeds, ())
    found = judge(shifted, trends(rows_of_tests(dataset)))
    assert not found.found
    assert len(found.false) > 9

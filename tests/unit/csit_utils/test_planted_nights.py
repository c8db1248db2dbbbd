"""Steps, bands and suspected falls that are planted in a history of nights are found, and nothing else is."""

import pytest

from csit_utils.analysis.trends.trend import Trend, TrendState, trends
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.request.cell import ServiceType
from tests.loaded import rows_of_tests
from tests.planted_nights import BANDS, FIRST_NIGHT, FRESH, GAP, NOISE, STEP, PlantedEvent, records_of, story
from tests.unit.csit_utils.datasets import dataset_of

NIGHTS = 30


@pytest.fixture(scope="module")
def rows() -> list[TestRow]:
    events = story(NIGHTS)
    nights = ((testbed, night) for testbed in NOISE for night in range(NIGHTS))
    gaps = {(each.testbed, night) for each in events if each.kind == GAP for night in range(each.first, each.last + 1)}
    return rows_of_tests(
        dataset_of(*(made for each in nights if each not in gaps for made in records_of(*each, events, chains=2)))
    )


def planted(trend: Trend, kind: str) -> list[PlantedEvent]:
    series = trend.cell.series
    service, chains = ServiceType(series.service_type), trend.cell.dimensions.instances
    return [each for each in story(NIGHTS) if each.kind == kind and each.meets(series.system.testbed, service, chains)]


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

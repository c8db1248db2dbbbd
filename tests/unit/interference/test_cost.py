"""What a study costs is counted without making any measurement, and is what the schedule has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.interference.cost import cost
from resources.libraries.python.interference.schedule import gatherings, schedule
from tests.unit.interference.meetings import spec_of


@given(st.integers(1, 5), st.integers(2, 5), st.integers(1, 3), st.booleans())
def test_the_cost_counts_what_the_schedule_has(names: int, together: int, repetitions: int, guarantee: bool) -> None:
    spec = spec_of(*"ABCDE"[:names], together=together, repetitions=repetitions, guarantee=guarantee)
    found = cost(spec)
    assert found.companies == len(gatherings(spec))
    assert found.measurements == len(schedule(spec))
    assert found.deployments == found.measurements + names
    assert found.seconds > found.measurements * spec.duration_s


def test_three_network_functions_in_pairs_take_ten_minutes() -> None:
    """3 alone and 9 pairs, 10 times for 4 s each: 0.9 s around each measurement, 3 s to find each load."""
    found = cost(spec_of("A", "B", "C", repetitions=10, duration_s=4.0))
    assert (found.companies, found.measurements, found.deployments) == (12, 120, 123)
    assert found.seconds == pytest.approx(3 * 3.0 + 120 * 4.9)

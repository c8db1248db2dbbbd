"""What a study costs is counted without making any measurement, and is what the schedule has."""

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

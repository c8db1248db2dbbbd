"""What a study costs is counted without making any measurement, and is what the schedule has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.planning import cost, gatherings, schedule
from tests.unit.studies.interference.measurements import FRAME, spec_of


@given(st.integers(1, 5), st.integers(2, 5), st.integers(1, 3), st.sampled_from(["no", "yes", "cpu", "network,cpu"]))
def test_the_cost_counts_what_the_schedule_has(names: int, together: int, repetitions: int, guarantee: str) -> None:
    spec = spec_of(*"ABCDE"[:names], together=together, repetitions=repetitions, guarantee=guarantee)
    found = cost(spec)
    assert found.counted["combinations"] == len(gatherings(spec))
    assert found.runs == len(schedule(spec))
    assert found.counted["deployments"] == found.runs + names
    assert found.seconds > found.runs * spec.duration_s


def test_three_network_functions_in_pairs_take_eleven_minutes() -> None:
    """3 alone and 9 pairs, 10 times for 4 s each: 1.6 s around each measurement, 3 s to find each load."""
    found = cost(spec_of("A", "B", "C", repetitions=10, duration_s=4.0))
    assert (found.counted["combinations"], found.runs, found.counted["deployments"]) == (12, 120, 123)
    assert found.seconds == pytest.approx(3 * 3.0 + 120 * 5.6)
    assert found.counts() == {"combinations": 12, "measurements": 120, "deployments": 123, "seconds": found.seconds}


def test_a_sweep_is_measured_at_each_point_and_its_load_found_for_each_frame_size() -> None:
    frames = (FRAME, FRAME.model_copy(update={"name": "64B"}))
    spec = spec_of("A", "B", repetitions=5, duration_s=4.0, frames=frames, load_pps=1e5, loads_pps=(1e5, 2e5, 3e5))
    found = cost(spec, around_s=2.0)
    assert (found.runs, found.counted["deployments"]) == (6 * 5 * 2 * 3, 180 + 2 * 2)
    assert found.seconds == pytest.approx(4 * 3.0 + 180 * 6.0)


def test_a_study_without_end_is_refused_with_its_name_and_its_number() -> None:
    with pytest.raises(ConfigError, match=r"pairs.*measurements"):
        cost(spec_of(*"ABCDEFGH", together=5, repetitions=1000))

"""The order of measurements, the same for the same seed, and their number and time."""

from collections import Counter
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.model.record import Resource
from resources.libraries.python.studies.interference.planning import cost, gatherings, more_turns, schedule
from tests.unit.studies.interference.measurements import FRAME, spec_of


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True), st.integers(1, 4), st.integers(0, 99))
def test_each_repetition_has_all_alone_and_all_ordered_pairs_once(
    names: list[str], repetitions: int, seed: int
) -> None:
    found = schedule(spec_of(*names, repetitions=repetitions, seed=seed))
    wanted = {(one, ()) for one in names} | {(one, (other,)) for one, other in product(names, names)}
    assert [turn.number for turn in found] == list(range(len(wanted) * repetitions))
    for repetition in range(repetitions):
        row = [(turn.target, turn.against) for turn in found if turn.repetition == repetition]
        assert Counter(row) == Counter(wanted)
    # A repetition is over before the next one begins, so that drift falls on all alike.
    assert [turn.repetition for turn in found] == sorted(turn.repetition for turn in found)


def test_orders_differ_between_repetitions_and_are_the_same_for_a_seed() -> None:
    def orders(seed: int) -> list[list[tuple[str, tuple[str, ...]]]]:
        found = schedule(spec_of(*"ABCD", repetitions=2, seed=seed))
        return [[(turn.target, turn.against) for turn in found if turn.repetition == number] for number in (0, 1)]

    assert orders(1) == orders(1)
    assert orders(1)[0] != orders(1)[1]
    assert orders(1) != orders(2)


def test_each_guarantee_adds_all_combinations_mixes_all_ways_and_leaves_the_baseline_alone() -> None:
    found = schedule(spec_of("A", "B", repetitions=1, guarantee="network,cpu"))
    assert Counter((turn.guarantee, bool(turn.against)) for turn in found) == {
        (None, False): 2, (None, True): 4, (Resource.NETWORK, True): 4, (Resource.CPU, True): 4,
    }  # fmt: skip
    ways = [turn.guarantee for turn in found]
    assert sum(one is not other for one, other in pairwise(ways)) > 3, "not one way after the other"


@given(
    st.lists(st.sampled_from("ABCD"), min_size=3, max_size=4, unique=True), st.integers(1, 3), st.integers(0, 50),
    st.integers(0, 9),
)  # fmt: skip
def test_further_repetitions_have_each_set_and_the_baselines_of_its_targets_once_under_new_numbers(
    names: list[str], repetitions: int, first: int, repetition: int
) -> None:
    """Neighbours are in the order of the specification, as in all other measurements of the same set."""
    spec = spec_of(*names, repetitions=repetitions)
    one, two, three = names[:3]
    found = more_turns(spec, [(one, (three, two)), (two, (one,)), (one, (three, two))], first, repetition)
    assert [turn.number for turn in found] == list(range(first, first + len(found)))
    for number in range(repetition, repetition + repetitions):
        row = [(turn.target, turn.against) for turn in found if turn.repetition == number]
        assert Counter(row) == Counter([(one, (two, three)), (two, (one,)), (one, ()), (two, ())])
    assert {(turn.point, turn.guarantee) for turn in found} == {(0, None)}


def test_three_together_are_all_combinations_with_two_others() -> None:
    found = schedule(spec_of("A", "B", repetitions=1, together=3))
    assert Counter(len(turn.against) for turn in found) == {0: 2, 1: 4, 2: 6}
    assert {turn.against for turn in found if len(turn.against) == 2} == {("A", "A"), ("A", "B"), ("B", "B")}


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

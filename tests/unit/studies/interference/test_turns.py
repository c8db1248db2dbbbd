"""The order of measurements: everything once in each repetition, mixed, and the same for the same seed."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.studies.interference.planning import schedule
from tests.unit.studies.interference.measurements import spec_of


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


def test_a_guarantee_doubles_all_combinations_mixes_both_ways_and_leaves_the_baseline_alone() -> None:
    found = schedule(spec_of("A", "B", repetitions=1, guarantee=True))
    assert Counter((turn.guaranteed, bool(turn.against)) for turn in found) == {
        (False, False): 2, (False, True): 4, (True, True): 4,
    }  # fmt: skip
    assert [turn.guaranteed for turn in found] not in ([False] * 6 + [True] * 4, [True] * 4 + [False] * 6)


def test_three_together_are_all_combinations_with_two_others() -> None:
    found = schedule(spec_of("A", "B", repetitions=1, together=3))
    assert Counter(len(turn.against) for turn in found) == {0: 2, 1: 4, 2: 6}
    assert {turn.against for turn in found if len(turn.against) == 2} == {("A", "A"), ("A", "B"), ("B", "B")}

"""Where network functions are put best: checked against trying everything."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.analysis import placement
from resources.libraries.python.studies.interference.analysis.placement import ColocatedThroughputs, advise, capacity
from resources.libraries.python.studies.interference.model.record import Normalized
from tests.unit.examples import share
from tests.unit.studies.interference.measurements import every_pair, matrix_of

NAMES = "ABCD"


def by_brute_force(pairs: dict[tuple[str, str], float], begun: list[tuple[str, ...]], more: str) -> float:
    """Largest sum over all assignments; every neighbour adds time to each packet."""
    best = 0.0
    for choice in product(range(len(begun)), repeat=len(more)):
        servers = [[*server] for server in begun]
        for name, index in zip(more, choice, strict=True):
            servers[index].append(name)
        total = 0.0
        for server in servers:
            for place, name in enumerate(server):
                time = 1.0
                for other in server[:place] + server[place + 1 :]:
                    time += 1 / pairs[name, other] - 1
                total += 1 / time
        best = max(best, total)
    return best


SERVERS = st.lists(st.lists(st.sampled_from(NAMES), max_size=2).map(tuple), min_size=1, max_size=3)


@settings(max_examples=share(80), deadline=None)
@given(st.integers(0, 10**6), SERVERS, st.text(NAMES, min_size=1, max_size=5))
def test_the_best_placement_is_that_of_trying_all(seed: int, begun: list[tuple[str, ...]], more: str) -> None:
    pairs = every_pair(NAMES, seed)
    throughputs = ColocatedThroughputs(matrix_of(pairs))
    found = advise(throughputs, begun, more)
    assert found.best.capacity == pytest.approx(by_brute_force(pairs, begun, more))
    assert found.best.capacity == pytest.approx(capacity(throughputs, found.best.servers))
    assert sorted(name for server in found.best.servers for name in server) == sorted(
        [*more, *(name for server in begun for name in server)]
    )
    capacities = [found.best.capacity, *(each.capacity for each in found.others)]
    assert capacities == sorted(capacities, reverse=True)


@settings(max_examples=share(40), deadline=None)
@given(st.integers(0, 10**6), SERVERS, st.text(NAMES, min_size=1, max_size=5))
def test_where_not_all_can_be_tried_a_good_one_is_found_and_kept_ones_stay(
    seed: int, begun: list[tuple[str, ...]], more: str
) -> None:
    pairs = every_pair(NAMES, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "MOST_TRIED", 0)
        found = advise(ColocatedThroughputs(matrix_of(pairs)), begun, more)
    assert all(now[: len(before)] == before for now, before in zip(found.best.servers, begun, strict=True))
    assert found.best.capacity <= by_brute_force(pairs, begun, more) + 1e-9
    # No single network function would be better off elsewhere.
    for source, server in enumerate(found.best.servers):
        kept = begun[source]
        for place in range(len(kept), len(server)):
            others = [list(each) for each in found.best.servers]
            name = others[source].pop(place)
            assert by_brute_force(pairs, [tuple(each) for each in others], name) <= found.best.capacity + 1e-9


def test_thirty_network_functions_are_placed_without_trying_all() -> None:
    throughputs = ColocatedThroughputs(matrix_of(every_pair(NAMES, 3)))
    found = advise(throughputs, [()] * 8, NAMES * 7 + "AB")
    assert sum(map(len, found.best.servers)) == 30
    assert found.best.capacity > 8 / 2


def test_the_advice_of_the_papers_figure_1_is_a_sentence_with_both_capacities() -> None:
    """A third VNF does VNF 2 more harm than VNF 1, and suffers more beside it."""
    pairs = {("vnf1", "vnf3"): 0.62, ("vnf3", "vnf1"): 0.79, ("vnf2", "vnf3"): 0.50, ("vnf3", "vnf2"): 0.70}
    found = advise(ColocatedThroughputs(matrix_of(pairs)), [("vnf1",), ("vnf2",)], ["vnf3"])
    assert found.sentence == "put vnf3 on server 1: total capacity 2.41 against 2.20 on server 2"
    assert found.best.servers == (("vnf1", "vnf3"), ("vnf2",))


def test_a_difference_within_the_intervals_is_reported_as_such() -> None:
    rows = [
        Normalized(target=one, against=(other,), mean=mean, stdev=0.1, low=mean - 0.2, high=mean + 0.2, samples=3)
        for (one, other), mean in every_pair("AB", 5).items()
    ]
    assert advise(ColocatedThroughputs(rows), [("A",), ("B",)], "A").sentence.endswith(
        "; the difference is within the confidence intervals"
    )


def test_placing_all_names_each_server_and_the_worst_one() -> None:
    pairs = dict.fromkeys(every_pair("ABC", 1), 0.5) | {("A", "B"): 0.9, ("B", "A"): 0.9}
    assert advise(ColocatedThroughputs(matrix_of(pairs)), [(), ()], "ABC").sentence == (
        "put A + B on server 1, C on server 2: total capacity 2.80 against 2.00 in the next best one, "
        "1.28 in the worst of 4 placements"
    )


def test_equal_servers_are_one_choice() -> None:
    assert advise(ColocatedThroughputs(()), [(), ()], ["A"]).sentence == (
        "put A on server 1: total capacity 1.00; all servers are equal"
    )


def test_a_combination_that_was_measured_counts_before_the_prediction_from_its_pairs() -> None:
    pairs = matrix_of({("A", "B"): 0.8, ("A", "C"): 0.5})
    assert ColocatedThroughputs(pairs).normalized("A", "CB") == pytest.approx(1 / (1 + 0.25 + 1))
    assert ColocatedThroughputs(pairs).prediction_error() is None
    three = Normalized(target="A", against=("B", "C"), mean=0.3, stdev=None, low=None, high=None, samples=1)
    assert ColocatedThroughputs([*pairs, three]).normalized("A", "CB") == 0.3
    assert ColocatedThroughputs([*pairs, three]).prediction_error() == pytest.approx(1 / 2.25 - 0.3)
    assert ColocatedThroughputs(pairs).normalized("A", "") == 1
    faster = matrix_of({("A", "B"): 2.0, ("A", "C"): 2.0})
    assert ColocatedThroughputs(faster).normalized("A", "BC") == 2, "noise, and no division by zero"


def test_a_pair_that_was_not_measured_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^A was not measured beside B, so their interference is unknown"):
        advise(ColocatedThroughputs(()), [("A",)], "B")


@pytest.mark.parametrize(
    ("beside_b", "sentence"),
    [
        (0.796, "put A on server 2: total capacity 1.80 against 1.80 on server 1; the next best is as good"),
        (0.794, "put A on server 2: total capacity 1.80 against 1.79 on server 1"),
    ],
)
def test_placements_that_are_the_same_in_two_digits_are_said_to_be_as_good(beside_b: float, sentence: str) -> None:
    """Two capacities that differ by half of the last digit shown are as good as each other."""
    pairs = {("A", "B"): beside_b, ("B", "A"): 0.0, ("A", "C"): 0.8, ("C", "A"): 0.0}
    assert advise(ColocatedThroughputs(matrix_of(pairs)), [("B",), ("C",)], "A").sentence == sentence


def test_advice_names_the_four_next_best_servers_of_five() -> None:
    pairs = {(one, other): 1 - number / 10 for number, other in enumerate("BCDEFG") for one in ("A",)}
    pairs |= {(other, "A"): 1.0 for _, other in pairs}
    found = advise(ColocatedThroughputs(matrix_of(pairs)), [(other,) for other in "GFEDCB"], "A")
    assert found.sentence == (
        "put A on server 6: total capacity 7.00 against 6.90 on server 5 and 6.80 on server 4 and 6.70 on server 3 "
        "and 6.60 on server 2"
    )
    assert [each.capacity for each in found.others] == pytest.approx([6.9, 6.8, 6.7, 6.6])


def test_the_first_of_equal_servers_is_advised() -> None:
    pairs = {("A", "B"): 0.5, ("B", "A"): 0.5, ("A", "C"): 0.5, ("C", "A"): 0.5}
    throughputs = ColocatedThroughputs(matrix_of(pairs))
    assert advise(throughputs, [("B",), ("C",)], "A").best.servers == (("B", "A"), ("C",))
    assert advise(throughputs, [("C",), ("B",)], "A").best.servers == (("C", "A"), ("B",))

"""Where network functions are put best: checked against trying everything, and measured before one is advised."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.interference.analysis import placement
from resources.libraries.python.studies.interference.analysis.estimates import SampledEstimate, SampleMean, exact
from resources.libraries.python.studies.interference.analysis.findings import Throughputs
from resources.libraries.python.studies.interference.analysis.placement import (
    ColocatedThroughputs,
    PlacementVerification,
    advise,
    capacity,
    predicted_groups,
)
from resources.libraries.python.studies.interference.analysis.study import colocated
from resources.libraries.python.studies.interference.model import Group
from resources.libraries.python.studies.interference.planning import more_turns, most_verifications
from tests.unit.examples import share
from tests.unit.studies.interference.measurements import Company, every_pair, exactly, spec_of
from tests.unit.studies.interference.measurements import measured as measured_pairs
from tests.unit.studies.interference.simulated_studies import SIM, measured, spec, study_of
from tests.unit.studies.worlds import World

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
    throughputs = ColocatedThroughputs(exactly(pairs))
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
        patch.setattr(placement, "MAX_TRIED", 0)
        found = advise(ColocatedThroughputs(exactly(pairs)), begun, more)
    assert all(now[: len(before)] == before for now, before in zip(found.best.servers, begun, strict=True))
    assert found.best.capacity <= by_brute_force(pairs, begun, more) + 1e-9
    # No single network function would be better off elsewhere.
    for source, server in enumerate(found.best.servers):
        kept = begun[source]
        for place in range(len(kept), len(server)):
            others = [list(each) for each in found.best.servers]
            name = others[source].pop(place)
            assert by_brute_force(pairs, [tuple(each) for each in others], name) <= found.best.capacity + 1e-9


def test_the_advice_of_the_papers_figure_1_is_a_sentence_with_both_capacities() -> None:
    """A third VNF does VNF 2 more harm than VNF 1, and suffers more beside it."""
    pairs = {("vnf1", "vnf3"): 0.62, ("vnf3", "vnf1"): 0.79, ("vnf2", "vnf3"): 0.50, ("vnf3", "vnf2"): 0.70}
    found = advise(ColocatedThroughputs(exactly(pairs)), [("vnf1",), ("vnf2",)], ["vnf3"])
    assert found.sentence == (
        "put vnf3 on server 1 (vnf1): total capacity 2.41 (2.41 to 2.41) against 2.20 (2.20 to 2.20) on server 2"
    )
    assert found.best.servers == (("vnf1", "vnf3"), ("vnf2",))


def noisy(pairs: dict[tuple[str, str], float], noise: float) -> ColocatedThroughputs:
    beside: dict[Company, float] = {(one, (other,)): mean for (one, other), mean in pairs.items()}
    rows = measured_pairs(dict.fromkeys({one for one, _ in pairs}, 1e5), beside, 10, noise, seed=3)
    return ColocatedThroughputs(Throughputs(rows).normalized())


@pytest.mark.parametrize(("beside_c", "noise", "ties"), [(0.81, 0.05, 1), (0.60, 0.02, 0)])
def test_placements_are_ties_within_each_others_errors_only(beside_c: float, noise: float, ties: int) -> None:
    pairs = {("A", "B"): 0.80, ("B", "A"): 0.70, ("A", "C"): beside_c, ("C", "A"): 0.70}
    found = advise(noisy(pairs, noise), [("B",), ("C",)], "A")
    assert [each.servers for each in found.ties] == [found.others[0].servers] * ties
    assert found.sentence.endswith("; the two cannot be told apart") == bool(ties)
    assert found.best.low < found.best.capacity < found.best.high


def test_a_prediction_whose_error_is_unknown_is_reported_as_such_and_how_to_measure_it() -> None:
    """Without a set of three nothing says how far a prediction from pairs is off."""
    found = advise(noisy(every_pair("ABCDE", 4), 0.001), [(), ()], "ABCDE")
    assert found.prediction_error is None
    assert "unknown error" in found.sentence and "verify: 3" in found.sentence
    assert "confidence intervals" not in found.sentence


def test_a_difference_below_the_error_of_the_prediction_is_a_tie_however_small_the_intervals_are() -> None:
    pairs = dict.fromkeys(every_pair("ABCD", 1), 0.6) | {("A", "B"): 0.7, ("B", "A"): 0.7}
    larger = {("C", ("A", "B")): 0.75, ("C", ("A", "D")): 0.15, ("D", ("A", "B")): 0.75, ("D", ("B", "C")): 0.15}
    rows = exactly(pairs) | {group: exact(value) for group, value in larger.items()}
    found = advise(ColocatedThroughputs(rows), [("A", "B"), ("C", "D")], "A")
    assert found.prediction_error > 0.1
    assert found.best.capacity - found.others[0].capacity > 0.01
    assert len(found.ties) == 1 and f"{found.prediction_error:.3f}" in found.sentence


def test_where_placements_are_to_be_verified_the_best_measured_one_is_advised_and_not_a_better_prediction() -> None:
    """D does no harm and takes none from A and B, but three are only predicted."""
    pairs = {(one, other): 0.99 if "D" in (one, other) else 0.8 for one in "ABCD" for other in "ABCD"}
    pairs |= {("C", "D"): 0.5, ("D", "C"): 0.5, ("A", "B"): 0.95, ("B", "A"): 0.95}
    throughputs = ColocatedThroughputs(exactly(pairs))
    predicted = advise(throughputs, [(), ()], "ABCD")
    assert predicted.best.predicted == 3
    found = advise(throughputs, [(), ()], "ABCD", verified=1)
    assert (found.best.predicted, found.best.servers) == (0, (("A", "C"), ("B", "D")))
    assert found.others[0] == predicted.best


def test_placements_with_more_on_a_server_than_fit_are_left_out_and_pairs_not_measured_named() -> None:
    pairs = dict.fromkeys(every_pair("ABCD", 1), 1.0) | {("A", "B"): 0.9, ("C", "D"): 0.9, ("A", "C"): 0.8}
    pairs |= {("A", "D"): 0.7}
    assert max(map(len, advise(ColocatedThroughputs(exactly(pairs)), [(), ()], "ABCD").best.servers)) == 3
    found = advise(ColocatedThroughputs(exactly(pairs)), [(), ()], "ABCD", most=2)
    assert {len(server) for each in (found.best, *found.others) for server in each.servers} == {2}
    with pytest.raises(ConfigError, match=r"^A was not measured beside B, so their interference is unknown"):
        advise(ColocatedThroughputs({}), [("A",)], "B")


def test_a_combination_that_was_measured_counts_before_the_prediction_from_its_pairs() -> None:
    pairs = exactly({("A", "B"): 0.8, ("A", "C"): 0.5})
    assert ColocatedThroughputs(pairs).normalized("A", "CB") == pytest.approx(1 / (1 + 0.25 + 1))
    both = ColocatedThroughputs(pairs | {("A", ("B", "C")): exact(0.3)})
    assert both.normalized("A", "CB") == both.estimate("A", "CB").value == 0.3
    assert both.prediction_error == pytest.approx(1 / 2.25 - 0.3)
    assert ColocatedThroughputs(pairs).normalized("A", "") == 1
    faster = exactly({("A", "B"): 2.0, ("A", "C"): 2.0})
    assert ColocatedThroughputs(faster).normalized("A", "BC") == 1, "faster beside another is noise"


def test_contention_that_saturates_in_measured_sets_saturates_in_predicted_ones() -> None:
    """The truth here is another law than that of the prediction: a loss that grows with the root of the pressure."""

    def truth(*others: str) -> float:
        return 1 - 0.4 * sum({"B": 1.0, "C": 0.7, "D": 0.5, "E": 0.2}[other] for other in others) ** 0.5

    pairs = exactly({("A", other): truth(other) for other in "BCDE"})
    before = ColocatedThroughputs(pairs).normalized("A", "CDE")
    after = ColocatedThroughputs(pairs | {("A", tuple("BCDE")): exact(truth(*"BCDE"))}).normalized("A", "CDE")
    assert abs(after - truth(*"CDE")) < 0.7 * abs(before - truth(*"CDE"))


def test_the_error_of_a_prediction_has_that_of_each_of_its_pairs() -> None:
    """Checked against finite differences of the prediction itself."""
    pairs = {("A", "B"): 0.8, ("A", "C"): 0.5, ("A", "D"): 0.9}
    measured_set = {("A", ("B", "C", "D")): exact(0.42)}
    samples = {key: SampleMean(0.01**2, 1000) for key in pairs}
    rows = {(pair[0], pair[1:]): SampledEstimate(value, {samples[pair]: 1.0}) for pair, value in pairs.items()}
    estimate = ColocatedThroughputs(rows | measured_set).estimate("A", "BC")
    for key in (("A", "B"), ("A", "C")):
        moved = exactly({**pairs, key: pairs[key] + 1e-5}) | measured_set
        slope = (ColocatedThroughputs(moved).normalized("A", "BC") - estimate.value) / 1e-5
        assert estimate.slopes[samples[key]] == pytest.approx(slope, rel=1e-3)
    assert samples["A", "D"] not in estimate.slopes


def test_advice_names_the_four_next_best_servers_of_five_and_the_first_of_equal_ones() -> None:
    pairs = {("A", other): 1 - number / 10 for number, other in enumerate("BCDEFG")}
    pairs |= {(other, "A"): 1.0 for _, other in pairs}
    found = advise(ColocatedThroughputs(exactly(pairs)), [(other,) for other in "GFEDCB"], "A")
    assert [f"on server {number}" in found.sentence for number in range(1, 7)] == [False, True, True, True, True, True]
    assert [each.capacity for each in found.others] == pytest.approx([6.9, 6.8, 6.7, 6.6])
    throughputs = ColocatedThroughputs(exactly(dict.fromkeys(every_pair("ABC", 1), 0.5)))
    assert advise(throughputs, [("B",), ("C",)], "A").best.servers == (("B", "A"), ("C",))
    assert advise(throughputs, [("C",), ("B",)], "A").best.servers == (("C", "A"), ("B",))


def truth_of(seed: int) -> Callable[[str, tuple[str, ...]], float]:
    """Any throughput of any set: no model predicts it."""
    return lambda target, against: Random(f"{seed}/{target}/{sorted(against)}").uniform(0.2, 1.0)


@settings(max_examples=share(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 5), st.integers(1, 4), st.floats(0, 0.2), st.integers(3, 5))
def test_it_ends_within_its_bound_and_the_best_predicted_placements_are_measured_as_they_are(
    seed: int, number: int, count: int, noise: float, most: int
) -> None:
    names, truth, draw = "ABCDE"[:number], truth_of(seed), Random(seed)
    spec = spec_of(*names, verify=count, repetitions=3)
    rows: dict[Group, SampledEstimate] = {}

    def measure(group: Group) -> None:
        error = noise * truth(*group)
        rows[group[0], tuple(sorted(group[1]))] = SampledEstimate(
            truth(*group) + draw.gauss(0, error), {SampleMean(error**2, 10): 1.0}
        )

    for pair in product(names, names):
        measure((pair[0], (pair[1],)))
    steps = PlacementVerification([(), ()], names, count, most)
    made = 0
    while groups := steps.next_groups(ColocatedThroughputs(rows)):
        assert all(len(against) < most for _, against in groups)
        made += len(more_turns(spec, groups, made, made))
        for group in groups:
            measure(group)
        assert made <= most_verifications(spec)
    every = [
        [tuple(name for name, at in zip(names, places, strict=True) if at == server) for server in (0, 1)]
        for places in product((0, 1), repeat=number)
        if not places[0]
    ]
    fitting = [each for each in every if max(map(len, each)) <= most]
    known = [each for each in fitting if not predicted_groups(ColocatedThroughputs(rows), each)]
    assert len(known) >= min(count, len(fitting))


def test_two_placements_that_cannot_be_told_apart_are_measured_three_times_more_and_others_are_not() -> None:
    def rounds(beside_c: float, error: float) -> int:
        sample = SampleMean(error**2, 10)
        rows = {(one, (other,)): SampledEstimate(0.6, {sample: 1.0}) for one in "ABC" for other in "ABC"}
        for pair, value in ((("A", "B"), 0.9), (("A", "C"), beside_c)):
            rows[pair[0], (pair[1],)] = SampledEstimate(value, {SampleMean(error**2, 10): 1.0})
        steps = PlacementVerification([("B",), ("C",)], "A", 2, 2)
        return len(list(iter(lambda: steps.next_groups(ColocatedThroughputs(rows)), [])))

    assert rounds(beside_c=0.88, error=0.05) == 3
    assert rounds(beside_c=0.50, error=0.05) == 0
    assert rounds(beside_c=0.8999, error=0.0005) == 0, "certainly equal: no repetition changes the advice"


def test_other_servers_are_verified_when_they_are_asked_for() -> None:
    found = measured(spec(verify=1, repetitions=2, servers=[["gateway", "monitor"], ["inspection"]]))
    (advice,) = found.advice
    assert not advice.best.predicted
    assert capacity(colocated(found), advice.best.servers) == pytest.approx(advice.best.capacity)
    assert found.asked == len(found.measurements)
    first, second = advice.best.servers
    assert first[:2] == ("gateway", "monitor") and second[:1] == ("inspection",) and "proxy" in first + second


def test_a_server_with_too_few_cores_for_all_bounds_the_placements() -> None:
    """28 cores: three of six cores each fit beside the vSwitch, four do not."""
    found = measured(spec(verify=7, repetitions=2, size=NfSize("6c")))
    assert found.places == 3
    assert max(len(each.against) for each in found.measurements) == 2
    assert max(len(server) for each in (found.advice[0].best, *found.advice[0].others) for server in each.servers) <= 3


def test_servers_that_cannot_take_all_are_reported_and_nothing_more_is_measured() -> None:
    """Two of eight cores each fit on a server: four need both."""
    found = measured(spec(verify=2, repetitions=2, size=NfSize("10c")))
    assert found.places == 2 and not [each for each in found.measurements if len(each.against) > 1]
    with pytest.raises(ConfigError, match="5 network functions do not fit on 2 servers, 2 on each at most"):
        PlacementVerification([(), ()], "ABCDE", 1, 2).next_groups(ColocatedThroughputs({}))


def test_a_resumed_study_measures_the_same_placements_and_none_twice(tmp_path: Path) -> None:
    def run() -> tuple[int, object]:
        world = World(topology=SIM)
        study = study_of(asked, world)
        with study.journal()(tmp_path / "journal.jsonl", study.digest()) as journal:
            study.resume(journal)
            study.plan()
            study.run()
        return world.deployed, study.result()

    asked = spec("gateway", "monitor", "proxy", verify=1, repetitions=2)
    first, found = run()
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    again, resumed = run()
    assert resumed == found
    assert (first > again, again) == (True, 3)

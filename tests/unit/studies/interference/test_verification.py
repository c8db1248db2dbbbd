"""Placements that are measured as they are before one is advised."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.truth import SimulatedTruth
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.interference.analysis.estimates import SampledEstimate, SampleMean
from resources.libraries.python.studies.interference.analysis.placement import (
    PlacementVerification,
    capacity,
    groups_of,
    predicted_groups,
)
from resources.libraries.python.studies.interference.analysis.study import colocated
from resources.libraries.python.studies.interference.analysis.throughput_prediction import ColocatedThroughputs
from resources.libraries.python.studies.interference.model.record import Group, InterferenceSpec
from resources.libraries.python.studies.interference.planning import more_turns, most_verifications
from tests.unit.examples import share
from tests.unit.studies.interference.measurements import spec_of
from tests.unit.studies.interference.simulated_studies import SIM, measured, spec, study_of
from tests.unit.studies.worlds import World

NAMES = ("gateway", "monitor", "inspection", "proxy")


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
    throughputs = ColocatedThroughputs(rows)
    every = [
        [tuple(name for name, at in zip(names, places, strict=True) if at == server) for server in (0, 1)]
        for places in product((0, 1), repeat=number)
        if not places[0]
    ]
    fitting = [each for each in every if max(map(len, each)) <= most]
    known = [each for each in fitting if not predicted_groups(throughputs, each)]
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


@pytest.mark.slow
def test_a_study_that_verifies_advises_the_placement_that_is_truly_best_and_measured() -> None:
    found = measured(spec(verify=3, repetitions=5))
    study = study_of(spec(together=4))

    def pps(*group: str) -> float:
        return SimulatedTruth(study._server.plan(group), simulation_of(SIM)).capacity_pps(spec().frame, (1,))

    def truly(servers: tuple[tuple[str, ...], ...]) -> float:
        return sum(pps(target, *against) / pps(target) for target, against in groups_of(servers))

    every = [
        tuple(tuple(name for name, at in zip(NAMES, places, strict=True) if at == server) for server in (0, 1))
        for places in product((0, 1), repeat=4)
    ]
    (advice,) = found.advice
    assert truly(advice.best.servers) == pytest.approx(max(map(truly, every)), rel=0.005)
    assert advice.best.predicted == 0
    assert advice.best.low - 0.02 < truly(advice.best.servers) < advice.best.high + 0.02
    assert advice.prediction_error is not None
    assert found.places == 4
    assert found.coverage[0] == found.coverage[1] > 4 * 5 * 5


def test_without_verify_nothing_more_is_measured_and_the_advice_says_that_it_is_predicted() -> None:
    found = measured(spec(repetitions=2))
    assert len(found.measurements) == 4 * 5 * 2 and found.places is None
    assert not predicted_groups(colocated(found), found.advice[0].best.servers) or (
        "unknown error" in found.advice[0].sentence
    )


def test_other_servers_are_verified_when_they_are_asked_for() -> None:
    study = study_of(spec(verify=1, repetitions=2, servers=[["gateway", "monitor"], ["inspection"]]))
    study.plan()
    study.run()
    (advice,) = study.result().advice
    assert not advice.best.predicted
    throughputs = colocated(study.result())
    assert capacity(throughputs, advice.best.servers) == pytest.approx(advice.best.capacity)
    assert study.result().asked == len(study.result().measurements)
    assert advice.best.servers in {
        (("gateway", "monitor", "proxy"), ("inspection",)),
        (("gateway", "monitor"), ("inspection", "proxy")),
    }


def test_a_server_with_too_few_cores_for_all_bounds_the_placements() -> None:
    """28 cores: three of six cores each fit beside the vSwitch, four do not."""
    found = measured(spec(verify=7, repetitions=2, size=NfSize("6c")))
    assert found.places == 3
    assert max(len(each.against) for each in found.measurements) == 2
    assert max(len(server) for each in (found.advice[0].best, *found.advice[0].others) for server in each.servers) <= 3


def test_servers_that_cannot_take_all_are_reported_and_nothing_more_is_measured() -> None:
    """Two of eight cores each fit on a server: four need both."""
    found = measured(spec(*NAMES, verify=2, repetitions=2, size=NfSize("10c")))
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
    lines = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_text("".join(lines[:-3]))
    again, resumed = run()
    assert resumed == found
    assert (first > again, again) == (True, 3)


@pytest.mark.parametrize(
    ("value", "message"),
    [("-1", "-1 is below the minimum of 0"), ("17", "16"), ("many", "a whole number is expected here")],
)
def test_counts_that_make_no_sense_are_refused(tmp_path: Path, value: str, message: str) -> None:
    text = "name: a\nframe: 64B\ncontenders: [{name: a, type: I, kind: ngrep}]\n"
    (tmp_path / "a.yaml").write_text(f"{text}verify: {value}\n")
    with pytest.raises(ConfigError, match=message):
        load_yaml(tmp_path / "a.yaml", InterferenceSpec)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("true", ("network",)),
        ("false", ()),
        ("cpu", ("cpu",)),
        ("[cpu, network]", ("cpu", "network")),
        ("yes", ("network",)),
    ],
)
def test_guarantees_are_a_yes_or_the_names_of_resources(tmp_path: Path, value: str, wanted: tuple[str, ...]) -> None:
    text = "name: a\nframe: 64B\ncontenders: [{name: a, type: I, kind: ngrep}]\n"
    (tmp_path / "a.yaml").write_text(f"{text}guarantee: {value}\n")
    assert load_yaml(tmp_path / "a.yaml", InterferenceSpec).guarantee == wanted
    for wrong, message in (("memory", "unknown word 'memory'"), ("[cpu, cpu]", "each resource once")):
        (tmp_path / "a.yaml").write_text(f"{text}guarantee: {wrong}\n")
        with pytest.raises(ConfigError, match=message):
            load_yaml(tmp_path / "a.yaml", InterferenceSpec)

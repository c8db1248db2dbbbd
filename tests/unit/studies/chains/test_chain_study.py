"""A study from its runs to its suspects: what is planted is found, and what cannot be judged is said."""

from itertools import permutations

import pytest

from resources.libraries.python.model.measurements.features import CHAIN, HOST, VSWITCH
from resources.libraries.python.studies.chains.analysis.features import statistics
from resources.libraries.python.studies.chains.analysis.points import distances
from resources.libraries.python.studies.chains.analysis.study import Analysis, analyse
from resources.libraries.python.studies.chains.analysis.truth import deviations, truth
from resources.libraries.python.studies.chains.model.record import MEAN_DISTANCE, WORSE
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from tests.unit.studies.chains.chain_runs import chain, noisy_runs, run, spec_of

FOUR = ("firewall", "nat", "monitor", "ids")
FAULTY = chain("firewall", "ids", "nat", "monitor")


def studied(volumes_bps: tuple[float, ...], *policies: str, seed: int = 1) -> Analysis:
    spec = spec_of(FOUR, policies, volumes_bps=volumes_bps)
    return analyse(spec, noisy_runs(generate(spec), volumes_bps, FAULTY, "nat", seed))


@pytest.fixture(scope="module")
def found() -> Analysis:
    return studied((1e8, 2e8))


@pytest.mark.parametrize(("volumes_bps", "seed"), [((1e8,), 0), ((1e8, 2e8), 1), ((1e8, 2e8, 3e8), 2)])
def test_a_vnf_throttled_in_one_order_only_makes_that_chain_the_first_suspect(
    volumes_bps: tuple[float, ...], seed: int
) -> None:
    found = studied(volumes_bps, "firewall > nat", "firewall > monitor", seed=seed)
    first = found.suspects[0]
    assert first.chain == FAULTY
    assert first.planted == "nat is limited to 0.1 CPUs"
    assert first.mean_distance > 2 * max((each.mean_distance for each in found.suspects[1:]), default=0.0)
    assert any(reason.startswith("nat is throttled, as its CPU quota is used up: 6") for reason in first.reasons)
    assert any((each.owner, each.feature) == ("nat", "throttled_percent") for each in first.deviations)
    assert all(each.distance > each.threshold for each in first.distances)


def test_a_suspect_names_the_rules_by_which_it_is_one_and_is_ranked_by_how_far_it_exceeds_them(found: Analysis) -> None:
    first, *_ = suspects = found.suspects
    assert first.rules == (MEAN_DISTANCE, WORSE)
    assert first.mean_distance > first.threshold
    assert {(each.owner, each.feature) for each in first.worse} == {
        (CHAIN, "throughput_bps"),
        ("nat", "throttled_percent"),
    }
    assert first.model_copy(update={"mean_distance": 0.0}).rules == (WORSE,)
    assert [each.strength for each in suspects] == sorted((each.strength for each in suspects), reverse=True)
    third = first.model_copy(update={"worse": (), "mean_distance": 0.3, "threshold": 0.1})
    assert third.strength == pytest.approx(3)


def test_with_one_volume_chains_are_ranked_by_their_vnfs_alone_with_a_note() -> None:
    found = studied((2e8,))
    (note,) = found.notes
    assert "not by Cook's distance: one volume only" in note
    assert [each.chain for each in found.suspects] == [FAULTY]


def test_vnfs_alone_are_no_suspects_and_no_points(found: Analysis) -> None:
    assert min(len(each.chain.members) for each in found.suspects) > 1
    assert min(len(each.chain.members) for each in distances(found.statistics)) > 1


def test_without_truth_cooks_distance_still_ranks_with_a_note() -> None:
    spec = spec_of(FOUR, volumes_bps=(1e8, 2e8))
    runs = [each for each in noisy_runs(generate(spec), (1e8, 2e8), FAULTY, "nat") if len(each.chain.members) > 1]
    found = analyse(spec, runs)
    assert found.suspects[0].chain == FAULTY
    assert not found.suspects[0].deviations
    assert found.notes == ("without a baseline, which chains with them need: firewall, nat, monitor, ids",)


def test_without_truth_and_with_one_volume_nothing_is_judged_with_a_note() -> None:
    spec = spec_of(("a", "b"), volumes_bps=(1e8,))
    found = analyse(spec, [run(chain("a", "b"), 1e8, 9e7)])
    assert not found.suspects
    assert found.notes[0] == "chains cannot be judged: one volume only, and their VNFs were not measured alone"


def test_nothing_measured_is_nothing_found() -> None:
    found = analyse(spec_of(("a", "b")), [])
    assert not any((found.statistics, found.suspects, found.notes, found.causes, found.changed))
    assert found.judged == ("no chain of two or more VNFs was measured, so that there is none to judge",)


def test_a_chain_without_peers_is_reported_as_not_judged() -> None:
    volumes = (1e8, 2e8)
    spec = spec_of(("a", "b", "c"), volumes_bps=volumes)
    pairs = [chain("a", "b"), chain("b", "a"), chain("a", "c")]
    runs = [run(each, volume, volume * (0.9 if each == pairs[2] else 1)) for each in pairs for volume in volumes]
    lonely = [run(chain("a", "b", "c"), volume, volume / 2) for volume in volumes]
    assert "not judged, for lack of comparable chains: a > b > c" in analyse(spec, runs + lonely).notes


def test_vnfs_are_compared_in_all_chains_and_end_to_end_values_among_chains_of_one_length() -> None:
    volumes = (1e8, 2e8)
    features = {"a": {"cpu_percent": [1.0]}, HOST: {"all_switches": [1.0]}}
    chains = [chain("a", "b"), chain("b", "a"), chain("a", "b", "c"), chain("c", "a", "b")]
    runs = [
        run(each, volume, volume * (0.5 + 0.1 * index), {
            owner: {name: [index**2 + volume / 1e8] for name in row} for owner, row in features.items()
        })
        for index, each in enumerate(chains) for volume in volumes
    ]  # fmt: skip
    found = {(each.owner, len(each.chain.members)): each.threshold for each in distances(statistics(runs))}
    assert found == {("a", 2): 0.5, ("a", 3): 0.5, (CHAIN, 2): 1, (CHAIN, 3): 1, (HOST, 2): 1, (HOST, 3): 1}


@pytest.mark.parametrize(
    ("name", "where"), [("tx_dropped_pps", "on transmit"), ("socket_dropped_pps", "at full sockets")]
)
def test_drops_of_the_vswitch_are_compared_with_those_of_the_vnfs_alone(name: str, where: str) -> None:
    volumes, bad = (1e8, 2e8), chain("a", "b")
    chains = [chain("a"), chain("b"), bad, chain("b", "a"), chain("a", "c"), chain("c", "b")]
    runs = [
        run(each, volume, volume * (0.7 if each == bad else 1), {VSWITCH: {name: [9e3 if each == bad else 11.0]}})
        for each in chains
        for volume in volumes
    ]
    first = analyse(spec_of(("a", "b", "c"), volumes_bps=volumes), runs).suspects[0]
    assert first.chain == bad
    assert first.reasons[1] == f"the vSwitch, {where}, drops 9,000 packets a second, 11 at most with its VNFs alone"


def test_a_feature_is_changed_outside_three_standard_deviations_alone() -> None:
    alone = run(chain("a"), 1e8, 1e8, {"a": {"cpu_percent": [9, 10, 11], "rx_pps": [9, 10, 11], "threads": [3]}})
    here = run(chain("a", "b"), 1e8, 1e8, {"a": {"cpu_percent": [13.1], "rx_pps": [13], "threads": [9]}})
    found = statistics([alone, here])
    changed = deviations([each for each in found if len(each.chain.members) == 2], truth([alone, here], found))
    assert [(each.feature, each.alone, each.alone_stdev, each.here) for each in changed] == [
        ("cpu_percent", 10, 1, 13.1)
    ]


def test_the_papers_chain_that_saturates_early_stands_out_among_pairs() -> None:
    """Suricata-IPS alone saturates at 489.2 Mbit/s; so does Tcpdump with it, and not Tcpdump with NAT (section 8)."""
    volumes = (200e6, 400e6, 600e6, 800e6, 1000e6)
    names = ("tcpdump", "netsniff", "firewall", "nat", "suricata-ips")
    spec = spec_of(names, ["tcpdump | netsniff"], lengths=(2,), volumes_bps=volumes)
    good = [
        run(each, volume, min(volume, 940e6)) for each in generate(spec) if "suricata-ips" not in each.order
        for volume in volumes
    ]  # fmt: skip
    slow = chain("tcpdump", "suricata-ips")
    found = analyse(spec, [*good, *(run(slow, volume, min(volume, 489.2e6)) for volume in volumes)])
    assert found.suspects[0].chain == slow
    first = found.suspects[0].distances[0]
    assert (first.workload.volume_bps, first.feature) == (1000e6, "throughput_bps")


@pytest.mark.parametrize(("lost", "suspected"), [(1e-8, False), (0.2, True)])
def test_a_chain_whose_throughput_differs_by_digits_is_no_suspect(lost: float, *, suspected: bool) -> None:
    names, volumes, slow = ("a", "b", "c"), (2e6, 4e6), chain("a", "b")
    runs = [
        run(each, volume, volume * (1 - lost * (each == slow)))
        for each in (chain(*order) for order in permutations(names, 2))
        for volume in volumes
    ]
    found = analyse(spec_of(names, lengths=(2,), volumes_bps=volumes), runs)
    assert (slow in [suspect.chain for suspect in found.suspects]) is suspected

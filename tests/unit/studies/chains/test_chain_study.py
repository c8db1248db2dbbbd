"""From runs of chains to suspects: by Cook's distance, and by what their VNFs alone predict."""

from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.regression.linear_model import OLS  # type: ignore[import-untyped]
from statsmodels.tools.tools import add_constant  # type: ignore[import-untyped]

from resources.libraries.python.model.measurements.features import CHAIN, HOST, VSWITCH
from resources.libraries.python.studies.chains.analysis.features import READ, statistics
from resources.libraries.python.studies.chains.analysis.points import Regression, distances, regression
from resources.libraries.python.studies.chains.analysis.prediction import judge, to_repeat
from resources.libraries.python.studies.chains.analysis.study import Analysis, analyse, bounds
from resources.libraries.python.studies.chains.analysis.truth import deviations, truth
from resources.libraries.python.studies.chains.model import MEAN_DISTANCE, WORSE, ChainRun, PartLoss
from resources.libraries.python.studies.chains.model.spec import PATH, Chain
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from tests.unit.studies.chains.chain_runs import chain, noisy_runs, run, spec_of, workload

FOUR = ("firewall", "nat", "monitor", "ids")
FAULTY = chain("firewall", "ids", "nat", "monitor")


def studied(volumes_bps: tuple[float, ...], *policies: str, seed: int = 1) -> Analysis:
    spec = spec_of(FOUR, policies, volumes_bps=volumes_bps)
    return analyse(spec, noisy_runs(generate(spec), volumes_bps, FAULTY, "nat", seed))


@pytest.fixture(scope="module")
def analysed() -> Analysis:
    return studied((1e8, 2e8))


@pytest.mark.parametrize(("volumes_bps", "seed"), [((1e8,), 0), ((1e8, 2e8), 1), ((1e8, 2e8, 3e8), 2)])
def test_a_vnf_throttled_in_one_order_makes_it_the_first_suspect(volumes_bps: tuple[float, ...], seed: int) -> None:
    found = studied(volumes_bps, "firewall > nat", "firewall > monitor", seed=seed)
    first = found.suspects[0]
    assert first.chain == FAULTY
    assert first.planted == "nat is limited to 0.1 CPUs"
    assert first.mean_distance > 2 * max((each.mean_distance for each in found.suspects[1:]), default=0.0)
    assert any(reason.startswith("nat is throttled, as its CPU quota is used up: 6") for reason in first.reasons)
    assert any((each.owner, each.feature) == ("nat", "throttled_percent") for each in first.deviations)
    assert all(each.distance > each.threshold for each in first.distances)


def test_a_suspect_names_its_rules_and_is_ranked_by_how_far_it_exceeds_them(analysed: Analysis) -> None:
    first, *_ = suspects = analysed.suspects
    points = {each.chain for each in distances(analysed.statistics)} | {each.chain for each in suspects}
    assert min(len(each.members) for each in points) > 1, "VNFs alone are no suspects and no points"
    assert first.rules == (MEAN_DISTANCE, WORSE)
    assert first.mean_distance > first.threshold
    worse = {(each.owner, each.feature) for each in first.worse}
    assert worse == {(CHAIN, "throughput_bps"), ("nat", "throttled_percent")}
    assert first.model_copy(update={"mean_distance": 0.0}).rules == (WORSE,)
    assert [each.strength for each in suspects] == sorted((each.strength for each in suspects), reverse=True)
    third = first.model_copy(update={"worse": (), "mean_distance": 0.3, "threshold": 0.1})
    assert third.strength == pytest.approx(3)


def test_with_one_volume_chains_are_ranked_by_their_vnfs_alone_with_a_note() -> None:
    found = studied((2e8,))
    (note,) = found.notes
    assert "not by Cook's distance: one volume only" in note
    assert [each.chain for each in found.suspects] == [FAULTY]


def test_without_truth_cooks_distance_still_ranks_with_a_note() -> None:
    spec = spec_of(FOUR, volumes_bps=(1e8, 2e8))
    runs = [each for each in noisy_runs(generate(spec), (1e8, 2e8), FAULTY, "nat") if len(each.chain.members) > 1]
    found = analyse(spec, runs)
    assert found.suspects[0].chain == FAULTY
    assert not found.suspects[0].deviations
    assert found.notes == ("without a baseline, which chains with them need: firewall, nat, monitor, ids",)


def test_without_enough_runs_nothing_is_judged_with_a_note() -> None:
    spec = spec_of(("a", "b"), volumes_bps=(1e8,))
    found = analyse(spec, [run(chain("a", "b"), 1e8, 9e7)])
    assert not found.suspects
    assert found.notes[0] == "chains cannot be judged: one volume only, and their VNFs were not measured alone"
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


@pytest.mark.parametrize(
    ("cpu_percent", "passed_bps", "read_bytes_per_s", "bound"),
    [(97, 8e7, 0, "CPU"), (50, 8e7, 0, "network"), (50, 1e8, 50e6, "disk"), (50, 1e8, 0, "none")],
)
def test_a_vnf_is_bound_by_what_its_highest_load_alone_shows(
    cpu_percent: float, passed_bps: float, read_bytes_per_s: float, bound: str
) -> None:
    features = {"a": {"cpu_percent": [cpu_percent], READ: [read_bytes_per_s]}}
    low = run(chain("a"), 5e7, 5e7, {"a": {"cpu_percent": [99.0]}})
    runs = [each.model_copy(update={"cpus": {"a": 1.0}}) for each in (run(chain("a"), 1e8, passed_bps, features), low)]
    (found,) = bounds(runs)
    assert (found.vnf, found.bound) == ("a", bound)
    assert "100 Mbit/s" in found.evidence


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


VOLUME_BPS = 1e8
A, B, AB, BA = chain("a"), chain("b"), chain("a", "b"), chain("b", "a")


def of(what: Chain, lost: float = 0.0, *, at: str = "", latency_s: float = 0.0, **features: float) -> ChainRun:
    """A run; latency defaults to 10 us for the path and 9 us for each VNF, features are those of `a`."""
    time_s = latency_s or 10e-6 + 9e-6 * len(what.members)
    quiet = {"cpu_percent": (20.0,), "rx_pps": (1e4,)}
    of_a = {**quiet, "waiting_percent": (0.0,), "throttled_percent": (0.0,)} | {k: (v,) for k, v in features.items()}
    found = run(
        what, VOLUME_BPS, VOLUME_BPS * (1 - lost), {name: of_a if name == "a" else quiet for name in what.order}
    )
    more = {
        "loss_ratio": lost, "latency_s": time_s, "idle_latency_s": time_s, "cpus": dict.fromkeys(what.order, 1.0),
        "placed": {VSWITCH: (9,), **{name: (cpu,) for cpu, name in enumerate("abc") if name in what.order}},
        "losses": (PartLoss(owner=at, cause="inside", ratio=lost),) if at else (),
    }  # fmt: skip
    return found.model_copy(update=more)


BASELINES = (of(A), of(B), of(PATH))


def found(*runs: ChainRun, baselines: Sequence[ChainRun] = BASELINES) -> Mapping[tuple[str, str], float]:
    return {(each.owner, each.feature): each.excess for each in judge((*baselines, *runs)).worse}


def test_the_sum_of_its_parts_is_not_worse_and_a_fault_of_all_chains_is() -> None:
    judged = judge((*BASELINES, of(AB), of(BA)))
    assert judged.worse == ()
    assert judged.compared[CHAIN, "loss_ratio"] == {(each, workload(VOLUME_BPS)): 0 for each in (AB, BA)}
    assert to_repeat((*BASELINES, of(AB), of(BA)), 9) == ()
    runs = [of(each, 0.05, at="a", latency_s=528e-6) for each in (AB, BA)]
    assert {each.chain for each in judge((*BASELINES, *runs)).worse} == {AB, BA}


def test_loss_is_judged_in_two_chains_and_attributed_to_its_part() -> None:
    assert found(of(AB), of(BA, 0.02, at="a")) == {
        (CHAIN, "loss_ratio"): pytest.approx(0.02),
        ("a", "loss_ratio"): pytest.approx(0.02),
    }
    assert found(of(BA, 0.0009, at="a")) == {}
    alone_as_well = (of(A, 0.008, at="a"), of(B), of(PATH))
    assert found(of(AB, 0.008, at="a"), baselines=alone_as_well) == {}


def test_latency_without_the_path_and_cpu_time_at_equal_rates_are_compared() -> None:
    assert found(of(AB, latency_s=48e-6)) == {
        (CHAIN, "latency_s"): pytest.approx(20e-6),
        (CHAIN, "idle_latency_s"): pytest.approx(20e-6),
    }
    assert found(of(AB, latency_s=48e-6), baselines=BASELINES[:2]) == {}, "without a path it is not known"
    assert found(of(AB, cpu_percent=26.0)) == {("a", "cpu_per_packet_s"): pytest.approx(0.3)}
    assert found(of(AB, cpu_percent=26.0, rx_pps=1.2e4)) == {}


@pytest.mark.parametrize(("waiting", "is_worse"), [(3.9, False), (4.1, True), (140.0, True)])
def test_waiting_counts_from_a_fifth_of_the_cpu_time(waiting: float, is_worse: bool) -> None:
    assert (("a", "waiting_percent") in found(of(AB, waiting_percent=waiting))) is is_worse


def test_waiting_or_losses_that_are_expected_are_no_excess() -> None:
    shared = of(AB, waiting_percent=35.0).model_copy(update={"placed": {"a": (1,), "b": (1,), VSWITCH: (9,)}})
    assert found(shared) == {}
    assert ("a", "waiting_percent") in found(of(AB, waiting_percent=35.0))
    baselines = (of(A, 0.2), of(B), of(PATH))
    assert found(of(AB, 0.27), baselines=baselines) == {}
    assert found(of(AB, 0.29), baselines=baselines) == {(CHAIN, "throughput_bps"): pytest.approx(1 - 0.71 / 0.8)}


def test_chains_with_a_vnf_that_was_not_measured_alone_are_not_judged() -> None:
    judged = judge((of(A), of(PATH), of(AB, 0.5, at="a")))
    assert (judged.worse, judged.unknown, judged.compared) == ((), (AB,), {})


def test_what_deviates_is_repeated_and_only_repeated_runs_decide() -> None:
    runs = (*BASELINES, of(AB, 0.02, at="a"), of(BA, 0.05, at="a"))
    assert to_repeat(runs, 9) == (BA, AB, B, A, PATH)
    assert to_repeat(runs, 1) == (BA, B, A, PATH)
    once = (*BASELINES, of(AB, 0.5, at="a"))
    assert judge((*once, *BASELINES, of(AB), *BASELINES, of(AB))).worse == ()
    judged = judge((*once, *BASELINES, of(AB, 0.0248, at="a"), *BASELINES, of(AB, 0.0252, at="a")))
    (loss,) = [each for each in judged.worse if each.owner == CHAIN]
    assert (loss.excess, loss.runs) == (pytest.approx(0.025), 2)
    assert loss.low < 0.025 < loss.high
    rows = [0.0, 0.04, 0.0, 0.01]
    repeated = [each for lost in rows for each in (*BASELINES, of(AB, lost, at="a"))]
    assert judge((*BASELINES, of(AB, 0.05, at="a"), *repeated)).worse == ()


Floats = NDArray[np.float64]
VOLUMES = (200e6, 400e6, 600e6, 800e6, 1000e6)


def line(x: Floats, y: Floats, at: Floats) -> Floats:
    spread = x - x.mean()
    return np.asarray(y.mean() + (spread @ y) / (spread @ spread) * (at - x.mean()))


def left_out(x: Floats, y: Floats) -> Floats:
    """Equation 5, left side: the line made again without each point."""
    fitted = line(x, y, x)
    mse = float(((y - fitted) ** 2).sum()) / (len(x) - 2)
    rest = [np.arange(len(x)) != index for index in range(len(x))]
    return np.array([((fitted - line(x[keep], y[keep], x)) ** 2).sum() for keep in rest]) / (2 * mse)


def noisy(seed: int, count: int = 24) -> tuple[Floats, Floats]:
    draw = np.random.default_rng(seed)
    x = draw.choice(VOLUMES, count)
    return x, 3 + x / 2e7 + draw.normal(0, 4, count)


def known(x: Floats, y: Floats) -> Regression:
    found = regression(list(x), list(y))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(8))
def test_closed_form_leave_one_out_and_statsmodels_agree(seed: int) -> None:
    x, y = noisy(seed)
    found = known(x, y)
    assert found.distances == pytest.approx(left_out(x, y), rel=1e-9)
    peer = OLS(y, add_constant(x / 1e9)).fit()
    assert found.distances == pytest.approx(peer.get_influence().cooks_distance[0], rel=1e-9)
    assert found.expected == pytest.approx(peer.fittedvalues, rel=1e-9)
    assert found.threshold == 4 / len(x)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-50, 50)), min_size=4, max_size=12),
    st.floats(1e-6, 1e9),
    st.floats(1e-6, 1e9),
)
def test_scaling_an_axis_changes_no_distance(points: list[tuple[int, int]], wide: float, high: float) -> None:
    x, y = (np.array(row, float) for row in zip(*points, strict=True))
    found, scaled = regression(list(x), list(y)), regression(list(x * wide), list(y * high))
    assume(found is not None and scaled is not None)
    for one, other in zip(found.distances, scaled.distances, strict=True):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []), ([1, 2], [1, 5]), ([3, 3, 3, 3], [1, 2, 3, 9]), ([1e9, 1e9 * (1 + 1e-13), 1e9], [1, 2, 3]),
        ([1, 2, 3, 4], [10, 20, 30, 40]), ([1, 2, 3, 4], [7, 7, 7, 7]), ([1e8, 2e8, 3e8], [0.1, 0.2, 0.1 * 3]),
        ([0, 0, 0], [0, 0, 1]),
    ],
)  # fmt: skip
def test_points_that_say_nothing_have_no_distances(x: list[float], y: list[float]) -> None:
    assert regression(x, y) is None


def test_a_point_that_fixes_the_line_alone_has_no_distance_and_the_others_have() -> None:
    found = regression([1, 1, 1, 5], [1, 2, 4, 100])
    assert found.distances[3] is None
    assert all(each is not None and each >= 0 for each in found.distances[:3])

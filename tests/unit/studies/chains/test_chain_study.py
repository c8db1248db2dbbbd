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
from resources.libraries.python.studies.chains.analysis.distances import deviations, distances, regression, truth
from resources.libraries.python.studies.chains.analysis.features import READ, statistics
from resources.libraries.python.studies.chains.analysis.prediction import judge, to_repeat
from resources.libraries.python.studies.chains.analysis.study import Analysis, analyse, bounds
from resources.libraries.python.studies.chains.model import MEAN_DISTANCE, WORSE, ChainRun, PartLoss
from resources.libraries.python.studies.chains.model.spec import PATH, Chain
from resources.libraries.python.studies.chains.planning import generate
from tests.unit.studies.chains.chain_runs import chain, noisy_runs, run, spec_of, workload

FOUR = ("firewall", "nat", "monitor", "ids")
VOLUMES = (200e6, 400e6, 600e6, 800e6, 1000e6)
FAULTY = chain("firewall", "ids", "nat", "monitor")
A, B, AB, BA = chain("a"), chain("b"), chain("a", "b"), chain("b", "a")


def studied(*volumes_bps: float) -> Analysis:
    spec = spec_of(FOUR, volumes_bps=volumes_bps)
    return analyse(spec, noisy_runs(generate(spec), volumes_bps, FAULTY, "nat"))


def test_a_suspect_names_its_rules_and_is_ranked_by_how_far_it_exceeds_them() -> None:
    found = studied(1e8, 2e8)
    first, *_ = suspects = found.suspects
    points = {each.chain for each in distances(found.statistics)} | {each.chain for each in suspects}
    assert min(len(each.members) for each in points) > 1, "VNFs alone are no suspects and no points"
    assert first.chain == FAULTY and first.planted and all(each.distance > each.threshold for each in first.distances)
    assert any(reason.startswith("nat is throttled, as its CPU quota is used up: 6") for reason in first.reasons)
    assert first.rules == (MEAN_DISTANCE, WORSE) and first.mean_distance > first.threshold
    worse = {(each.owner, each.feature) for each in first.worse}
    assert worse == {(CHAIN, "throughput_bps"), ("nat", "throttled_percent")}
    assert [each.strength for each in suspects] == sorted((each.strength for each in suspects), reverse=True)
    third = first.model_copy(update={"worse": (), "mean_distance": 0.3, "threshold": 0.1})
    assert third.strength == pytest.approx(3)


def test_one_rule_ranks_where_the_other_lacks_runs_and_without_both_nothing_is_judged_with_a_note() -> None:
    found = studied(2e8)
    assert [each.chain for each in found.suspects] == [FAULTY] and "one volume only" in found.notes[0]
    spec = spec_of(FOUR, volumes_bps=(1e8, 2e8))
    runs = [each for each in noisy_runs(generate(spec), (1e8, 2e8), FAULTY, "nat") if len(each.chain.members) > 1]
    found = analyse(spec, runs)
    assert found.suspects[0].chain == FAULTY and not found.suspects[0].deviations
    assert "firewall, nat, monitor, ids" in found.notes[0], "have no baseline"
    found = analyse(spec_of(("a", "b"), volumes_bps=(1e8,)), [run(AB, 1e8, 9e7)])
    assert not found.suspects and "one volume only" in found.notes[0]
    found = analyse(spec_of(("a", "b")), [])
    assert not any((found.statistics, found.suspects, found.notes, found.causes, found.changed)) and found.judged
    volumes, pairs = (1e8, 2e8), [AB, BA, chain("a", "c")]
    runs = [run(each, volume, volume * (0.9 if each == pairs[2] else 1)) for each in pairs for volume in volumes]
    lonely = [run(chain("a", "b", "c"), volume, volume / 2) for volume in volumes]
    notes = analyse(spec_of(("a", "b", "c"), volumes_bps=volumes), runs + lonely).notes
    assert any("not judged" in note and "a > b > c" in note for note in notes)


def test_vnfs_are_compared_in_all_chains_and_end_to_end_values_among_chains_of_one_length() -> None:
    volumes = (1e8, 2e8)
    runs = []
    for index, each in enumerate((AB, BA, chain("a", "b", "c"), chain("c", "a", "b"))):
        for volume in volumes:
            values = [index**2 + volume / 1e8]
            features = {"a": {"cpu_percent": values}, HOST: {"all_switches": values}}
            runs.append(run(each, volume, volume * (0.5 + 0.1 * index), features))
    found = {(each.owner, len(each.chain.members)): each.threshold for each in distances(statistics(runs))}
    assert found == {("a", 2): 0.5, ("a", 3): 0.5, (CHAIN, 2): 1, (CHAIN, 3): 1, (HOST, 2): 1, (HOST, 3): 1}


@pytest.mark.parametrize(
    ("name", "where"), [("tx_dropped_pps", "on transmit"), ("socket_dropped_pps", "at full sockets")]
)
def test_drops_of_the_vswitch_are_compared_with_those_of_the_vnfs_alone(name: str, where: str) -> None:
    volumes = (1e8, 2e8)
    runs = [
        run(each, volume, volume * (0.7 if each == AB else 1), {VSWITCH: {name: [9e3 if each == AB else 11.0]}})
        for each in (A, B, AB, BA, chain("a", "c"), chain("c", "b"))
        for volume in volumes
    ]
    first = analyse(spec_of(("a", "b", "c"), volumes_bps=volumes), runs).suspects[0]
    assert first.chain == AB
    assert first.reasons[1] == f"the vSwitch, {where}, drops 9,000 packets a second, 11 at most with its VNFs alone"


def test_a_feature_is_changed_outside_three_standard_deviations_alone() -> None:
    alone = run(A, 1e8, 1e8, {"a": {"cpu_percent": [9, 10, 11], "rx_pps": [9, 10, 11], "threads": [3]}})
    here = run(AB, 1e8, 1e8, {"a": {"cpu_percent": [13.1], "rx_pps": [13], "threads": [9]}})
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
    low = run(A, 5e7, 5e7, {"a": {"cpu_percent": [99.0]}})
    (found,) = bounds(
        [each.model_copy(update={"cpus": {"a": 1.0}}) for each in (run(A, 1e8, passed_bps, features), low)]
    )
    assert (found.vnf, found.bound) == ("a", bound) and "100 Mbit/s" in found.evidence


def test_the_papers_chain_that_saturates_early_stands_out_among_pairs() -> None:
    """Suricata-IPS alone saturates at 489.2 Mbit/s; so does Tcpdump with it, and not Tcpdump with NAT (section 8)."""
    names = ("tcpdump", "netsniff", "firewall", "nat", "suricata-ips")
    spec, slow = spec_of(names, ["tcpdump | netsniff"], (2,), VOLUMES), chain("tcpdump", "suricata-ips")
    chains = [each for each in generate(spec) if "suricata-ips" not in each.order]
    good = [run(each, volume, min(volume, 940e6)) for each in chains for volume in VOLUMES]
    first = analyse(spec, [*good, *(run(slow, volume, min(volume, 489.2e6)) for volume in VOLUMES)]).suspects[0]
    assert first.chain == slow
    assert (first.distances[0].workload.volume_bps, first.distances[0].feature) == (1000e6, "throughput_bps")


@pytest.mark.parametrize(("lost", "suspected"), [(1e-8, False), (0.2, True)])
def test_a_chain_whose_throughput_differs_by_digits_is_no_suspect(lost: float, *, suspected: bool) -> None:
    names, volumes = ("a", "b", "c"), (2e6, 4e6)
    chains = [chain(*order) for order in permutations(names, 2)]
    runs = [run(each, volume, volume * (1 - lost * (each == AB))) for each in chains for volume in volumes]
    found = analyse(spec_of(names, lengths=(2,), volumes_bps=volumes), runs)
    assert (AB in [suspect.chain for suspect in found.suspects]) is suspected


VOLUME_BPS = 1e8


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
    unknown = judge((of(A), of(PATH), of(AB, 0.5, at="a")))
    assert (unknown.worse, unknown.unknown, unknown.compared) == ((), (AB,), {}), "b was not measured alone"


def test_loss_latency_and_cpu_time_beyond_those_of_the_parts_are_worse() -> None:
    lost = pytest.approx(0.02)
    assert found(of(AB), of(BA, 0.02, at="a")) == {(CHAIN, "loss_ratio"): lost, ("a", "loss_ratio"): lost}
    assert found(of(BA, 0.0009, at="a")) == {}
    assert found(of(AB, 0.008, at="a"), baselines=(of(A, 0.008, at="a"), of(B), of(PATH))) == {}
    late = pytest.approx(20e-6)
    assert found(of(AB, latency_s=48e-6)) == {(CHAIN, "latency_s"): late, (CHAIN, "idle_latency_s"): late}
    assert found(of(AB, latency_s=48e-6), baselines=BASELINES[:2]) == {}, "without a path it is not known"
    assert found(of(AB, cpu_percent=26.0)) == {("a", "cpu_per_packet_s"): pytest.approx(0.3)}
    assert found(of(AB, cpu_percent=26.0, rx_pps=1.2e4)) == {}


def test_waiting_counts_from_a_fifth_of_the_cpu_time_and_what_is_expected_is_no_excess() -> None:
    waits = [("a", "waiting_percent") in found(of(AB, waiting_percent=each)) for each in (3.9, 4.1, 35.0, 140.0)]
    assert waits == [False, True, True, True]
    shared = of(AB, waiting_percent=35.0).model_copy(update={"placed": {"a": (1,), "b": (1,), VSWITCH: (9,)}})
    assert found(shared) == {}
    baselines = (of(A, 0.2), of(B), of(PATH))
    assert found(of(AB, 0.27), baselines=baselines) == {}
    assert found(of(AB, 0.29), baselines=baselines) == {(CHAIN, "throughput_bps"): pytest.approx(1 - 0.71 / 0.8)}


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


def line(x: Floats, y: Floats, at: Floats) -> Floats:
    spread = x - x.mean()
    return np.asarray(y.mean() + (spread @ y) / (spread @ spread) * (at - x.mean()))


def left_out(x: Floats, y: Floats) -> Floats:
    """Equation 5, left side: the line made again without each point."""
    fitted = line(x, y, x)
    mse = float(((y - fitted) ** 2).sum()) / (len(x) - 2)
    rest = [np.arange(len(x)) != index for index in range(len(x))]
    return np.array([((fitted - line(x[keep], y[keep], x)) ** 2).sum() for keep in rest]) / (2 * mse)


@pytest.mark.parametrize("seed", range(8))
def test_closed_form_leave_one_out_and_statsmodels_agree(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.choice(VOLUMES, 24)
    y = 3 + x / 2e7 + draw.normal(0, 4, 24)
    found = regression(list(x), list(y))
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

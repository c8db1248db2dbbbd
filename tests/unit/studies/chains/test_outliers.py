"""Outliers among chains: what is called one, what is not, and how often noise is."""

from itertools import cycle
from math import exp
from random import Random

import pytest
from scipy.stats import t as student

from resources.libraries.python.studies.chains.analysis.features import statistics
from resources.libraries.python.studies.chains.analysis.outliers import LEAST_PEERS, outliers
from resources.libraries.python.studies.chains.analysis.truth import truth
from resources.libraries.python.studies.chains.model.record import ChainRun, Outlier
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from tests.unit.studies.chains.chain_runs import chain, run, spec_of

NAMES = ("router", "firewall", "nat", "ids")
VOLUME_BPS = 1e8
PATH_S, OWN_S = 10e-6, {"router": 3e-6, "firewall": 5e-6, "nat": 8e-6, "ids": 20e-6}
FAULTY = chain("nat", "router", "ids")


def runs(seed: int = 1, noise: float = 0.01, cpu: float = 40.0) -> list[ChainRun]:
    """Fault-free chains of additive latency; those with an `ids` lose 20 % of their packets, alone as well."""
    draw = Random(seed)
    found = []
    for what in generate(spec_of(NAMES)):
        loss = 0.2 * draw.gauss(1, noise) if "ids" in what.order else 0.0
        latency_s = (PATH_S + sum(OWN_S[name] for name in what.order)) * exp(draw.gauss(0, noise))
        features = {
            name: {"cpu_percent": [cpu], "waiting_percent": [abs(draw.gauss(0, 1))], "rx_dropped_pps": [0.0]}
            for name in what.order
        }
        each = run(what, VOLUME_BPS, VOLUME_BPS * (1 - loss), features)
        update = {"idle_latency_s": latency_s, "latency_s": 2 * latency_s, "cpus": dict.fromkeys(what.order, 1.0)}
        found.append(each.model_copy(update=update))
    return found


def found_in(measured: list[ChainRun]) -> list[Outlier]:
    means = statistics(measured)
    return list(outliers(means, truth(measured, means)))


def changed(measured: list[ChainRun], **update: object) -> list[ChainRun]:
    return [each.model_copy(update=update) if each.chain == FAULTY else each for each in measured]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_a_fault_free_study_has_no_outlier(seed: int) -> None:
    assert not found_in(runs(seed))


def test_latency_is_expected_to_be_the_sum_of_the_vnfs_and_one_path() -> None:
    measured = changed(runs(), idle_latency_s=60e-6)
    (found,) = [each for each in found_in(measured) if each.feature == "idle_latency_s"]
    assert found.chain == FAULTY
    assert found.expected == pytest.approx(PATH_S + OWN_S["nat"] + OWN_S["router"] + OWN_S["ids"], rel=0.03)
    assert found.measured == 60e-6
    assert found.peers == 60
    assert found.score > found.threshold


def test_a_chain_that_is_better_than_its_vnfs_alone_is_no_outlier() -> None:
    assert not found_in(changed(runs(), idle_latency_s=20e-6, loss_ratio=0.0, throughput_bps=VOLUME_BPS))


def test_the_loss_that_the_slowest_vnf_has_alone_is_expected() -> None:
    found = {each.feature: each for each in found_in(changed(runs(), loss_ratio=0.5, throughput_bps=5e7))}
    assert found["loss_ratio"].expected == pytest.approx(0.2, rel=0.05)
    assert found["throughput_bps"].expected == pytest.approx(8e7, rel=0.02)


def test_at_the_edge_of_capacity_one_run_with_a_little_loss_is_no_outlier() -> None:
    """There noise of the capacity decides whether a run loses anything; most chains lose nothing."""
    lossless = [
        each.model_copy(update={"loss_ratio": 0.0, "throughput_bps": VOLUME_BPS}) for each in runs(cpu=89.0)
    ]  # fmt: skip
    loses = {"loss_ratio": 0.02, "throughput_bps": 0.98 * VOLUME_BPS}
    assert {each.feature for each in found_in(changed(lossless, **loses))} == {"loss_ratio"}
    busy = [each.model_copy(update={"loss_ratio": 0.0, "throughput_bps": VOLUME_BPS}) for each in runs(cpu=91.0)]
    assert not found_in(changed(busy, **loses))


def test_one_of_several_chains_with_noise_is_no_outlier_of_many_without() -> None:
    """Losses in a tenth and more of the chains are how the machine is."""
    draw = Random(1)
    lossless = [each.model_copy(update={"loss_ratio": 0.0, "throughput_bps": VOLUME_BPS}) for each in runs()]
    noisy = [
        each.model_copy(update={"loss_ratio": draw.uniform(0.01, 0.04)}) if draw.random() < 0.2 else each
        for each in lossless
    ]
    assert not found_in(noisy)
    assert {each.chain for each in found_in(changed(noisy, loss_ratio=0.5))} == {FAULTY}


def test_drops_of_one_vnf_in_one_chain_are_an_outlier_from_what_matters_on() -> None:
    def dropping(pps: float) -> list[ChainRun]:
        return [
            each.model_copy(
                update={
                    "series": tuple(
                        row.model_copy(update={"values": (pps,)})
                        if (each.chain, row.owner, row.feature) == (FAULTY, "nat", "rx_dropped_pps")
                        else row
                        for row in each.series
                    )
                }
            )
            for each in runs()
        ]

    (found,) = found_in(dropping(200.0))
    assert (found.chain, found.owner, found.feature, found.expected) == (FAULTY, "nat", "rx_dropped_pps", 0.0)
    assert not found_in(dropping(49.0))


def test_one_fault_among_few_chains_is_an_outlier() -> None:
    """The scale is that of the others: the fault itself would be a tenth of nine chains."""
    pairs = [each for each in runs() if len(each.chain.members) <= 2]
    few = [each for each in pairs if len(each.chain.members) == 1 or "ids" not in each.chain.order]
    faulty = chain("nat", "router")
    broken = [each.model_copy(update={"loss_ratio": 0.3}) if each.chain == faulty else each for each in few]
    assert sum(len(each.chain.members) == 2 for each in few) == 6
    assert {each.chain for each in found_in(broken)} == {faulty}


def test_a_vnf_is_judged_in_three_chains_as_it_was_measured_alone() -> None:
    def throttled(*chains: tuple[str, ...]) -> set[tuple[str, ...]]:
        features = {
            each: {"nat": {"throttled_percent": [90.0 if each == ("nat", "router") else 0.0]}} for each in chains
        }
        return {each.chain.order for each in found_in([run(chain(*one), 1e8, 1e8, features[one]) for one in chains])}

    three = (("nat",), ("nat", "router"), ("router", "nat"), ("ids", "nat"))
    assert throttled(*three) == {("nat", "router")}
    assert throttled(*three[:3]) == set()


def test_the_limit_is_a_level_of_one_percent_over_all_comparisons_of_the_study() -> None:
    """By Student's t with 37 % of the degrees of freedom, as the MAD has that share of the efficiency."""
    measured = changed(runs(), loss_ratio=0.9)
    (found,) = [each for each in found_in(measured) if each.feature == "loss_ratio"]
    chains = [each.chain.order for each in measured if len(each.chain.members) > 1]
    # Throughput, loss and both latencies of each chain; waiting and drops of each VNF, alone as well.
    comparisons = 4 * len(chains) + 2 * sum(map(len, chains)) + 2 * len(NAMES)
    assert found.peers == sum("ids" in order for order in chains), "those that lose packets, as it should"
    assert found.threshold == pytest.approx(student.isf(0.01 / comparisons, 0.37 * (found.peers - 1)))


@pytest.mark.parametrize(
    ("others", "center", "deviation"),
    [((100.0, 200.0, 300.0), 200.0, 148.26), ((100.0,) * 7 + (300.0,), 100.0, 200 / 1.2816)],
    ids=["median absolute deviation", "ninth decile, where most are alike"],
)
def test_the_score_counts_standard_deviations_of_the_others(
    others: tuple[float, ...], center: float, deviation: float
) -> None:
    rows = cycle(others)
    measured = [
        run(each, 1e8, 1e8, {"nat": {"rx_dropped_pps": [9000.0 if each == FAULTY else next(rows)]}})
        for each in generate(spec_of(NAMES))
        if "nat" in each.order
    ]
    (found,) = found_in(measured)
    assert (found.chain, found.expected, found.peers) == (FAULTY, center, 49)
    assert found.score == pytest.approx((9000 - center) / deviation)


def test_few_values_are_not_judged() -> None:
    few = [each for each in runs() if set(each.chain.order) <= {"nat", "router"}]
    assert 0 < len(few) < LEAST_PEERS
    assert not found_in([each.model_copy(update={"loss_ratio": 0.1 * n}) for n, each in enumerate(few)])


def test_without_ground_truth_end_to_end_values_are_not_judged() -> None:
    measured = [each for each in changed(runs(), idle_latency_s=1.0, loss_ratio=0.9) if len(each.chain.members) > 1]
    assert not found_in(measured)

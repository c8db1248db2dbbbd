"""Chains compared with what their VNFs alone predict: what is worse, by how much, and what is not judged."""

from collections.abc import Mapping, Sequence

import pytest

from resources.libraries.python.model.measurements.features import CHAIN, VSWITCH, FeatureSeries
from resources.libraries.python.studies.chains.analysis.prediction import judge, to_repeat
from resources.libraries.python.studies.chains.model.record import ChainRun, PartLoss
from resources.libraries.python.studies.chains.model.spec import PATH, Chain
from tests.unit.studies.chains.chain_runs import chain, workload

VOLUME_BPS = 1e8
A, B, AB, BA = chain("a"), chain("b"), chain("a", "b"), chain("b", "a")


def of(what: Chain, lost: float = 0.0, *, at: str = "", latency_s: float = 0.0, **features: float) -> ChainRun:
    """A run; latency defaults to 10 us for the path and 9 us for each VNF, features are those of `a`."""
    series = {"cpu_percent": 20.0, "waiting_percent": 0.0, "throttled_percent": 0.0, "rx_pps": 1e4, **features}
    time_s = latency_s or 10e-6 + 9e-6 * len(what.members)
    return ChainRun(
        chain=what,
        workload=workload(VOLUME_BPS),
        offered_bps=VOLUME_BPS,
        throughput_bps=VOLUME_BPS * (1 - lost),
        loss_ratio=lost,
        latency_s=time_s,
        idle_latency_s=time_s,
        series=tuple(
            FeatureSeries(owner=name, feature=feature, values=(value,))
            for name in what.order
            for feature, value in (series if name == "a" else {"cpu_percent": 20.0, "rx_pps": 1e4}).items()
        ),
        cpus=dict.fromkeys(what.order, 1.0),
        placed={VSWITCH: (9,), **{name: (number,) for number, name in enumerate("abc") if name in what.order}},
        losses=(PartLoss(owner=at, cause="inside", ratio=lost),) if at else (),
    )


BASELINES = (of(A), of(B), of(PATH))


def found(*runs: ChainRun, baselines: Sequence[ChainRun] = BASELINES) -> Mapping[tuple[str, str], float]:
    return {(each.owner, each.feature): each.excess for each in judge((*baselines, *runs)).worse}


def test_a_chain_that_is_the_sum_of_its_parts_is_not_worse() -> None:
    judged = judge((*BASELINES, of(AB), of(BA)))
    assert judged.worse == ()
    assert judged.compared[CHAIN, "loss_ratio"] == {AB: 0, BA: 0}
    assert to_repeat((*BASELINES, of(AB), of(BA)), 9) == ()


def test_loss_is_judged_in_two_chains_and_attributed_to_its_part() -> None:
    assert found(of(AB), of(BA, 0.02, at="a")) == {
        (CHAIN, "loss_ratio"): pytest.approx(0.02),
        ("a", "loss_ratio"): pytest.approx(0.02),
    }
    assert found(of(BA, 0.0009, at="a")) == {}
    alone_as_well = (of(A, 0.008, at="a"), of(B), of(PATH))
    assert found(of(AB, 0.008, at="a"), baselines=alone_as_well) == {}


def test_latency_is_compared_with_the_sum_less_the_path() -> None:
    assert found(of(AB, latency_s=48e-6)) == {
        (CHAIN, "latency_s"): pytest.approx(20e-6),
        (CHAIN, "idle_latency_s"): pytest.approx(20e-6),
    }
    assert found(of(AB, latency_s=48e-6), baselines=BASELINES[:2]) == {}, "without a path it is not known"


def test_a_fault_of_all_chains_is_no_less_a_fault() -> None:
    runs = [of(each, 0.05, at="a", latency_s=528e-6) for each in (AB, BA)]
    assert {each.chain for each in judge((*BASELINES, *runs)).worse} == {AB, BA}


@pytest.mark.parametrize(("waiting", "is_worse"), [(3.9, False), (4.1, True), (140.0, True)])
def test_waiting_counts_from_a_fifth_of_the_cpu_time(waiting: float, is_worse: bool) -> None:
    assert (("a", "waiting_percent") in found(of(AB, waiting_percent=waiting))) is is_worse


def test_waiting_for_parts_on_the_same_cpu_is_expected() -> None:
    shared = of(AB, waiting_percent=35.0).model_copy(update={"placed": {"a": (1,), "b": (1,), VSWITCH: (9,)}})
    assert found(shared) == {}
    assert ("a", "waiting_percent") in found(of(AB, waiting_percent=35.0))


def test_where_a_vnf_is_saturated_a_tenth_of_the_throughput_is_noise() -> None:
    baselines = (of(A, 0.2), of(B), of(PATH))
    assert found(of(AB, 0.27), baselines=baselines) == {}
    assert found(of(AB, 0.29), baselines=baselines) == {(CHAIN, "throughput_bps"): pytest.approx(1 - 0.71 / 0.8)}


def test_chains_with_a_vnf_that_was_not_measured_alone_are_not_judged() -> None:
    judged = judge((of(A), of(PATH), of(AB, 0.5, at="a")))
    assert (judged.worse, judged.unknown, judged.compared) == ((), (AB,), {})


def test_what_deviates_is_repeated_with_its_vnfs_alone_and_the_path() -> None:
    runs = (*BASELINES, of(AB, 0.02, at="a"), of(BA, 0.05, at="a"))
    assert to_repeat(runs, 9) == (BA, AB, B, A, PATH)
    assert to_repeat(runs, 1) == (BA, B, A, PATH)


def test_only_repeated_runs_decide() -> None:
    once = (*BASELINES, of(AB, 0.5, at="a"))
    assert judge((*once, *BASELINES, of(AB), *BASELINES, of(AB))).worse == ()
    judged = judge((*once, *BASELINES, of(AB, 0.0248, at="a"), *BASELINES, of(AB, 0.0252, at="a")))
    (loss,) = [each for each in judged.worse if each.owner == CHAIN]
    assert (loss.excess, loss.runs) == (pytest.approx(0.025), 2)
    assert loss.low < 0.025 < loss.high


def test_an_excess_within_the_spread_of_the_repeated_runs_is_none() -> None:
    rows = [0.0, 0.04, 0.0, 0.01]
    repeated = [each for lost in rows for each in (*BASELINES, of(AB, lost, at="a"))]
    assert judge((*BASELINES, of(AB, 0.05, at="a"), *repeated)).worse == ()


def test_cpu_time_per_packet_is_compared_at_equal_rates() -> None:
    assert found(of(AB, cpu_percent=26.0)) == {("a", "cpu_per_packet_s"): pytest.approx(0.3)}
    assert found(of(AB, cpu_percent=26.0, rx_pps=1.2e4)) == {}

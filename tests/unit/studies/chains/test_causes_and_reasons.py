"""Statistics of runs, what chains with the same excess have in common, and reasons with their evidence."""

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.load import parse_record
from resources.libraries.python.model.measurements.features import CHAIN, VSWITCH, Edge, StateGraph
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.chains import model
from resources.libraries.python.studies.chains.analysis.causes import causes
from resources.libraries.python.studies.chains.analysis.classes import Workflow, classify, portions
from resources.libraries.python.studies.chains.analysis.features import (
    ordinary,
    statistics,
)
from resources.libraries.python.studies.chains.analysis.prediction import Judged
from resources.libraries.python.studies.chains.analysis.reasons import Evidence, QueueDrops, reasons
from resources.libraries.python.studies.chains.analysis.sentences import cause_in_words, judgement
from resources.libraries.python.studies.chains.model import Excess, Statistic
from resources.libraries.python.studies.chains.model.spec import Chain, Member
from tests.unit.csit_utils.study_records import chain_studied
from tests.unit.studies.chains.chain_runs import chain, graph, run, spec_of, workload

PAIRS = tuple(chain(*order) for order in permutations(("fw", "gw", "nat", "ids"), 2))
ORDERS = tuple(chain(*order) for order in permutations(("fw", "gw", "nat", "ids")))
AMOUNT = 0.02
LOAD, HIGH_LOAD = workload(1e8), workload(2e8)
NAT_GW, GW_NAT = chain("nat", "gw"), chain("gw", "nat")


def excess(what: Chain, owner: str, feature: str = "loss_ratio", amount: float = AMOUNT) -> Excess:
    return Excess(
        chain=what, owner=owner, workload=LOAD, feature=feature, measured=amount, expected=0.0,
        excess=amount, low=0.9 * amount, high=1.1 * amount, least=0.001, runs=2,
    )  # fmt: skip


def explained(
    bad: Collection[Chain], owner: str, population: Collection[Chain] = PAIRS
) -> tuple[model.CommonCause, ...]:
    own = [each for each in population if owner in {CHAIN, VSWITCH, *each.order}]
    compared = {(each, LOAD): 20.0 if each in bad else 0.0 for each in own}
    worse = tuple(excess(each, owner) for each in population if each in bad)
    return causes(Judged(worse, {(owner, "loss_ratio"): compared}, (), 1, True), [run(PAIRS[0], 1e8, 1e8)])


def follows(first: str, then: str) -> Callable[[Chain], bool]:
    return lambda each: first in each.order and then in each.order and each.order.index(first) < each.order.index(then)


def of(*lengths: int) -> tuple[Chain, ...]:
    return tuple(chain(*each) for size in lengths for each in permutations(("fw", "gw", "nat", "ids", "dpi"), size))


@pytest.mark.parametrize(
    ("population", "is_bad", "owner", "what"),
    [
        (PAIRS, lambda each: "nat" in each.order, "nat", "every chain with nat"),
        (PAIRS, lambda each: "nat" in each.order, CHAIN, "every chain with nat"),
        (PAIRS, lambda _: True, CHAIN, "every chain"),
        (PAIRS, lambda each: each.order[-1] == "nat", "nat", "every chain with nat in position 2"),
        (PAIRS, lambda each: each == NAT_GW, "nat", "only nat > gw"),
        ((NAT_GW, GW_NAT), lambda each: each == NAT_GW, "nat", "only nat > gw"),
        ((NAT_GW, GW_NAT), lambda _: True, "nat", "every chain with nat"),
        (ORDERS, follows("gw", "nat"), "nat", "every chain in which nat comes after gw"),
        # Of 200 chains hundreds of descriptions fit, whose sets of three take hours to try.
        (of(2, 3, 4, 5), lambda _: True, VSWITCH, "every chain"),
    ],
)
def test_what_bad_chains_share(
    population: Collection[Chain], is_bad: Callable[[Chain], bool], owner: str, what: str
) -> None:
    bad = {each for each in population if is_bad(each)}
    (cause,) = explained(bad, owner, population)
    assert (cause.what, set(cause.chains)) == (what, bad)
    assert cause.excess == pytest.approx(AMOUNT)


def test_descriptions_of_the_same_chains_are_all_named_and_those_by_chance_are_marked() -> None:
    (cause,) = explained([each for each in ORDERS if follows("gw", "nat")(each)], "nat", ORDERS)
    assert cause.others == 12 and cause.chance is not None and cause.chance < 1e-4
    assert "2 % of the packets in nat (12 chains, none of the other 12)" in cause_in_words(cause)
    (cause,) = explained([each for each in PAIRS if each.order[-1] == "nat"], "nat")
    assert cause.same == ("ending with nat",) and "ending with nat" in cause_in_words(cause)
    some = [chain("fw", "nat"), chain("gw", "nat"), NAT_GW]
    (cause,) = explained(some[:2], "nat", some)
    assert cause.chance == pytest.approx(2 / 3) and "66.7 %" in cause_in_words(cause)
    assert explained([NAT_GW], "nat")[0].chance is None


def test_two_causes_at_one_part_are_told_apart() -> None:
    bad = [each for each in ORDERS if each.order[0] == "nat" or each.order[-1] == "nat"]
    found = explained(bad, "nat", ORDERS)
    assert {each.what for each in found} == {"every chain with nat in position 1", "every chain with nat in position 4"}


def test_a_longer_delay_of_one_chain_is_a_cause_of_its_own() -> None:
    with_nat = [each for each in PAIRS if "nat" in each.order]
    worse = [excess(each, CHAIN, "idle_latency_s", 90e-6 if each == NAT_GW else 30e-6) for each in with_nat]
    compared = {(each, LOAD): 20.0 if each in with_nat else 0.0 for each in PAIRS}
    least = tuple(each.model_copy(update={"least": 1e-6}) for each in worse)
    found = causes(Judged(least, {(CHAIN, "idle_latency_s"): compared}, (), 1, True), [])
    assert {each.what: each.excess for each in found} == {
        "every chain with nat": pytest.approx(30e-6),
        "only nat > gw": pytest.approx(60e-6),
    }


@pytest.mark.parametrize(("below", "is_named"), [(0.0, True), (0.2, True), (0.3, False), (2.0, False)])
def test_workloads_that_bad_chains_share_are_named_where_others_have_hardly_any_of_it(
    below: float, *, is_named: bool
) -> None:
    """`below`: of the smallest excess that counts, in the chains with nat under the lower load."""
    with_nat = {each for each in PAIRS if "nat" in each.order}
    worse = [excess(each, "nat").model_copy(update={"workload": HIGH_LOAD}) for each in with_nat]
    worse += [excess(each, "nat") for each in with_nat if below > 1]
    ratios = {(each, load): 20.0 if load == HIGH_LOAD else below for each in with_nat for load in (LOAD, HIGH_LOAD)}
    (cause,) = causes(Judged(tuple(worse), {("nat", "loss_ratio"): ratios}, (), 1, True), [])
    assert (cause.only_under == (HIGH_LOAD,)) == is_named == ("200 Mbit/s" in cause_in_words(cause))


def test_throttled_time_explains_what_follows_from_it() -> None:
    worse = tuple(excess(NAT_GW, CHAIN, each) for each in ("throughput_bps", "loss_ratio", "latency_s"))
    worse += (excess(NAT_GW, "nat"), excess(NAT_GW, "nat", "throttled_percent", 60.0))
    ratios = {(each, LOAD): 9.0 if each == NAT_GW else 0.0 for each in PAIRS}
    compared = {(each.owner, each.feature): ratios for each in worse}
    (cause,) = causes(Judged(worse, compared, (), 5, True), [])
    assert (cause.owner, cause.feature) == ("nat", "throttled_percent")


@given(st.sets(st.sampled_from(PAIRS)), st.sampled_from([CHAIN, "nat", "gw"]))
def test_descriptions_cover_all_bad_chains_and_no_other(bad: set[Chain], owner: str) -> None:
    own = {each for each in bad if owner in {CHAIN, VSWITCH, *each.order}}
    found = explained(own, owner)
    assert {each for cause in found for each in cause.chains} == own
    for cause in found:
        assert cause.what.startswith("only ") == (len(cause.chains) == 1)


def test_the_error_of_single_runs_is_not_stated() -> None:
    """Its spread is unknown where nothing was repeated."""
    for repeated in (True, False):
        (words,) = judgement(Judged((excess(NAT_GW, "nat"),), {}, (), 1, repeated), [NAT_GW] * 3, has_path=True)
        assert ("false alarms in at most" in words) is repeated


NAT = Member(name="nat", size=NfSize.ONE)
ENTRY, HALT, PAUSE = ("kvm_entry", "kvm_exit:HLT"), ("kvm_exit:HLT", "x"), ("kvm_exit:PAUSE_INSTRUCTION", "x")


def said(
    here: Mapping[str, float] | None = None, alone: Mapping[str, float] | None = None,
    graphs: tuple[StateGraph, StateGraph] | None = None, cpus: float | None = 1.0,
) -> list[str]:  # fmt: skip
    one, other = graphs or (None, None)
    classes = portions(one, other) if one else ()
    here, alone = here or {}, alone or {}
    changed = {name for name in here if name in alone and here[name] != alone[name]}
    evidence = Evidence(NAT, here, alone, changed, cpus, classes, one, other)
    return [reason.sentence for reason in reasons([evidence])]


def test_drops_are_a_reason_from_fifty_a_second_half_a_percent_and_twice_as_many_on() -> None:
    for no_reason, reason in (
        ((49, 0, 1000), (51, 0, 1000)),
        ((996, 0, 2e5), (1010, 0, 2e5)),
        ((1000, 505, 1000), (1000, 495, 1000)),
        ((2000, None, 8000), (2000, 10, 8000)),
    ):
        assert not reasons([], [], [QueueDrops("the vSwitch", *no_reason)])
        assert reasons([], [], [QueueDrops("the vSwitch", *reason)])


@pytest.mark.parametrize(("way", "queue"), [("rx", "into"), ("tx", "behind")])
def test_packets_dropped_at_a_queue_are_named_with_the_queue(way: str, queue: str) -> None:
    assert said({f"{way}_dropped_pps": 3000, f"{way}_pps": 7000}, {f"{way}_dropped_pps": 0}) == [
        f"the queue {queue} nat overflows: 3,000 packets a second are dropped, 30.0 % more than alone"
    ]


@pytest.mark.parametrize("cpus", [0.5, 1.0, 2.0])
def test_a_vnf_that_uses_all_of_its_cpus_is_compute_bound_however_many_it_has(cpus: float) -> None:
    assert said({"cpu_percent": 99 * cpus}, {"cpu_percent": 40 * cpus}, cpus=cpus) == [
        f"nat is compute-bound: it uses {0.99 * cpus:.2f} of {cpus:g} CPUs, {0.4 * cpus:.2f} alone"
    ]
    assert not said({"cpu_percent": 89 * cpus}, {"cpu_percent": 40 * cpus}, cpus=cpus)
    assert not said({"cpu_percent": 99 * cpus}, {"cpu_percent": 91 * cpus}, cpus=cpus)
    assert said({"cpu_percent": 91 * cpus}, {"cpu_percent": 89 * cpus}, cpus=cpus)


def test_what_it_does_alone_as_well_or_what_is_not_known_alone_is_no_reason() -> None:
    same = {"throttled_percent": 67.0, "waiting_percent": 40.0, "tx_dropped_pps": 500.0, "rx_pps": 9e3}
    assert not said(same, same)
    assert not said({"throttled_percent": 67, "waiting_percent": 90, "rx_dropped_pps": 3000, "rx_pps": 7000})
    assert not said({"cpu_percent": 99}) + said({"read_bytes_per_s": 5e7})
    assert not said({"cpu_percent": 201}, {"cpu_percent": 40}, cpus=None)


traced = partial(graph, "nat", kvm=True)
STARVED = traced((*ENTRY, 10, 0.19), ("sched_switch:out:R", "x", 10, 0.8), ("kvm_msr", "x", 1, 0.01))
SWITCH = ("kvm_userspace_exit:IO", "kvm_fpu:unload")


@pytest.mark.parametrize(
    ("here", "alone", "sentence"),
    [
        (STARVED, traced((*ENTRY, 10, 0.1), ("kvm_exit:HLT", "x", 10, 0.9)),
         "nat is compute-bound: it computes 95 % of the time that it is given, 10 % of all time alone"),
        (traced((*PAUSE, 10_000, 0.01), traced_s=2.0), traced((*PAUSE, 12, 0.0)),
         "nat has lock contention: 5,000 VM exits a second by PAUSE instructions, 12 alone"),
        (traced((*SWITCH, 7859, 0.01), traced_s=10.0), traced((*SWITCH, 186, 0.01), traced_s=10.0),
         "hard switches of nat rose to 785.9 a second, 18.6 alone"),
        (traced((*ENTRY, 9, 0.195)), traced((*ENTRY, 9, 0.5)),
         f"nat spends less time computing: 20 % of the time, 50 % alone ({MINUS}61 %)"),
        (traced((*ENTRY, 9, 0.3595)), traced((*ENTRY, 9, 0.5)),
         f"nat spends less time computing: 36 % of the time, 50 % alone ({MINUS}28 %)"),
        (traced((*HALT, 9, 0.702)), traced((*HALT, 9, 0.3)),
         "nat spends more time idle: 70 % of the time, 30 % alone (+134 %)"),
        (traced((*HALT, 9, 0.6)), traced((*HALT, 9, 0.001)), "nat spends more time idle: 60 % of the time, 0 % alone"),
    ],
)  # fmt: skip
def test_state_graphs_give_reasons(here: StateGraph, alone: StateGraph, sentence: str) -> None:
    """The last four and the switches are those of the paper, in the bad order and with Tcpdump in the chain."""
    assert sentence in said(graphs=(here, alone))
    assert sentence not in said(graphs=(alone, here))


def test_where_no_rule_says_anything_the_largest_change_is_named() -> None:
    deviation = model.FeatureDeviation(
        owner="nat", workload=workload(1e8), feature="memory_bytes", alone=3e7, alone_stdev=1e5, here=9e7
    )
    found = reasons([Evidence(NAT, {}, {})], [deviation])
    assert [reason.sentence for reason in found] == [
        "memory of nat (resident memory of its processes) is 90 MB, 30 MB alone"
    ]


@pytest.mark.parametrize(
    ("kvm", "workflow", "pairs"),
    [
        (True, Workflow.COMPUTATION, "kvm_entry kvm_exit:HLT"),
        (True, Workflow.IDLENESS,
         "kvm_exit:HLT kvm_fpu:unload, kvm_exit:HLT kvm_vcpu_wakeup:wait, kvm_exit:HLT kvm_entry, "
         "sched_switch:out:S sched_switch:in"),
        (True, Workflow.INITIALIZATION,
         "sched_switch:in kvm_vcpu_wakeup:wait, kvm_vcpu_wakeup:wait kvm_fpu:load, kvm_fpu:load kvm_entry, "
         "kvm_ple_window kvm_vcpu_wakeup:wait"),
        (True, Workflow.HARD_SWITCH, "kvm_ple_window kvm_fpu:unload, kvm_userspace_exit:IO kvm_fpu:unload"),
        (True, Workflow.SOFT_SWITCH, "kvm_ple_window kvm_halt_poll_ns, kvm_vcpu_wakeup:poll kvm_entry"),
        (True, Workflow.MEMORY,
         "kvm_exit:MSR_WRITE kvm_msr, kvm_exit:APIC_ACCESS kvm_apic, kvm_msr kvm_entry, "
         "kvm_exit:EPT_MISCONFIG kvm_emulate_insn, kvm_emulate_insn kvm_mmio, kvm_userspace_exit:MMIO kvm_entry, "
         "kvm_exit:EPT_VIOLATION kvm_page_fault, kvm_page_fault kvm_entry, kvm_exit:CPUID kvm_cpuid"),
        (True, Workflow.INTERRUPT,
         "kvm_exit:PAUSE_INSTRUCTION kvm_entry, kvm_exit:EXTERNAL_INTERRUPT kvm_entry, "
         "kvm_exit:EXCEPTION_NMI kvm_entry, kvm_exit:EOI_INDUCED kvm_eoi, "
         "kvm_exit:EXTERNAL_INTERRUPT kvm_fpu:unload, kvm_msi_set_irq kvm_entry, kvm_set_irq kvm_entry"),
        (True, Workflow.IO,
         "kvm_exit:IO_INSTRUCTION kvm_emulate_insn, kvm_exit:IO_INSTRUCTION kvm_pio, kvm_pio kvm_userspace_exit:IO, "
         "kvm_emulate_insn kvm_userspace_exit:IO, kvm_userspace_exit:IO kvm_entry"),
        (True, Workflow.NOT_ASSIGNED,
         "kvm_fpu:unload kvm_ple_window, kvm_fpu:unload sched_switch:out:S, sched_switch:out:R sched_switch:in, "
         "something_new kvm_entry"),
        (False, Workflow.IDLENESS, "sched_switch:out:S sched_switch:in, sched_switch:out:S sched_wakeup"),
        (False, Workflow.SOFT_SWITCH, "sched_wakeup sched_switch:in"),
        (False, Workflow.HARD_SWITCH, "sched_switch:out:R sched_switch:in, sched_switch:out:R+ sched_switch:in"),
        (False, Workflow.NOT_ASSIGNED, "sched_switch:out:X sched_switch:in"),
        (False, Workflow.INITIALIZATION, "sched_process_exec sched_switch:out:S"),
        (False, Workflow.IO,
         "napi_poll:part netif_receive_skb, sched_switch:in napi_poll:full, net_dev_queue net_dev_xmit:sent, "
         "softirq_entry:NET_RX softirq_exit:NET_RX"),
        (False, Workflow.COMPUTATION,
         "softirq_exit:NET_RX sched_switch:out:S, sched_switch:in sched_switch:out:S, "
         "irq_handler_exit sched_switch:out:S"),
        (False, Workflow.INTERRUPT,
         "softirq_entry:TIMER softirq_exit:TIMER, irq_handler_entry:virtio0 irq_handler_exit:virtio0"),
        (False, Workflow.MEMORY, "page_fault_user sched_switch:out:S"),
    ],
)  # fmt: skip
def test_events_belong_to_the_class_of_table_2_or_of_the_mapping_of_the_kernel(
    kvm: bool, workflow: Workflow, pairs: str
) -> None:
    for before, after in (pair.split() for pair in pairs.split(", ")):
        edge = Edge(before=before, after=after, count=1, seconds=0.1)
        assert classify(edge, virtual_machine=kvm) is workflow, (before, after)


def test_portions_have_all_nine_classes_and_the_same_vnf_alone() -> None:
    here = traced((*ENTRY, 10, 0.2), ("kvm_exit:HLT", "kvm_entry", 10, 0.6))
    found = {each.workflow: each for each in portions(here, traced((*ENTRY, 40, 1.0), traced_s=2.0))}
    assert list(found) == [each.value for each in Workflow] and len(found) == 9
    computing = found[Workflow.COMPUTATION]
    assert (computing.count_per_s, computing.time_ratio) == (10, 0.2)
    assert (computing.alone_count_per_s, computing.alone_time_ratio) == (20, 0.5)
    assert found[Workflow.IDLENESS].time_ratio == 0.6
    assert found[Workflow.IO].time_ratio == found[Workflow.IO].alone_time_ratio == 0


def test_shares_are_of_the_time_of_all_threads_and_alone_unknown_where_it_was_not_traced() -> None:
    edges = [(f"sched_switch:{what}", "x", 1, 2.0) for what in ("in", "out:S")]
    assert sum(each.time_ratio for each in portions(graph("nat", *edges))) == pytest.approx(1)
    assert {each.alone_time_ratio for each in portions(graph("nat", ("a", "b", 1, 0.1)))} == {None}
    assert portions(graph("nat", traced_s=0.0)) == ()
    one = traced((*ENTRY, 1, 1.0)).model_copy(update={"source": "sim"})
    ratios = {each.workflow: each.time_ratio for each in portions(one)}
    assert ratios[Workflow.COMPUTATION] == 1, "a simulated graph is read by the events that it has"


def statistic(order: list[str], volume_bps: float, owner: str, feature: str, mean: float) -> Statistic:
    return Statistic(
        chain=chain(*order), workload=workload(volume_bps), owner=owner, feature=feature, mean=mean, stdev=mean / 8,
        samples=5, filtered=1,
    )  # fmt: skip


STATISTICS = st.builds(
    statistic, st.sampled_from([["nat"], ["nat", "ids"], ["ids", "nat"]]), st.sampled_from([1e6, 2e6]),
    st.sampled_from(["nat", "host"]), st.sampled_from(["cpu_percent", "rx_pps"]), st.floats(0, 1e9),
)  # fmt: skip


@given(st.lists(STATISTICS, max_size=12))
def test_statistics_come_back_from_a_record_in_their_order(statistics: list[Statistic]) -> None:
    study = model.ChainStudy(spec=spec_of(["nat", "ids"]), chains=3, statistics=tuple(statistics))
    assert model.ChainStudy.model_validate_json(study.model_dump_json()).statistics == tuple(statistics)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ({"chain": {}}, r"statistics: 0\.chain\.members"),
        ({"features": [{"owner": "nat"}]}, r"statistics\.0\.feature"),
        ({"features": 3}, r"statistics: 0\.features"),
    ],
)
def test_errors_in_a_group_are_reported_with_their_place(damage: dict[str, object], error: str) -> None:
    data = json.loads(chain_studied().model_dump_json())
    data["chain_study"]["statistics"][0] |= damage
    with pytest.raises(ReadError, match=rf"x: the record is not valid: chain_study\.{error}"):
        parse_record(json.dumps(data), "x")


@pytest.mark.parametrize(
    ("values", "kept", "gone"),
    [
        ([10, 11, 12, 13, 14, 90, 10, 12, 12, 6.4], [10, 11, 12, 13, 14, 10, 12, 12], 2),  # fences 6.5 and 16.5
        ([0, 1, 2, 3, 6], [0, 1, 2, 3, 6], 0),  # quartiles 1 and 3, fences -2 and 6: one on the fence stays
        ([0, 1, 2, 3, 6.1], [0, 1, 2, 3], 1),
        ([1, 1, 1000], [1, 1, 1000], 0),  # of three values none is known to be off
        ([1, 1, 1, 1000], [1, 1, 1], 1),
        ([None, 5.0, float("nan"), 5.0], [5.0, 5.0], 0),  # unknown values are no outliers
    ],
)
def test_readings_far_outside_the_quartiles_go(values: list[float | None], kept: list[float], gone: int) -> None:
    assert ordinary(values) == (kept, gone)


def test_means_are_of_what_is_left_for_each_chain_owner_workload_and_feature() -> None:
    what = chain("a", "b")
    runs = [
        run(what, 1e8, 9e7, {"a": {"cpu_percent": [10, 12, 11, 11, 99]}, "b": {"cpu_percent": [None]}}),
        run(what, 2e8, 9e7, {"a": {"cpu_percent": [20.0]}}),
        run(chain("a"), 1e8, 1e8, {"a": {"cpu_percent": [1.0]}}).model_copy(update={"failed": "no traffic"}),
    ]
    found = {(each.owner, each.workload.volume_bps, each.feature): each for each in statistics(runs)}
    first = found["a", 1e8, "cpu_percent"]
    assert (first.mean, first.samples, first.filtered) == (11, 4, 1)
    assert first.stdev == pytest.approx((2 / 3) ** 0.5)
    assert found["a", 2e8, "cpu_percent"].stdev == 0
    assert found[CHAIN, 1e8, "throughput_bps"].mean == 9e7
    assert ("b", 1e8, "cpu_percent") not in found
    assert all(len(each.chain.members) == 2 for each in found.values())

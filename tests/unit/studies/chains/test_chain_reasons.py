"""Reasons in plain sentences, the strongest first, and the classes of events that they are taken from."""

from collections.abc import Mapping

import pytest

from resources.libraries.python.model.measurements.features import Edge, StateGraph
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.chains.analysis.classes import Workflow, classify, pauses_per_s, portions
from resources.libraries.python.studies.chains.analysis.reasons import Evidence, QueueDrops, amount, reasons
from resources.libraries.python.studies.chains.model.record import FeatureDeviation
from resources.libraries.python.studies.chains.model.spec import Member
from tests.unit.studies.chains.chain_runs import graph, workload

NAT = Member(name="nat", size=NfSize.ONE)
SLEEP, ENTRY, PAUSE = ("sched_switch:out:S", "x"), ("kvm_entry", "kvm_exit:HLT"), ("kvm_exit:PAUSE_INSTRUCTION", "x")


def said(
    here: Mapping[str, float] | None = None,
    alone: Mapping[str, float] | None = None,
    graphs: tuple[StateGraph, StateGraph] | None = None,
    cpus: float | None = 1.0,
) -> list[str]:
    one, other = graphs or (None, None)
    classes = portions(one, other) if one else ()
    here, alone = here or {}, alone or {}
    changed = {name for name in here if name in alone and here[name] != alone[name]}
    evidence = Evidence(NAT, here, alone, changed, cpus, classes, one, other)
    return [reason.sentence for reason in reasons([evidence])]


def test_what_it_does_alone_as_well_is_no_reason() -> None:
    same = {"throttled_percent": 67.0, "waiting_percent": 40.0, "tx_dropped_pps": 500.0, "rx_pps": 9e3}
    assert not said(same, same)


def between(here: float, alone: float | None, passed_pps: float) -> list[str]:
    """What is said of drops of the vSwitch."""
    return [
        each.sentence for each in reasons([], [], [QueueDrops("the vSwitch, on transmit,", here, alone, passed_pps)])
    ]


def test_drops_are_a_reason_from_fifty_a_second_half_a_percent_and_twice_as_many_on() -> None:
    for no_reason, reason in (
        ((49, 0, 1000), (51, 0, 1000)),
        ((996, 0, 2e5), (1010, 0, 2e5)),
        ((1000, 505, 1000), (1000, 495, 1000)),
        ((2000, None, 8000), (2000, 10, 8000)),
    ):
        assert not between(*no_reason)
        assert between(*reason)
    assert between(2000, 10, 8000) == [
        "the vSwitch, on transmit, drops 2,000 packets a second, 10 at most with its VNFs alone"
    ]


def test_packets_dropped_at_a_queue_are_named_with_the_queue() -> None:
    assert said({"rx_dropped_pps": 3000, "rx_pps": 7000}, {"rx_dropped_pps": 0}) == [
        "the queue into nat overflows: 3,000 packets a second are dropped, 30.0 % more than alone"
    ]
    assert said({"tx_dropped_pps": 1000, "tx_pps": 9000}, {"tx_dropped_pps": 0}) == [
        "the queue behind nat overflows: 1,000 packets a second are dropped, 10.0 % more than alone"
    ]


@pytest.mark.parametrize("cpus", [0.5, 1.0, 2.0])
def test_a_vnf_that_uses_all_of_its_cpus_is_compute_bound_however_many_it_has(cpus: float) -> None:
    assert said({"cpu_percent": 99 * cpus}, {"cpu_percent": 40 * cpus}, cpus=cpus) == [
        f"nat is compute-bound: it uses {0.99 * cpus:.2f} of {cpus:g} CPUs, {0.4 * cpus:.2f} alone"
    ]
    assert not said({"cpu_percent": 89 * cpus}, {"cpu_percent": 40 * cpus}, cpus=cpus)
    assert not said({"cpu_percent": 99 * cpus}, {"cpu_percent": 91 * cpus}, cpus=cpus)
    assert said({"cpu_percent": 91 * cpus}, {"cpu_percent": 89 * cpus}, cpus=cpus)


def test_without_ground_truth_or_a_number_of_cpus_no_reason_is_given() -> None:
    assert not said({"throttled_percent": 67, "waiting_percent": 90, "rx_dropped_pps": 3000, "rx_pps": 7000})
    assert not said({"cpu_percent": 99}) + said({"read_bytes_per_s": 5e7})
    assert not said({"cpu_percent": 201}, {"cpu_percent": 40}, cpus=None)


def test_computation_close_to_the_time_given_is_compute_bound_however_little_was_given() -> None:
    here = graph("nat", (*ENTRY, 10, 0.19), ("sched_switch:out:R", "x", 10, 0.8), ("kvm_msr", "x", 1, 0.01), kvm=True)
    alone = graph("nat", (*ENTRY, 10, 0.1), ("kvm_exit:HLT", "x", 10, 0.9), kvm=True)
    assert "nat is compute-bound: it computes 95 % of the time that it is given, 10 % of all time alone" in said(
        graphs=(here, alone)
    )


def test_pause_exits_are_lock_contention() -> None:
    here, alone = graph("nat", (*PAUSE, 5000, 0.01), kvm=True), graph("nat", (*PAUSE, 12, 0.0), kvm=True)
    assert said(graphs=(here, alone)) == [
        "nat has lock contention: 5,000 VM exits a second by PAUSE instructions, 12 alone"
    ]
    assert not said(graphs=(alone, here))


def test_hard_switches_of_the_papers_nat_are_reported() -> None:
    """18.6 times in the good order, 785.9 in the bad one."""
    tenth = [("kvm_userspace_exit:IO", "kvm_fpu:unload", count, 0.01) for count in (7859, 186)]
    here, alone = (graph("nat", edge, traced_s=10.0, kvm=True) for edge in tenth)
    assert said(graphs=(here, alone)) == ["hard switches of nat rose to 785.9 a second, 18.6 alone"]


@pytest.mark.parametrize(
    ("before", "alone", "change", "sentence"),
    [
        ("kvm_entry", 0.5, -0.61, f"nat spends less time computing: 20 % of the time, 50 % alone ({MINUS}61 %)"),
        ("kvm_entry", 0.5, -0.281, f"nat spends less time computing: 36 % of the time, 50 % alone ({MINUS}28 %)"),
        ("kvm_exit:HLT", 0.3, 1.34, "nat spends more time idle: 70 % of the time, 30 % alone (+134 %)"),
        ("kvm_exit:HLT", 0.001, 599.0, "nat spends more time idle: 60 % of the time, 0 % alone"),
    ],
)
def test_portions_of_the_papers_chain_are_reported(before: str, alone: float, change: float, sentence: str) -> None:
    """Computation -61 % and -28.1 %, idleness of the NAT +134 % when Tcpdump comes into the chain."""
    one, other = (graph("nat", (before, "x", 9, seconds), kvm=True) for seconds in (alone * (1 + change), alone))
    assert sentence in said(graphs=(one, other))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5e9, "bit/s", "1.5 Gbit/s"), (9e8, "bit/s", "900 Mbit/s"), (9e7, "B", "90 MB"), (9e5, "B", "900 kB"),
        (999, "pps", "999 pps"), (4000, "1/s", "4,000 per second"), (12.345, "%", "12.3 %"), (3, "", "3"),
    ],
)  # fmt: skip
def test_amounts_have_three_digits_and_a_prefix_where_their_unit_takes_one(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_where_no_rule_says_anything_the_largest_change_is_named() -> None:
    deviation = FeatureDeviation(
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
    here = graph("nat", ("kvm_entry", "kvm_exit:HLT", 10, 0.2), ("kvm_exit:HLT", "kvm_entry", 10, 0.6), kvm=True)
    alone = graph("nat", ("kvm_entry", "kvm_exit:HLT", 40, 1.0), traced_s=2.0, kvm=True)
    found = {each.workflow: each for each in portions(here, alone)}
    assert list(found) == [each.value for each in Workflow]
    assert len(found) == 9
    computing = found[Workflow.COMPUTATION]
    assert (computing.count_per_s, computing.time_ratio) == (10, 0.2)
    assert (computing.alone_count_per_s, computing.alone_time_ratio) == (20, 0.5)
    assert found[Workflow.IDLENESS].time_ratio == 0.6
    assert found[Workflow.IO].time_ratio == found[Workflow.IO].alone_time_ratio == 0


def test_shares_of_several_threads_are_of_all_their_time() -> None:
    edges = [(f"sched_switch:{what}", "x", 1, 2.0) for what in ("in", "out:S")]
    assert sum(each.time_ratio for each in portions(graph("nat", *edges))) == pytest.approx(1)


def test_alone_is_unknown_where_it_was_not_traced() -> None:
    assert {each.alone_time_ratio for each in portions(graph("nat", ("a", "b", 1, 0.1)))} == {None}
    assert portions(graph("nat", traced_s=0.0)) == ()
    one = graph("nat", ("kvm_entry", "kvm_exit:HLT", 1, 1.0), kvm=True).model_copy(update={"source": "sim"})
    ratios = {each.workflow: each.time_ratio for each in portions(one)}
    assert ratios[Workflow.COMPUTATION] == 1, "a simulated graph is read by the events that it has"


def test_exits_by_pause_are_counted_by_the_second() -> None:
    pauses = ("kvm_exit:PAUSE_INSTRUCTION", "kvm_entry", 600, 0.1)
    assert pauses_per_s(graph("nat", pauses, ("kvm_exit:HLT", "x", 5, 0.1), traced_s=2.0)) == 300

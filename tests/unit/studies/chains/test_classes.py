"""Table 2 of Probius: which class a pair of events belongs to, and the portions of a VNF against itself alone."""

import pytest

from resources.libraries.python.model.measurements.features import Edge
from resources.libraries.python.studies.chains.analysis.classes import Workflow, classify, pauses_per_s, portions
from tests.unit.studies.chains.chain_runs import graph


def of(before: str, after: str, *, kvm: bool) -> Workflow:
    return classify(Edge(before=before, after=after, count=1, seconds=0.1), virtual_machine=kvm)


@pytest.mark.parametrize(
    ("before", "after", "workflow"),
    [
        ("kvm_entry", "kvm_exit:HLT", Workflow.COMPUTATION),
        ("kvm_exit:HLT", "kvm_fpu:unload", Workflow.IDLENESS),
        ("kvm_exit:HLT", "kvm_vcpu_wakeup:wait", Workflow.IDLENESS),
        ("kvm_exit:HLT", "kvm_entry", Workflow.IDLENESS),
        ("sched_switch:out:S", "sched_switch:in", Workflow.IDLENESS),
        ("sched_switch:in", "kvm_vcpu_wakeup:wait", Workflow.INITIALIZATION),
        ("kvm_vcpu_wakeup:wait", "kvm_fpu:load", Workflow.INITIALIZATION),
        ("kvm_fpu:load", "kvm_entry", Workflow.INITIALIZATION),
        ("kvm_ple_window", "kvm_vcpu_wakeup:wait", Workflow.INITIALIZATION),
        ("kvm_ple_window", "kvm_fpu:unload", Workflow.HARD_SWITCH),
        ("kvm_userspace_exit:IO", "kvm_fpu:unload", Workflow.HARD_SWITCH),
        ("kvm_ple_window", "kvm_halt_poll_ns", Workflow.SOFT_SWITCH),
        ("kvm_vcpu_wakeup:poll", "kvm_entry", Workflow.SOFT_SWITCH),
        ("kvm_exit:MSR_WRITE", "kvm_msr", Workflow.MEMORY),
        ("kvm_exit:APIC_ACCESS", "kvm_apic", Workflow.MEMORY),
        ("kvm_msr", "kvm_entry", Workflow.MEMORY),
        ("kvm_exit:EPT_MISCONFIG", "kvm_emulate_insn", Workflow.MEMORY),
        ("kvm_emulate_insn", "kvm_mmio", Workflow.MEMORY),
        ("kvm_userspace_exit:MMIO", "kvm_entry", Workflow.MEMORY),
        ("kvm_exit:EPT_VIOLATION", "kvm_page_fault", Workflow.MEMORY),
        ("kvm_page_fault", "kvm_entry", Workflow.MEMORY),
        ("kvm_exit:PAUSE_INSTRUCTION", "kvm_entry", Workflow.INTERRUPT),
        ("kvm_exit:EXTERNAL_INTERRUPT", "kvm_entry", Workflow.INTERRUPT),
        ("kvm_exit:EXCEPTION_NMI", "kvm_entry", Workflow.INTERRUPT),
        ("kvm_exit:EOI_INDUCED", "kvm_eoi", Workflow.INTERRUPT),
        ("kvm_exit:EXTERNAL_INTERRUPT", "kvm_fpu:unload", Workflow.INTERRUPT),
        ("kvm_msi_set_irq", "kvm_entry", Workflow.INTERRUPT),
        ("kvm_set_irq", "kvm_entry", Workflow.INTERRUPT),
        ("kvm_exit:CPUID", "kvm_cpuid", Workflow.MEMORY),
        ("kvm_exit:IO_INSTRUCTION", "kvm_emulate_insn", Workflow.IO),
        ("kvm_exit:IO_INSTRUCTION", "kvm_pio", Workflow.IO),
        ("kvm_pio", "kvm_userspace_exit:IO", Workflow.IO),
        ("kvm_emulate_insn", "kvm_userspace_exit:IO", Workflow.IO),
        ("kvm_userspace_exit:IO", "kvm_entry", Workflow.IO),
        ("kvm_fpu:unload", "kvm_ple_window", Workflow.NOT_ASSIGNED),
        ("kvm_fpu:unload", "sched_switch:out:S", Workflow.NOT_ASSIGNED),
        ("sched_switch:out:R", "sched_switch:in", Workflow.NOT_ASSIGNED),
        ("something_new", "kvm_entry", Workflow.NOT_ASSIGNED),
    ],
)
def test_pairs_of_kvm_are_those_of_table_2(before: str, after: str, workflow: Workflow) -> None:
    assert of(before, after, kvm=True) is workflow


@pytest.mark.parametrize(
    ("before", "after", "workflow"),
    [
        ("sched_switch:out:S", "sched_switch:in", Workflow.IDLENESS),
        ("sched_switch:out:S", "sched_wakeup", Workflow.IDLENESS),
        ("sched_wakeup", "sched_switch:in", Workflow.SOFT_SWITCH),
        ("sched_switch:out:R", "sched_switch:in", Workflow.HARD_SWITCH),
        ("sched_switch:out:R+", "sched_switch:in", Workflow.HARD_SWITCH),
        ("sched_switch:out:X", "sched_switch:in", Workflow.NOT_ASSIGNED),
        ("sched_process_exec", "sched_switch:out:S", Workflow.INITIALIZATION),
        ("napi_poll:part", "netif_receive_skb", Workflow.IO),
        ("sched_switch:in", "napi_poll:full", Workflow.IO),
        ("net_dev_queue", "net_dev_xmit:sent", Workflow.IO),
        ("softirq_exit:NET_RX", "sched_switch:out:S", Workflow.COMPUTATION),
        ("softirq_entry:NET_RX", "softirq_exit:NET_RX", Workflow.IO),
        ("softirq_entry:TIMER", "softirq_exit:TIMER", Workflow.INTERRUPT),
        ("irq_handler_entry:virtio0", "irq_handler_exit:virtio0", Workflow.INTERRUPT),
        ("page_fault_user", "sched_switch:out:S", Workflow.MEMORY),
        ("sched_switch:in", "sched_switch:out:S", Workflow.COMPUTATION),
        ("irq_handler_exit", "sched_switch:out:S", Workflow.COMPUTATION),
    ],
)
def test_pairs_of_the_kernel_follow_the_documented_mapping(before: str, after: str, workflow: Workflow) -> None:
    assert of(before, after, kvm=False) is workflow


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


def test_a_simulated_graph_is_read_by_the_events_it_has() -> None:
    one = graph("nat", ("kvm_entry", "kvm_exit:HLT", 1, 1.0), kvm=True).model_copy(update={"source": "sim"})
    assert {each.workflow: each.time_ratio for each in portions(one)}[Workflow.COMPUTATION] == 1


def test_exits_by_pause_are_counted_by_the_second() -> None:
    found = graph(
        "nat", ("kvm_exit:PAUSE_INSTRUCTION", "kvm_entry", 600, 0.1), ("kvm_exit:HLT", "x", 5, 0.1), traced_s=2.0
    )
    assert pauses_per_s(found) == 300

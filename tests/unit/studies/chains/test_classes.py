"""Table 2 of Probius: which class a pair of events belongs to, and the portions of a VNF against itself alone."""

import pytest

from resources.libraries.python.model.measurements.features import Edge
from resources.libraries.python.studies.chains.analysis.classes import Workflow, classify, pauses_per_s, portions
from tests.unit.studies.chains.chain_runs import graph


@pytest.mark.parametrize(
    ("kvm", "before", "after", "workflow"),
    [
        (True, "kvm_entry", "kvm_exit:HLT", Workflow.COMPUTATION),
        (True, "kvm_exit:HLT", "kvm_fpu:unload", Workflow.IDLENESS),
        (True, "kvm_exit:HLT", "kvm_vcpu_wakeup:wait", Workflow.IDLENESS),
        (True, "kvm_exit:HLT", "kvm_entry", Workflow.IDLENESS),
        (True, "sched_switch:out:S", "sched_switch:in", Workflow.IDLENESS),
        (True, "sched_switch:in", "kvm_vcpu_wakeup:wait", Workflow.INITIALIZATION),
        (True, "kvm_vcpu_wakeup:wait", "kvm_fpu:load", Workflow.INITIALIZATION),
        (True, "kvm_fpu:load", "kvm_entry", Workflow.INITIALIZATION),
        (True, "kvm_ple_window", "kvm_vcpu_wakeup:wait", Workflow.INITIALIZATION),
        (True, "kvm_ple_window", "kvm_fpu:unload", Workflow.HARD_SWITCH),
        (True, "kvm_userspace_exit:IO", "kvm_fpu:unload", Workflow.HARD_SWITCH),
        (True, "kvm_ple_window", "kvm_halt_poll_ns", Workflow.SOFT_SWITCH),
        (True, "kvm_vcpu_wakeup:poll", "kvm_entry", Workflow.SOFT_SWITCH),
        (True, "kvm_exit:MSR_WRITE", "kvm_msr", Workflow.MEMORY),
        (True, "kvm_exit:APIC_ACCESS", "kvm_apic", Workflow.MEMORY),
        (True, "kvm_msr", "kvm_entry", Workflow.MEMORY),
        (True, "kvm_exit:EPT_MISCONFIG", "kvm_emulate_insn", Workflow.MEMORY),
        (True, "kvm_emulate_insn", "kvm_mmio", Workflow.MEMORY),
        (True, "kvm_userspace_exit:MMIO", "kvm_entry", Workflow.MEMORY),
        (True, "kvm_exit:EPT_VIOLATION", "kvm_page_fault", Workflow.MEMORY),
        (True, "kvm_page_fault", "kvm_entry", Workflow.MEMORY),
        (True, "kvm_exit:PAUSE_INSTRUCTION", "kvm_entry", Workflow.INTERRUPT),
        (True, "kvm_exit:EXTERNAL_INTERRUPT", "kvm_entry", Workflow.INTERRUPT),
        (True, "kvm_exit:EXCEPTION_NMI", "kvm_entry", Workflow.INTERRUPT),
        (True, "kvm_exit:EOI_INDUCED", "kvm_eoi", Workflow.INTERRUPT),
        (True, "kvm_exit:EXTERNAL_INTERRUPT", "kvm_fpu:unload", Workflow.INTERRUPT),
        (True, "kvm_msi_set_irq", "kvm_entry", Workflow.INTERRUPT),
        (True, "kvm_set_irq", "kvm_entry", Workflow.INTERRUPT),
        (True, "kvm_exit:CPUID", "kvm_cpuid", Workflow.MEMORY),
        (True, "kvm_exit:IO_INSTRUCTION", "kvm_emulate_insn", Workflow.IO),
        (True, "kvm_exit:IO_INSTRUCTION", "kvm_pio", Workflow.IO),
        (True, "kvm_pio", "kvm_userspace_exit:IO", Workflow.IO),
        (True, "kvm_emulate_insn", "kvm_userspace_exit:IO", Workflow.IO),
        (True, "kvm_userspace_exit:IO", "kvm_entry", Workflow.IO),
        (True, "kvm_fpu:unload", "kvm_ple_window", Workflow.NOT_ASSIGNED),
        (True, "kvm_fpu:unload", "sched_switch:out:S", Workflow.NOT_ASSIGNED),
        (True, "sched_switch:out:R", "sched_switch:in", Workflow.NOT_ASSIGNED),
        (True, "something_new", "kvm_entry", Workflow.NOT_ASSIGNED),
        (False, "sched_switch:out:S", "sched_switch:in", Workflow.IDLENESS),
        (False, "sched_switch:out:S", "sched_wakeup", Workflow.IDLENESS),
        (False, "sched_wakeup", "sched_switch:in", Workflow.SOFT_SWITCH),
        (False, "sched_switch:out:R", "sched_switch:in", Workflow.HARD_SWITCH),
        (False, "sched_switch:out:R+", "sched_switch:in", Workflow.HARD_SWITCH),
        (False, "sched_switch:out:X", "sched_switch:in", Workflow.NOT_ASSIGNED),
        (False, "sched_process_exec", "sched_switch:out:S", Workflow.INITIALIZATION),
        (False, "napi_poll:part", "netif_receive_skb", Workflow.IO),
        (False, "sched_switch:in", "napi_poll:full", Workflow.IO),
        (False, "net_dev_queue", "net_dev_xmit:sent", Workflow.IO),
        (False, "softirq_exit:NET_RX", "sched_switch:out:S", Workflow.COMPUTATION),
        (False, "softirq_entry:NET_RX", "softirq_exit:NET_RX", Workflow.IO),
        (False, "softirq_entry:TIMER", "softirq_exit:TIMER", Workflow.INTERRUPT),
        (False, "irq_handler_entry:virtio0", "irq_handler_exit:virtio0", Workflow.INTERRUPT),
        (False, "page_fault_user", "sched_switch:out:S", Workflow.MEMORY),
        (False, "sched_switch:in", "sched_switch:out:S", Workflow.COMPUTATION),
        (False, "irq_handler_exit", "sched_switch:out:S", Workflow.COMPUTATION),
    ],
)
def test_pairs_of_events_belong_to_the_class_of_table_2_or_of_the_documented_mapping_of_the_kernel(
    kvm: bool, before: str, after: str, workflow: Workflow
) -> None:
    assert classify(Edge(before=before, after=after, count=1, seconds=0.1), virtual_machine=kvm) is workflow


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

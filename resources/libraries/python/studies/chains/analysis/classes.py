"""The nine classes of a VNF's work, from pairs of events that followed each other (Probius, Table 2).

The time between two events belongs to what the first one began. `StateGraph` writes an event as its name and, after
colons, its data. What counts is the first row that fits.

Events of KVM (a virtual machine; rows of Table 2 in terms of single pairs):

    entry -> anything                                               computation
    HLT exit, or what follows a thread that went to sleep           idleness
    halt poll -> anything; wake-up -> entry                         soft switch
    wake-up, VMCS load, scheduled in -> anything                    VM initialization
    preempted -> VMCS unload; userspace exit -> VMCS unload, out    hard switch
    preempted -> anything else; VMCS unload -> preempted, out       N/A: others have the CPU
    exit for PIO; PIO, userspace exit but for MMIO -> anything      I/O operation
    emulated instruction -> userspace exit                          I/O operation
    exit for MSR, APIC, EPT; MSR, APIC, page fault, MMIO,
      emulated instruction -> anything                              memory access
    other exits, CPUID, hypercalls (not in the table)               memory access, as for MSRs
    exit for an interrupt, PAUSE, NMI, EOI; interrupt events,
      an exit -> VMCS unload or preemption                          interrupt

Older kernels have no event for loading the VMCS; the events of its floating point state (`kvm_fpu`) stand for it, as in
the code that was published with the paper, and so do `sched_switch` for preemption and wake-up of the thread.

Events of the kernel (a container's threads and the kernel's threads that work for it; our mapping):

    scheduled out asleep -> anything                                idleness
    woken -> scheduled in                                           soft switch: ready, and waits for a CPU
    scheduled out while ready to run -> anything                    hard switch: others were given the CPU
    process begun, program loaded, moved to another CPU             VM initialization
    NAPI, network devices, network soft interrupts, either side     I/O operation
    hardware interrupts and other soft interrupts                   interrupt
    page faults                                                     memory access
    scheduled in, anything else -> anything                         computation
    a thread that ended                                             N/A
"""

import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from resources.libraries.python.model.measurements.features import Edge, StateGraph
from resources.libraries.python.studies.chains.model import ClassPortion


class Workflow(StrEnum):
    """Table 2, in its order."""

    INITIALIZATION = "VM initialization"
    HARD_SWITCH = "hard switch"
    SOFT_SWITCH = "soft switch"
    COMPUTATION = "computation"
    MEMORY = "memory access"
    INTERRUPT = "interrupt"
    IO = "I/O operation"
    IDLENESS = "idleness"
    NOT_ASSIGNED = "N/A"


_Rows = tuple[tuple[str, str, Workflow], ...]
"""Patterns of the event before and of the event after, both from their beginnings, and the class."""

_OUT = r"sched_switch:out"
_READY = _OUT + r":(R|preempted)"
_ASLEEP = _OUT + r":[SDI]"
_ENDED = _OUT + r":[XZ]"
_UNLOAD = r"kvm_fpu:(unload|0)|kvm_vmcs_unload|vmcs_unload"
_LOAD = r"kvm_fpu:(load|1)|kvm_vmcs_load|vmcs_load"
_PREEMPTED = _READY + r"|kvm_ple_window|kvm_vcpu_preempt"
_WAKEUP = r"kvm_vcpu_wakeup|sched_waking|sched_wakeup"
_IRQ = r"kvm_(inj_virq|inj_exception|(.*_)?set_irq|(pv_)?eoi|ack_irq|.*_ipi|msi|apic_accept_irq)|irq_|softirq_"
_BY_REASON = (
    (r"HLT|MWAIT", Workflow.IDLENESS),
    (r"IO_?INSTRUCTION|IOIO|PIO|IO$", Workflow.IO),
    (r"MSR|APIC|EPT|NPF|AVIC|TPR", Workflow.MEMORY),
    (r"PAUSE|(EXTERNAL_?|PENDING_?)?INTERRUPT$|INTERRUPT_?WINDOW|INTR|VINTR|EXCEPTION|NMI|EOI|PREEMPTION_TIMER",
     Workflow.INTERRUPT),
)  # fmt: skip

_KVM: _Rows = (
    (r"kvm_entry", "", Workflow.COMPUTATION),
    (r"kvm_exit:(HLT|MWAIT)", "", Workflow.IDLENESS),
    (_ASLEEP, "", Workflow.IDLENESS),
    (_ENDED, "", Workflow.NOT_ASSIGNED),
    (r"kvm_halt_poll", "", Workflow.SOFT_SWITCH),
    (_PREEMPTED, r"kvm_halt_poll", Workflow.SOFT_SWITCH),
    (_WAKEUP, r"kvm_entry", Workflow.SOFT_SWITCH),
    (_PREEMPTED, _UNLOAD, Workflow.HARD_SWITCH),
    (r"kvm_userspace_exit", f"{_UNLOAD}|{_OUT}", Workflow.HARD_SWITCH),
    (_PREEMPTED, _WAKEUP + f"|{_LOAD}|kvm_entry", Workflow.INITIALIZATION),
    (_PREEMPTED, "", Workflow.NOT_ASSIGNED),
    (_UNLOAD, f"{_PREEMPTED}|{_OUT}", Workflow.NOT_ASSIGNED),
    (_UNLOAD, _WAKEUP, Workflow.IDLENESS),
    (f"{_WAKEUP}|{_LOAD}|sched_switch:in|sched_migrate_task", "", Workflow.INITIALIZATION),
    (r"kvm_exit", f"{_UNLOAD}|{_PREEMPTED}", Workflow.INTERRUPT),
    *((rf"kvm_exit:([^:]*_)?({reason})", "", workflow) for reason, workflow in _BY_REASON),
    (r"kvm_userspace_exit:.*MMIO", "", Workflow.MEMORY),
    (r"kvm_userspace_exit:.*INTR", "", Workflow.INTERRUPT),
    (r"kvm_pio|kvm_userspace_exit", "", Workflow.IO),
    (r"kvm_emulate_insn", r"kvm_userspace_exit", Workflow.IO),
    (r"kvm_(msr|apic|page_fault|mmio|emulate_insn|fast_mmio)|vcpu_match_mmio|page_fault", "", Workflow.MEMORY),
    (_IRQ, "", Workflow.INTERRUPT),
    (r"kvm_(exit|cpuid|hypercall|cr)", "", Workflow.MEMORY),
)

_NETWORK = r"napi_|net(if)?_|skb_|consume_skb|kfree_skb|xdp_|tcp_|udp_|sock_"
_KERNEL: _Rows = (
    (_READY, "", Workflow.HARD_SWITCH),
    (_ENDED, "", Workflow.NOT_ASSIGNED),
    (_OUT, "", Workflow.IDLENESS),
    (r"sched_wak", r"sched_switch:in", Workflow.SOFT_SWITCH),
    (r"sched_process_(fork|exec)|sched_migrate_task|task_newtask|sched_wakeup_new", "", Workflow.INITIALIZATION),
    (r"sched_process_exit", "", Workflow.NOT_ASSIGNED),
    (f"{_NETWORK}|softirq_entry:NET", "", Workflow.IO),
    (r"(exceptions:)?page_fault", "", Workflow.MEMORY),
    (r"(hard)?irq_handler_entry|softirq_entry|irq_vectors|local_timer_entry|tasklet_entry", "", Workflow.INTERRUPT),
    ("", f"{_NETWORK}|softirq_exit:NET", Workflow.IO),
    ("", r"irq_handler_exit|softirq_exit|tasklet_exit", Workflow.INTERRUPT),
    ("", "", Workflow.COMPUTATION),
)

_PAUSE = re.compile(r"kvm_exit:[^:]*PAUSE")


def classify(edge: Edge, *, virtual_machine: bool) -> Workflow:
    """The class of a pair of events; N/A for one that no row knows."""
    for before, after, workflow in _KVM if virtual_machine else _KERNEL:
        if re.match(before, edge.before) and re.match(after, edge.after):
            return workflow
    return Workflow.NOT_ASSIGNED


def is_of_kvm(graph: StateGraph) -> bool:
    """Whether its events are those of a virtual machine; a simulated graph may be of either kind."""
    if graph.source != "sim":
        return graph.source == "kvm"
    return any(edge.before.startswith("kvm_") for edge in graph.edges)


def portions(graph: StateGraph, alone: StateGraph | None = None) -> tuple[ClassPortion, ...]:
    """Count and time of a VNF in each of the nine classes, compared with the same VNF alone.

    Shares are of the time of all its threads between their events, or of the traced time where that is longer.
    Nothing is known of a graph without traced time.
    """
    if graph.traced_s <= 0:
        return ()
    counts, times = _sums(graph)
    if alone is not None and alone.traced_s <= 0:
        alone = None
    counts_alone, times_alone = ({}, {}) if alone is None else _sums(alone)
    return tuple(
        ClassPortion(
            owner=graph.owner,
            workflow=workflow.value,
            count_per_s=counts.get(workflow, 0.0),
            time_ratio=times.get(workflow, 0.0),
            alone_count_per_s=None if alone is None else counts_alone.get(workflow, 0.0),
            alone_time_ratio=None if alone is None else times_alone.get(workflow, 0.0),
        )
        for workflow in Workflow
    )


def pauses_per_s(graph: StateGraph) -> float:
    """VM exits by a PAUSE instruction: a VNF that spins for a lock (section 6.3)."""
    pauses = sum(edge.count for edge in graph.edges if _PAUSE.match(edge.before))
    return pauses / graph.traced_s if graph.traced_s > 0 else 0.0


def _sums(graph: StateGraph) -> tuple[Mapping[Workflow, float], Mapping[Workflow, float]]:
    """Counts a second, and shares of the time."""
    counts: Counter[Workflow] = Counter()
    seconds: dict[Workflow, float] = {}
    virtual_machine = is_of_kvm(graph)
    for edge in graph.edges:
        workflow = classify(edge, virtual_machine=virtual_machine)
        counts[workflow] += edge.count
        seconds[workflow] = seconds.get(workflow, 0.0) + edge.seconds
    whole = max(graph.traced_s, sum(seconds.values()))
    return (
        {workflow: count / graph.traced_s for workflow, count in counts.items()},
        {workflow: time / whole for workflow, time in seconds.items()},
    )

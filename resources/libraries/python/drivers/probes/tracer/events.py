"""Which events of the kernel are followed, and what of each becomes a vertex of the graph. Pure.

A vertex is an event with what matters of its data, joined by colons, reasons in upper case as Intel's are:
`kvm_exit:HLT`, `kvm_userspace_exit:IO`, `sched_switch:out:S`, `sched_switch:in`, `napi_poll:full`. Virtual machines:
the six core points of Probius (Nam et al., SOSR 2018, section 4.1), which are the scheduler's in and out, VMCS load
and store, VM entry, VM exit and exit to user space, and the points of its table 2. Linux has no trace point at VMCS
load and store themselves: a vCPU's context is loaded when it is switched in and stored when it is switched out, and
`kvm_fpu` marks the start and end of the loop that runs the guest.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Source = Literal["kvm", "kernel"]

SCHEDULING = ("sched/sched_switch", "sched/sched_wakeup")
KVM_PAIR = ("kvm/kvm_entry", "kvm/kvm_exit")
KVM_CORE = (*KVM_PAIR, "kvm/kvm_userspace_exit", "kvm/kvm_fpu")
KVM_MORE = (
    "kvm/kvm_vcpu_wakeup",
    "kvm/kvm_halt_poll_ns",
    "kvm/kvm_emulate_insn",
    "kvm/kvm_page_fault",
    "kvm/kvm_mmio",
    "kvm/kvm_pio",
    "kvm/kvm_msr",
    "kvm/kvm_cpuid",
    "kvm/kvm_hypercall",
    "kvm/kvm_apic",
    "kvm/kvm_apic_accept_irq",
    "kvm/kvm_inj_virq",
    "kvm/kvm_eoi",
    "kvm/kvm_set_irq",
    "kvm/kvm_msi_set_irq",
    "kvm/kvm_ple_window_update",
)
SELDOM = ("irq/irq_handler_entry", "irq/irq_handler_exit")
"""Too few to cost anything: devices hold their interrupts back while data threads poll. To switch these two on and off
in each window takes about as long as all of the network's together."""
INTERRUPTS = (*SELDOM, "irq/softirq_entry", "irq/softirq_exit")
NETWORK = ("napi/napi_poll", "net/netif_receive_skb", "net/net_dev_queue", "net/net_dev_xmit")

WANTED: Mapping[Source, tuple[str, ...]] = {
    "kvm": (*SCHEDULING, *KVM_CORE, *KVM_MORE),
    "kernel": (*SCHEDULING, *INTERRUPTS, *NETWORK),
}
_WHAT: Mapping[Source, str] = {"kvm": "virtual machines", "kernel": "containers and processes"}


@dataclass(frozen=True, slots=True)
class TracedOwner:
    """One owner of threads: an NF."""

    owner: str
    source: Source
    threads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Specification:
    """Task of the reader process."""

    instance: str
    events: tuple[str, ...]
    followed: tuple[TracedOwner, ...]
    window_s: float
    period_s: float
    cpu: int | None = None
    """Where all of it happens, if that is possible."""


@dataclass(frozen=True, slots=True)
class EventChoice:
    """Events that are traced for one kind of NF."""

    events: tuple[str, ...]
    """`system/event`, as folders below `events`; empty: nothing can be followed."""
    sentence: str
    """What it is and why no more."""


def frequent(events: Collection[str]) -> tuple[str, ...]:
    """Those that are recorded in windows only; the others are left on between them."""
    return tuple(event for event in events if event not in SELDOM)


def choose(source: Source, there: Collection[str]) -> EventChoice:
    """Choose events for one kind of NF.

    `there`: events that this kernel has, as `system/event`.
    """
    found = tuple(event for event in WANTED[source] if event in there)
    missing = [event for event in WANTED[source] if event not in there]
    what = _WHAT[source]
    if source == "kvm" and not set(KVM_PAIR) <= set(found):
        kept = tuple(event for event in found if event in SCHEDULING)
        lost = ", ".join(event for event in KVM_PAIR if event in missing)
        if not kept:
            return EventChoice(
                (), f"{what} cannot be traced: this kernel has neither {lost} nor events of the scheduler"
            )
        return EventChoice(kept, f"{what} by the scheduler's events only, because this kernel has no {lost}")
    if not found:
        return EventChoice((), f"{what} cannot be traced: this kernel has none of their events")
    groups = ", ".join(sorted({event.partition("/")[0] for event in found}))
    lack = f"; this kernel has no {', '.join(missing)}" if missing else ""
    return EventChoice(found, f"{what} by {len(found)} events of {groups}{lack}")

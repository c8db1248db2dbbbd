"""Events with their data become vertices on the threads that they happen to; reasons have the kernel's names."""

import struct

import pytest

from resources.libraries.python.drivers.probes.tracer.events import KVM_PAIR, SCHEDULING, WANTED, TracedOwner, choose
from resources.libraries.python.drivers.probes.tracer.reader import EventStream
from resources.libraries.python.drivers.probes.tracer.tracefs import parse
from resources.libraries.python.errors import CsitError
from tests.unit.drivers.probes.page_maker import Page, format_of, pages, record

SWITCH = format_of(
    "sched_switch",
    3,
    [
        ("prev_comm[16]", 8, 16),
        ("prev_pid", 24, 4),
        ("prev_state", 32, 8),
        ("next_comm[16]", 40, 16),
        ("next_pid", 56, 4),
    ],
    '"%s", __print_flags(REC->prev_state & 255, "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000080, "I" })',
)
WAKEUP = format_of("sched_wakeup", 4, [("comm[16]", 8, 16), ("pid", 24, 4)])
POLL = format_of("napi_poll", 5, [("napi", 8, 8), ("dev_name", 16, 4), ("work", 20, 4), ("budget", 24, 4)])
EXIT = format_of(
    "kvm_exit",
    6,
    [("exit_reason", 8, 4), ("guest_rip", 16, 8), ("isa", 24, 4)],
    '"%s", (REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, { 0, "EXCEPTION_NMI" }, { 12, "HLT" }) : '
    '__print_symbolic(REC->exit_reason, { 0x040 + 14, "PF excp" }, { 0x078, "hlt" }, '
    '{ 0x80000001, "vmgexit_mmio_read" }, '
    '{ -1, "invalid_guest_state" })',
)
USERSPACE = format_of(
    "kvm_userspace_exit",
    7,
    [("reason", 8, 4), ("errno", 12, 4)],
    '"%s", REC->errno < 0 ? "x" : __print_symbolic(REC->reason, { 2, "KVM_EXIT_" "IO" }, { 6, "KVM_EXIT_" "MMIO" })',
)
ENTRY = format_of("kvm_entry", 8, [("vcpu_id", 8, 4)])
IRQ = format_of("irq_handler_entry", 9, [("irq", 8, 4), ("name", 12, 4)])
ALL = (SWITCH, WAKEUP, POLL, EXIT, USERSPACE, ENTRY, IRQ)
NF, OTHER = 100, 55


def switch(before: int, state: int, after: int) -> bytes:
    return struct.pack("=HBBi16siiq16sii", 3, 0, 0, before, b"a", before, 0, state, b"b", after, 0)


def wakeup(by: int, thread: int) -> bytes:
    return struct.pack("=HBBi16si", 4, 0, 0, by, b"a", thread)


def kvm_exit(reason: int, isa: int) -> bytes:
    return record(6, NF, reason, 0, 0, 0, isa)


def path(
    *events: bytes, followed: tuple[TracedOwner, ...] = (TracedOwner("nf", "kernel", (NF,)),)
) -> list[tuple[str, str]]:
    """Pairs of events of the first owner, 10 ns apart each."""
    page = Page()
    for number, data in enumerate(events):
        assert page.add(1000 + 10 * number, data)
    stream = EventStream(map(parse, ALL), followed)
    stream.feed([(0, pages(page))])
    return [(before, after) for before, after, _, _ in stream.edges()[0]]


def vertices(*events: bytes) -> list[str]:
    """What events are called, each between two that are known."""
    known = record(8, NF, 0)
    names = []
    for event in events:
        ((_, name), *_) = [pair for pair in path(known, event) if pair[0] == "kvm_entry"]
        names.append(name)
    return names


def test_a_switch_happens_to_both_threads() -> None:
    both = (TracedOwner("nf", "kernel", (NF,)),)
    pairs = path(switch(NF, 1, OTHER), wakeup(OTHER, NF), switch(OTHER, 0, NF), followed=both)
    assert pairs == [("sched_switch:out:S", "sched_wakeup"), ("sched_wakeup", "sched_switch:in")]


@pytest.mark.parametrize(("state", "letter"), [(0, "R"), (0x100, "R"), (1, "S"), (2, "D"), (0x80, "I")])
def test_the_state_of_a_thread_that_is_switched_out_is_the_kernels_letter(state: int, letter: str) -> None:
    assert vertices(switch(NF, state, OTHER)) == [f"sched_switch:out:{letter}"]


def test_a_poll_is_full_when_its_budget_was_used() -> None:
    polls = (record(5, NF, 0, 0, 0, work, 64) for work in (64, 12, 0))
    assert vertices(*polls) == ["napi_poll:full", "napi_poll:part", "napi_poll:idle"]


def test_exit_reasons_have_the_names_of_their_processor() -> None:
    exits = [kvm_exit(12, 1), kvm_exit(0x80000000 | 12, 1), kvm_exit(0x78, 2), kvm_exit(0x4E, 2)]
    rare = [kvm_exit(0x80000001, 2), kvm_exit(-1, 2), kvm_exit(999, 1)]
    assert vertices(*exits) == ["kvm_exit:HLT", "kvm_exit:HLT", "kvm_exit:HLT", "kvm_exit:PF_EXCP"]
    assert vertices(*rare) == ["kvm_exit:VMGEXIT_MMIO_READ", "kvm_exit:INVALID_GUEST_STATE", "kvm_exit:0X3E7"]


def test_exits_to_user_space_say_why() -> None:
    exits = (record(7, NF, 2, 0), record(7, NF, 6, 0), record(7, NF, 2, -4), record(7, NF, 2, -14))
    assert [name.partition(":")[2] for name in vertices(*exits)] == ["IO", "MMIO", "RESTART", "ERROR"]


def test_an_interrupt_has_the_name_of_its_device() -> None:
    data = record(9, NF, 36, 16 | 8 << 16, b"virtio1\0")
    assert vertices(data) == ["irq_handler_entry:virtio1"]


def test_events_of_others_are_nobodys() -> None:
    assert path(record(8, OTHER, 0), record(8, 1 << 22, 0), switch(OTHER, 1, OTHER + 1)) == []


def test_a_guest_beside_a_container_has_events_of_guests_only() -> None:
    guest, container = TracedOwner("vm", "kvm", (NF,)), TracedOwner("nf", "kernel", (OTHER,))
    events = (record(8, NF, 0), record(5, NF, 0, 0, 0, 1, 64), kvm_exit(12, 1))
    assert path(*events, followed=(guest, container)) == [("kvm_entry", "kvm_exit:HLT")]


def test_pairs_do_not_reach_across_lost_events() -> None:
    first, second = Page(), Page(missed=True)
    first.add(10, record(8, NF, 0))
    second.add(20, kvm_exit(12, 1))
    second.add(30, record(8, NF, 0))
    stream = EventStream(map(parse, ALL), [TracedOwner("vm", "kvm", (NF,))])
    stream.feed([(0, pages(first))])
    stream.feed([(0, pages(second))])
    assert stream.edges() == [[("kvm_exit:HLT", "kvm_entry", 1, 1e-8)]]
    assert stream.events() == [3]


def test_a_thread_that_moves_keeps_its_order() -> None:
    here, there = Page(), Page()
    here.add(10, record(8, NF, 0))
    there.add(20, kvm_exit(12, 1))
    here.add(30, record(8, NF, 0))
    stream = EventStream(map(parse, ALL), [TracedOwner("vm", "kvm", (NF,))])
    stream.feed([(0, pages(here)), (1, pages(there))])
    assert {edge[:3] for edge in stream.edges()[0]} == {
        ("kvm_entry", "kvm_exit:HLT", 1),
        ("kvm_exit:HLT", "kvm_entry", 1),
    }


def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(CsitError, match="no format of a trace event"):
        parse("hello")


def test_without_entry_and_exit_the_scheduler_remains() -> None:
    choice = choose("kvm", set(SCHEDULING))
    assert choice.events == SCHEDULING
    assert choice.sentence == (
        "virtual machines by the scheduler's events only, because this kernel has no kvm/kvm_entry, kvm/kvm_exit"
    )
    assert choose("kvm", ()).events == ()
    assert choose("kernel", ()).sentence == (
        "containers and processes cannot be traced: this kernel has none of their events"
    )


def test_a_kernel_with_entry_and_exit_only_is_enough() -> None:
    choice = choose("kvm", set(KVM_PAIR))
    assert choice.events == KVM_PAIR
    assert "this kernel has no sched/sched_switch" in choice.sentence
    assert choose("kernel", set(WANTED["kernel"])).sentence == (
        "containers and processes by 10 events of irq, napi, net, sched"
    )

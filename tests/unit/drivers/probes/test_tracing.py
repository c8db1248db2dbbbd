"""From pages of the kernel's ring buffer to graphs: events become vertices on the threads that they happen to."""

import itertools
import random
import struct
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.probes.tracer.events import KVM_PAIR, SCHEDULING, WANTED, TracedOwner, choose
from resources.libraries.python.drivers.probes.tracer.graph import Rows, Transitions
from resources.libraries.python.drivers.probes.tracer.pages import Words, decode, heads
from resources.libraries.python.drivers.probes.tracer.reader import EventStream
from resources.libraries.python.drivers.probes.tracer.tracefs import parse
from resources.libraries.python.errors import CsitError

PAGE_BYTES = 4096
_DATA_BYTES = PAGE_BYTES - 16
MISSED = 1 << 31


class Page:
    """One page; `add` is false when there is no more room."""

    def __init__(self, *, missed: bool = False) -> None:
        self._data = b""
        self._first_ns = 0
        self._now_ns = 0
        self._missed = missed

    def add(self, time_ns: int, record: bytes, *, absolute: bool = False) -> bool:
        entry = b""
        if not self._data:
            self._first_ns = self._now_ns = time_ns
        if absolute:
            stamp = time_ns & (1 << 59) - 1
            entry += struct.pack("=II", 31 | (stamp & (1 << 27) - 1) << 5, stamp >> 27)
            delta = 0
        elif (delta := time_ns - self._now_ns) >= 1 << 27:
            entry += struct.pack("=II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
            delta = 0
        record += bytes(-len(record) % 4)
        if 0 < len(record) <= 28 * 4:
            entry += struct.pack("=I", len(record) // 4 | delta << 5) + record
        else:
            entry += struct.pack("=II", delta << 5, len(record) + 4) + record
        return self._put(entry, time_ns)

    def discard(self, time_ns: int, size: int) -> bool:
        """An event that the kernel took back: its place and its time remain."""
        if not self._data:
            self._first_ns = self._now_ns = time_ns
        delta = min(max(1, time_ns - self._now_ns), (1 << 27) - 1)
        return self._put(struct.pack("=II", 29 | delta << 5, size) + bytes(size - 4), self._now_ns + delta)

    def _put(self, entry: bytes, time_ns: int) -> bool:
        if len(self._data) + len(entry) > _DATA_BYTES:
            return False
        self._data += entry
        self._now_ns = time_ns
        return True

    def words(self, *, filled: bool = False) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
        data = self._data
        if filled and len(data) + 4 <= _DATA_BYTES:
            data = data + struct.pack("=I", 29)  # nothing more on this page
            data += b"\xff" * (_DATA_BYTES - len(data))
        head = struct.pack("=QQ", self._first_ns, len(data) | (MISSED if self._missed else 0))
        return np.frombuffer((head + data).ljust(PAGE_BYTES, b"\xa5"), np.uint32)


def pages(*row: Page) -> "np.ndarray[tuple[int, int], np.dtype[np.uint32]]":
    return np.stack([page.words() for page in row])


def record(number: int, thread: int, *fields: int | bytes) -> bytes:
    """An event's data: the common fields, then the given ones, numbers of 32 bits."""
    rest = b"".join(field if isinstance(field, bytes) else struct.pack("=I", field & 0xFFFFFFFF) for field in fields)
    return struct.pack("=HBBi", number, 0, 0, thread) + rest


def format_of(name: str, number: int, fields: str, printed: str = '""') -> str:
    """A `format` file; fields as `name:offset:size`."""
    common = "common_type:0:2 common_flags:2:1 common_preempt_count:3:1 common_pid:4:4"
    rows = [
        "\tfield:int {};\toffset:{};\tsize:{};\tsigned:0;".format(*field.split(":"))
        for field in f"{common} {fields}".split()
    ]
    return f"name: {name}\nID: {number}\nformat:\n" + "\n".join(rows) + f"\n\nprint fmt: {printed}\n"


ALL = (
    format_of("sched_switch", 3, "prev_comm[16]:8:16 prev_pid:24:4 prev_state:32:8 next_comm[16]:40:16 next_pid:56:4",
              '"%s", __print_flags(REC->prev_state & 255, "|", { 0x00000001, "S" }, { 0x00000002, "D" }, '
              '{ 0x00000080, "I" })'),
    format_of("sched_wakeup", 4, "comm[16]:8:16 pid:24:4"),
    format_of("napi_poll", 5, "napi:8:8 dev_name:16:4 work:20:4 budget:24:4"),
    format_of("kvm_exit", 6, "exit_reason:8:4 guest_rip:16:8 isa:24:4",
              '"%s", (REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, { 0, "EXCEPTION_NMI" }, '
              '{ 12, "HLT" }) : __print_symbolic(REC->exit_reason, { 0x040 + 14, "PF excp" }, { 0x078, "hlt" }, '
              '{ 0x80000001, "vmgexit_mmio_read" }, { -1, "invalid_guest_state" })'),
    format_of("kvm_userspace_exit", 7, "reason:8:4 errno:12:4",
              '"%s", REC->errno < 0 ? "x" : __print_symbolic(REC->reason, { 2, "KVM_EXIT_" "IO" }, '
              '{ 6, "KVM_EXIT_" "MMIO" })'),
    format_of("kvm_entry", 8, "vcpu_id:8:4"),
    format_of("irq_handler_entry", 9, "irq:8:4 name:12:4"),
)  # fmt: skip
NF, OTHER = 100, 55


def switch(before: int, state: int, after: int) -> bytes:
    return struct.pack("=HBBi16siiq16sii", 3, 0, 0, before, b"a", before, 0, state, b"b", after, 0)


def kvm_exit(reason: int, isa: int) -> bytes:
    return record(6, NF, reason, 0, 0, 0, isa)


ENTRY = record(8, NF, 0)


def stream_of(kind: Any = "kvm") -> EventStream:
    return EventStream(map(parse, ALL), [TracedOwner("nf", kind, (NF,))])


def path(*events: bytes, stream: EventStream | None = None) -> list[tuple[str, str]]:
    """Pairs of events of the first owner, 10 ns apart each."""
    page, stream = Page(), stream or stream_of("kernel")
    for number, data in enumerate(events):
        assert page.add(1000 + 10 * number, data)
    stream.feed([(0, pages(page))])
    return [(before, after) for before, after, _, _ in stream.edges()[0]]


def vertices(*events: bytes) -> list[str]:
    """What events are called, each after one that is known."""
    return [dict(path(ENTRY, event))["kvm_entry"] for event in events]


def test_a_switch_happens_to_both_threads() -> None:
    pairs = path(switch(NF, 1, OTHER), record(4, OTHER, bytes(16), NF), switch(OTHER, 0, NF))
    assert pairs == [("sched_switch:out:S", "sched_wakeup"), ("sched_wakeup", "sched_switch:in")]


POLLS = [record(5, NF, 0, 0, 0, work, 64) for work in (64, 12, 0)]


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ([switch(NF, state, OTHER) for state in (0, 0x100, 1, 2, 0x80)], [f"sched_switch:out:{c}" for c in "RRSDI"]),
        (POLLS, ["napi_poll:full", "napi_poll:part", "napi_poll:idle"]),
        ([kvm_exit(12, 1), kvm_exit(0x80000000 | 12, 1), kvm_exit(0x78, 2)], ["kvm_exit:HLT"] * 3),
        ([kvm_exit(0x4E, 2), kvm_exit(0x80000001, 2)], ["kvm_exit:PF_EXCP", "kvm_exit:VMGEXIT_MMIO_READ"]),
        ([kvm_exit(-1, 2), kvm_exit(999, 1)], ["kvm_exit:INVALID_GUEST_STATE", "kvm_exit:0X3E7"]),
        (
            [record(7, NF, *row) for row in ((2, 0), (6, 0), (2, -4), (2, -14))],
            [f"kvm_userspace_exit:{why}" for why in ("IO", "MMIO", "RESTART", "ERROR")],
        ),
        ([record(9, NF, 36, 16 | 8 << 16, b"virtio1\0")], ["irq_handler_entry:virtio1"]),
    ],
    ids=["state", "poll", "HLT", "symbols", "unknown", "user space", "interrupt"],
)
def test_events_have_the_names_of_states_reasons_and_devices(events: list[bytes], names: list[str]) -> None:
    assert vertices(*events) == names


def test_events_of_others_are_nobodys_and_a_guest_beside_a_container_has_events_of_guests_only() -> None:
    assert path(record(8, OTHER, 0), record(8, 1 << 22, 0), switch(OTHER, 1, OTHER + 1)) == []
    beside = [TracedOwner("vm", "kvm", (NF,)), TracedOwner("nf", "kernel", (OTHER,))]
    found = path(ENTRY, record(5, NF, 0, 0, 0, 1, 64), kvm_exit(12, 1), stream=EventStream(map(parse, ALL), beside))
    assert found == [("kvm_entry", "kvm_exit:HLT")]


def test_pairs_do_not_reach_across_lost_events() -> None:
    first, second, stream = Page(), Page(missed=True), stream_of()
    first.add(10, ENTRY)
    second.add(20, kvm_exit(12, 1))
    second.add(30, ENTRY)
    stream.feed([(0, pages(first))])
    stream.feed([(0, pages(second))])
    assert stream.edges() == [[("kvm_exit:HLT", "kvm_entry", 1, 1e-8)]]
    assert stream.events() == [3]
    head = heads(pages(first, second))
    assert (head.missed.tolist(), head.times_ns.tolist()) == ([False, True], [10, 20])


def test_a_thread_that_moves_keeps_its_order() -> None:
    here, there, stream = Page(), Page(), stream_of()
    here.add(10, ENTRY)
    there.add(20, kvm_exit(12, 1))
    here.add(30, ENTRY)
    stream.feed([(0, pages(here)), (1, pages(there))])
    assert {edge[:3] for edge in stream.edges()[0]} == {
        ("kvm_entry", "kvm_exit:HLT", 1),
        ("kvm_exit:HLT", "kvm_entry", 1),
    }


def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(CsitError, match="no format of a trace event"):
        parse("hello")


@pytest.mark.parametrize(
    ("kind", "offered", "events", "sentence"),
    [
        ("kvm", SCHEDULING, SCHEDULING, "by the scheduler's events only, because this kernel has no kvm/kvm_entry, "),
        ("kvm", KVM_PAIR, KVM_PAIR, "this kernel has no sched/sched_switch"),
        ("kvm", (), (), "cannot be traced: this kernel has neither kvm/kvm_entry, kvm/kvm_exit nor events of"),
        ("kernel", (), (), "containers and processes cannot be traced: this kernel has none of their events"),
        ("kernel", WANTED["kernel"], WANTED["kernel"], "containers and processes by 10 events of irq, napi, net"),
    ],
)
def test_events_that_the_kernel_has(
    kind: Any, offered: tuple[str, ...], events: tuple[str, ...], sentence: str
) -> None:
    choice = choose(kind, set(offered))
    assert choice.events == events
    assert sentence in choice.sentence


OWNERS = (0, 0, 1)
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50), st.integers(0, 100)), max_size=60)


def rows(events: list[tuple[int, int, int]]) -> Rows:
    columns = np.array(events, np.int64).reshape(-1, 3).T
    return Rows(*columns)


def by_hand(
    events: list[tuple[int, int, int]], gaps: list[tuple[int, int]], owner: int
) -> dict[tuple[int, int], tuple[int, int]]:
    last: dict[int, tuple[int, int]] = {}
    found: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for thread, time, vertex in events:
        if thread in last and OWNERS[thread] == owner:
            before, earlier = last[thread]
            if not any(begin < time and end > earlier for begin, end in gaps):
                count, spent = found[before, vertex]
                found[before, vertex] = (count + 1, spent + time - earlier)
        last[thread] = (vertex, time)
    return dict(found)


@given(EVENTS, st.lists(st.integers(0, 60), max_size=3), st.lists(st.integers(0, 3000), max_size=2), st.randoms())
def test_pairs_are_those_counted_by_hand(
    steps: list[tuple[int, int, int]], cuts: list[int], starts: list[int], chance: random.Random
) -> None:
    now, events = 0, []
    for thread, step, vertex in steps:
        now += step
        events.append((thread, now, vertex))
    gaps = [(start, start + 20) for start in starts]
    transitions = Transitions(OWNERS)
    bounds = sorted({0, *(cut for cut in cuts if cut < len(events)), len(events)})
    for begin, end in itertools.pairwise(bounds):
        piece = events[begin:end]
        until = piece[-1][1]
        chance.shuffle(piece)  # CPUs come one after the other
        given_gaps = [gap for gap in gaps if begin == 0]
        transitions.feed(rows(piece), until, given_gaps)
    for owner in (0, 1):
        wanted = by_hand(events, gaps, owner)
        got = {(before, after): (count, round(s * 1e9)) for before, after, count, s in transitions.pairs(owner)}
        assert got == wanted
    assert transitions.events.sum() == len(events)


def test_events_newer_than_what_was_read_of_all_cpus_wait() -> None:
    transitions = Transitions([0])
    transitions.feed(rows([(0, 10, 1), (0, 30, 3)]), 15)
    assert transitions.pairs(0) == []
    transitions.feed(rows([(0, 20, 2)]), 30)
    assert [pair[:3] for pair in transitions.pairs(0)] == [(1, 2, 1), (2, 3, 1)]


_GAPS = st.one_of(st.integers(0, 5000), st.integers(1 << 26, 1 << 33))
_EVENTS = st.lists(st.tuples(_GAPS, st.integers(2, 60), st.sampled_from(["event", "event", "absolute", "discard"])))


def found(words: Words) -> list[tuple[int, int, int]]:
    """Time, first word of the data and page of each event."""
    events = decode(words)
    data = words.reshape(-1)[events.words]
    return list(zip(events.times_ns.tolist(), data.tolist(), events.pages.tolist(), strict=True))


@given(st.lists(_EVENTS, min_size=1, max_size=5), st.integers(0, 1 << 58))
def test_events_of_many_pages_come_back_with_their_times(rows: list[list[tuple[int, int, str]]], now_ns: int) -> None:
    made: list[Page] = []
    wanted: list[tuple[int, int, int]] = []
    for number, row in enumerate(rows):
        page = Page()
        for gap, words, kind in row:
            now_ns += gap
            mark = len(wanted) + 1
            if kind == "discard":
                page.discard(now_ns, 4 * words)
                now_ns += 1  # a discarded event has a time of its own, which is never that of the event before
            elif page.add(now_ns, np.array([mark] * words, np.uint32).tobytes(), absolute=kind == "absolute"):
                wanted.append((now_ns, mark, number))
        made.append(page)
    assert [(data, page) for _, data, page in found(pages(*made))] == [(data, page) for _, data, page in wanted]
    if not any(kind == "discard" for row in rows for _, _, kind in row):
        assert found(pages(*made)) == wanted


@given(st.integers(0, 1 << 32))
def test_no_page_of_rubbish_leads_outside_of_it(seed: int) -> None:
    page = np.frombuffer(random.Random(seed).randbytes(PAGE_BYTES), np.uint32).reshape(1, -1)
    events = decode(page)
    assert events.times_ns.size == events.words.size <= PAGE_BYTES


def test_full_pages_are_read_and_those_that_end_early_left_there() -> None:
    page = Page()
    while page.add(100, b"x" * 400):
        pass
    assert len(found(pages(page))) == 4080 // 408
    for empty in (np.zeros((0, 1024), np.uint32), pages(Page())):
        assert decode(empty).times_ns.size == 0
    early, other = Page(), Page()
    assert early.add(5, b"abcd")
    assert other.add(7, b"efgh")
    words = np.stack([early.words(filled=True), other.words()])
    assert [time for time, _, _ in found(words)] == [5, 7]

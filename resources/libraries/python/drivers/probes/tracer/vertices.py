"""Conversion of kernel events to rows of threads and vertices. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resources.libraries.python.drivers.probes.tracer.graph import NONE, Rows, together
from resources.libraries.python.drivers.probes.tracer.pages import Events, Words
from resources.libraries.python.drivers.probes.tracer.tracefs import EventFormat

_MAX_SMALL = 4096
"""Codes below are looked up in a table; that is nearly all."""
_RECORD_WORDS = 64
"""Of an event's data that are looked at for a name."""


Ints = npt.NDArray[np.int64]
Get = Callable[[str], Ints]
"""The lowest 32 bits of a field, without sign, of all events of one kind; of an event without such a field zeros."""

_INTEL = 1
"""`isa` of VMX; others have AMD's exit reasons, or some of their own."""
_OTHERS = 1024
"""Added to numbers that have a second meaning: Intel's exit reasons, and those to user space, are far below."""
_INTERRUPTED, _NEGATIVE = -4 & 0xFFFFFFFF, 1 << 31
_RESTART, _ERROR = _OTHERS, _OTHERS + 1
_STATES = 0xFF
_LOWEST = np.array([(state & -state).bit_length() for state in range(_STATES + 1)], np.int64)


@dataclass(frozen=True, slots=True)
class Rule:
    """Fields of an event that distinguish its vertices."""

    code: Callable[[Get], Ints]
    name: Callable[[EventFormat, int, bytes], str]
    """Name of such a number, given the format and the data of the first event that has it."""
    thread: str = "common_pid"
    """The field with the thread that it happens to."""


def _plain(get: Get) -> Ints:
    return np.zeros_like(get("common_pid"))


def _nothing(_: EventFormat, __: int, ___: bytes) -> str:
    return ""


def _of_table(field: str) -> Rule:
    return Rule(lambda get: get(field), lambda form, code, _: _called(form, field, 0, code))


def _called(form: EventFormat, field: str, table: int, code: int) -> str:
    """The kernel's name of a number, or the number."""
    tables = form.tables.get(field, ())
    return (tables[table].get(code) if table < len(tables) else None) or f"{code:#x}"


def _of_words(field: str, *words: str) -> Rule:
    return Rule(lambda get: np.minimum(get(field), len(words) - 1), lambda _, code, __: words[code])


def _exit_code(get: Get) -> Ints:
    reason, kind = get("exit_reason"), get("isa")
    return np.where(kind == _INTEL, reason & (_OTHERS - 1), reason + _OTHERS)


def _exit_name(form: EventFormat, code: int, _: bytes) -> str:
    table, reason = (1, code - _OTHERS) if code >= _OTHERS else (0, code)
    return _called(form, "exit_reason", table, reason).upper().replace(" ", "_")


def _leaving_code(get: Get) -> Ints:
    errno = get("errno")
    return np.select([errno == _INTERRUPTED, errno >= _NEGATIVE], [_RESTART, _ERROR], get("reason"))


def _leaving_name(form: EventFormat, code: int, _: bytes) -> str:
    words = {_RESTART: "RESTART", _ERROR: "ERROR"}
    return words.get(code) or _called(form, "reason", 0, code).removeprefix("KVM_EXIT_")


def _left_in(form: EventFormat, code: int, _: bytes) -> str:
    return f"out:{_called(form, 'prev_state', 0, 1 << (code - 1)) if code else 'R'}"


def _poll_code(get: Get) -> Ints:
    work = get("work")
    return np.where(work == 0, 0, np.where(work >= get("budget"), 2, 1))


def _interrupt_name(form: EventFormat, code: int, record: bytes) -> str:
    """Of the device. `__data_loc` is a number: offset below, length above 16 bits."""
    place = form.fields.get("name")
    if place is None:
        return str(code)
    where = int.from_bytes(record[place.offset : place.offset + 4], "little")
    text = record[where & 0xFFFF : (where & 0xFFFF) + (where >> 16)]
    return text.split(b"\0")[0].decode(errors="replace") or str(code)


PLAIN = Rule(_plain, _nothing)
SWITCHED_IN = Rule(_plain, lambda _, __, ___: "in", "next_pid")
"""`sched_switch` happens to two threads."""
RULES: Mapping[str, Rule] = {
    "sched_switch": Rule(lambda get: _LOWEST[get("prev_state") & _STATES], _left_in, "prev_pid"),
    "sched_wakeup": Rule(_plain, _nothing, "pid"),
    "irq_handler_entry": Rule(lambda get: get("irq"), _interrupt_name),
    "softirq_entry": _of_table("vec"),
    "softirq_exit": _of_table("vec"),
    "napi_poll": Rule(_poll_code, lambda _, code, __: ("idle", "part", "full")[code]),
    "net_dev_xmit": _of_words("rc", "sent", "refused"),
    "kvm_exit": Rule(_exit_code, _exit_name),
    "kvm_userspace_exit": Rule(_leaving_code, _leaving_name),
    "kvm_fpu": _of_words("load", "unload", "load"),
    "kvm_pio": _of_words("rw", "read", "write"),
    "kvm_mmio": _of_table("type"),
    "kvm_msr": _of_words("write", "read", "write"),
    "kvm_apic": _of_words("rw", "read", "write"),
    "kvm_vcpu_wakeup": _of_words("waited", "poll", "wait"),
    "kvm_halt_poll_ns": _of_words("grow", "shrink", "grow"),
}
"""By the name of the event; all others are vertices without data."""


class Vertices:
    """Gives each event and its data a number, and each thread its index.

    `formats`: Of all events that are followed.
    `threads`: Thread ids; where one stands here is its index.
    """

    def __init__(self, formats: Iterable[EventFormat], threads: Sequence[int]) -> None:
        self.names: list[str] = []
        """Of the vertices, by their numbers."""
        self._of_name: dict[str, int] = {}
        self._thread = np.full(max(threads, default=0) + 2, -1, np.int64)
        self._thread[list(threads)] = np.arange(len(threads))
        self._kinds: list[tuple[_Kind, _Kind | None]] = []
        """Of threads that an event happens to, and that it switches in."""
        self._kind_of = np.full(1 << 16, -1, np.int16)
        for form in formats:
            self._kind_of[form.number] = len(self._kinds)
            entered = _Kind(form, SWITCHED_IN, self) if form.name == "sched_switch" else None
            self._kinds.append((_Kind(form, RULES.get(form.name, PLAIN), self), entered))

    def number(self, name: str) -> int:
        """Return the number of a vertex, an old or a new one."""
        if name not in self._of_name:
            self._of_name[name] = len(self.names)
            self.names.append(name)
        return self._of_name[name]

    def index(self, thread_ids: Ints) -> Ints:
        """Indexes of threads; -1 for one that is not followed."""
        return self._thread.take(thread_ids, mode="clip")  # the last place has no owner

    def rows(self, pages: Words, events: Events) -> Rows:
        """Events of the threads that are followed.

        `pages`: From which the events were decoded.
        `events`: Of one CPU in order of time, or of several CPUs after each other.
        """
        flat = pages.reshape(-1)
        kinds = self._kind_of.take(flat.take(events.words, mode="clip") & 0xFFFF)
        threads = np.full(kinds.size, -1, np.int64)
        vertices = np.zeros(kinds.size, np.int64)
        switched: list[Rows] = []
        for kind in np.flatnonzero(np.bincount(kinds + 1, minlength=1)[1:]):
            where = np.flatnonzero(kinds == kind)
            words = events.words[where]
            happened, entered = self._kinds[kind]
            threads[where], vertices[where] = happened.found(flat, words)
            if entered is not None:
                others, entering = entered.found(flat, words)
                known = others >= 0
                switched.append(Rows(others[known], events.times_ns[where[known]], entering[known]))
        known = threads >= 0
        return together([Rows(threads[known], events.times_ns[known], vertices[known]), *(switched or [NONE])])


class _Kind:
    """One kind of event by a rule."""

    def __init__(self, form: EventFormat, rule: Rule, vertices: Vertices) -> None:
        self._form = form
        self._rule = rule
        self._vertices = vertices
        self._small = np.full(_MAX_SMALL, -1, np.int64)
        self._large: dict[int, int] = {}

    def found(self, flat: Words, words: Ints) -> tuple[Ints, Ints]:
        """Indexes of thread and vertex of each event."""

        def get(name: str) -> Ints:
            place = self._form.fields.get(name)
            if place is None:
                return np.zeros(words.size, np.int64)
            values = flat.take(words + place.offset // 4, mode="clip")
            if place.size < 4:
                values = (values >> np.uint32(8 * (place.offset % 4))) & np.uint32((1 << 8 * place.size) - 1)
            return values.astype(np.int64)

        return self._vertices.index(get(self._rule.thread)), self._numbers(self._rule.code(get), flat, words)

    def _numbers(self, codes: Ints, flat: Words, words: Ints) -> Ints:
        found = self._small.take(codes, mode="clip")
        large = codes >= _MAX_SMALL
        for code in np.unique(codes[large]).tolist() if large.any() else ():
            where = np.flatnonzero(codes == code)
            if code not in self._large:
                self._large[code] = self._new(code, flat, int(words[where[0]]))
            found[where] = self._large[code]
        while (unknown := np.flatnonzero(found < 0)).size:
            code = int(codes[unknown[0]])
            self._small[code] = self._new(code, flat, int(words[unknown[0]]))
            found[unknown] = self._small[codes[unknown]]
        return found

    def _new(self, code: int, flat: Words, word: int) -> int:
        record = flat[word : word + _RECORD_WORDS].tobytes()
        data = self._rule.name(self._form, code, record)
        return self._vertices.number(f"{self._form.name}:{data}" if data else self._form.name)

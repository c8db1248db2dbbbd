"""How a vertex is made of the data of an event. Pure: numbers in, small numbers and their names out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resources.libraries.python.drivers.probes.tracer.formats import EventFormat

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
    """A number for each event."""
    name: Callable[[EventFormat, int, bytes], str]
    """What such a number is called, given the format and the data of the first event that has it."""
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

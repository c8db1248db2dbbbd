"""The second half of the XDP program: a frame of the chosen flow and kind. Pure.

Registers: r6 the context, r7 the shared memory, r8 the flow, r9 its kind of frame.
"""

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.xdp import memory
from resources.libraries.python.drivers.generators.xdp.assembler import (
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
    Assembler,
    Register,
    Word,
)

_REDIRECT, _CUT, _WALL_CLOCK = 23, 65, 208
"""Helpers: redirect, xdp_adjust_tail, ktime_get_tai_ns (since Linux 6.1)."""
_SHORTEST = 60
_DATA, _DATA_END = Word(R6, 0, 4), Word(R6, 4, 4)
_KEPT_SIZE, _KEPT_FRAME = Word(R10, -16, 8), Word(R10, -24, 8)


def field(base: Register, record: memory.Layout, *names: str) -> Word:
    """A field of a record at an address."""
    return Word(base, *memory.place(record, *names))


def state(name: str) -> Word:
    """A field of the program's state."""
    return field(R7, memory.SHARED, "state", name)


def kind(name: str) -> Word:
    """A field of the chosen kind of frame."""
    return field(R9, memory.KIND, name)


def _in_frame(offset: int, width: int) -> Word:
    return Word(R2, offset, width)


def pass_turn(code: Assembler, turn: Word, now: Register, turns: Word) -> None:
    """Turn = (now + 1) mod turns. Needs r1 and r3."""
    label = f"in turn {turn.base.number} {turn.offset}"
    code.alu(R1, "=", now)
    code.alu(R1, "+", 1)
    code.load(R3, turns)
    code.jump_if(R1, "<", R3, label)
    code.alu(R1, "=", 0)
    code.label(label)
    code.store(turn, R1)


def cut_to_size(code: Assembler) -> None:
    """r2 = the frame, cut; r4 = its size's record."""
    code.load(R4, kind("size"))
    code.jump_if(R4, ">=", memory.MOST_SIZES, "failed")
    pass_turn(code, kind("size"), R4, state("sizes"))
    code.alu(R4, "<<", memory.SIZE.itemsize.bit_length() - 1)
    code.alu(R4, "+", R7)
    code.alu(R4, "+", memory.place(memory.SHARED, "sizes")[0])
    code.load(R2, field(R4, memory.SIZE, "length"))
    code.load(R1, state("largest"))
    code.jump_if(R1, "==", R2, "whole")
    code.store(_KEPT_SIZE, R4)
    code.alu(R2, "-", R1)
    code.alu(R1, "=", R6)
    code.call(_CUT)
    code.load(R4, _KEPT_SIZE)
    code.jump_if(R0, "!=", 0, "failed")
    code.label("whole")
    code.load(R2, _DATA)
    code.load(R3, _DATA_END)
    code.alu(R1, "=", R2)
    code.alu(R1, "+", _SHORTEST)
    code.jump_if(R1, ">", R3, "failed")


def write_headers(code: Assembler) -> None:
    """Ethernet and IPv4, all of it each time: the kernel hands out used frames, as the last router left them."""
    for name, offset in (("ethernet_1", 0), ("ethernet_2", 8)):
        code.load(R1, field(R8, memory.FLOW, name))
        code.store(_in_frame(offset, 8), R1)
    code.load(R1, field(R4, memory.SIZE, "total_length"))
    code.store(_in_frame(16, 2), R1)
    code.load(R1, field(R8, memory.FLOW, "fragment"))
    code.store(_in_frame(18, 4), R1)
    code.load(R1, kind("ttl_protocol"))
    code.store(_in_frame(22, 2), R1)
    code.load(R1, field(R8, memory.FLOW, "destination"))
    code.store(_in_frame(30, 4), R1)
    # r5 = source address, r3 = sum of the header's words, then its complement
    code.load(R5, kind("source"))
    pass_turn(code, kind("source"), R5, field(R8, memory.FLOW, "sources"))
    code.load(R1, field(R8, memory.FLOW, "first_source"))
    code.alu(R5, "+", R1)
    code.load(R3, kind("sum"))
    code.load(R1, field(R4, memory.SIZE, "length"))
    code.alu(R3, "+", R1)
    for half in (">>", "&"):
        code.alu(R1, "=", R5)
        code.alu(R1, half, 16 if half == ">>" else 0xFFFF)
        code.alu(R3, "+", R1)
    for _ in range(2):
        code.alu(R1, "=", R3)
        code.alu(R1, ">>", 16)
        code.alu(R3, "&", 0xFFFF)
        code.alu(R3, "+", R1)
    code.alu(R3, "^", 0xFFFF)
    code.big_endian(R3, 16)
    code.store(_in_frame(24, 2), R3)
    code.big_endian(R5, 32)
    code.store(_in_frame(26, 4), R5)
    code.load(R5, kind("sent"))
    code.alu(R1, "=", R5)
    code.alu(R1, "+", 1)
    code.store(kind("sent"), R1)


def write_udp(code: Assembler) -> None:
    """A UDP header, and a probe's number (r5) and time stamp; load frames that are no datagrams have none of these."""
    ports = frames.UDP_OFFSET
    code.load(R3, kind("udp"))
    code.jump_if(R3, "==", memory.NO_UDP, "made")
    code.load(R1, field(R4, memory.SIZE, "udp_length"))
    code.store(_in_frame(ports + 4, 2), R1)
    code.store(_in_frame(ports + 6, 2), 0)
    code.jump_if(R3, "==", memory.UDP_PROBE, "probe")
    code.load(R1, _in_frame(28, 1))
    code.load(R3, _in_frame(29, 1))
    code.alu(R1, "<<", 8)
    code.alu(R1, "+", R3)
    code.alu(R1, "*", frames.PORT_FACTOR)
    code.alu(R1, "&", frames.PORTS - 1)
    code.alu(R1, "+", frames.FIRST_PORT)
    code.alu(R1, "<<", 16)
    code.alu(R1, "+", frames.UDP_LOAD_PORT)
    code.big_endian(R1, 32)
    code.store(_in_frame(ports, 4), R1)
    code.jump("made")
    code.label("probe")
    code.load(R1, field(R8, memory.FLOW, "udp_ports"))
    code.store(_in_frame(ports, 4), R1)
    code.load(R1, field(R8, memory.FLOW, "mark"))
    code.store(_in_frame(frames.MARK_OFFSET, 4), R1)
    code.big_endian(R5, 32)
    code.store(_in_frame(frames.NUMBER_OFFSET, 4), R5)
    code.store(_KEPT_FRAME, R2)
    code.call(_WALL_CLOCK)
    code.load(R2, _KEPT_FRAME)
    code.big_endian(R0, 64)
    code.store(_in_frame(frames.STAMP_OFFSET, 8), R0)
    code.label("made")


def redirect(code: Assembler) -> None:
    """Send the frame to its flow's interface."""
    code.load(R1, field(R8, memory.FLOW, "interface"))
    code.alu(R2, "=", 0)
    code.call(_REDIRECT)
    code.exit()

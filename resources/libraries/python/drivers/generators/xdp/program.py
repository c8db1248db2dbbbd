"""The XDP program: wait until the next frame is due, make it, send it to its flow's interface, count it. Pure.

The kernel runs it for one frame after the other, as fast as it can. A run that finds nothing due spins on the clock for
a little while and then gives its frame back, so that whoever else has to run on this CPU never waits for more than that
and one batch of frames.

Registers: r6 the context, r7 the shared memory, r8 the time since the start and later the flow, r9 the kind of frame.
"""

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
    Word,
)
from resources.libraries.python.drivers.generators.xdp.frame_builder import (
    cut_to_size,
    pass_turn,
    redirect,
    state,
    write_headers,
    write_udp,
)

_DROP = 1
_CLOCK = 5
"""Helper: ktime_get_ns."""
_TURNS = 48
"""Looks at the clock before a frame is given back, about 1 us."""
_KEPT_CONTEXT = Word(R10, -8, 8)


def live_program(map_descriptor: int) -> bytes:
    """The instructions.

    Args:
        map_descriptor: of the array map whose only value is `memory.SHARED`.
    """
    code = Assembler()
    code.alu(R6, "=", R1)
    code.map_value(R7, map_descriptor)
    _start_clock(code)
    _next_event(code)
    _wait(code)
    _choose(code)
    _find_flow(code)
    cut_to_size(code)
    write_headers(code)
    write_udp(code)
    redirect(code)
    code.label("failed")
    code.load(R1, state("failed"))
    code.alu(R1, "+", 1)
    code.store(state("failed"), R1)
    code.jump("drop")
    code.label("done")
    code.store(state("done"), 1)
    code.label("drop")
    code.alu(R0, "=", _DROP)
    code.exit()
    return code.assemble()


def _start_clock(code: Assembler) -> None:
    """r8 = time since the first run began, at least 1."""
    code.load(R1, state("done"))
    code.jump_if(R1, "!=", 0, "drop")
    code.call(_CLOCK)
    code.load(R5, state("start_ns"))
    code.jump_if(R5, "!=", 0, "started")
    code.alu(R5, "=", R0)
    code.alu(R5, "-", 1)
    code.store(state("start_ns"), R5)
    code.label("started")
    code.alu(R8, "=", R0)
    code.alu(R8, "-", R5)


def _next_event(code: Assembler) -> None:
    """r9 = when something is next: the end, a load frame or a probe."""
    code.load(R9, state("end_ns"))
    code.load(R2, state("left"))
    code.load(R3, state("probes_left"))
    code.alu(R4, "=", R2)
    code.alu(R4, "|", R3)
    code.jump_if(R4, "==", 0, "done")
    code.jump_if(R2, "==", 0, "no load")
    code.load(R4, state("due"))
    code.alu(R4, ">>", memory.FRACTION_BITS)
    code.load(R2, state("not_before_ns"))
    code.jump_if(R4, ">=", R2, "not held back")
    code.alu(R4, "=", R2)
    code.label("not held back")
    code.jump_if(R4, ">=", R9, "no load")
    code.alu(R9, "=", R4)
    code.label("no load")
    code.jump_if(R3, "==", 0, "no probe")
    code.load(R4, state("probe_due"))
    code.alu(R4, ">>", memory.FRACTION_BITS)
    code.jump_if(R4, ">=", R9, "no probe")
    code.alu(R9, "=", R4)
    code.label("no probe")


def _wait(code: Assembler) -> None:
    """Spin until r9, for a little while at most; r8 = time since the start."""
    code.store(_KEPT_CONTEXT, R6)
    code.alu(R6, "=", _TURNS)
    code.label("look")
    code.jump_if(R8, ">=", R9, "due")
    code.jump_if(R6, "==", 0, "drop")
    code.alu(R6, "-", 1)
    code.call(_CLOCK)
    code.load(R5, state("start_ns"))
    code.alu(R8, "=", R0)
    code.alu(R8, "-", R5)
    code.jump("look")
    code.label("due")
    code.load(R6, _KEPT_CONTEXT)


def _choose(code: Assembler) -> None:
    """A load frame or a probe: r4 = the flow's number, r9 = where its kind of frame is in the flow's record."""
    code.load(R1, state("end_ns"))
    code.jump_if(R8, ">=", R1, "done")
    code.load(R1, state("probes_left"))
    code.jump_if(R1, "==", 0, "load")
    code.load(R2, state("probe_due"))
    code.alu(R2, ">>", memory.FRACTION_BITS)
    code.jump_if(R8, "<", R2, "load")
    code.alu(R1, "-", 1)
    code.store(state("probes_left"), R1)
    _advance(code, "probe_due", "probe_gap")
    code.load(R4, state("probe_flow"))
    pass_turn(code, state("probe_flow"), R4, state("flows"))
    code.alu(R9, "=", memory.place(memory.FLOW, "probe")[0])
    code.jump("chosen")
    code.label("load")
    code.load(R1, state("left"))
    code.alu(R1, "-", 1)
    code.store(state("left"), R1)
    _note_times(code)
    _advance(code, "due", "gap")
    code.load(R4, state("flow"))
    pass_turn(code, state("flow"), R4, state("flows"))
    code.alu(R9, "=", memory.place(memory.FLOW, "load")[0])
    code.label("chosen")


def _advance(code: Assembler, due: str, gap: str) -> None:
    code.load(R1, state(due))
    code.load(R2, state(gap))
    code.alu(R1, "+", R2)
    code.store(state(due), R1)


def _note_times(code: Assembler) -> None:
    """First and last time, the worst lag, and when the next load frame may go at the earliest."""
    code.load(R1, state("last_ns"))
    code.jump_if(R1, "!=", 0, "not the first")
    code.store(state("first_ns"), R8)
    code.label("not the first")
    code.store(state("last_ns"), R8)
    _keep_distance(code)
    code.load(R1, state("due"))
    code.alu(R1, ">>", memory.FRACTION_BITS)
    code.alu(R2, "=", R8)
    code.alu(R2, "-", R1)
    code.load(R1, state("worst_lag_ns"))
    code.jump_if(R1, ">=", R2, "no worse")
    code.store(state("worst_lag_ns"), R2)
    code.label("no worse")


def _keep_distance(code: Assembler) -> None:
    """When the next load frame may go at the earliest: max(as before, now - slack) + least gap, a token bucket."""
    code.load(R3, state("not_before_ns"))
    code.load(R2, state("slack_ns"))
    code.alu(R1, "=", R8)
    code.jump_if(R1, ">=", R2, "slack behind")
    code.alu(R1, "=", R2)
    code.label("slack behind")
    code.alu(R1, "-", R2)
    code.jump_if(R3, ">=", R1, "no burst")
    code.alu(R3, "=", R1)
    code.label("no burst")
    code.load(R1, state("least_gap_ns"))
    code.alu(R3, "+", R1)
    code.store(state("not_before_ns"), R3)


def _find_flow(code: Assembler) -> None:
    """r8 = the flow's record, r9 = its kind's."""
    code.jump_if(R4, ">=", memory.MOST_FLOWS, "failed")
    code.alu(R4, "<<", memory.FLOW.itemsize.bit_length() - 1)
    code.alu(R8, "=", R7)
    code.alu(R8, "+", memory.place(memory.SHARED, "flows")[0])
    code.alu(R8, "+", R4)
    code.alu(R9, "+", R8)

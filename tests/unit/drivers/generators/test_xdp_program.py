"""The assembler, the program's shape, and the memory that it shares with us."""

import ipaddress
import struct

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.drivers.generators.xdp import memory
from resources.libraries.python.drivers.generators.xdp.assembler import R0, R1, R2, R7, Assembler, Word
from resources.libraries.python.drivers.generators.xdp.program import live_program

FLOW = FlowSpec("lo", "lo", "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 254, "20.0.0.1")


def test_instructions_are_encoded_as_rfc_9669_says() -> None:
    code = Assembler()
    code.alu(R0, "=", 1)
    code.alu(R1, "+", R2)
    code.load(R1, Word(R7, 16, 8))
    code.store(Word(R7, -4, 4), 7)
    code.store(Word(R2, 2, 2), R1)
    code.big_endian(R1, 16)
    code.map_value(R7, 5)
    code.call(23)
    code.exit()
    assert code.assemble() == bytes.fromhex(
        "b700000001000000"  # r0 = 1
        "0f21000000000000"  # r1 += r2
        "7971100000000000"  # r1 = *(u64 *)(r7 + 16)
        "6207fcff07000000"  # *(u32 *)(r7 - 4) = 7
        "6b12020000000000"  # *(u16 *)(r2 + 2) = r1
        "dc01000010000000"  # r1 = be16 r1
        "1827000005000000"  # r7 = value of map 5
        "0000000000000000"
        "8500000017000000"  # call 23
        "9500000000000000"  # exit
    )


def test_jumps_count_from_the_next_instruction() -> None:
    code = Assembler()
    code.label("again")
    code.jump_if(R0, "!=", 3, "out")
    code.jump_if(R1, "<", R2, "again")
    code.jump("again")
    code.label("out")
    code.exit()
    offsets = [struct.unpack_from("=h", code.assemble(), 8 * row + 2)[0] for row in range(3)]
    assert offsets == [2, -2, -3]


def test_labels_are_there_once() -> None:
    code = Assembler()
    code.jump("nowhere")
    with pytest.raises(ValueError, match="no place called nowhere"):
        code.assemble()
    code.label("here")
    with pytest.raises(ValueError, match="two places are called here"):
        code.label("here")


def test_records_are_aligned_and_indexed_by_shifts() -> None:
    for record in (memory.FLOW, memory.SIZE):
        assert record.itemsize & (record.itemsize - 1) == 0
    for record in (memory.STATE, memory.KIND, memory.FLOW, memory.SIZE):
        assert record.names is not None
        for name in set(record.names) - {"pad"}:
            offset, width = memory.place(record, name)
            assert offset % min(width, 8) == 0, name
    assert memory.place(memory.SHARED, "state", "end_ns") == (8, 8)
    assert len(live_program(3)) % 8 == 0


def test_a_flow_is_written_as_its_frames_need_it() -> None:
    shared = np.zeros(1, memory.SHARED)
    memory.fill_flows(shared["flows"][0], [FLOW])
    memory.fill_sizes(shared["sizes"][0], (64, 1518))
    row = shared["flows"][0][0]
    ring = np.zeros((2, 1514), dtype=np.uint8)
    frames.load_frames(FLOW, (64, 1518), ring)
    assert row["ethernet_1"].tobytes() + row["ethernet_2"].tobytes() == ring[0, :16].tobytes()
    assert row["destination"].tobytes() == ipaddress.IPv4Address(FLOW.destination_ip).packed
    assert row["fragment"].tobytes() == ring[0, 18:22].tobytes()
    assert row["load"]["ttl_protocol"].tobytes()[:2] == ring[0, 22:24].tobytes()
    for index, length in enumerate((60, 1514)):
        assert shared["sizes"][0][index]["total_length"].tobytes() == ring[index, 16:18].tobytes()
        source = int(ipaddress.IPv4Address(FLOW.source_ip)) + index
        total = int(row["load"]["sum"]) + length + (source >> 16) + (source & 0xFFFF)
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        assert struct.pack("!H", total ^ 0xFFFF) == ring[index, 24:26].tobytes()


def test_gaps_have_a_fraction() -> None:
    assert memory.gap(3e6) * 3_000_000 == pytest.approx(1e9 * 2**memory.FRACTION_BITS, rel=1e-8)
    assert memory.gap(None) == memory.gap(0.0) == 0

"""The compiled XDP programs: their source, their layout of the shared memory, and loading them."""

import ctypes
import hashlib
import ipaddress
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.xdp import bpf, memory, receiver
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.testbed.connection.project import sources
from tests.builders import raising

SOURCE = bpf.OBJECT.with_suffix(".c")
BYTES = {"__u64": 8, "__u32": 4, "__u16": 2, "__u8": 1}


def _defined(source: Path = SOURCE) -> dict[str, int]:
    return {name: int(value, 0) for name, value in re.findall(r"^#define (\w+) (\w+)", source.read_text(), re.M)}


def _layout(name: str, source: Path = SOURCE) -> Iterator[tuple[str, int]]:
    """Names and sizes of a structure's numbers in their order; C adds no padding, as offsets are checked below."""
    body = re.search(rf"^struct {name} {{\n(.*?)^}}.*;", source.read_text(), re.M | re.S)
    assert body
    counts = {**_defined(source), "KINDS": 2}
    for kind, field, count in re.findall(r"^\t([\w ]+) (\w+)(?:\[(\w+)\])?;", body[1], re.M):
        for _ in range(int(counts.get(count, count) or 1)):
            yield from _layout(kind.removeprefix("struct "), source) if kind not in BYTES else ((field, BYTES[kind]),)


def _fields(record: "np.dtype[np.void]", start: int = 0) -> Iterator[tuple[str, int, int]]:
    """Names, offsets and sizes of a record's numbers."""
    for name, (inner, offset, *_) in (record.fields or {}).items():
        base, shape = inner.subdtype or (inner, ())
        for index in range(int(np.prod(shape, dtype=int))):
            place = start + offset + index * base.itemsize
            yield from _fields(base, place) if base.fields else ((name, place, base.itemsize),)


@pytest.mark.parametrize("built", [bpf.OBJECT, bpf.RECEIVER], ids=lambda path: path.name)
def test_the_object_belongs_to_its_source_and_nodes_of_a_lab_receive_it(built: Path) -> None:
    compiled = built.read_bytes()
    digest = hashlib.sha256(built.with_suffix(".c").read_bytes()).hexdigest()
    assert re.search(rf"{digest} .+?\0".encode(), compiled), "run resources/tools/bpf.sh"
    assert sources()[built.relative_to(PROJECT).as_posix()] == compiled


def test_both_sides_have_the_same_layout_of_what_is_received_and_of_a_frame_of_a_capture() -> None:
    source = bpf.RECEIVER.with_suffix(".c")
    records = {"word": receiver.WORD, "late": receiver.LATE, "state": receiver.STATE, "captured": memory.CAPTURED}
    for name, record in records.items():
        fields = list(_fields(record))
        layout = list(_layout(name, SOURCE if name == "captured" else source))
        assert layout == [(field, size) for field, _, size in fields]
        assert all(offset % size == 0 for _, offset, size in fields)
    assert memory.CAPTURED.itemsize % 8 == 0
    assert _defined()["MAX_CAPTURED"] == memory.MAX_CAPTURED_BYTES
    defined = _defined(source)
    assert (defined["NUMBERS"], defined["PROBE_PORT"]) == (receiver.NUMBERS, frames.PROBE_PORT)
    assert defined["UDP"] == frames.UDP


@pytest.mark.slow
def test_both_sides_have_the_same_layout_of_the_shared_memory() -> None:
    theirs = list(_layout("shared"))
    ours = list(_fields(memory.SHARED))
    assert theirs == [(name, size) for name, _, size in ours]
    assert len(theirs) == 23 + memory.MAX_FLOWS * 36 + memory.MAX_SIZES * 3
    for name, offset, size in ours:
        assert offset % size == 0, name  # so that C adds no padding
    for record in (memory.KIND, memory.FLOW, memory.SIZE):
        assert record.itemsize % max(size for _, _, size in _fields(record)) == 0
    assert sum(size for _, size in theirs) == memory.SHARED.itemsize


def test_both_sides_have_the_same_constants() -> None:
    defined = _defined()
    for module, names in (
        (memory, ("FRACTION_BITS", "MAX_FLOWS", "MAX_SIZES")),
        (frames, ("ETHERNET_BYTES", "UDP_LOAD_PORT", "FIRST_PORT", "PORTS", "PORT_FACTOR")),
    ):
        for name in names:
            assert defined[name] == getattr(module, name), name
    assert "enum { NO_UDP, UDP_LOAD, UDP_PROBE, UDP_NUMBERED };" in SOURCE.read_text()
    assert (memory.NO_UDP, memory.UDP_LOAD, memory.UDP_PROBE, memory.UDP_NUMBERED) == (0, 1, 2, 3)
    assert frames.UDP_OFFSET == frames.ETHERNET_BYTES + frames.IPV4_BYTES
    probe = frames.UDP_OFFSET + frames.UDP_BYTES
    assert (probe, probe + 4, probe + 8) == (frames.MARK_OFFSET, frames.NUMBER_OFFSET, frames.STAMP_OFFSET)


def test_a_machine_without_libbpf_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    bpf._libbpf.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", raising(OSError("libbpf.so.1: cannot open shared object file")))
    with pytest.raises(Unsupported, match=r"^libbpf\.so\.1 is not installed \(Debian and Ubuntu: package libbpf1\)$"):
        bpf.XdpProgram("csit_generator")


FLOW = FlowSpec("lo", "lo", "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 254, "20.0.0.1")


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


def test_tcp_segments_are_left_to_the_ring() -> None:
    with pytest.raises(Unsupported, match="TCP segments are not sent by XDP live frames"):
        XdpSender.__new__(XdpSender).prepare(TrialSpec(1000.0, 1.0, (64,), 0.0, tcp=True))

"""The compiled XDP programs: their source, their layout of the shared memory, and loading them."""

import ctypes
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import TrialSpec
from resources.libraries.python.drivers.generators.xdp import bpf, memory, receiver
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.version import sources
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


@pytest.mark.parametrize("name", ["word", "late", "state", "captured", pytest.param("shared", marks=pytest.mark.slow)])
def test_both_sides_have_the_same_layout_and_constants(name: str) -> None:
    record = {**vars(memory), **vars(receiver)}[name.upper()]
    source = SOURCE if name in ("captured", "shared") else bpf.RECEIVER.with_suffix(".c")
    fields = list(_fields(record))
    assert list(_layout(name, source)) == [(field, size) for field, _, size in fields]
    assert all(offset % size == 0 for _, offset, size in fields), "so that C adds no padding"
    assert record.itemsize % max(size for _, _, size in fields) == 0
    of_receiver = {"NUMBERS": receiver.NUMBERS, "PROBE_PORT": frames.PROBE_PORT, "UDP": frames.UDP}
    constants = {"MAX_CAPTURED": memory.MAX_CAPTURED_BYTES} if source == SOURCE else of_receiver
    assert _defined(source).items() >= constants.items()


def test_a_machine_without_libbpf_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    bpf._libbpf.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", raising(OSError("libbpf.so.1: cannot open shared object file")))
    with pytest.raises(Unsupported, match=r"^libbpf\.so\.1 is not installed \(Debian and Ubuntu: package libbpf1\)$"):
        bpf.XdpProgram("csit_generator")


def test_tcp_segments_are_left_to_the_ring() -> None:
    with pytest.raises(Unsupported, match="TCP segments are not sent by XDP live frames"):
        XdpSender.__new__(XdpSender).prepare(TrialSpec(1000.0, 1.0, (64,), 0.0, tcp=True))

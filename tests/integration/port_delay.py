"""Delay of what a port sends, by a program that waits in the kernel before the packet goes on."""

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.links import namespaces

_SCHED_CLS, _TCX_EGRESS = 3, 47
_MAX_LOOKS, _READINGS = 8_000, 16
"""Turns of the loop, and readings of the clock in each of them, of which the last one counts: the verifier follows no
more than 8,192 conditional jumps. That is enough for some milliseconds."""


def _instruction(code: int, registers: int = 0, offset: int = 0, operand: int = 0) -> bytes:
    return struct.pack("<BBhi", code, registers, offset, operand)


def _waiting(delay_s: float) -> bytes:
    """A program that looks at the clock until the time is over, and lets the packet pass."""
    ktime_get_ns = _instruction(0x85, operand=5)
    return b"".join(
        (
            ktime_get_ns,
            _instruction(0xBF, 0x06),  # r6 = r0
            _instruction(0x07, 0x06, operand=round(delay_s * 1e9)),  # r6 += delay
            _instruction(0xB7, 0x07),  # r7 = 0
            ktime_get_ns * _READINGS,
            _instruction(0x3D, 0x60, offset=2),  # if r0 >= r6, out
            _instruction(0x07, 0x07, operand=1),  # r7 += 1
            _instruction(0xA5, 0x07, offset=-3 - _READINGS, operand=_MAX_LOOKS),  # if r7 < most, look again
            _instruction(0xB7, 0x00, operand=-1),  # out: r0 = TCX_NEXT
            _instruction(0x95),
        )
    )


@contextmanager
def delayed(owner: str, interface: str, delay_s: float, root: Path = Path("/")) -> Iterator[None]:
    """Let each packet that an owner's port sends wait, on the CPU that sends it.

    Skips the test where the kernel has no such programs (before 6.6).
    """
    namespace = root / namespaces.path_of(namespaces.name_of(owner)).relative_to("/")

    def attach() -> int:
        return int(bpf.bpf_link_create(program, socket.if_nametoindex(interface), _TCX_EGRESS, None))

    try:
        bpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        pytest.skip("libbpf.so.1 is not installed")
    code = _waiting(delay_s)
    program = bpf.bpf_prog_load(_SCHED_CLS, b"delay", b"GPL", code, ctypes.c_size_t(len(code) // 8), None)
    if program < 0:
        pytest.skip(f"the kernel loads no program that waits: {os.strerror(-program)}")
    try:
        link = namespaces.run_inside(str(namespace), attach)
        if link < 0:
            pytest.skip(f"the kernel attaches no program to what a port sends: {os.strerror(-link)}")
        try:
            yield
        finally:
            os.close(link)
    finally:
        os.close(program)

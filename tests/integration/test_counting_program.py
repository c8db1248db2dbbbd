"""The XDP program that counts numbered frames, run by the kernel for made-up frames: no interface, no traffic."""

import ctypes
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.driver import why_not_by_xdp
from resources.libraries.python.drivers.generators.losses import NumberedArrivals, arrival_sequence
from resources.libraries.python.drivers.generators.xdp import bpf, receiver
from tests.unit.drivers.generators.counted_arrivals import counted

pytestmark = [pytest.mark.parallel, pytest.mark.root]
SENT, MARK = 200, 0xC5170001
DROPPED, PASSED = 1, 2
ETHERNET = bytes(12) + b"\x08\x00"


@pytest.fixture(autouse=True)
def _works_here() -> None:
    if reason := why_not_by_xdp():
        pytest.skip(reason)


def frame(number: int, *, mark: int = MARK, stamp_ns: int = 0, protocol: int = 17, port: int = 49190) -> bytes:
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, protocol, 0, bytes(4), bytes(4))
    udp = struct.pack("!HHHH", 1, port, 26, 0)
    return (ETHERNET + ip + udp + struct.pack("!IIQ", mark, number, stamp_ns)).ljust(60, b"\0")


class Counting:
    """The loaded program."""

    def __init__(self, most_late: int) -> None:
        with patch.object(bpf.XdpProgram, "attach", lambda *_: os.open(os.devnull, os.O_RDONLY)):
            self.receiver = receiver.FlowReceiver("lo", SENT, MARK, most_late=most_late)

    def give(self, data: bytes) -> int:
        """Run the program for a frame; return its verdict."""
        options = bpf._TestRun(sz=ctypes.sizeof(bpf._TestRun), data_in=data, data_size_in=len(data), repeat=1)
        status = bpf._libbpf().bpf_prog_test_run_opts(self.receiver._program._descriptor, ctypes.byref(options))
        assert status == 0, os.strerror(-status)
        return int(options.retval)

    def give_all(self, numbers: Sequence[int]) -> NumberedArrivals:
        for number in numbers:
            assert self.give(frame(number)) == DROPPED
        return self.receiver.collect(SENT)


@contextmanager
def counting(most_late: int = 1000) -> Iterator[Counting]:
    made = Counting(most_late)
    try:
        yield made
    finally:
        made.receiver.close()


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(numbers=st.lists(st.integers(0, SENT - 1), max_size=300))
def test_it_counts_as_the_model_does_that_the_figures_are_checked_with(numbers: list[int]) -> None:
    with counting() as program:
        found, wanted = program.give_all(numbers), counted(numbers, SENT)
    assert np.array_equal(found.came, wanted.came)
    assert (found.duplicates, found.late, found.elsewhere, found.foreign) == (wanted.duplicates, wanted.late, 0, 0)
    assert np.array_equal(found.late_numbers, wanted.late_numbers)
    assert np.array_equal(found.late_orders, wanted.late_orders)
    assert arrival_sequence(found).tolist() == list(dict.fromkeys(numbers))


def test_the_order_of_late_packets_is_kept_up_to_a_limit() -> None:
    with counting(most_late=3) as program:
        found = program.give_all([9, 8, 7, 6, 5, 10])
    assert (found.late, found.late_numbers.tolist(), found.late_orders.tolist()) == (4, [8, 7, 6], [1, 2, 3])
    assert found.came.sum() == 6


def test_frames_of_other_flows_and_numbers_beyond_are_counted_apart() -> None:
    with counting() as program:
        assert program.give(frame(3)) == DROPPED
        assert program.give(frame(3, mark=MARK + 1)) == DROPPED
        assert program.give(frame(2**32 - 1)) == DROPPED
        assert program.give(frame((SENT // 64 + 1) * 64)) == DROPPED
        found = program.receiver.collect(SENT)
    assert (int(found.came.sum()), found.duplicates, found.late, found.foreign) == (1, 0, 0, 3)


@pytest.mark.parametrize(
    "data",
    [
        frame(1, protocol=6),
        frame(1, port=49191),
        frame(1)[:57],
        frame(1)[:14] + b"\x46" + frame(1)[15:],
        frame(1)[:20] + b"\x20\x00" + frame(1)[22:],
        frame(1)[:12] + struct.pack("!H", socket.ntohs(socket.AF_INET6)) + frame(1)[14:],
    ],
    ids=["TCP", "another port", "cut", "IP options", "fragment", "not IPv4"],
)
def test_all_other_packets_pass(data: bytes) -> None:
    with counting() as program:
        assert program.give(data) == PASSED
        found = program.receiver.collect(SENT)
    assert (int(found.came.sum()), found.foreign) == (0, 0)


def test_the_first_time_stamp_of_64_numbers_is_kept_to_64_ns() -> None:
    with counting() as program:
        stamps_ns = {70: 10**18 + 12_345, 71: 10**18 + 13_345, 130: 10**18 + 99_999}
        for number, stamp_ns in stamps_ns.items():
            program.give(frame(number, stamp_ns=stamp_ns))
        program.give(frame(5))  # without a time stamp
        found = program.receiver.collect(SENT)
    assert found.stamped.tolist() == [70, 130]
    for number, found_ns in zip(found.stamped.tolist(), found.stamps_ns.tolist(), strict=True):
        assert 0 <= stamps_ns[number] - kernel.tai_offset_ns() - found_ns < 64
    assert frames.PROBE_PORT == 49190

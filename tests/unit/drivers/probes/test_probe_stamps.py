"""Which frames a port stamps, and what is read of them: numbered probes, whatever their addresses, and nothing else."""

import struct

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.drivers.host.sockets.packet_ring import RingFrames
from resources.libraries.python.drivers.probes.hops.driver import probe_filter, stamps_of

FLOW = FlowSpec("a", "b", "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", 4, "20.0.0.1")
FLOW_6 = FlowSpec("a", "b", "02:00:00:00:00:01", "02:00:00:00:00:02", "2001:db8::1", 4, "2001:db8:1::1")
SENT_NS = 1_750_000_000_123_456_789


def passed(program: bytes, frame: bytes) -> int:
    """Bytes that a program of classic BPF lets pass of a frame; what lies behind its end drops it."""
    steps, at, value = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        if code in (0x20, 0x28, 0x30):
            size = {0x20: 4, 0x28: 2, 0x30: 1}[code]
            if operand + size > len(frame):
                return 0
            value = int.from_bytes(frame[operand : operand + size])
        elif code == 0x15:
            at += yes if value == operand else no
        elif code == 0x05:
            at += operand
        else:
            assert code == 0x06
            return min(operand, len(frame))


def probe(flow: FlowSpec, number: int = 7, size: int = 128, sent_ns: int = SENT_NS) -> bytearray:
    frame = bytearray(frames.ProbeFrames(flow, [size]).frame(number))
    first = frames.STAMP_OFFSET + frames.IPV6_MORE * flow.ipv6
    frame[first : first + 8] = sent_ns.to_bytes(8)
    return frame


@pytest.mark.parametrize("flow", [FLOW, FLOW_6])
@pytest.mark.parametrize("size", [82, 128, 1518])
def test_probes_pass_with_their_number_and_time(flow: FlowSpec, size: int) -> None:
    assert passed(probe_filter(), bytes(probe(flow, size=size))) >= frames.PROBE_BYTES + frames.IPV6_MORE * flow.ipv6


def test_the_smallest_probe_passes_whole() -> None:
    assert passed(probe_filter(), bytes(probe(FLOW, size=64))) == 60


def test_a_probe_passes_whatever_a_nat_or_a_proxy_does_to_its_addresses_and_ports() -> None:
    frame = probe(FLOW)
    frame[0:12] = bytes(range(100, 112))
    frame[26 : frames.MARK_OFFSET] = bytes(range(200, 216))  # addresses, ports, length and checksum
    assert passed(probe_filter(), bytes(frame))


@pytest.mark.parametrize("flow", [FLOW, FLOW_6])
@pytest.mark.parametrize("udp", [False, True])
def test_load_frames_do_not_pass(flow: FlowSpec, udp: bool) -> None:
    area = np.zeros((8, 1600), dtype=np.uint8)
    frames.load_frames(flow, [128], area, udp=udp)
    assert not any(passed(probe_filter(), row[:124].tobytes()) for row in area)


@pytest.mark.parametrize(
    ("place", "value"),
    [(12, b"\x08\x06"), (23, b"\x06"), (42, b"load"), (42, b"csi\0")],
    ids=["ARP", "TCP", "other contents", "half a mark"],
)
def test_other_frames_do_not_pass(place: int, value: bytes) -> None:
    frame = probe(FLOW)
    frame[place : place + len(value)] = value
    assert not passed(probe_filter(), bytes(frame))
    assert not passed(probe_filter(), bytes(frame[:20]))


def test_numbers_and_directions_are_read_of_both_ip_versions_and_of_duplicates_the_first_counts() -> None:
    came = [(FLOW, 7, 4), (FLOW, 8, 4), (FLOW, 7, 0), (FLOW, 7, 3), (FLOW_6, 2**32 - 1, 0), (FLOW_6, 7, 4)]
    heads = np.array([list(probe(flow, number)) for flow, number, _ in came], dtype=np.uint8)

    kinds = np.array([kind for _, _, kind in came], dtype=np.uint8)
    assert stamps_of(RingFrames(np.arange(len(came)) * 10, kinds, heads[:, 12:78])) == {
        "tx": {(7, SENT_NS): 0, (8, SENT_NS): 10},
        "rx": {(7, SENT_NS): 20, (2**32 - 1, SENT_NS): 40},
    }

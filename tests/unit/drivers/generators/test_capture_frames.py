"""Frames of a capture for a flow: addresses, and checksums against an independent sum over the whole packet."""

import struct

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad, probe_sizes
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.model.request.capture import read_capture
from tests.captures import MIX, MIX6, ipv4, ipv6, pcap, udp

FLOW = FlowSpec("a", "b", "02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.1.1", 2, "20.0.1.1")
FLOW6 = FlowSpec("a", "b", "02:00:00:00:00:01", "02:00:00:00:00:02", "fd00:10:1::1", 254, "fd00:20:1::1")
FRAGMENT = 0x2000


def load(frames: tuple[bytes, ...]) -> CapturedLoad:
    return CapturedLoad(read_capture(pcap(frames), "x"))


def written(frames: tuple[bytes, ...], flow: FlowSpec, slots: int = 0) -> list[bytes]:
    area = np.zeros((slots or len(frames), 1514), dtype=np.uint8)
    lengths = load(frames).write(flow, area)
    return [bytes(row[:length]) for row, length in zip(area, lengths, strict=True)]


def internet_sum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def transport_sum(frame: bytes) -> int:
    """Sum of the pseudo header and what it is for; 0xffff where the checksum is right."""
    if frame[12:14] == b"\x08\x00":
        ends, contents, protocol = frame[26:34], frame[34 : 14 + int.from_bytes(frame[16:18])], frame[23]
    else:
        ends, contents, protocol = frame[22:54], frame[54 : 54 + int.from_bytes(frame[18:20])], frame[20]
    return internet_sum(ends + struct.pack("!II", len(contents), protocol) + contents)


@pytest.mark.parametrize(("frames", "flow"), [(MIX, FLOW), (MIX6, FLOW6)])
def test_checksums_are_right_for_the_addresses_of_the_flow(frames: tuple[bytes, ...], flow: FlowSpec) -> None:
    for frame, original in zip(written(frames, flow), frames, strict=True):
        assert frame[:12].hex() == "020000000002020000000001"
        if frames is MIX:
            assert internet_sum(frame[14:34]) == 0xFFFF
            assert (frame[15], frame[22]) == (original[15], 64)
        if frame[23 if frames is MIX else 20] in (6, 17, 58) and b"ccc" not in original[:60]:
            assert transport_sum(frame) == 0xFFFF


def test_a_datagram_without_checksum_stays_without() -> None:
    frame = written(MIX, FLOW)[4]
    assert frame[40:42] == b"\0\0"


def test_hosts_of_the_capture_are_addresses_of_the_flow_in_turns() -> None:
    assert [frame[29] for frame in written(MIX, FLOW, 14)] == [1, 2, 1, 1, 1, 2, 1] * 2
    assert [frame[37] for frame in written(MIX6, FLOW6)] == [1, 2, 1]


def test_the_first_fragment_keeps_the_checksum_of_the_whole_datagram() -> None:
    old, new = b"\xc0\0\x02\x01\xc6\x33\x64\x09", b"\x0a\0\x01\x01\x14\0\x01\x01"
    whole = udp(b"x" * 100, checksum=0)
    right = 0xFFFF - internet_sum(old + struct.pack("!II", 108, 17) + whole)
    first = ipv4(17, udp(b"x" * 100, checksum=right)[:56], fragment=FRAGMENT)
    second = ipv4(17, whole[56:], fragment=7)
    frames = written((first, second), FLOW)
    checksum = int.from_bytes(frames[0][40:42])
    assert checksum == 0xFFFF - internet_sum(new + struct.pack("!II", 108, 17) + whole)
    assert frames[1][34:86] == whole[56:]


def test_extension_headers_of_ipv6_are_passed_over() -> None:
    options = bytes([17, 0, 1, 4, 0, 0, 0, 0])
    (frame,) = written((ipv6(60, options + udp(b"x" * 30)),), FLOW6)
    contents = frame[62:100]
    assert internet_sum(frame[22:54] + struct.pack("!II", len(contents), 17) + contents) == 0xFFFF


def test_probes_have_the_sizes_of_the_capture() -> None:
    assert probe_sizes(read_capture(pcap(MIX), "x")) == (76, 1059, 64, 64, 547, 1518, 115)
    many = probe_sizes(read_capture(pcap(MIX * 200), "x"))
    assert len(many) <= 512
    assert set(many) == {76, 1059, 64, 547, 1518, 115}

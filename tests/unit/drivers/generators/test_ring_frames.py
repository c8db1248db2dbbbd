"""Frames as bytes, also those of a capture."""

import ipaddress
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad, probe_sizes
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.drivers.generators.ring.tx_ring import slot_bytes, slot_count
from resources.libraries.python.model.request.capture import read_capture
from tests.captures import MIX, MIX6, ipv4, ipv6, pcap, udp
from tests.unit.examples import share

ADDRESS = st.integers(0, 2**32 - 1 - 1000).map(lambda number: str(ipaddress.IPv4Address(number)))
MAC = st.binary(min_size=6, max_size=6).map(lambda octets: octets.hex(":"))
IPV4 = FlowSpec("tx", "rx", "02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.0.1", 254, "20.1.0.1")
SIZES = st.lists(st.integers(64, 9018), min_size=1, max_size=12)


@st.composite
def flows(draw: Any) -> FlowSpec:
    return FlowSpec("tx", "rx", draw(MAC), draw(MAC), draw(ADDRESS), draw(st.integers(1, 254)), draw(ADDRESS))


def internet_sum(data: bytes) -> int:
    """RFC 1071, written differently from the code under test: 0xffff where a checksum in it is right."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def transport_sum(frame: bytes) -> int:
    """Sum of the pseudo header and what it is for."""
    if frame[12:14] == b"\x08\x00":
        ends, contents, protocol = frame[26:34], frame[34 : 14 + int.from_bytes(frame[16:18])], frame[23]
    else:
        ends, contents, protocol = frame[22:54], frame[54 : 54 + int.from_bytes(frame[18:20])], frame[20]
    return internet_sum(ends + struct.pack("!II", len(contents), protocol) + contents)


def check_headers(frame: bytes, flow: FlowSpec, protocol: int, index: int) -> None:
    assert (frame[:6].hex(":"), frame[6:12].hex(":")) == (flow.destination_mac, flow.source_mac)
    assert frame[12:14] == b"\x08\x00"
    assert internet_sum(frame[14:34]) == 0xFFFF
    _, length, _, _, ttl_protocol, _, source, destination = struct.unpack("!HHHHHHII", frame[14:34])
    assert (length, ttl_protocol & 0xFF) == (len(frame) - 14, protocol)
    assert source == int(ipaddress.IPv4Address(flow.source_ip)) + index % flow.sources
    assert destination == int(ipaddress.IPv4Address(flow.destination_ip))


@given(flow=flows(), sizes=SIZES, slots=st.integers(1, 600))
@settings(max_examples=share(60), deadline=None)
def test_load_frames_are_right_in_every_slot(flow: FlowSpec, sizes: list[int], slots: int) -> None:
    """Datagrams have a port for each source address."""
    area = np.zeros((slots, max(sizes)), dtype=np.uint8)
    lengths = frames.load_frames(flow, sizes, area)
    for slot in range(0, slots, 7):
        assert lengths[slot] == sizes[slot % len(sizes)] - frames.FCS_BYTES
        check_headers(area[slot, : lengths[slot]].tobytes(), flow, frames.LOAD_PROTOCOL, slot)
    lengths = frames.load_frames(flow, sizes, area, udp=True)
    ports: dict[bytes, int] = {}
    for slot in range(slots):
        frame = area[slot, : lengths[slot]].tobytes()
        check_headers(frame, flow, frames.UDP, slot)
        source, *others = struct.unpack_from("!HHHH", frame, 34)
        assert others == [frames.UDP_LOAD_PORT, len(frame) - 34, 0]
        assert source >= frames.FIRST_PORT
        assert ports.setdefault(frame[26:30], source) == source
    assert len(set(ports.values())) == len(ports) == min(slots, flow.sources)


@given(flow=flows(), sizes=SIZES, number=st.integers(0, 2**32 - 1))
@settings(max_examples=share(60), deadline=None)
def test_probe_frames_carry_their_number_and_have_its_5_tuple(flow: FlowSpec, sizes: list[int], number: int) -> None:
    row, source = divmod(number % 1_000_000, 65_534)
    of_many = frames.ProbeFrames(IPV4, (64,), count=1_000_000).frame(number)
    assert struct.unpack_from("!IIHH", of_many, 26) == (0x0A010001 + source, 0x14010001, 49190 + row, 49190)
    assert internet_sum(of_many[14:34]) == 0xFFFF
    frame = bytes(frames.ProbeFrames(flow, sizes).frame(number))
    assert len(frame) == sizes[number % len(sizes)] - frames.FCS_BYTES
    check_headers(frame, flow, frames.PROBE_PROTOCOL, number)
    ports_and_length = struct.unpack_from("!HHHH", frame, 34)
    assert ports_and_length == (frames.PROBE_PORT, frames.PROBE_PORT, len(frame) - 34, 0)
    assert struct.unpack_from("!I", frame, frames.NUMBER_OFFSET) == (number,)


@given(st.lists(st.tuples(st.integers(64, 9018), st.integers(1, 60)), min_size=1, max_size=5, unique_by=lambda p: p[0]))
def test_a_pattern_holds_the_mix_exactly(parts: list[tuple[int, int]]) -> None:
    pattern = frames.size_pattern(parts)
    total = sum(weight for _, weight in parts)
    for size, weight in parts:
        assert pattern.count(size) * total == weight * len(pattern)


def test_a_pattern_is_spread() -> None:
    spread = (64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 570, 64)
    assert frames.size_pattern([(64, 28), (570, 16), (1518, 4)]) == spread
    assert frames.size_pattern([(64, 10)]) == (64,)


@given(st.integers(64, 9018), st.integers(1, 254), st.integers(1, 60), st.sampled_from([0, 2048]))
def test_a_ring_ends_with_every_cycle(largest: int, sources: int, mix: int, fewest: int) -> None:
    slot = slot_bytes(largest)
    assert slot >= 42 + largest - 4
    slots = slot_count(slot, sources, mix, fewest=fewest)
    assert slots >= (fewest or (2000 if slot <= 4096 else 600))
    assert slots % sources == slots % mix == 0
    assert slots * slot % 4096 == 0


@given(flow=flows(), sizes=SIZES, count=st.integers(1, 1_000_000), number=st.integers(0, 2**40))
@settings(max_examples=share(60), deadline=None)
def test_frames_get_the_5_tuples_of_any_number(flow: FlowSpec, sizes: list[int], count: int, number: int) -> None:
    area = np.zeros((60, max(sizes)), dtype=np.uint8)
    lengths = frames.load_frames(flow, sizes, area, udp=True, count=count)
    writer = frames.TupleWriter(flow, count, area, udp=True)
    writer.write(10, 60, number)
    writer.write(0, 10, number + 50)
    first = int(ipaddress.IPv4Address(flow.source_ip))
    for slot in range(60):
        frame = area[slot, : lengths[slot]].tobytes()
        assert internet_sum(frame[14:34]) == 0xFFFF
        row, source = divmod((number + (slot - 10) % 60) % count, 65534)
        found, _, port = struct.unpack_from("!IIH", frame, 26)
        assert found == (first + source) & 0xFFFFFFFF
        assert port == 0x8000 + (((first + source) & 0xFFFF) * 40503 + row) % 0x8000


@pytest.mark.parametrize("count", [1, 254, 255, 65_534, 65_535, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_flow_has_exactly_so_many_5_tuples(count: int) -> None:
    sources, rows = frames.FlowTuples.of(IPV4, count).places(np.arange(2 * count))
    addresses = 0x0A010001 + sources
    assert addresses.max() < 0x0A020000  # within the instance's network
    tuples = addresses << 16 | frames.load_ports(addresses, rows)
    assert len(np.unique(tuples[:count])) == count
    assert np.array_equal(tuples[:count], tuples[count:])
    probes = addresses << 16 | frames.PROBE_PORT + rows
    assert len(np.unique(probes)) == count


IPV6 = replace(IPV4, source_ip="fd00:10:7::1", destination_ip="fd00:20:7::1")


def check_ipv6(frame: bytes, number: int, count: int) -> None:
    """Lengths, addresses and UDP checksum (RFC 8200) of a frame."""
    assert frame[12:16] == b"\x86\xdd\x60\x00"
    assert struct.unpack_from("!HBB", frame, 18) == (len(frame) - 54, 17, 64)
    source = ipaddress.IPv6Address(frame[22:38])
    assert source == ipaddress.IPv6Address(IPV6.source_ip) + number % count % 65534
    assert str(ipaddress.IPv6Address(frame[38:54])) == IPV6.destination_ip
    assert transport_sum(frame) == 0xFFFF and frame[60:62] != b"\0\0"


@given(
    st.lists(st.integers(82, 9018), min_size=1, max_size=5), st.integers(1, 10**6), st.integers(0, 2**32 - 1)
)  # fmt: skip
@settings(max_examples=share(60), deadline=None)
def test_ipv6_frames_are_right_for_any_number(sizes: list[int], count: int, number: int) -> None:
    area = np.zeros((20, max(sizes)), dtype=np.uint8)
    lengths = frames.load_frames(IPV6, sizes, area, count=count)
    for slot in range(20):
        check_ipv6(area[slot, : lengths[slot]].tobytes(), slot, count)
    frames.TupleWriter(IPV6, count, area, udp=True).write(0, 20, number)
    for slot in range(20):
        check_ipv6(area[slot, : lengths[slot]].tobytes(), number + slot, count)
    probe = bytes(frames.ProbeFrames(IPV6, sizes, 0xFFFF0001, count=count).frame(number))
    check_ipv6(probe, number, count)
    assert struct.unpack_from("!HH", probe, 54)[1] == frames.PROBE_PORT
    assert struct.unpack_from("!II", probe, 62) == (0xFFFF0001, number)


def check_segment(frame: bytes, flow: FlowSpec) -> tuple[int, int]:
    """A TCP segment with right lengths and checksums; return the last 32 bits of its source, and its source port."""
    behind, source = (54, frame[34:38]) if flow.ipv6 else (34, frame[26:30])
    length = int.from_bytes(frame[18:20] if flow.ipv6 else frame[16:18]) + (54 if flow.ipv6 else 14)
    assert flow.ipv6 or internet_sum(frame[14:34]) == 0xFFFF
    assert (length, frame[20 if flow.ipv6 else 23], transport_sum(frame)) == (len(frame), frames.TCP, 0xFFFF)
    port, *others = struct.unpack_from("!HHIIHHHH", frame, behind)
    assert (*others[:5], others[6]) == (frames.UDP_LOAD_PORT, 1, 1, 0x5010, 0xFFFF, 0)
    return int.from_bytes(source), port


@pytest.mark.parametrize("ipv6", [False, True])
@given(
    flows(), st.lists(st.integers(82, 9018), min_size=1, max_size=5), st.integers(0, 10**6), st.integers(0, 2**32 - 1)
)  # fmt: skip
@settings(max_examples=share(60), deadline=None)
def test_tcp_segments_are_right_for_any_number(
    ipv6: bool, flow: FlowSpec, sizes: list[int], count: int, number: int
) -> None:
    used = IPV6 if ipv6 else replace(flow, source_ip="10.9.0.1")
    sizes = sizes if ipv6 else [64, *sizes]  # a segment fits into the smallest frame
    area = np.zeros((20, max(sizes)), dtype=np.uint8)
    lengths = frames.load_frames(used, sizes, area, tcp=True, count=count)
    tuples = {check_segment(area[slot, : lengths[slot]].tobytes(), used) for slot in range(20)}
    assert len(tuples) == min(20, count or used.sources)
    if count:
        frames.TupleWriter(used, count, area, udp=False, tcp=True).write(0, 20, number)
        tuples = {check_segment(area[slot, : lengths[slot]].tobytes(), used) for slot in range(20)}
        assert len(tuples) == min(20, count)


FLOW = replace(IPV4, source_ip="10.0.1.1", sources=2, destination_ip="20.0.1.1")
FLOW6 = replace(IPV4, source_ip="fd00:10:1::1", destination_ip="fd00:20:1::1")


def written(frames: tuple[bytes, ...], flow: FlowSpec, slots: int = 0) -> list[bytes]:
    area = np.zeros((slots or len(frames), 1514), dtype=np.uint8)
    lengths = CapturedLoad(read_capture(pcap(frames), "x")).write(flow, area)
    return [bytes(row[:length]) for row, length in zip(area, lengths, strict=True)]


@pytest.mark.parametrize(("frames", "flow"), [(MIX, FLOW), (MIX6, FLOW6)])
def test_checksums_are_right_for_the_addresses_of_the_flow(frames: tuple[bytes, ...], flow: FlowSpec) -> None:
    for frame, original in zip(written(frames, flow), frames, strict=True):
        assert frame[:12].hex() == "020000000002020000000001"
        if frames is MIX:
            assert internet_sum(frame[14:34]) == 0xFFFF
            assert (frame[15], frame[22]) == (original[15], 64)
        if frame[23 if frames is MIX else 20] in (6, 17, 58) and b"ccc" not in original[:60]:
            assert transport_sum(frame) == 0xFFFF


def test_hosts_of_the_capture_are_addresses_of_the_flow_in_turns() -> None:
    assert [frame[29] for frame in written(MIX, FLOW, 14)] == [1, 2, 1, 1, 1, 2, 1] * 2
    assert [frame[37] for frame in written(MIX6, FLOW6)] == [1, 2, 1]
    assert written(MIX, FLOW)[4][40:42] == b"\0\0", "a datagram without checksum stays without"


def test_the_first_fragment_keeps_the_checksum_of_the_whole_datagram() -> None:
    old, new = b"\xc0\0\x02\x01\xc6\x33\x64\x09", b"\x0a\0\x01\x01\x14\0\x01\x01"
    whole = udp(b"x" * 100, checksum=0)
    right = 0xFFFF - internet_sum(old + struct.pack("!II", 108, 17) + whole)
    first = ipv4(17, udp(b"x" * 100, checksum=right)[:56], fragment=0x2000)
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

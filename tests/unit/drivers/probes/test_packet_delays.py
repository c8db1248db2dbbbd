"""Delay by part from stamps of packets at hops: planted times come out, add up, and a hop that sees nothing joins."""

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.drivers.host.sockets.packet_ring import RingFrames
from resources.libraries.python.drivers.probes.hops.packet_delays import Stamps, hop_delays, visible
from resources.libraries.python.drivers.probes.hops.port_stamps import probe_filter, stamps_of
from resources.libraries.python.model.measurements.features import LINK, HopDelay
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Path
from tests.builders import SIM, plan_of

CHAIN = plan_of("sim", "CSC", 1, 2, SIM.dut.layout)
FORWARD, REVERSE = CHAIN.paths
OWNERS = {"vswitch", "nf-1-1", "nf-1-2", LINK}


def stamps(steps_ns: Sequence[Sequence[int]]) -> list[dict[tuple[int, int], int]]:
    """When packets pass each hop; the steps are those of a packet from hop to hop."""
    begin_ns = 10**18
    rows = [list(accumulate(row, initial=begin_ns + 5_000_000 * number)) for number, row in enumerate(steps_ns)]
    return [{(number, 0): row[hop] for number, row in enumerate(rows)} for hop in range(len(rows[0]))]


def constant(path: Path, packets: int = 4, owners_ns: Mapping[str, int] = {}) -> list[dict[tuple[int, int], int]]:
    """Each owner takes its time in each of its steps, all others 1 us."""
    return stamps([[owners_ns.get(hop.owner, 1000) for hop in path.hops[1:]]] * packets)


def by_owner(rows: Sequence[HopDelay], direction: Direction = Direction.FORWARD) -> Mapping[str, HopDelay]:
    return {row.owner: row for row in rows if row.direction is direction}


COUNT = len(FORWARD.hops) - 1
STEPS = st.lists(st.lists(st.integers(0, 10**6), min_size=COUNT, max_size=COUNT), min_size=1, max_size=9)


@given(STEPS, st.sampled_from([FORWARD, REVERSE]), st.data())
def test_parts_add_up_and_each_owner_has_its_own_time(steps: list[list[int]], path: Path, data: st.DataObject) -> None:
    seen = stamps(steps)
    lost = data.draw(st.sets(st.integers(0, len(steps) - 1), max_size=len(steps) - 1))
    for packet in lost:  # somewhere on the way
        for hop in range(data.draw(st.integers(1, len(seen) - 1)), len(seen)):
            del seen[hop][packet, 0]
    arrived = [row for number, row in enumerate(steps) if number not in lost]
    found = by_owner(hop_delays([(path, seen)]), path.direction)
    assert {row.packets for row in found.values()} == {len(arrived)}
    assert sum(row.mean_s for row in found.values()) == pytest.approx(sum(map(sum, arrived)) / len(arrived) / 1e9)
    for owner, row in found.items():
        places = [i for i, hop in enumerate(path.hops[1:]) if hop.owner == {LINK: "generator"}.get(owner, owner)]
        planted = sorted(sum(each[place] for place in places) for each in arrived)
        assert row.mean_s == pytest.approx(sum(planted) / len(planted) / 1e9)
        assert planted[(len(planted) - 1) // 2] <= row.median_s * 1e9 * (1 + 1e-9)
        assert row.median_s * 1e9 <= planted[len(planted) // 2] * (1 + 1e-9)


@given(STEPS, st.sets(st.integers(1, len(FORWARD.hops) - 2)))
def test_parts_of_hops_that_are_not_seen_are_one_and_all_still_add_up(steps: list[list[int]], hidden: set[int]) -> None:
    seen = [{} if hop in hidden else row for hop, row in enumerate(stamps(steps))]
    found = by_owner(hop_delays([(FORWARD, seen)]))
    assert {name for row in found.values() for name in row.owner.split(" + ")} == OWNERS
    assert sum(row.mean_s for row in found.values()) == pytest.approx(sum(map(sum, steps)) / len(steps) / 1e9)


def test_a_hop_that_sees_less_than_half_of_what_passed_it_is_not_visible() -> None:
    seen = constant(FORWARD, packets=10)
    for number in range(6):
        del seen[3][number, 0]
    assert visible(seen) == [place for place in range(len(seen)) if place != 3]
    del seen[5][0, 0]  # an overfull ring
    assert visible(seen) == [place for place in range(len(seen)) if place != 3]
    assert {row.packets for row in hop_delays([(FORWARD, seen)])} == {9}
    unseen: list[Stamps] = [{}, *constant(FORWARD)[1:]]
    found = by_owner(hop_delays([(FORWARD, unseen)]))
    assert found.keys() == OWNERS, "it begins at the vSwitch"
    assert sum(row.mean_s for row in found.values()) == pytest.approx((len(FORWARD.hops) - 2) * 1e-6)
    hidden = [{} if hop.owner == "nf-1-2" else row for hop, row in zip(FORWARD.hops, constant(FORWARD), strict=True)]
    found = by_owner(hop_delays([(FORWARD, hidden)]))
    assert found.keys() == OWNERS - {"nf-1-2"} | {"vswitch + nf-1-2"}, "an NF is one part with the vSwitch"
    assert found["vswitch + nf-1-2"].mean_s == pytest.approx(3e-6)


def test_packets_after_which_the_clock_was_set_back_are_left_out() -> None:
    seen = constant(FORWARD)
    for row in seen[6:]:
        row[2, 0] -= 3600 * 10**9
    assert {row.packets for row in hop_delays([(FORWARD, seen)])} == {3}
    for hops in (0, 1):
        assert hop_delays([(FORWARD, [row if place < hops else {} for place, row in enumerate(seen)])]) == ()


def test_directions_and_instances_do_not_mix_their_packets_of_equal_numbers() -> None:
    plan = plan_of("sim", "CSC", 2, 1, SIM.dut.layout)
    taken = {"nf-1-1": 100_000, "nf-2-1": 300_000}
    seen = [(path, constant(path, owners_ns=taken)) for path in plan.paths]
    found = hop_delays(seen)
    for direction in Direction:
        row = by_owner(found, direction)
        assert {name: row[name].mean_s for name in taken} == pytest.approx({"nf-1-1": 200e-6, "nf-2-1": 600e-6})
        assert (row["nf-1-1"].packets, row["vswitch"].packets) == (4, 8)


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


def test_a_probe_passes_whatever_a_nat_or_a_proxy_does_to_its_addresses_and_ports() -> None:
    frame = probe(FLOW, size=64)
    frame[0:12] = bytes(range(100, 112))
    frame[26 : frames.MARK_OFFSET] = bytes(range(200, 216))  # addresses, ports, length and checksum
    assert passed(probe_filter(), bytes(frame)) == 60, "the smallest one, whole"


@pytest.mark.parametrize("flow", [FLOW, FLOW_6])
@pytest.mark.parametrize("udp", [False, True])
def test_probes_pass_and_load_frames_and_others_do_not(flow: FlowSpec, udp: bool) -> None:
    assert passed(probe_filter(), bytes(probe(flow))) >= frames.PROBE_BYTES + frames.IPV6_MORE * flow.ipv6
    area = np.zeros((8, 1600), dtype=np.uint8)
    frames.load_frames(flow, [128], area, udp=udp)
    assert not any(passed(probe_filter(), row[:124].tobytes()) for row in area)
    for place, value in ((12, b"\x08\x06"), (23, b"\x06"), (42, b"csi\0")):  # ARP, TCP, half a mark
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

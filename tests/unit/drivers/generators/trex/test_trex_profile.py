"""Streams of a trial: every flow of every plan gets its share, in packets that are what they say."""

from ipaddress import IPv4Address
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.trex import profile
from resources.libraries.python.drivers.generators.trex.config import table_of
from resources.libraries.python.drivers.generators.trex.profile import MAX_PROBE_GROUPS, streams
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.frames import traffic_profile
from tests.unit.drivers.generators.trex.stand_in import B64, IMIX, plan
from tests.unit.examples import share

PROFILE = traffic_profile()
cells = st.tuples(st.sampled_from(["CSC", "CSP", "VSC"]), st.integers(1, 6), st.integers(1, 4))
mixes = st.lists(
    st.tuples(st.integers(64, 1518), st.integers(1, 9)), min_size=1, max_size=4, unique_by=lambda row: row[0]
)


def with_vlans(given_plan: Plan) -> Plan:
    flows = tuple(flow.model_copy(update={"vlan": 100 + flow.instance}) for flow in given_plan.flows)
    return given_plan.model_copy(update={"flows": flows})


@settings(deadline=None, max_examples=share(40))  # a busy machine is no error
@given(cells, mixes, st.floats(1, 1e8), st.floats(0.1, 1e4), st.booleans())
def test_every_flow_gets_an_equal_share_of_the_load(
    cell: tuple[str, int, int], mix: list[tuple[int, int]], load_pps: float, probe_pps: float, tagged: bool
) -> None:
    asked = with_vlans(plan(*cell)) if tagged else plan(*cell)
    frame = Frame(name="mix", parts=tuple(FramePart(frame_bytes=size, weight=weight) for size, weight in mix))
    table = table_of(asked, Trex())
    trial = Trial(load_pps=load_pps, duration_s=1.0, frame=frame, probe_pps=probe_pps)
    found = streams(asked.flows, table.number, trial, PROFILE)
    assert len(found) == 2 * len(asked.flows) * len(mix)
    assert sum(each.pps for each in found if not each.probe) == pytest.approx(load_pps)
    assert sum(each.pps for each in found if each.probe) == pytest.approx(probe_pps * len(asked.flows))
    weights = sum(weight for _, weight in mix)
    groups = {each.group for each in found if not each.probe}
    assert len(groups) == len(asked.flows)
    assert len({each.group for each in found}) == len(asked.flows) * (1 + len(mix))
    for index, flow in enumerate(asked.flows):
        mine = [each for each in found if each.group == index + 1]
        assert {each.port for each in mine} == {table.number[flow.tx_interface]}
        for (size, weight), stream in zip(mix, mine, strict=True):
            packet = bytes.fromhex(stream.frame)
            assert len(packet) == size - 4 + (4 if tagged else 0)
            assert stream.pps == pytest.approx(load_pps / len(asked.flows) * weight / weights)
            assert packet[:12].hex(":") == f"{flow.destination_mac}:{flow.source_mac}"
            header = packet[profile.ipv4_offset(flow) :][:20]
            assert profile.checksum_of(header) == 0
            assert str(IPv4Address(header[12:16])) == flow.source_ip
            assert str(IPv4Address(header[16:20])) == flow.destination_ip
            assert int.from_bytes(header[2:4]) == size - 18
            assert stream.vary is not None
            assert (stream.vary.first, stream.vary.count) == (int(IPv4Address(flow.source_ip)), 254)
            place = stream.vary.offset
            assert packet[place : place + 4] == IPv4Address(flow.source_ip).packed
            if tagged:
                assert packet[12:16] == b"\x81\x00" + (100 + flow.instance).to_bytes(2)


def test_smallest_probes_hold_number_and_time() -> None:
    for asked in (plan(), with_vlans(plan())):
        flow = asked.flows[0]
        packet = profile.probe_packet(flow, 64, PROFILE.probes)
        payload = packet[profile.ipv4_offset(flow) + profile.IPV4_BYTES + profile.UDP_BYTES :]
        assert len(payload) >= 16, "the server overwrites so many with number and time"
        assert int.from_bytes(packet[profile.ipv4_offset(flow) + 24 :][:2]) == profile.UDP_BYTES + len(payload)


def test_probes_of_flows_take_turns() -> None:
    asked = plan(rows=3)
    trial = Trial(load_pps=0, duration_s=1.0, frame=B64, probe_pps=100)
    starts = [each.start_us for each in streams(asked.flows, table_of(asked, Trex()).number, trial, PROFILE)]
    assert starts[0] == 0
    assert [later - earlier for earlier, later in pairwise(starts)] == pytest.approx([10_000 / 6] * 5)
    assert max(starts) < 10_000


def test_more_probe_streams_than_there_are_counters() -> None:
    asked = plan(rows=16)
    number = {flow.tx_interface: 0 for flow in asked.flows}
    trial = Trial(load_pps=1000, duration_s=1.0, frame=IMIX, probe_pps=100)
    assert len(streams(asked.flows, number, trial, PROFILE)) <= 2 * MAX_PROBE_GROUPS
    more = (*asked.flows, *(flow.model_copy(update={"instance": flow.instance + 16}) for flow in asked.flows))
    with pytest.raises(
        Unsupported, match="64 flows with 3 frame sizes each need 192 streams of latency probes, TRex has 128"
    ):
        streams(more, number, trial, PROFILE)
    # Without probes any number goes.
    assert len(streams(more, number, trial.model_copy(update={"probe_pps": 0.0}), PROFILE)) == 192

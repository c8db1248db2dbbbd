"""Memory shared with the XDP program: what a trial writes into it."""

import ipaddress
import struct

import numpy as np
import pytest

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.xdp import memory
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.errors import Unsupported

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
    sender, spec = XdpSender.__new__(XdpSender), TrialSpec(1000.0, 1.0, (64,), 0.0, tcp=True)
    with pytest.raises(Unsupported, match="TCP segments are not sent by XDP live frames"):
        sender.prepare(spec)

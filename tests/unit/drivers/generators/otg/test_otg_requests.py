"""Requests of OTG clients: what becomes of a flow, and what is refused, by name."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin.frames import load_frames
from resources.libraries.python.drivers.generators.builtin.given_frames import PAYLOAD_BYTES, GivenProbeFrames, payload
from resources.libraries.python.drivers.generators.builtin.sender import schedules
from resources.libraries.python.drivers.generators.otg.server.planned_flows import PlannedFlow, checksum, planned_flows
from resources.libraries.python.drivers.generators.otg.server.schema import (
    ControlState,
    MetricsRequest,
    OtgConfig,
    parse,
)
from resources.libraries.python.errors import ConfigError, Unsupported
from tests.unit.drivers.generators.otg.otg_configurations import ETHERNET, IPV4, IPV6, TCP, UDP, VLAN, configuration

SPEEDS = {"eth1": 10e9, "eth2": None}


def plan(given: Mapping[str, Any]) -> PlannedFlow:
    """The only flow of a configuration."""
    (flow,) = planned_flows(parse(json.dumps(given).encode(), OtgConfig), SPEEDS, 0xABCD0000)
    return flow


def sum_of(content: bytes) -> int:
    """Its checksum, which is zero where one inside it is right."""
    return checksum(content + b"\0" * (len(content) % 2))


@pytest.mark.parametrize("stack", [[ETHERNET, IPV4], [ETHERNET, IPV4, UDP], [ETHERNET, VLAN, IPV4, UDP]])
def test_ipv4_headers_have_their_values_lengths_and_checksums(stack: list[dict[str, Any]]) -> None:
    flow = plan(configuration(packet=stack))
    assert len(flow.spec.headers) == flow.spec.sources == 4
    for index, text in enumerate(flow.spec.headers):
        headers = bytes.fromhex(text)
        assert headers[:12].hex() == "020000000002020000000001"
        behind = 18 if VLAN in stack else 14
        if VLAN in stack:
            assert headers[12:16] == b"\x81\x00\x00\x64"
        assert headers[behind - 2 : behind] == b"\x08\x00"
        ip = headers[behind : behind + 20]
        assert sum_of(ip) == 0
        assert ip[12:] == bytes([10, 0, 0, 1 + index, 20, 0, 0, 1])
        assert struct.unpack("!H", ip[2:4]) == (128 - 4 - behind,)
        assert ip[9] == (17 if UDP in stack else 61)


@pytest.mark.parametrize("number", [0, 1, 0xFFFF, 0x12345678, 0xFFFFFFFF])
def test_udp_checksums_of_load_and_probe_frames_are_right(number: int) -> None:
    flow = plan(configuration(packet=[ETHERNET, IPV6, UDP]))
    for mark in (flow.spec.mark, flow.spec.mark | 1):
        for text in flow.spec.headers:
            frame = (bytes.fromhex(text) + payload(mark, number)).ljust(124, b"\0")
            ends, udp = frame[22:54], frame[54:]
            assert sum_of(ends + struct.pack("!HH", 17, len(udp)) + udp) == 0
    probe = GivenProbeFrames(flow.spec, (128,)).frame(number)
    assert len(probe) == 124
    assert struct.unpack_from("!II", probe, 62) == (flow.spec.mark | 1, number)


@pytest.mark.parametrize("stack", [[ETHERNET, IPV4, TCP], [ETHERNET, VLAN, IPV4, TCP], [ETHERNET, IPV6, TCP]])
def test_tcp_segments_have_their_fields_and_right_checksums(stack: list[dict[str, Any]]) -> None:
    flow = plan(configuration(packet=stack))
    behind = len(flow.spec.headers[0]) // 2 - 20
    for index, text in enumerate(flow.spec.headers):
        frame = (bytes.fromhex(text) + payload(flow.spec.mark | 1, 0x12345678)).ljust(124, b"\0")
        assert frame[behind - 34 if IPV6 in stack else behind - 11] == 6
        ends, segment = frame[behind - (32 if IPV6 in stack else 8) : behind], frame[behind:]
        assert sum_of(ends + struct.pack("!HH", 6, len(segment)) + segment) == 0
        assert struct.unpack("!HHIIHH", segment[:16]) == (
            (65535, 0)[index % 2], 443, (4294967295, 7)[index % 2], 0x12345678, 0x5010 | (2, 0)[index % 2], 29200,
        )  # fmt: skip
        assert segment[18:20] == b"\0\0"


@given(
    fields=st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("src_port", "dst_port", "window"), st.integers(0, 0xFFFF)),
            **dict.fromkeys(("seq_num", "ack_num"), st.integers(0, 0xFFFFFFFF)),
            **dict.fromkeys(("ecn_ns", "ecn_cwr", "ctl_urg", "ctl_psh", "ctl_rst", "ctl_fin"), st.integers(0, 1)),
        },
    ),
    size=st.integers(72, 200),
)
def test_the_checksum_of_any_tcp_header_is_right(fields: dict[str, int], size: int) -> None:
    header = {"choice": "tcp", "tcp": {name: {"value": value} for name, value in fields.items()}}
    flow = plan(configuration(packet=[ETHERNET, IPV4, header], size={"fixed": size}))
    segment = (bytes.fromhex(flow.spec.headers[0]) + payload(flow.spec.mark)).ljust(size - 4, b"\0")[26:]
    assert sum_of(segment[:8] + struct.pack("!HH", 6, len(segment) - 8) + segment[8:]) == 0


def test_a_flow_sends_exactly_the_packets_asked_for_some_of_them_stamped() -> None:
    for packets, pps in ((1, 1), (100, 1000), (100, 100_000), (123_457, 77_777), (1_000_003, 1_234)):
        duration = {"choice": "fixed_packets", "fixed_packets": {"packets": packets}}
        flow = plan(configuration(duration=duration, rate={"choice": "pps", "pps": pps}))
        load, probes = schedules(flow.trial, 1)
        assert load.total + probes.total == packets, (packets, pps)
        assert min(packets, 100) <= probes.total <= 60_000
        assert flow.trial.late_s > flow.duration_s
    without = plan(configuration(metrics={"enable": True}))
    assert without.trial.probe_pps == 0
    assert schedules(without.trial, 1)[0].total == 100


@pytest.mark.parametrize(
    ("rate", "pps"),
    [
        (None, 1000),
        ({"pps": 7}, 7),
        ({"choice": "percentage", "percentage": 50}, 5e9 / 8 / 148),
        ({"choice": "bps", "bps": "1184000"}, 1000),
        ({"choice": "mbps", "mbps": 2}, 2e6 / 8 / 148),
        ({"choice": "gbps"}, 1e9 / 8 / 148),
    ],
)
def test_rates_are_those_of_the_line(rate: dict[str, Any] | None, pps: float) -> None:
    assert plan(configuration(rate=rate)).pps == pytest.approx(pps)


def test_a_continuous_flow_ends_after_an_hour() -> None:
    assert plan(configuration(duration=None)).duration_s == 3600
    assert plan(configuration(duration={"choice": "continuous", "continuous": {"gap": 12}})).duration_s == 3600
    seconds = plan(configuration(duration={"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1.5}}))
    assert (seconds.duration_s, seconds.trial.late_s) == (1.5, 0.1)


REFUSED = [
    ({"packet": [ETHERNET, {"choice": "mpls", "mpls": {}}]}, "flows[0].packet[1].mpls: not supported"),
    (
        {"packet": [ETHERNET, IPV4, {"tcp": {"data_offset": {"value": 6}}}]},
        "flows[0].packet[2].tcp.data_offset.value: 6 words; a header without options has 5",
    ),
    (
        {"packet": [ETHERNET, IPV4, {"tcp": {"ctl_syn": {"value": 2}}}]},
        "flows[0].packet[2].tcp.ctl_syn.value: 2 is abo",
    ),
    ({"packet": [ETHERNET, IPV4, UDP, TCP]}, "flows[0].packet: headers can be"),
    (
        {"packet": [ETHERNET, IPV6, TCP], "size": {"fixed": 87}},
        "flows[0].size.fixed: 87 bytes, with these headers and latency 88",
    ),
    ({"packet": [ETHERNET, VLAN, VLAN, IPV4]}, "flows[0].packet: headers can be"),
    ({"packet": [IPV4, UDP]}, "flows[0].packet: headers can be"),
    ({"packet": [ETHERNET, {"choice": "ipv4", "ipv4": {"options": []}}]}, "flows[0].packet[1].ipv4.options: not supp"),
    (
        {"packet": [ETHERNET, IPV6, UDP], "size": {"fixed": 64}},
        "flows[0].size.fixed: 64 bytes, with these headers and latency 76",
    ),
    ({"size": {"choice": "random", "random": {}}}, "flows[0].size.random: not supported"),
    ({"size": {"fixed": 63}}, "flows[0].size.fixed: 63 is below the minimum of 64"),
    ({"rate": {"pps": 0}}, "flows[0].rate.pps: 0 is below the minimum of 1"),
    ({"rate": {"pps": 1, "bps": 1000}}, "flows[0].rate: one field can be given"),
    ({"rate": {"choice": "fast"}}, "flows[0].rate: choice 'fast' is not supported (pps, bps"),
    ({"duration": {"choice": "burst", "burst": {}}}, "flows[0].duration.burst: not supported"),
    ({"duration": {"fixed_seconds": {"seconds": 4000}}}, "flows[0].duration.fixed_seconds.seconds: 4000"),
    ({"duration": {"fixed_packets": {"packets": 4_000_000}}}, "4,000,000 at 1,000 pps take 4,000 s, at most 3,600"),
    ({"duration": {"fixed_packets": {"delay": {}}}}, "flows[0].duration.fixed_packets.delay: not supported"),
    ({"metrics": {"timestamps": True}}, "flows[0].metrics.timestamps: "),
    ({"tx_rx": {"choice": "device", "device": {}}}, "flows[0].tx_rx.device: not supported"),
    ({"tx_rx": {"port": {"tx_name": "p9", "rx_names": ["p2"]}}}, "flows[0].tx_rx.port.tx_name: there is no port 'p9'"),
    ({"tx_rx": {"port": {"tx_name": "p1"}}}, "flows[0].tx_rx.port: a flow is received at one port"),
    (
        {"rate": {"percentage": 1}, "tx_rx": {"port": {"tx_name": "p2", "rx_name": "p1"}}},
        "flows[0].rate.percentage: eth2 reports no speed",
    ),
    (
        {"packet": [{"ethernet": {"src": {"value": "+1:00:00:00:00:01"}}}, IPV4]},
        "flows[0].packet[0].ethernet.src.value: '+1:00:00:00:00:01' is no MAC address",
    ),
    (
        {"packet": [ETHERNET, {"ipv4": {"src": {"increment": {"start": "1.1.1.1", "step": "0.0.0.1", "count": 300}}}}]},
        "flows[0].packet[1].ipv4.src.increment.count: 300 is above the maximum of 254",
    ),
    (
        {
            "packet": [
                ETHERNET,
                {
                    "ipv4": {
                        "src": {"increment": {"start": "1.1.1.1", "step": "0.0.0.1", "count": 16}},
                        "dst": {"increment": {"start": "1.1.1.1", "step": "0.0.0.1", "count": 17}},
                    }
                },
            ]
        },
        "flows[0].packet: its values make 272 different headers, at most 254",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_what_the_generator_cannot_do_is_refused_by_name(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        plan(configuration(**changes))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_and_locations_are_known_and_there_once() -> None:
    given = configuration()
    twice = {**given, "flows": given["flows"] * 2}
    with pytest.raises(ConfigError, match=r"^flows\[1\]: duplicate name 'f1'$"):
        plan(twice)
    with pytest.raises(ConfigError, match=r"^ports\[1\]: duplicate name 'eth1'$"):
        plan({**given, "ports": [{"name": "p1", "location": "eth1"}, {"name": "p2", "location": "eth1"}]})
    with pytest.raises(ConfigError, match=r"^ports\[0\].location: 'eth9' is not served \(eth1, eth2\)$"):
        plan({**given, "ports": [{"name": "p1", "location": "eth9"}]})
    with pytest.raises(ConfigError, match=r"^devices: not supported by this server$"):
        plan({**given, "devices": [{}]})
    assert parse(json.dumps({"layer1": [{"name": "l"}]}).encode(), OtgConfig).warnings == [
        "layer1: ignored, ports stay as the kernel has them"
    ]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not valid JSON"),
        (b"[" * 100 + b"]" * 100, "nested more than 40 deep"),
        (b'"' + b"x" * (1 << 20) + b'"', "1,048,578 bytes, at most 1,048,576"),
        (b"7", "the request: an object is expected|the request: a mapping"),
    ],
)
def test_a_request_is_bounded(body: bytes, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse(body, OtgConfig)


def test_more_flows_than_the_server_has_are_unsupported() -> None:
    (flow,) = configuration()["flows"]
    flows = [{**flow, "name": f"f{number}"} for number in range(17)]
    with pytest.raises(Unsupported, match=r"^flows: 17, at most 16 are possible$"):
        parse(json.dumps({"flows": flows}).encode(), OtgConfig)


def test_what_is_not_traffic_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^port: not supported by this server$"):
        parse(b'{"choice": "port", "port": {"link": {"state": "down"}}}', ControlState)
    with pytest.raises(ConfigError, match=r"traffic.flow_transmit.state: unknown word 'pause'"):
        parse(b'{"traffic": {"flow_transmit": {"state": "pause"}}}', ControlState)
    with pytest.raises(ConfigError, match=r"^bgpv4: not supported by this server$"):
        parse(b'{"choice": "bgpv4", "bgpv4": {}}', MetricsRequest)


def test_frames_have_room_for_their_mark() -> None:
    least = plan(configuration(packet=[ETHERNET, IPV6, UDP], size={"fixed": 76}))
    assert len(least.spec.headers[0]) // 2 + PAYLOAD_BYTES + 4 == 76
    area = np.zeros((4, 60), dtype=np.uint8)
    without = plan(configuration(packet=[ETHERNET, IPV4, TCP], size=None, metrics={"enable": True}))
    assert load_frames(without.spec, (64,), area).tolist() == [60] * 4
    for frame in map(bytes, area):
        assert int.from_bytes(frame[54:58]) == without.spec.mark
        assert sum_of(frame[26:34] + struct.pack("!HH", 6, 26) + frame[34:]) == 0

"""Reports that iperf3 3.12 wrote over the loopback, and what a trial makes of them."""

import json
from itertools import pairwise
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.iperf3 import run
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from tests.unit.drivers.generators.iperf3.iperf3_reports import flow, result, trial, written


def test_udp_has_packets_jitter_and_seconds_of_both_ways() -> None:
    found = result(trial(), written("udp_client"), written("udp_server"))
    flows = [(each.direction, each.sent, each.received) for each in found.flows]
    assert flows == [(Direction.FORWARD, 2500, 2500), (Direction.REVERSE, 2502, 2502)]
    assert [round(each.goodput_bps, -5) for each in found.sessions] == [2_000_000.0] * 2
    assert all(each.jitter_ns and 1e3 < each.jitter_ns < 1e6 for each in found.sessions)
    assert [(each.sent, each.received) for each in found.intervals] == [(1250, 1251), (1250, 1250)]
    assert not found.generator_limited
    found = result(trial(load_pps=20000.0), written("udp_client"), written("udp_server"))
    assert (found.generator_limited, found.note) == (True, "iperf3 offered 2.50 kpps of 20.0 kpps")


def test_lost_datagrams_are_not_received() -> None:
    server = written("udp_server")
    server["end"]["sum_received"] |= {"packets": 2400, "lost_packets": 400}
    server["intervals"][0]["sum"]["lost_packets"] = 400
    found = result(trial(), written("udp_client"), server)
    assert found.flows[0].received == 2000
    assert found.intervals[0].received == (1252 - 400 + 1250) / 2


def test_tcp_has_goodput_and_retransmits_of_the_way_forward_and_packets_of_the_ports() -> None:
    client, server = written("tcp_client"), written("tcp_server")
    client["end"]["sum_sent"]["retransmits"] = 3
    found = result(trial(protocol=Protocol.TCP), client, server)
    (forward,) = found.sessions
    assert forward.direction is Direction.FORWARD
    assert forward.goodput_bps == pytest.approx(2_096_784, rel=1e-3)
    assert (forward.retransmits, forward.jitter_ns, forward.sessions) == (3, None, 2)
    assert [(each.sent, each.received) for each in found.flows] == [(90, 70), (90, 70)]
    assert [each.sent for each in found.intervals] == [262144 / (256 - 18 - 20 - 32)] * 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (json.dumps({"start": {}, "error": "unable to connect to server: Connection refused"}), "unable to connect"),
        ("iperf3: parameter error", "no report: iperf3: parameter error"),
        ("", "nothing was written"),
    ],
)
def test_what_is_no_report_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        run.report(text)


def test_a_client_shares_the_load_between_ways_instances_and_sessions() -> None:
    words = run.client(flow(instance=2), trial(load_pps=8000.0), instances=2)
    told = dict(pairwise(words))
    assert (told["-c"], told["-B"], told["-p"], told["-P"], told["-t"]) == ("20.1.0.1", "10.1.0.1", "5202", "2", "2")
    payload = 256 - 18 - 28
    assert (told["-l"], told["-b"]) == (str(payload), str(1000 * payload * 8))
    assert "--bidir" in words
    by_tcp = run.client(flow(), trial(protocol=Protocol.TCP, load_pps=1000.0, sessions=None), instances=1)
    assert "--bidir" not in by_tcp
    assert dict(pairwise(by_tcp))["-M"] == str(256 - 18 - 40)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"protocol": Protocol.ICMP}, "iperf3 sends UDP, TCP, not ICMP"),
        ({"frame": frame("IMIX")}, "iperf3 sends frames of one size, and IMIX is a mix"),
        ({"frame": frame("64B"), "protocol": Protocol.TCP}, "TCP in frames of 146 bytes or more, and 64B has 64"),
        # DEL sends TCP in frames of 146 bytes or more, and 64B has 64"),
        ({"sessions": 200}, "at most 128 sessions for a service instance, not 200"),
        ({"on_off_s": (1.0, 1.0)}, "iperf3 sends no bursts"),
    ],
)
def test_what_it_cannot_send_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        run.client(flow(), trial(**changes), instances=1)

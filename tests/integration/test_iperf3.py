"""Sessions of iperf3 through real NFs: counted, and nothing left of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import shipped
from tests.integration.user_space import cell, machine_stays_as_it_was, prepared, qualified_by_a_run, with_tg

TOPOLOGY = with_tg(shipped("local"), "iperf3")
LACKING = "; ".join(("iperf3 is not installed",) * (path_of("iperf3") is None) + (*map(str, nft_missing()),))
pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root, pytest.mark.skipif(bool(LACKING), reason=LACKING)]


@contextmanager
def running(*kinds: NfKind) -> Iterator[Deployment]:
    asked = cell("CSP", 2, len(kinds), kinds)
    plan = make_plan(TOPOLOGY, asked, discover())
    with (
        machine_stays_as_it_was("iperf3"),
        prepared(TOPOLOGY, asked, plan) as parts,
        Deployment(plan, parts) as deployment,
    ):
        yield deployment
        assert deployment.problems() == ()


def test_sessions_of_udp_and_tcp_pass_two_services_through_a_nat() -> None:
    with running(NfKind("linux_nat"), NfKind("linux_router")) as deployment:
        asked = Trial(load_pps=2000.0, duration_s=1, frame=frame("512B"), protocol=Protocol.UDP, sessions=2)
        by_udp = deployment.parts.generator.run(asked)
        assert {(each.instance, each.direction) for each in by_udp.flows} == {
            (instance, way) for instance in (1, 2) for way in Direction
        }
        assert by_udp.received >= 0.99 * by_udp.sent, by_udp
        assert by_udp.sent == pytest.approx(2000, rel=0.1), by_udp
        assert all(each.jitter_ns and each.sessions == 2 for each in by_udp.sessions), by_udp
        assert sum(each.received for each in by_udp.intervals) == pytest.approx(by_udp.received / 2, rel=0.1), by_udp
        by_tcp = deployment.parts.generator.run(asked.model_copy(update={"protocol": Protocol.TCP}))
        assert [each.direction for each in by_tcp.sessions] == [Direction.FORWARD] * 2
        payload_bps = 2000 * 8 * (512 - 18 - 52)
        assert sum(each.goodput_bps for each in by_tcp.sessions) == pytest.approx(payload_bps, rel=0.2), by_tcp
        assert all(each.retransmits is not None for each in by_tcp.sessions), by_tcp
        assert deployment.facts()["generator"]["generator"].startswith("iperf 3")
        # The largest payload: iperf3 warns that it is longer than a segment of its TCP connection, and sends it whole.
        largest = deployment.parts.generator.run(asked.model_copy(update={"frame": frame("1518B")}))
        assert largest.received >= 0.99 * largest.sent, largest
        assert largest.sent == pytest.approx(2000, rel=0.1), largest


def test_a_run_qualifies_it_once_with_its_ports_joined(tmp_path: Path) -> None:
    with machine_stays_as_it_was("iperf3"):
        (point,) = qualified_by_a_run(TOPOLOGY, tmp_path).points
    assert (point.frame.name, point.flows) == ("64B", 2)
    assert point.highest_pps is not None and 1000 < point.highest_pps <= point.offered_pps * 1.05
    assert point.received_pps <= point.offered_pps
    assert point.rate_error is not None and point.rate_error <= 0.1
    assert point.gap_load_pps is not None and point.gap_p50_ns is not None and point.gap_p999_ns is not None
    spacing_ns = point.flows * 1e9 / point.gap_load_pps
    assert point.gap_p50_ns <= 1.5 * spacing_ns, "between packets of a flow"
    assert point.gap_p999_ns < 100e6, "and not between those of the connection that controls iperf3"

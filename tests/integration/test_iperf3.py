"""Sessions of iperf3 through real NFs: counted, and nothing left of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.generators.iperf3.driver import missing
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.trial import Direction, Protocol, Trial
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment.deployment import Deployment
from tests.integration.robot_runs import PROJECT
from tests.integration.user_space import cell, machine_stays_as_it_was, prepared
from tests.realtime import RATE, realtime

LACKING = "; ".join(map(str, (*missing(), *nft_missing())))
pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root, pytest.mark.skipif(bool(LACKING), reason=LACKING)]


@contextmanager
def running(*kinds: NfKind) -> Iterator[Deployment]:
    topology = load_topology(PROJECT / "topologies" / "local.yaml")
    tg = topology.tg.model_copy(update={"generator": topology.tg.generator.model_copy(update={"driver": "iperf3"})})
    topology = topology.model_copy(update={"nodes": {**topology.nodes, topology.tg_name: tg}})
    asked = cell("CSP", 2, len(kinds), kinds)
    plan = make_plan(topology, asked, discover())
    with (
        machine_stays_as_it_was("iperf3"),
        prepared(topology, asked, plan) as parts,
        Deployment(plan, parts) as deployment,
    ):
        yield deployment
        assert deployment.problems() == ()


@realtime(RATE)
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

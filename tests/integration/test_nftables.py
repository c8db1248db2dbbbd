"""Firewalls, NATs and shared NFs with real packets: every hop, every rule and every address is looked at."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from resources.libraries.python.drivers.functions.nftables import rulesets
from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import cell_of
from tests.integration.local_fabric import frame as udp_frame
from tests.integration.local_functions import named, nft, ruleset
from tests.integration.robot_runs import PROJECT
from tests.integration.user_space import FRAMES, cell, deployed, is_as_planned, send_and_count

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.root,
    pytest.mark.leaves_no("nft"),
    pytest.mark.skipif(bool(list(missing())), reason="; ".join(map(str, missing()))),
]
ROUTER, FIREWALL, NAT = NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_nat")
NO_PORTS, UDP = 61, 17
LOCAL = PROJECT / "topologies" / "local.yaml"


@contextmanager
def running(*kinds: NfKind, chains: int = 1, shared: tuple[int, ...] = ()) -> Iterator[Deployment]:
    asked = cell_of("CSP", chains, len(kinds), nf_kinds=kinds, shared_nodes=shared)
    with deployed(load_topology(LOCAL), asked) as deployment:
        yield deployment
        is_as_planned(deployment)


def rules(owner: str) -> list[list[dict[str, Any]]]:
    return [row["rule"]["expr"] for row in ruleset(owner) if "rule" in row]


def arriving(flow: Flow, protocol: int, ports: tuple[int, int] = (9, 9)) -> tuple[str, str]:
    """Send a frame of a flow; source and destination address with which it comes back."""

    def work() -> tuple[str, str]:
        with (
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as receiver,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
        ):
            receiver.bind((flow.rx_interface, 0x0800))
            receiver.settimeout(5.0)
            sender.bind((flow.tx_interface, 0))
            sender.send(udp_frame(flow, protocol=protocol, ports=ports))
            found = receiver.recv(2048)
            return socket.inet_ntoa(found[26:30]), socket.inet_ntoa(found[30:34])

    return namespaces.run_inside("csit-generator", work)


def test_every_packet_of_a_firewall_goes_through_a_hundred_rules_and_the_last_one_lets_it_pass() -> None:
    with running(FIREWALL) as deployment:
        send_and_count(deployment)
        *dropping, last = rules("nf-1-1")
        assert len(dropping) == 99
        assert {row[1]["counter"]["packets"] for row in dropping} == {0}
        assert [row[2] for row in dropping] == [{"drop": None}] * 99
        assert last == [{"counter": "accepted"}, {"accept": None}]
        assert named("nf-1-1") == {"accepted": 2 * FRAMES}
        assert deployment.facts()["functions"]["linux_firewall"].startswith("nftables v")


def test_a_nat_translates_forward_whichever_direction_comes_first_and_answers_come_back() -> None:
    """What a generator sends has no ports: both directions look like one connection to a connection tracker."""
    with running(NAT, ROUTER) as deployment:
        forward, reverse = deployment.plan.flows
        left, right, translated = "10.1.0.1", "20.1.0.1", "30.1.0.1"
        for _ in range(2):
            assert arriving(reverse, NO_PORTS) == (right, left)
            assert arriving(forward, NO_PORTS) == (translated, right)
        answer = reverse.model_copy(update={"destination_ip": translated})
        assert arriving(answer, NO_PORTS) == (right, left)
        assert arriving(forward, UDP, (1, 2)) == (translated, right)
        assert arriving(answer, UDP, (2, 1)) == (right, left)
        assert arriving(reverse, UDP, (3, 4)) == (right, left)
        assert arriving(forward, UDP, (4, 3)) == (left, right)  # an answer is not translated
        assert named("nf-1-1") == {"tracked": 9, "translated": 3}


def test_all_senders_of_a_generator_get_through_a_nat_that_two_instances_share() -> None:
    """Its load has no ports, so each sender needs an address of its own."""
    trial = Trial(load_pps=8000.0, duration_s=0.3, frame=frame("64B"), purpose="connectivity")
    with running(NAT, FIREWALL, chains=2, shared=(1,)) as deployment:
        done = deployment.parts.generator.run(trial)
        assert all(flow.sent >= 254 and flow.received == flow.sent for flow in done.flows)
        sent = {direction: sum(f.sent for f in done.flows if f.direction is direction) for direction in Direction}
        assert named("nf-0-1") == {"tracked": done.sent, "translated": sent[Direction.FORWARD]}
        assert sum(named(owner)["accepted"] for owner in ("nf-1-2", "nf-2-2")) == done.sent


def test_two_branches_between_two_routers_keep_instances_apart() -> None:
    """One namespace splits, one merges; every hop of each branch sees the frames of its own instance only."""
    with running(ROUTER, FIREWALL, ROUTER, chains=2, shared=(1, 3)) as deployment:
        made = {path.name for path in namespaces.DIRECTORY.iterdir() if path.name.startswith("csit-nf-")}
        assert made == {"csit-nf-0-1", "csit-nf-1-2", "csit-nf-2-2", "csit-nf-0-3"}
        send_and_count(deployment)
        assert [named(owner) for owner in ("nf-1-2", "nf-2-2")] == [{"accepted": 2 * FRAMES}] * 2


def test_a_firewall_that_packets_pass_by_is_a_problem_and_one_that_has_lost_its_rules_as_well() -> None:
    trial = Trial(load_pps=20000.0, duration_s=0.2, frame=frame("64B"), purpose="connectivity")
    with deployed(load_topology(LOCAL), cell("CSP", 1, 1, (FIREWALL,))) as deployment:
        nft("nf-1-1", "insert", "rule", "ip", "csit", "forward", "accept")
        deployment.parts.generator.run(trial)
        received = sum(row.rx_packets for row in deployment.parts.functions.counters().values())
        (problem,) = deployment.problems()
        assert problem == f"nf-1-1 received {received:,} packets, and only 0 went through its rules"
        nft("nf-1-1", "delete", "table", "ip", "csit")
        (problem,) = deployment.problems()
        assert problem.startswith("the rules of nf-1-1 cannot be read: ")


def test_rules_that_the_kernel_refuses_are_reported_in_a_sentence_and_leave_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rulesets, "_chain", lambda *_: "chain forward { unheard-of }")
    said = r"^the rules of nf-1-1 were refused: .*Error: syntax error.*$"
    with pytest.raises(CsitError, match=said), running(FIREWALL):
        pass

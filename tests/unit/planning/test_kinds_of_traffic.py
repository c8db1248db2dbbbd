"""Plans of IPv6 and of captures: names, tags, routes, and the parts of a testbed that do not take them."""

from pathlib import Path

import pytest

from csit_utils.dataset.rows import frame_text
from resources.libraries.python.drivers.functions.nftables.rulesets import firewall, gateway
from resources.libraries.python.drivers.vpp.configuration import routing
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame, with_ipv6
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.planning.traffic import not_taken
from resources.libraries.python.studies.density.planning.matrix import PlannedRows, make_rows
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.builders import cell_of, shipped
from tests.captures import MIX, MIX6, pcap

SIM = shipped("sim")


def planned(*kinds: str, rows: int = 2, service_type: str = "CSC") -> Plan:
    cell = cell_of(service_type, rows, len(kinds), nf_kinds=tuple(map(NfKind, kinds)))
    return make_plan(SIM, cell, SIM.dut.layout, ip_version=6)


def made_of(testbed: Topology = SIM, frames: str = "128B", **asked: str) -> PlannedRows:
    selection = parse_selection(service_types="CSC", cells="1x1", nf_sizes="1c", frames=frames, **asked)
    return make_rows(testbed, SIM.dut.layout, selection, TestType.MRR)


def test_each_instance_has_networks_of_ipv6_of_its_own() -> None:
    plan = planned("linux_router", "linux_router", "linux_firewall", rows=2)
    for flow in plan.flows:
        side = 10 if flow.direction == "forward" else 20
        assert flow.source_ip == f"fd00:{side}:{flow.instance}::1"
        assert flow.destination_ip == f"fd00:{30 - side}:{flow.instance}::1"
    assert plan.suite_id == "eth-l2bd-2ch-12mif-6dcr2t-lnxip6+lnxip6+lnxfw"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("linux_nat", "IPv6 does not apply to an NF of kind linux_nat: it translates addresses of IPv4"),
        ("openvpn", "an NF of kind openvpn is set up for IPv4 only here"),
    ],
)
def test_nfs_that_forward_no_ipv6_are_named(kind: str, expected: str) -> None:
    assert not_taken(SIM, [NfKind(kind)], with_ipv6(frame("128B"))) == expected
    made = made_of(nf_kinds=kind, ip_versions="4,6")
    got = ([row.frame.name for row in made.rows], [row.refused.reason for row in made.refused])
    assert got == (["128B"], [expected])
    assert "IP6FWD" in made.refused[0].tags


def test_rows_of_both_versions_have_names_and_tags_of_their_own() -> None:
    rows = made_of(nf_kinds="linux_router", ip_versions="4,6", flows="auto,10").rows
    assert [row.name for row in rows] == [
        "128B-1c-eth-l2bd-1ch-2mif-1dcr2t-lnxip4-mrr",
        "128B-10f-1c-eth-l2bd-1ch-2mif-1dcr2t-lnxip4-mrr",
        "128B-ip6-1c-eth-l2bd-1ch-2mif-1dcr2t-lnxip6-mrr",
        "128B-ip6-10f-1c-eth-l2bd-1ch-2mif-1dcr2t-lnxip6-mrr",
    ]
    assert {"NF_LNXIP4", "IP4FWD", "128B"} <= set(rows[0].tags)
    assert {"NF_LNXIP6", "IP6FWD", "128B", "10_FLOWS"} <= set(rows[3].tags)
    assert not {"NF_LNXIP4", "IP4FWD"} & set(rows[3].tags)


def test_rules_and_routes_are_of_the_family_of_the_packets() -> None:
    four = make_plan(SIM, cell_of(), SIM.dut.layout).functions
    six = make_plan(SIM, cell_of(), SIM.dut.layout, ip_version=6).functions
    assert "ip saddr 198.18.0.2 counter drop" in firewall(3).text(four)
    assert "ip6 saddr 2001:2::2 counter drop" in firewall(3).text(six)
    assert "ip6 daddr @refused_addresses" in gateway(2).text(six)
    left, routes = six[0].left.name, routing(six[0])
    assert {f"ip6 nd {left} ra-suppress", f"ip route add fd00:10:1::/64 via fd00:192::1 {left}"} <= set(routes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "web.pcap"
    path.write_bytes(pcap(MIX))
    return path


def rows(name: str, file: Path, kind: str = "linux_router") -> PlannedRows:
    return made_of(shipped(name), f"64B,pcap:{file}", nf_kinds=kind)


def test_rows_are_named_after_the_file_and_its_contents(file: Path) -> None:
    digest = frame(f"pcap:{file}").name.rsplit("-", 1)[1]
    plain, own = rows("sim", file).rows
    assert plain.name.startswith("64B-1c-")
    assert own.name == f"pcap-web-{digest}-1c-eth-l2bd-1ch-2mif-1dcr2t-lnxip4-mrr"
    assert f"pcap-web-{digest}" in own.tags
    assert f"pcap:{file}" in own.arguments
    assert frame_text(own.frame) == f"pcap-web-{digest} (7 packets, mean 492B)"
    file.write_bytes(pcap(MIX6))
    (six,) = [row for row in rows("sim", file.rename(file.with_name("six.pcap"))).rows if row.frame.capture]
    assert "lnxip6" in six.name and "IP6FWD" in six.tags


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("local-trex", "linux_router", "TRex sends no packets of a capture"),
        ("local", "nginx_proxy", "kind nginx_proxy takes UDP datagrams only, not the packets of a capture"),
    ],
)
def test_a_part_that_cannot_send_or_take_them_is_named(file: Path, name: str, kind: str, reason: str) -> None:
    made = rows(name, file, kind)
    assert [row.frame.name for row in made.rows] == ["64B"]
    assert reason in made.refused[0].refused.reason

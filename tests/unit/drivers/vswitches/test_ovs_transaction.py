"""What is asked of Open vSwitch: pure, from a plan."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.vswitches.ovs.daemons import Daemons
from resources.libraries.python.drivers.vswitches.ovs.driver import OpenVSwitch
from resources.libraries.python.drivers.vswitches.ovs.registration import Ovs
from resources.libraries.python.drivers.vswitches.ovs.transaction import (
    AF_XDP,
    DPDK,
    KERNEL,
    SYSTEM,
    PortKind,
    check_size,
    choose,
    columns,
    cpu_mask,
    of_daemon,
    of_plan,
    rules,
    rules_of_copies,
)
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cpus, plan_of, shipped

TOPOLOGY = shipped("local-ovs")
SIXTEEN_CORES = cpus(16)


def bridge_plan(rows: int, columns: int, vs_dtc: int = 2) -> Plan:
    return plan_of(TOPOLOGY, "CSC", rows, columns, SIXTEEN_CORES, vs_dtc=vs_dtc)


def commands(words: list[str]) -> list[list[str]]:
    """The commands of one transaction."""
    row: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            row.append([])
        else:
            row[-1].append(word)
    return row


def test_every_segment_is_a_vlan_of_exactly_its_two_ports() -> None:
    plan = bridge_plan(2, 2)
    added = [each for each in commands(of_plan(plan, SYSTEM, 1500)) if each[0] == "add-port"]
    by_vlan: dict[str, list[str]] = {}
    for _, bridge, port, tag in added:
        assert bridge == "csit"
        by_vlan.setdefault(tag, []).append(port)
    assert [tuple(ports) for ports in by_vlan.values()] == [segment.members for segment in plan.segments]
    assert set(by_vlan) == {f"tag={number}" for number in range(1, 7)}


def test_the_bridges_own_port_is_in_no_segment() -> None:
    assert ["set", "Port", "csit", "tag=4094"] in commands(of_plan(bridge_plan(1, 1), SYSTEM, 1500))


@pytest.mark.parametrize(
    ("kind", "first"), [(AF_XDP, "type=afxdp"), (DPDK, "type=dpdk")], ids=lambda each: getattr(each, "name", each)
)
def test_every_polled_port_has_the_cpu_of_its_planned_data_thread(kind: PortKind, first: str) -> None:
    plan = bridge_plan(1, 2)
    cpus = plan.cores.cpus(VSWITCH)
    assert len(set(cpus)) == 2
    rows = {each[2]: each[3:] for each in commands(of_plan(plan, kind, 1500)) if each[:2] == ["set", "Interface"]}
    assert set(rows) == {port.interface for port in plan.ports(VSWITCH)}
    for port in plan.ports(VSWITCH):
        assert rows[port.interface][0] == first
        assert rows[port.interface][-1] == f"other_config:pmd-rxq-affinity=0:{cpus[port.data_thread]}"
    if kind is DPDK:
        assert "iface=csv1p1," in rows["csv1p1"][1]


def test_each_of_several_queues_has_the_cpu_of_its_data_thread() -> None:
    port = bridge_plan(1, 1).ports(VSWITCH)[0]
    one, two = columns(DPDK, port, [3], 1500)[-1], columns(DPDK, port, [3, 5], 1500)[-1]
    assert (one, two) == ("other_config:pmd-rxq-affinity=0:3", "other_config:pmd-rxq-affinity=0:3,1:5")
    assert "options:n_rxq=2" in columns(AF_XDP, port, [3, 5], 1500)


def test_system_ports_have_no_row_of_their_own() -> None:
    assert not [each for each in commands(of_plan(bridge_plan(1, 1), SYSTEM, 1500)) if each[:2] == ["set", "Interface"]]


def test_jumbo_frames_fit_into_the_ring_of_a_dpdk_port() -> None:
    (row,) = [
        each for each in commands(of_plan(bridge_plan(1, 1), DPDK, 9000)) if each[2:3] == ["csv1p1"] and "set" in each
    ]
    assert "framesz=16384" in row[4]
    assert "mtu_request=9000" in row


def test_forwarding_threads_get_the_planned_cores_and_no_others() -> None:
    plan = bridge_plan(1, 1)
    words = of_daemon(plan, "auto")
    assert f"other_config:pmd-cpu-mask={cpu_mask(plan.cores.cpus(VSWITCH))}" in words
    assert not [word for word in words if "dpdk" in word]
    assert "other_config:dpdk-init=true" in of_daemon(plan, "dpdk")


@pytest.mark.parametrize(("cpus", "mask"), [((1,), "0x2"), ((1, 2), "0x6"), ((0, 33), "0x200000001"), ((3, 3), "0x8")])
def test_cpu_masks(cpus: tuple[int, ...], mask: str) -> None:
    assert cpu_mask(cpus) == mask


def test_more_segments_than_vlans_are_refused() -> None:
    plan = bridge_plan(1, 1)
    many = plan.model_copy(update={"segments": plan.segments * 2047})
    with pytest.raises(Unsupported, match="4094 L2 segments, but one bridge of Open vSwitch has 4093 VLANs"):
        of_plan(many, SYSTEM, 1500)


@pytest.mark.parametrize(
    ("asked", "offered", "kind"),
    [
        ("auto", {"afxdp", "system"}, AF_XDP),
        ("auto", {"system", "tap"}, SYSTEM),
        ("system", {"afxdp", "system"}, SYSTEM),
        ("af_xdp", {"afxdp", "system"}, AF_XDP),
        ("dpdk", {"dpdk", "system"}, DPDK),
    ],
)
def test_the_kind_of_ports_is_what_was_asked_for(asked: str, offered: set[str], kind: PortKind) -> None:
    assert choose(asked, offered) is kind


def test_what_the_daemon_was_built_without_is_refused() -> None:
    with pytest.raises(Unsupported, match="no ports of type dpdk; it has system, tap"):
        choose("dpdk", {"tap", "system"})


def test_the_kernel_forwards_where_it_has_a_datapath() -> None:
    assert choose("kernel", {"internal"}, {"netdev", "system"}) is KERNEL
    with pytest.raises(Unsupported, match=r"no datapath of Open vSwitch \(modprobe openvswitch\)"):
        choose("kernel", {"internal", "system"}, {"netdev"})


@pytest.mark.parametrize(("kind", "datapath"), [(KERNEL, "system"), (SYSTEM, "netdev"), (AF_XDP, "netdev")])
def test_the_bridge_is_on_the_datapath_of_the_kind(kind: PortKind, datapath: str) -> None:
    bridge = next(words for words in commands(of_plan(bridge_plan(1, 1), kind, 1500)) if words[:2] == ["set", "Bridge"])
    assert f"datapath_type={datapath}" in bridge


def test_memory_and_frame_size_are_looked_at_first() -> None:
    check_size(AF_XDP, 40, 1518, 4_000_000_000)
    check_size(SYSTEM, 240, 9018, 0)
    with pytest.raises(Unsupported, match=r"240 af_xdp ports of Open vSwitch need 18\.2 GB of memory, 4\.0 GB are"):
        check_size(AF_XDP, 240, 64, 4_000_000_000)
    with pytest.raises(Unsupported, match="carry frames up to 3498 B, asked for are 9018 B"):
        check_size(AF_XDP, 4, 9018, 4_000_000_000)


def test_a_segment_with_taps_is_forwarded_and_copied_by_one_rule_each_way() -> None:
    taps = tuple(Tap(position=position, kind=NfKind("tcpdump")) for position in (2, 2))
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, taps=taps)
    plan = make_plan(TOPOLOGY, cell, SIXTEEN_CORES)
    assert rules_of_copies(plan) == [
        "priority=100,in_port=csv1x1i2,actions=output:csv1p2,output:csv1t1,output:csv1t2",
        "priority=100,in_port=csv1p2,actions=output:csv1x1i2,output:csv1t1,output:csv1t2",
        "priority=100,in_port=csv1t1,actions=drop",
        "priority=100,in_port=csv1t2,actions=drop",
    ]
    added = {each[2]: each[3] for each in commands(of_plan(plan, SYSTEM, 1500)) if each[0] == "add-port"}
    assert (added["csv1t1"], added["csv1t2"]) == ("tag=4094", "tag=4094")  # no flooded frame gets there
    assert rules_of_copies(bridge_plan(2, 2)) == []


def test_copies_are_made_between_two_ports_only() -> None:
    plan = bridge_plan(1, 1)
    segment = plan.segments[0].model_copy(update={"members": ("a", "b", "c"), "copies": ("t",)})
    with pytest.raises(Unsupported, match="csb1x1 has 3 members: copies are made between two only"):
        rules_of_copies(plan.model_copy(update={"segments": (segment,)}))


def test_rules_of_a_reload_match_no_packet_and_replace_each_of_the_earlier_ones() -> None:
    plan = bridge_plan(2, 1)
    first, second = rules(plan, 300, 1), rules(plan, 300, 2)
    assert len(first) == 301 and first[-1] == "cookie=1,priority=0,actions=NORMAL"
    assert [rule.replace("cookie=2", "cookie=1") for rule in second] == first
    matched = {rule.partition("nw_src=")[2].partition(",")[0] for rule in first[:-1]}
    assert len(matched) == 300 and {"198.18.0.0", "198.18.1.43"} <= matched
    assert not matched & {flow.source_ip for flow in plan.flows}


RULES = 300


def test_rules_of_a_reload_are_written_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Sequence[str]] = []

    def run(argv: Sequence[str], _within_s: float) -> str:
        commands.append(argv)
        return "cookie=0x1, drop\n" * RULES

    node: Any = SimpleNamespace(settings=lambda _: Ovs(openflow_rules=RULES))
    plan = plan_of(shipped("local-ovs"), "CSC", 1, 1, cpus(16))
    switch: Any = OpenVSwitch(node, DriverContext(plan, Mock(), Mock(), 1518))
    switch._daemons = Daemons(tmp_path, "system")
    monkeypatch.setattr(switch._daemons, "_run", run)
    steps = switch.steps(VSWITCH, PartEvent.RELOAD)
    (file,) = tmp_path.glob("*.rules")
    text = file.read_text(encoding="utf-8")
    assert text.count("cookie=1,") == RULES + 1 and not commands
    monkeypatch.setattr(switch._daemons, "write_rules", Mock(side_effect=AssertionError))
    steps.begin()
    assert [argv[-3:] for argv in commands] == [["replace-flows", f"unix:{tmp_path}/csit.mgmt", str(file)]]
    assert file.read_text(encoding="utf-8") == text
    with pytest.raises(CsitError, match=f"^Open vSwitch has {RULES} of the {RULES + 1} OpenFlow rules"):
        steps.after()

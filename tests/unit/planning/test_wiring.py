"""Wiring: over any machines, cables, instances, VLANs and shared NFs packets find their way and names stay apart."""

from collections import Counter
from functools import cache
from ipaddress import ip_address, ip_interface, ip_network

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.host.nics.cables import Cables
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import Sample, ThreadTime
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.edges import Edges, has_vlan_devices
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.planning.service import ServiceLayout
from resources.libraries.python.search.findings.usage import usage
from tests.builders import cell_of, cpus, shipped
from tests.unit.examples import share
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import polled

LOCAL = shipped("local")
MACHINE = cpus(512)
KINDS = (NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_nat"))


Case = tuple[str, int, bool, Cell]
"""What keeps instances apart in a lab, or local4 or local6; DUTs; whether the file has MAC addresses; the cell."""


@cache
def lab_of(duts: int, pairs: int, word: Word, with_macs: bool) -> Topology:
    return lab(duts, pairs, discriminator=word, with_macs=with_macs, vms="qemu")


@cache
def planned(case: Case) -> Plan:
    word, duts, with_macs, cell = case
    if word in {"local4", "local6"}:
        return make_plan(LOCAL, cell, MACHINE, ip_version=6 if word == "local6" else 4)
    return make_plan(lab_of(duts, cell.nf_chains if word == "link" else 1, word, with_macs), cell, {})


@st.composite
def local_cells(draw: st.DrawFn) -> Cell:
    """Instances of pipelines may share NFs."""
    kind, rows, nodes = draw(st.sampled_from(ServiceType)), draw(st.integers(1, 10)), draw(st.integers(1, 10))
    shared = draw(st.sets(st.integers(1, nodes))) if kind is ServiceType.CSP else set()
    kinds = st.lists(st.sampled_from(KINDS), min_size=nodes, max_size=nodes).map(tuple)
    of_nfs = {"nf_kinds": draw(kinds)} if kind is not ServiceType.VSC else {}
    return cell_of(kind, rows, nodes, shared_nodes=tuple(sorted(shared)), **of_nfs)


on_labs = st.tuples(
    st.sampled_from(["link", "vlan", "mac"]),
    st.integers(1, 2),
    st.booleans(),
    st.builds(cell_of, st.sampled_from(ServiceType), st.integers(1, 6), st.integers(1, 5)),
)
cases = on_labs | st.tuples(st.sampled_from(["local4", "local6"]), st.just(1), st.just(True), local_cells())


def ports_of(plan: Plan) -> list[Port]:
    return [port for link in plan.links for port in (link.a, link.b)]


class Walker:
    """Finds where a frame that a port sends arrives: over links, and through segments of vSwitches."""

    def __init__(self, plan: Plan) -> None:
        self.far = {one.interface: other for link in plan.links for one, other in ((link.a, link.b), (link.b, link.a))}
        self.members = {name: segment.members for segment in plan.segments for name in segment.members}

    def next_port(self, port: str, mac: str) -> Port:
        """Of two ports of a segment it is the other one, of several the one behind which the address is."""
        while (far := self.far[port]).owner.startswith("vswitch"):
            others = [name for name in self.members[far.interface] if name != far.interface]
            port = others[0] if len(others) == 1 else next(name for name in others if self.leads_to(name, mac))
        return far

    def leads_to(self, port: str, mac: str) -> bool:
        """Whether a MAC address is found by going out of a port; through cables and segments, never back."""
        far = self.far[port]
        if not far.owner.startswith("vswitch"):
            return far.mac == mac
        return any(self.leads_to(name, mac) for name in self.members[far.interface] if name != far.interface)


@settings(max_examples=share(120))
@given(cases)
def test_frames_go_through_every_nf_and_come_back(case: Case) -> None:
    """Each sender's next MAC address is the neighbour's; in an NF the destination decides where a packet leaves."""
    plan = planned(case)
    walker = Walker(plan)
    by_name = {port.interface: port for port in ports_of(plan)}
    nodes = range(1, plan.cell.nf_nodes * case[1] + 1)
    for flow, path in zip(plan.flows, plan.paths, strict=True):
        assert (path.instance, path.direction) == (flow.instance, flow.direction)
        forward, port, mac, seen = flow.direction is Direction.FORWARD, flow.tx_interface, flow.destination_mac, []
        assert (by_name[port].mac, by_name[port].vlan) == (flow.source_mac, flow.vlan)
        while (there := walker.next_port(port, mac)).owner != "generator":
            assert there.mac == mac, "the next hop is the neighbour"
            mine = [function for function in plan.functions if function.name == there.owner]
            sides = [side for each in mine for side in (each.left, each.right)]
            (out,) = (side for side in sides if ip_address(flow.destination_ip) in ip_network(side.route.prefix))
            (function,) = (each for each in mine if there.interface in {each.left.name, each.right.name})
            left, right = (there.interface, out.name) if forward else (out.name, there.interface)
            assert (function.instance, function.left.name, function.right.name) == (flow.instance, left, right)
            seen += [(there.owner, there.interface), (there.owner, out.name)]
            port, mac = out.name, out.route.mac
        assert (there.mac, there.interface) == (mac, flow.rx_interface)
        holders = [plan.cell.holder(flow.instance, (node - 1) % plan.cell.nf_nodes + 1) for node in nodes]
        names = [f"nf-{holder}-{node}" for holder, node in zip(holders, nodes, strict=True)]
        assert [name for name, _ in seen[::2]] == (names if forward else names[::-1])
        assert seen == [(hop.owner, hop.interface) for hop in path.hops if hop.owner.startswith("nf-")]


@settings(max_examples=share(120))
@given(cases)
def test_names_and_addresses_are_unique_and_segments_have_their_ports(case: Case) -> None:
    plan = planned(case)
    ports = ports_of(plan)
    own = [port.mac for port in ports if port.nic is None]
    sides = [side for function in plan.functions for side in (function.left, function.right)]
    names, segments = [port.interface for port in ports], [segment.name for segment in plan.segments]
    addresses = [ip_interface(side.address).ip for side in sides]
    for unique in (names, segments, own, addresses):
        assert len(set(unique)) == len(unique)
    assert all(len(name) <= 15 for name in (*names, *segments))
    assert all(int(mac[:2], 16) & 0b11 == 0b10 or mac.startswith("52:54:00") for mac in own)
    assert all(ip_address(side.route.address) in ip_interface(side.address).network for side in sides)
    # Ports of one NIC have its address, and no two NICs have the same.
    physical = {(plan.machines[port.owner], port.nic.port): port.mac for port in ports if port.nic and case[2]}
    assert len(set(physical.values())) == len(physical)
    of_nfs = {port.interface: port.owner for port in ports if port.owner.startswith("nf-")}
    assert of_nfs == {side.name: each.name for each in plan.functions for side in (each.left, each.right)}
    members = Counter(member for segment in plan.segments for member in segment.members)
    assert members == Counter(port.interface for port in ports if port.owner.startswith("vswitch"))
    instance_of = {port.interface: link.instance for link in plan.links for port in (link.a, link.b)}
    by_name = {port.interface: port for port in ports}
    for segment in plan.segments:
        assert len({by_name[member].owner for member in segment.members}) == 1, "a segment is inside one vSwitch"
        assert len({by_name[member].mac for member in segment.members}) == len(segment.members)
        if segment.instance:
            assert {instance_of[member] for member in segment.members} == {segment.instance}
            assert len(segment.members) == 2
        else:
            assert plan.discriminator == "mac", "instances share the cable"


@settings(max_examples=share(80))
@given(cases)
def test_paths_alternate_and_cross_links_and_boxes_and_name_shared_ports(case: Case) -> None:
    plan = planned(case)
    ends = {frozenset((link.a.interface, link.b.interface)) for link in plan.links}
    instances = Counter(hop.interface for path in plan.paths for hop in path.hops if path.direction == "forward")
    for path, flow in zip(plan.paths, plan.flows, strict=True):
        assert (path.hops[0].interface, path.hops[-1].interface) == (flow.tx_interface, flow.rx_interface)
        assert [hop.counter for hop in path.hops] == ["tx", "rx"] * (len(path.hops) // 2)
        for out, into in zip(path.hops[::2], path.hops[1::2], strict=True):
            assert frozenset((out.interface, into.interface)) in ends
        for into, out in zip(path.hops[1:-1:2], path.hops[2::2], strict=True):
            assert into.owner == out.owner
        for hop in path.hops:
            assert instances[hop.interface] == (plan.cell.nf_chains if hop.shared else 1)


@settings(max_examples=share(40))
@given(on_labs)
def test_cables_join_machines_and_nothing_else_does(case: Case) -> None:
    plan = planned(case)
    (word, duts, _, _), rows = case, plan.cell.nf_chains
    for link in plan.links:
        ends = (plan.machines[link.a.owner], plan.machines[link.b.owner])
        assert (link.medium is Medium.CABLE) == (ends[0] != ends[1])
        assert all((port.nic is not None) == (link.medium is Medium.CABLE) for port in (link.a, link.b))
        assert link.a.vlan == link.b.vlan
        assert (link.a.vlan is not None) == (word == "vlan" and link.medium is Medium.CABLE)
        assert (link.instance == 0) == (word == "mac" and link.medium is Medium.CABLE)
    cables = [link for link in plan.links if link.medium is Medium.CABLE]
    assert len(cables) == (duts + 1) * (1 if word == "mac" else rows)
    nics = {(plan.machines[port.owner], port.nic.port) for link in cables for port in (link.a, link.b) if port.nic}
    assert len(nics) == 2 * (duts + 1) * (rows if word == "link" else 1)
    vlans = {link.a.vlan for link in cables if link.instance == rows}
    assert vlans == ({100 + rows} if word == "vlan" else set() if word == "mac" else {None})
    assert Counter(plan.machines[function.name] for function in plan.functions) == {
        f"DUT{number}": rows * plan.cell.nf_nodes for number in range(1, duts + 1)
    }


@pytest.mark.parametrize(("kind", "segments", "vswitch_ports"), [("CSC", 2 * 5, 2 * (2 + 8)), ("CSP", 2 * 2, 2 * 4)])
def test_a_snake_has_n_plus_1_segments_and_a_pipeline_2(kind: str, segments: int, vswitch_ports: int) -> None:
    plan = make_plan(LOCAL, cell_of(kind, 2, 4), MACHINE)
    assert (len(plan.segments), len(plan.ports("vswitch"))) == (segments, vswitch_ports)


def test_addresses_of_more_nfs_than_a_byte_counts_are_unique_and_more_instances_are_refused() -> None:
    layout = ServiceLayout(cell_of("CSC", 40, 16), [NfKind("linux_router")] * 16, Edges())
    macs = {layout.nf_mac(row, node, side) for row in range(1, 41) for node in range(1, 17) for side in (1, 2)}
    assert len(macs) == 40 * 16 * 2
    with pytest.raises(PlanError, match="255 service instances"):
        make_plan(LOCAL, cell_of("CSC", 255), cpus(1024))


def test_owners_of_two_duts_continue_the_numbers() -> None:
    plan = make_plan(lab(2, 2), cell_of("CSC", 2, 2), {})
    assert plan.machines == {
        "generator": "TG", "vswitch": "DUT1", "vswitch-2": "DUT2",
        "nf-1-1": "DUT1", "nf-1-2": "DUT1", "nf-1-3": "DUT2", "nf-1-4": "DUT2",
        "nf-2-1": "DUT1", "nf-2-2": "DUT1", "nf-2-3": "DUT2", "nf-2-4": "DUT2",
    }  # fmt: skip
    (forward,) = [path for path in plan.paths if (path.instance, path.direction) == (1, "forward")]
    assert [hop.interface for hop in forward.hops][9:14] == ["csv1x2i2", "csv1p2", "csv1p3", "csv1x3i1", "csn1x3i1"]
    assert [port.interface for port in plan.ports("vswitch-2")][:2] == ["csv1p3", "csv1x3i1"]
    assert plan.cores.cpus("vswitch-2") == plan.cores.cpus("vswitch"), "each on its own machine"


@pytest.mark.parametrize(
    ("mac", "function"), [("b4:96:91:00:00:01", "b6:96:91:00:00:01"), ("52:54:00:00:00:01", "56:54:00:00:00:01")]
)
def test_frames_are_sent_to_the_mac_of_a_virtual_function_not_to_that_of_its_port(mac: str, function: str) -> None:
    """The NIC gives frames for the port's MAC to the port."""
    topology = polled(lab(generator="trex"), node="TG", nic_vfs=1, mac_address=mac, driver="i40e")
    assert {port.mac for port in make_plan(topology, cell_of(), {}).ports("generator")} == {function}


@pytest.mark.parametrize("word", ["link", "mac"])
def test_a_cable_end_has_the_facts_of_its_nic(word: Word) -> None:
    facts = {"numa_node": 0, "model": "Intel-XL710", "rate_bps": 4 * 10**10, "nic_vfs": 4, "uio_driver": "igb_uio"}
    topology = polled(lab(discriminator=word), **facts, rx_queues=3, driver="i40e")
    ends = {port.nic.port: port.nic for port in make_plan(topology, cell_of(), {}).ports("vswitch") if port.nic}
    assert ends.keys() == {"port1", "port2"}
    for name, nic in ends.items():
        there = topology.dut.interfaces[name]
        assert there.mac_address is not None
        function_mac = f"06{there.mac_address[2:]}"
        assert (nic.device, nic.pci_address, nic.mac_address) == (there.device, there.pci_address, function_mac)
        assert (nic.numa_node, nic.model, nic.rate_bps, nic.driver) == (0, "Intel-XL710", 4 * 10**10, "i40e")
        assert (nic.vfs, nic.uio_driver, nic.rx_queues) == (4, "igb_uio", 3)


BY_THEMSELVES = ("vpp", "trex")
"""Programs that tag frames themselves."""
TrunkCase = tuple[str, int, int, str, str, bool]
"""Service type, instances, DUTs, vSwitch, generator, whether the file has MAC addresses."""
trunk_cases = st.tuples(
    st.sampled_from(["CSC", "CSP"]),
    st.integers(1, 5),
    st.integers(1, 2),
    st.sampled_from(["linux_bridge", "vpp", "ovs"]),
    st.sampled_from(["ring", "auto", "trex", "iperf3"]),
    st.booleans(),
)


def with_devices(case: TrunkCase) -> Plan:
    service, rows, duts, vswitch, generator, with_macs = case
    of_dut = {"vswitch": vswitch, "containers": "linux_router", "ovs": {"ports": "system"}}
    topology = lab(duts, discriminator="vlan", generator=generator, with_macs=with_macs, **of_dut)
    assert has_vlan_devices(topology, topology.dut) == (vswitch != "vpp")
    return make_plan(topology, cell_of(service, rows, 1, vs_dtc=2), {})


@settings(max_examples=share(30))
@given(trunk_cases)
@example(("CSC", 2, 1, "ovs", "ring", True))
def test_every_trunk_is_one_physical_port_with_a_device_for_each_instance(case: TrunkCase) -> None:
    plan, (_, rows, duts, vswitch, generator, _) = with_devices(case), case
    ports = ports_of(plan)
    names = {port.interface for port in ports}
    for port in ports:
        program = generator if port.owner == "generator" else vswitch
        assert (port.trunk is not None) == (port.nic is not None and program not in BY_THEMSELVES)
        assert port.receiver == (port.trunk or port.interface)
    trunks: dict[str, list[Port]] = {}
    for port in ports:
        if port.trunk:
            trunks.setdefault(port.trunk, []).append(port)
    # A kernel has 15 characters for a name, and leftovers of this project are known by its beginning.
    assert not names & trunks.keys()
    assert all(name.startswith("cs") and len(name) <= 15 for name in trunks)
    sides = (generator not in BY_THEMSELVES) * 2 + (vswitch not in BY_THEMSELVES) * 2 * duts
    assert len(trunks) == sides
    for row in trunks.values():
        assert len({(plan.machines[port.owner], port.nic.port) for port in row if port.nic}) == 1
        assert sorted(port.vlan or 0 for port in row) == [101 + index for index in range(rows)]
        assert len({(port.owner, port.queues) for port in row}) == 1, "one receive thread, on one planned CPU"
    members = {member for segment in plan.segments for member in segment.members}
    assert not members & trunks.keys()
    # What a machine takes is the trunk, what it counts by are the VLAN devices.
    mine = [port for port in ports if port.owner == "generator"]
    cables = Cables(mine, MachineLock(), 1500)
    assert len(cables.physical) == 2
    if generator not in BY_THEMSELVES:
        assert cables.physical == {"csg0p1", "csg0p2"}
        assert cables.names == {port.interface for port in mine}
    else:
        assert cables.physical == cables.names == {"csg1p1", "csg1p2"}


def test_the_time_of_a_trunks_thread_counts_once() -> None:
    plan = with_devices(("CSC", 3, 1, "linux_bridge", "ring", True))
    second = 10**9
    before = Sample({"csv0p1": ThreadTime(0, 0), "csv3x1i1": ThreadTime(0, 0)}, {}, 0, 0)
    after = Sample({"csv0p1": ThreadTime(second // 2, 0), "csv3x1i1": ThreadTime(second // 4, 0)}, {}, 0, 0)
    found = usage(plan, before, after, 1.0)
    got = [(row.owner, row.interface, row.running) for row in found.threads]
    assert got == [("vswitch", "csv0p1", 0.5), ("vswitch", "csv3x1i1", 0.25)]
    (cpu,) = {plan.cores.cpus("vswitch")[port.data_thread] for port in ports_of(plan) if port.trunk == "csv0p1"}
    assert found.threads[0].cpu == cpu

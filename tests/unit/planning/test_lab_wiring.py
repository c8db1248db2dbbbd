"""Plans of labs: over any number of machines, cables and instances, packets find their way and names stay apart."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.queue_balance import Spread
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates
from tests.unit.examples import share
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import polled

Asked = tuple[str, int, int, int, Word, bool]
"""Service type, instances, NFs, DUTs, discriminator, whether the file has MAC addresses."""
asked_plans = st.tuples(
    st.sampled_from(["CSC", "CSP", "VSC"]),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 2),
    st.sampled_from(["link", "vlan", "mac"]),
    st.booleans(),
)


@cache
def topology_of(duts: int, pairs: int, word: Word, with_macs: bool) -> Topology:
    return lab(duts, pairs, discriminator=word, with_macs=with_macs, vms="qemu")


@cache
def planned(asked: Asked) -> Plan:
    kind, rows, columns, duts, word, with_macs = asked
    topology = topology_of(duts, rows if word == "link" else 1, word, with_macs)
    cell = Cell(service_type=ServiceType(kind), nf_chains=rows, nf_nodes=columns)
    return make_plan(topology, cell, {})


def ports_of(plan: Plan) -> list[Port]:
    return [port for link in plan.links for port in (link.a, link.b)]


def next_port(plan: Plan, port: Port, mac: str) -> Port:
    """Where a frame that a port sends arrives: over links, and through segments of vSwitches to the port that leads on.

    Of two ports it is the other one, of several the one behind which somebody has the MAC address.
    """
    while True:
        link = next(link for link in plan.links if port in {link.a, link.b})
        far = link.b if link.a == port else link.a
        if not far.owner.startswith("vswitch"):
            return far
        (segment,) = [each for each in plan.segments if far.interface in each.members]
        by_name = {each.interface: each for each in ports_of(plan)}
        others = [by_name[name] for name in segment.members if name != far.interface]
        port = others[0] if len(others) == 1 else next(each for each in others if leads_to(plan, each, mac))


def leads_to(plan: Plan, port: Port, mac: str) -> bool:
    """Whether a MAC address is found by going out of a port; through cables and segments, never back."""
    link = next(link for link in plan.links if port in {link.a, link.b})
    far = link.b if link.a == port else link.a
    if not far.owner.startswith("vswitch"):
        return far.mac == mac
    by_name = {each.interface: each for each in ports_of(plan)}
    (segment,) = [each for each in plan.segments if far.interface in each.members]
    return any(leads_to(plan, by_name[name], mac) for name in segment.members if name != far.interface)


@settings(deadline=None, max_examples=share(40))  # a busy machine is no error
@given(asked_plans)
def test_frames_go_through_every_nf_and_come_back(asked: Asked) -> None:
    """Walk: each sender's next MAC address is the neighbour's, who is found over links and segments alone."""
    plan = planned(asked)
    by_name = {port.interface: port for port in ports_of(plan)}
    functions = {function.name: function for function in plan.functions}
    for flow in plan.flows:
        port, mac, seen = by_name[flow.tx_interface], flow.destination_mac, []
        assert (port.mac, port.vlan) == (flow.source_mac, flow.vlan)
        while True:
            there = next_port(plan, port, mac)
            assert there.mac == mac, "the next hop is the neighbour"
            if there.owner == "generator":
                break
            function = functions[there.owner]
            seen.append(function.node)
            forward = flow.direction is Direction.FORWARD
            assert (function.instance, there.interface) == (
                flow.instance,
                (function.left if forward else function.right).name,
            )
            out = function.right if forward else function.left
            port, mac = by_name[out.name], out.route.mac
        assert there.interface == flow.rx_interface
        nodes = list(range(1, asked[2] * asked[3] + 1))
        assert seen == (nodes if flow.direction is Direction.FORWARD else nodes[::-1])


@settings(deadline=None, max_examples=share(40))  # a busy machine is no error
@given(asked_plans)
def test_names_are_unique_and_short_and_segments_have_their_ports(asked: Asked) -> None:
    plan = planned(asked)
    ports = ports_of(plan)
    names = [port.interface for port in ports]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 15
    assert max(len(segment.name) for segment in plan.segments) <= 15
    assert len({segment.name for segment in plan.segments}) == len(plan.segments)
    members = Counter(member for segment in plan.segments for member in segment.members)
    assert members == Counter(port.interface for port in ports if port.owner.startswith("vswitch"))
    by_name = {port.interface: port for port in ports}
    for segment in plan.segments:
        owners = {by_name[member].owner for member in segment.members}
        assert len(owners) == 1, "a segment is inside one vSwitch"
        assert len(segment.members) == 2 or asked[4] == "mac"
        assert len({by_name[member].mac for member in segment.members}) == len(segment.members)
    addresses = [side.address for function in plan.functions for side in (function.left, function.right)]
    assert len(set(addresses)) == len(addresses)
    own = [port.mac for port in ports if port.nic is None]
    assert len(set(own)) == len(own)
    # Ports of one NIC have its address, and no two NICs have the same.
    physical = {(plan.machines[port.owner], port.nic.port): port.mac for port in ports if port.nic and asked[5]}
    assert len(set(physical.values())) == len(physical)


@settings(deadline=None, max_examples=share(40))  # a busy machine is no error
@given(asked_plans)
def test_cables_join_machines_and_nothing_else_does(asked: Asked) -> None:
    plan = planned(asked)
    _, rows, columns, duts, word, _ = asked
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
        f"DUT{number}": rows * columns for number in range(1, duts + 1)
    }


@settings(deadline=None, max_examples=share(40))  # a busy machine is no error
@given(asked_plans)
def test_paths_name_shared_ports_as_such(asked: Asked) -> None:
    plan = planned(asked)
    ends = {frozenset((link.a.interface, link.b.interface)) for link in plan.links}
    instances = Counter(hop.interface for path in plan.paths for hop in path.hops if path.direction == "forward")
    for path, flow in zip(plan.paths, plan.flows, strict=True):
        assert (path.hops[0].interface, path.hops[-1].interface) == (flow.tx_interface, flow.rx_interface)
        for out, into in zip(path.hops[::2], path.hops[1::2], strict=True):
            assert (out.counter, into.counter) == ("tx", "rx")
            assert frozenset((out.interface, into.interface)) in ends
        for into, out in zip(path.hops[1:-1:2], path.hops[2::2], strict=True):
            assert into.owner == out.owner
        for hop in path.hops:
            assert hop.shared or instances[hop.interface] == 1
            assert not hop.shared or instances[hop.interface] == asked[1]


@pytest.mark.parametrize("word", ["link", "vlan", "mac"])
def test_queues_are_spread_evenly_and_as_the_balance_counts_them(word: Word) -> None:
    topology = lab(1, 3, discriminator=word)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=3, nf_nodes=2, vs_dtc=4)
    plan = make_plan(topology, cell, {})
    # Ports of several VLANs on a NIC have the same queues: four, as many as the vSwitch has data threads.
    by_port = {(port.nic.port if port.nic else port.interface): port.queues for port in plan.ports("vswitch")}
    queues = [thread for threads in by_port.values() for thread in threads]
    cables = 6 if word == "link" else 2
    assert len(queues) == 4 * cables + 12
    assert Counter(queues) == Counter(index % 4 for index in range(len(queues)))
    (row,) = candidates(topology, {}, parse_selection(service_types="CSC", cells="3x2", nf_sizes="1c", vswitch="4"))
    assert row.balance is not None
    assert row.balance.vswitch == Spread(len(queues), 4)
    nic = {(port.nic.port if port.nic else ""): port.data_thread for port in plan.ports("generator")}
    assert len(nic) == (6 if word == "link" else 2)


def test_owners_of_two_duts_continue_the_numbers() -> None:
    plan = planned(("CSC", 2, 2, 2, "link", True))
    assert plan.machines == {
        "generator": "TG", "vswitch": "DUT1", "vswitch-2": "DUT2",
        "nf-1-1": "DUT1", "nf-1-2": "DUT1", "nf-1-3": "DUT2", "nf-1-4": "DUT2",
        "nf-2-1": "DUT1", "nf-2-2": "DUT1", "nf-2-3": "DUT2", "nf-2-4": "DUT2",
    }  # fmt: skip
    (forward,) = [path for path in plan.paths if (path.instance, path.direction) == (1, "forward")]
    assert [hop.interface for hop in forward.hops] == [
        "csg1p1", "csv1p1", "csv1x1i1", "csn1x1i1", "csn1x1i2", "csv1x1i2", "csv1x2i1", "csn1x2i1", "csn1x2i2",
        "csv1x2i2", "csv1p2", "csv1p3", "csv1x3i1", "csn1x3i1", "csn1x3i2", "csv1x3i2", "csv1x4i1", "csn1x4i1",
        "csn1x4i2", "csv1x4i2", "csv1p4", "csg1p2",
    ]  # fmt: skip
    assert [port.interface for port in plan.ports("vswitch-2")][:2] == ["csv1p3", "csv1x3i1"]
    assert plan.cores.cpus("vswitch-2") == plan.cores.cpus("vswitch"), "each on its own machine"


def test_shared_cpus_are_in_the_json_and_no_others() -> None:
    plan = planned(("CSC", 1, 1, 1, "mac", True))
    assert '"shared":true' in plan.model_dump_json()
    assert "shared" not in planned(("CSC", 1, 1, 1, "link", True)).model_dump_json()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    ("mac", "function"), [("b4:96:91:00:00:01", "b6:96:91:00:00:01"), ("52:54:00:00:00:01", "56:54:00:00:00:01")]
)
def test_frames_are_sent_to_the_mac_of_a_virtual_function_not_to_that_of_its_port(mac: str, function: str) -> None:
    """The NIC gives frames for the port's MAC to the port."""
    topology = lab(1)
    ports = {
        name: port.model_copy(update={"nic_vfs": 1, "mac_address": mac, "driver": "i40e"})
        for name, port in topology.tg.interfaces.items()
    }
    generator = topology.tg.generator.model_copy(update={"driver": "trex"})
    tg = topology.tg.model_copy(update={"interfaces": ports, "generator": generator})
    topology = topology.model_copy(update={"nodes": {**topology.nodes, topology.tg_name: tg}})
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    assert {port.mac for port in plan.ports("generator")} == {function}


@pytest.mark.parametrize("word", ["link", "mac"])
def test_a_cable_end_has_the_facts_of_its_nic(word: Word) -> None:
    facts = {"numa_node": 0, "model": "Intel-XL710", "rate_bps": 4 * 10**10, "nic_vfs": 4, "uio_driver": "igb_uio"}
    topology = polled(lab(discriminator=word), **facts, rx_queues=3, driver="i40e")
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    ends = {port.nic.port: port.nic for port in make_plan(topology, cell, {}).ports("vswitch") if port.nic is not None}
    assert ends.keys() == {"port1", "port2"}
    for name, nic in ends.items():
        there = topology.dut.interfaces[name]
        assert there.mac_address is not None
        function_mac = f"06{there.mac_address[2:]}"
        assert (nic.device, nic.pci_address, nic.mac_address) == (there.device, there.pci_address, function_mac)
        assert (nic.numa_node, nic.model, nic.rate_bps, nic.driver) == (0, "Intel-XL710", 4 * 10**10, "i40e")
        assert (nic.vfs, nic.uio_driver, nic.rx_queues) == (4, "igb_uio", 3)

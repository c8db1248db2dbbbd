"""Wiring: every segment belongs to one instance, every path is closed, every name and address is unique."""

from collections import Counter
from functools import cache
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.nodes import Sizes
from resources.libraries.python.planning.edges import Edges
from resources.libraries.python.planning.placement.cores import allocate
from resources.libraries.python.planning.service import ServiceLayout
from resources.libraries.python.planning.wiring import Wiring, wire

MACHINE = layout((cpu, cpu, 0, 0) for cpu in range(512))


@cache
def wired(service_type: str, rows: int, columns: int) -> Wiring:
    asked = Cell(service_type=ServiceType(service_type), nf_chains=rows, nf_nodes=columns)
    return wire(
        asked,
        allocate(asked, MACHINE, 0, Sizes(), generator_cores=1),
        [NfKind("linux_router")] * asked.nf_nodes,
        "linux_bridge",
    )


cells = st.tuples(st.sampled_from(["CSC", "CSP", "VSC"]), st.integers(1, 10), st.integers(1, 10))


@pytest.mark.parametrize(
    ("service_type", "segments", "vswitch_ports"), [("CSC", 2 * 5, 2 * (2 + 8)), ("CSP", 2 * 2, 2 * (2 + 2))]
)
def test_a_snake_has_n_plus_1_segments_and_a_pipeline_2(service_type: str, segments: int, vswitch_ports: int) -> None:
    wiring = wired(service_type, 2, 4)
    assert len(wiring.segments) == segments
    ports = [port for link in wiring.links for port in (link.a, link.b) if port.owner == "vswitch"]
    assert len(ports) == vswitch_ports


@settings(deadline=None)  # a busy machine is no error
@given(cells)
def test_no_two_instances_share_anything(asked: tuple[str, int, int]) -> None:
    wiring = wired(*asked)
    instance_of = {port.interface: link.instance for link in wiring.links for port in (link.a, link.b)}
    for segment in wiring.segments:
        assert {instance_of[member] for member in segment.members} == {segment.instance}
    members = Counter(member for segment in wiring.segments for member in segment.members)
    vswitch = {port.interface for link in wiring.links for port in (link.a, link.b) if port.owner == "vswitch"}
    assert members == Counter(vswitch)  # every port of the vSwitch is in exactly one segment


def test_addresses_of_more_nfs_than_a_byte_counts_are_unique() -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=40, nf_nodes=16)
    layout = ServiceLayout(cell, [NfKind("linux_router")] * 16, Edges())
    macs = {layout.nf_mac(row, node, side) for row in range(1, 41) for node in range(1, 17) for side in (1, 2)}
    assert len(macs) == 40 * 16 * 2
    assert all(len(mac) == 17 for mac in macs)


@settings(deadline=None)  # a busy machine is no error
@given(cells)
def test_names_and_addresses_are_unique_and_valid(asked: tuple[str, int, int]) -> None:
    wiring = wired(*asked)
    ports = [port for link in wiring.links for port in (link.a, link.b)]
    for values in ([port.interface for port in ports], [port.mac for port in ports]):
        assert len(set(values)) == len(values)
    assert all(len(port.interface) <= 15 for port in ports)
    assert all(int(port.mac[:2], 16) & 0b11 == 0b10 or port.mac.startswith("52:54:00") for port in ports)
    assert len({segment.name for segment in wiring.segments}) == len(wiring.segments)
    owners: dict[IPv4Address, str] = {}
    for function in wiring.functions:
        for side in (function.left, function.right):
            own = IPv4Interface(side.address)
            assert own.ip not in owners
            owners[own.ip] = side.name
            assert IPv4Address(side.route.address) in own.network  # the next hop is on the link


@settings(deadline=None)  # a busy machine is no error
@given(cells)
def test_next_hops_lead_from_port_to_port(asked: tuple[str, int, int]) -> None:
    """Follow the MAC addresses of each flow through all NFs to the other port of the generator."""
    wiring = wired(*asked)
    owner_of_mac = {port.mac: port for link in wiring.links for port in (link.a, link.b)}
    functions = {function.name: function for function in wiring.functions}
    for flow in wiring.flows:
        mac, seen = flow.destination_mac, 0
        while owner_of_mac[mac].owner != "generator":
            function = functions[owner_of_mac[mac].owner]
            assert function.instance == flow.instance
            out = function.right if flow.direction is Direction.FORWARD else function.left
            assert IPv4Address(flow.destination_ip) in IPv4Network(out.route.prefix)
            mac, seen = out.route.mac, seen + 1
        assert owner_of_mac[mac].interface == flow.rx_interface
        assert seen == asked[2]


@settings(deadline=None)  # a busy machine is no error
@given(cells)
def test_paths_alternate_and_cross_links_and_boxes(asked: tuple[str, int, int]) -> None:
    wiring = wired(*asked)
    ends = {frozenset((link.a.interface, link.b.interface)) for link in wiring.links}
    for path, flow in zip(wiring.paths, wiring.flows, strict=True):
        assert (path.hops[0].interface, path.hops[-1].interface) == (flow.tx_interface, flow.rx_interface)
        assert [hop.counter for hop in path.hops] == ["tx", "rx"] * (len(path.hops) // 2)
        for out, into in zip(path.hops[::2], path.hops[1::2], strict=True):
            assert frozenset((out.interface, into.interface)) in ends  # over a link
        for into, out in zip(path.hops[1:-1:2], path.hops[2::2], strict=True):
            assert into.owner == out.owner  # through a box


@settings(deadline=None)  # a busy machine is no error
@given(cells)
def test_ports_are_spread_over_the_data_threads_they_have(asked: tuple[str, int, int]) -> None:
    kind, rows, columns = asked
    big = Cell(service_type=ServiceType(kind), nf_chains=rows, nf_nodes=columns, vs_dtc=4)
    cores = allocate(big, MACHINE, 0, Sizes(), generator_cores=1)
    load = Counter(
        port.data_thread
        for link in wire(big, cores, [NfKind("linux_router")] * big.nf_nodes, "linux_bridge").links
        for port in (link.a, link.b)
        if port.owner == "vswitch"
    )
    assert set(load) <= set(range(4))
    assert max(load.values()) - min(load.values()) <= 1 if len(load) == 4 else True


def test_more_instances_than_addresses_are_refused() -> None:
    asked = Cell(service_type=ServiceType.CSC, nf_chains=255, nf_nodes=1)
    big = layout((cpu, cpu, 0, 0) for cpu in range(1024))
    with pytest.raises(PlanError, match="255 service instances"):
        wire(asked, allocate(asked, big, 0, Sizes()), [NfKind("linux_router")] * asked.nf_nodes, "linux_bridge")

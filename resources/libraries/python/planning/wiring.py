"""Wiring: links, L2 segments, addresses, flows and paths of a cell.

A snake (CSC, VSC) crosses the vSwitch between any two NFs: N+1 segments per service instance. A pipeline (CSP) crosses
it at the edges only: 2 segments, and N-1 links from NF to NF. Without any NF that is 1 segment, or 2 with a cable from
one to the other. Every instance has its own segments and its own subnets, and but for instances that share a cable by
MAC address its own ports too, so no packet can reach another instance by accident. NFs of a pipeline that instances
share have interfaces for each instance, and send packets on by subnet: a split and a merge. A passive NF has a link to
the vSwitch, and gets copies of all frames in one segment. On a testbed of two DUTs a packet goes through the same
service on each: TG, DUT1, DUT2, TG.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, ip_network
from typing import Any, Literal

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import (
    Flow,
    Hop,
    Link,
    NextHop,
    NfInterface,
    NfPlan,
    Path,
    Port,
    Segment,
    TapPlan,
)
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.address_bounds import MAX_INSTANCES, MAX_NFS, MAX_SOURCES, SOURCES_PER_FLOW
from resources.libraries.python.planning.edges import SHARED, Edges
from resources.libraries.python.planning.media import between, to_vswitch
from resources.libraries.python.planning.names import (
    GENERATOR,
    VSWITCH,
    nf_interface,
    segment_name,
    tap_interface,
    tap_name,
    vswitch_interface,
    vswitch_name,
    vswitch_tap_interface,
)
from resources.libraries.python.planning.placement.queues import Queues, RxQueues
from resources.libraries.python.planning.service import ServiceLayout

IpVersion = Literal[4, 6]
_LINKS_IPV6 = int(IPv6Address("fd00:192::"))
"""Of links between parts; those of flows are fd00:10:{instance}::/64 and fd00:20:{instance}::/64."""
_Copies = Mapping[str, tuple[str, ...]]


def segments(service: ServiceLayout) -> Iterator[Segment]:
    """Pairs of neighbouring vSwitch ports along the service; where instances share cables, one for each cable's end."""
    duts = range(1, service.edges.duts + 1)
    per_dut = service.segments_on_dut
    copies = _copies(service)
    if service.edges.shared:
        for dut in duts:
            rows = [service.crossings(instance, dut) for instance in service.instances]
            before = (dut - 1) * per_dut
            left, right = (service.edge(vswitch_name(dut), SHARED, 2 * dut - 1 + side)[1] for side in (0, 1))
            if per_dut == 1:
                yield _segment(SHARED, before + 1, (left, right), copies)
                continue
            yield _segment(SHARED, before + 1, (left, *(row[0] for row in rows)), copies)
            yield _segment(SHARED, before + per_dut, (*(row[-1] for row in rows), right), copies)
    for instance in service.instances:
        for dut in duts:
            ports = service.crossings(instance, dut)
            first = (dut - 1) * per_dut + 1
            if service.edges.shared:
                ports, first = ports[1:-1], first + 1
            else:
                left, right = (service.edge(vswitch_name(dut), instance, 2 * dut - 1 + side)[1] for side in (0, 1))
                ports = [left, *ports, right]
            for index in range(len(ports) // 2):
                yield _segment(instance, first + index, (ports[2 * index], ports[2 * index + 1]), copies)


def _segment(instance: int, position: int, members: tuple[str, ...], copies: _Copies) -> Segment:
    name = segment_name(instance, position)
    return Segment(name=name, instance=instance, position=position, members=members, copies=copies.get(name, ()))


def segment_of_tap(service: ServiceLayout, instance: int, number: int) -> str:
    """Name of the segment that a passive NF gets copies of."""
    position, per_dut = service.tap_segment(number), service.segments_on_dut
    at_cable = (position - 1) % per_dut in {0, per_dut - 1}
    return segment_name(SHARED if service.edges.shared and at_cable else instance, position)


def _copies(service: ServiceLayout) -> _Copies:
    """Ports of the vSwitches towards passive NFs, by segment."""
    found: dict[str, tuple[str, ...]] = {}
    for instance in service.instances:
        for number in service.all_taps:
            name = segment_of_tap(service, instance, number)
            found[name] = (*found.get(name, ()), vswitch_tap_interface(instance, number))
    return found


@dataclass(frozen=True, slots=True)
class Wiring:
    """All of a cell's connections."""

    links: tuple[Link, ...]
    segments: tuple[Segment, ...]
    functions: tuple[NfPlan, ...]
    taps: tuple[TapPlan, ...]
    flows: tuple[Flow, ...]
    paths: tuple[Path, ...]


_ON_ONE_MACHINE = Edges()


def too_many(cell: Cell, duts: int) -> str | None:
    """Return what the address plan lacks for a cell; None where it holds it.

    A shared NF has addresses for each instance, so it counts as often as there are instances.
    """
    instances = len(cell.instances)
    functions = duts * instances * cell.nf_nodes
    if instances <= MAX_INSTANCES and max(functions, duts * cell.tap_count) <= MAX_NFS:
        return None
    return (
        f"{instances} service instances with {functions} NFs, but the address plan holds "
        f"{MAX_INSTANCES} instances and {MAX_NFS} NFs"
    )


def wire(
    cell: Cell,
    cores: CoreMap,
    kinds: Sequence[NfKind],
    vswitch: str,
    edges: Edges = _ON_ONE_MACHINE,
    *,
    sources: int = SOURCES_PER_FLOW,
    ip_version: IpVersion = 4,
) -> Wiring:
    """Connect a cell.

    `edges`: Cables of the testbed; by default virtual links on one machine.

    Raises:
        PlanError: More instances, NFs or sources than the address plan holds.
    """
    service = ServiceLayout(cell, kinds, edges)
    if reason := too_many(cell, edges.duts):
        raise PlanError(reason)
    if not 1 <= sources <= MAX_SOURCES:
        raise PlanError(f"{sources} source addresses for a flow; the address plan holds 1 to {MAX_SOURCES}")
    return Wiring(
        links=tuple(Links(service, cores, vswitch).all()),
        segments=tuple(segments(service)),
        functions=tuple(
            _function(service, instance, node, ip_version)
            for instance in service.instances
            for node in range(1, service.nodes + 1)
        ),
        taps=tuple(_tap(service, instance, number) for instance in service.instances for number in service.all_taps),
        flows=tuple(
            _flow(service, instance, direction, sources, ip_version)
            for instance in service.instances
            for direction in Direction
        ),
        paths=tuple(_path(service, instance, direction) for instance in service.instances for direction in Direction),
    )


def _function(service: ServiceLayout, instance: int, node: int, ip_version: IpVersion) -> NfPlan:
    def towards(neighbour: int, side: int) -> NfInterface:
        """The interface at `side`, with the neighbour one node further that way."""
        hop = node - 1 if side == 1 else node
        own_end, far_end = (2, 1) if side == 1 else (1, 2)
        return NfInterface(
            name=nf_interface(instance, node, side),
            mac=service.nf_mac(instance, node, side),
            address=f"{_link_address(service, instance, hop, own_end, ip_version)}/{30 if ip_version == 4 else 126}",
            route=NextHop(
                prefix=_network(10 if side == 1 else 20, instance, ip_version),
                address=_link_address(service, instance, hop, far_end, ip_version),
                mac=service.mac_of(instance, neighbour, 3 - side),
                also=service.translated_before(instance, node) if side == 1 else (),
            ),
        )

    return NfPlan(
        name=service.name(instance, node),
        id=service.number(instance, node),
        instance=instance,
        node=node,
        size=service.size(instance, node),
        kind=service.kind(instance, node),
        left=towards(node - 1, 1),
        right=towards(node + 1, 2),
        translates_to=service.translates_to(instance, node),
        limits=service.cell.limits_of(service.in_cell(node), instance),
        program=service.cell.program_of(service.in_cell(node), instance),
    )


def _link_address(service: ServiceLayout, instance: int, hop: int, end: int, ip_version: IpVersion) -> str:
    """Address on the L3 link after `hop` NFs, as `ServiceLayout.link_address` has it for IPv4."""
    if ip_version == 4:
        return service.link_address(instance, hop, end)
    return str(IPv6Address(_LINKS_IPV6 + 4 * ((instance - 1) * (service.nodes + 1) + hop) + end))


def _network(side: int, instance: int, ip_version: IpVersion) -> str:
    """Addresses of an instance at one side: 10 is that of TG port 1, 20 that of TG port 2."""
    return f"{side}.{instance}.0.0/16" if ip_version == 4 else f"fd00:{side}:{instance:x}::/64"


def _tap(service: ServiceLayout, instance: int, number: int) -> TapPlan:
    tap = service.tap(number)
    return TapPlan(
        name=tap_name(instance, number),
        instance=instance,
        number=number,
        segment=segment_of_tap(service, instance, number),
        kind=tap.kind,
        size=tap.size,
        interface=tap_interface(instance, number),
        mac=service.tap_mac(instance, number, 2),
        limits=tap.limits,
        program=tap.program,
    )


def _flow(service: ServiceLayout, instance: int, direction: Direction, sources: int, ip_version: IpVersion) -> Flow:
    forward = direction is Direction.FORWARD
    tx_port, rx_port = (1, 2) if forward else (2, 1)
    source, destination = (10, 20) if forward else (20, 10)
    entry = (1, 1) if forward else (service.nodes, 2)
    return Flow(
        instance=instance,
        direction=direction,
        tx_interface=service.edge(GENERATOR, instance, tx_port)[1],
        rx_interface=service.edge(GENERATOR, instance, rx_port)[1],
        source_mac=service.generator_mac(instance, tx_port),
        destination_mac=service.mac_of(instance, *entry),
        source_ip=str(ip_network(_network(source, instance, ip_version))[1]),
        sources=sources,
        destination_ip=str(ip_network(_network(destination, instance, ip_version))[1]),
        vlan=service.edges.vlan(instance),
        answers_to=None if forward else _seen_from_the_right(service, instance),
    )


def _seen_from_the_right(service: ServiceLayout, instance: int) -> str | None:
    """The first source address of the forward direction as the last NAT writes it; None where there is none."""
    networks = service.translated_before(instance, service.nodes + 1)
    return str(IPv4Network(networks[-1])[1]) if networks else None


def _path(service: ServiceLayout, instance: int, direction: Direction) -> Path:
    """Forward order of interfaces, reversed with rx and tx swapped for the other direction."""
    row = list(service.line(instance))
    if direction is Direction.REVERSE:
        row.reverse()
    shared = _shared_ports(service)
    hops = tuple(
        Hop(owner=owner, interface=interface, counter="rx" if index % 2 else "tx", shared=interface in shared)
        for index, (owner, interface) in enumerate(row)
    )
    return Path(instance=instance, direction=direction, hops=hops)


def _shared_ports(service: ServiceLayout) -> frozenset[str]:
    if not service.edges.shared:
        return frozenset()
    numbers = range(1, 2 * service.edges.duts + 1)
    places = [
        *(service.edge(GENERATOR, SHARED, port) for port in (1, 2)),
        *(service.edge(vswitch_name((number + 1) // 2), SHARED, number) for number in numbers),
    ]
    return frozenset(interface for _, interface in places)


class Links:
    """Makes the links of a service."""

    def __init__(self, service: ServiceLayout, cores: CoreMap, vswitch: str) -> None:
        self._service = service
        self._vswitch = vswitch
        self._rx = RxQueues(service, cores, vswitch)

    def all(self) -> Iterator[Link]:
        """All links: those that instances share, then instance by instance in forward direction."""
        service, cables = self._service, range(self._service.edges.duts + 1)
        if service.edges.shared:
            yield from (self._edge(SHARED, cable) for cable in cables)
        for instance in service.instances:
            for dut in range(1, service.edges.duts + 1):
                if not service.edges.shared:
                    yield self._edge(instance, dut - 1)
                yield from self._inside(instance, dut)
            if not service.edges.shared:
                yield self._edge(instance, cables[-1])

    def _edge(self, instance: int, cable: int) -> Link:
        """Return a cable of the path (from 0), or the virtual link in its place. The generator is always end `a`."""
        if cable == 0:
            ends = self._generator_port(instance, 1), self._edge_port(instance, 1)
        elif cable == self._service.edges.duts:
            ends = self._generator_port(instance, 2), self._edge_port(instance, 2 * cable)
        else:
            ends = self._edge_port(instance, 2 * cable), self._edge_port(instance, 2 * cable + 1)
        medium = Medium.CABLE if self._service.edges.ways else Medium.VETH
        return Link(instance=instance, a=ends[0], b=ends[1], medium=medium)

    def _generator_port(self, instance: int, port: int) -> Port:
        service = self._service
        cable, end = (0, 0) if port == 1 else (service.edges.duts, 1)
        owner, interface = service.edge(GENERATOR, instance, port)
        return Port(
            owner=owner,
            interface=interface,
            mac=service.generator_mac(instance, port),
            **_polled(self._rx.at_generator(instance, port)),
            nic=service.edges.nic(instance, cable, end),
            vlan=service.edges.vlan(instance),
            trunk=service.edges.trunk(GENERATOR, port),
        )

    def _edge_port(self, instance: int, number: int) -> Port:
        """A vSwitch's port at edge `number` (1 to 4 along the service): odd ones end a cable, even ones begin one."""
        service = self._service
        owner, interface = service.edge(vswitch_name((number + 1) // 2), instance, number)
        return Port(
            owner=owner,
            interface=interface,
            mac=service.edge_mac(instance, number),
            **_polled(self._rx.at_edge(instance, number)),
            nic=service.edges.nic(instance, number // 2, number % 2),
            vlan=service.edges.vlan(instance),
            trunk=service.edges.trunk(VSWITCH, number),
        )

    def _inside(self, instance: int, dut: int) -> Iterator[Link]:
        service, vswitch = self._service, vswitch_name(dut)
        nodes = service.nodes_on(dut)
        position = 0

        def inner_port(node: int, side: int) -> Port:
            nonlocal position
            position += 1
            return Port(
                owner=vswitch,
                interface=vswitch_interface(instance, node, side),
                mac=service.crossing_mac(instance, node, side),
                **_polled(self._rx.at_crossing(dut, instance, position)),
            )

        def crossing(node: int, side: int) -> Link:
            medium = to_vswitch(self._vswitch, service.kind(instance, node))
            return Link(
                instance=instance, a=inner_port(node, side), b=self._nf_port(instance, node, side), medium=medium
            )

        pipeline = service.cell.service_type.is_pipeline
        if pipeline and not nodes:
            # A cable where the NFs would be: packets cross the vSwitch as often as they do with them.
            ends = [inner_port(0, side) for side in service.cable_sides(dut)]
            yield Link(instance=instance, a=ends[0], b=ends[1])

        for node in nodes:
            if node == nodes[0] or not pipeline:
                yield crossing(node, 1)
            if node == nodes[-1] or not pipeline:
                yield crossing(node, 2)
            else:
                medium = between(service.kind(instance, node), service.kind(instance, node + 1))
                left, right = self._nf_port(instance, node, 2), self._nf_port(instance, node + 1, 1)
                yield Link(instance=instance, a=left, b=right, medium=medium)
        for number in service.taps_on(dut):
            yield self._to_tap(instance, dut, number)

    def _to_tap(self, instance: int, dut: int, number: int) -> Link:
        service, vswitch = self._service, vswitch_name(dut)
        near, far = (service.tap_mac(instance, number, end) for end in (1, 2))
        return Link(
            instance=instance,
            a=Port(
                owner=vswitch,
                interface=vswitch_tap_interface(instance, number),
                mac=near,
                **_polled(self._rx.to_tap(dut, instance, number)),
            ),
            b=Port(
                owner=tap_name(instance, number),
                interface=tap_interface(instance, number),
                mac=far,
                data_thread=0,
            ),
        )

    def _nf_port(self, instance: int, node: int, side: int) -> Port:
        return Port(
            owner=self._service.name(instance, node),
            interface=nf_interface(instance, node, side),
            mac=self._service.nf_mac(instance, node, side),
            **_polled(self._rx.at_nf(instance, node, side)),
        )


def _polled(queues: Queues) -> dict[str, Any]:
    """The keys of a port that say which data threads poll it."""
    return {"data_thread": queues[0], "rx_queues": queues if len(queues) > 1 else ()}

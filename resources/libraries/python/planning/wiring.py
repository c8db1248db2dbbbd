"""Wiring: links, L2 segments, addresses, flows and paths of a cell.

A snake (CSC, VSC) crosses the vSwitch between any two NFs: N+1 segments per service instance. A pipeline (CSP) crosses
it at the edges only: 2 segments, and N-1 links from NF to NF. Every instance has its own links to the generator, its
own segments and its own subnets, so no packet can reach another instance by accident.

Addresses: instance j sends forward from 10.j.0.1.. to 20.j.0.1 and back; NF to NF links use 100.64.0.0/10 (RFC 6598).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.cell import Cell, NfKind
from resources.libraries.python.model.plan import (
    CoreMap,
    Flow,
    Hop,
    Link,
    Medium,
    NextHop,
    NfInterface,
    NfPlan,
    Path,
    Port,
    Segment,
)
from resources.libraries.python.model.trial import Direction
from resources.libraries.python.planning.names import (
    GENERATOR,
    VSWITCH,
    edge_interface,
    nf_interface,
    nf_name,
    segment_name,
    vswitch_interface,
)

SOURCES_PER_FLOW = 254
"""Source addresses of a flow, as in CSIT's density profiles."""
MOST_INSTANCES = 254
"""Bounded by the second byte of the instances' subnets."""
MOST_NFS = 0xFFFF
"""Bounded by two bytes of the NFs' MAC addresses."""
_LINK_NETWORK = int(IPv4Address("100.64.0.0"))


@dataclass(frozen=True, slots=True)
class Wiring:
    """All of a cell's connections."""

    links: tuple[Link, ...]
    segments: tuple[Segment, ...]
    functions: tuple[NfPlan, ...]
    flows: tuple[Flow, ...]
    paths: tuple[Path, ...]


def wire(cell: Cell, cores: CoreMap, kinds: Sequence[NfKind], vswitch: str) -> Wiring:
    """Connect a cell.

    Args:
        cell: What to connect.
        cores: Where its threads are.
        kinds: What each NF of an instance is.
        vswitch: Driver of the vSwitch, which decides with the NFs' kinds what links are made of.

    Raises:
        PlanError: More instances or NFs than the address plan holds.
    """
    if cell.nf_chains > MOST_INSTANCES or cell.nf_count > MOST_NFS:
        raise PlanError(
            f"{cell.nf_chains} service instances with {cell.nf_count} NFs, but the address plan holds "
            f"{MOST_INSTANCES} instances and {MOST_NFS} NFs"
        )
    instances = range(1, cell.nf_chains + 1)
    return Wiring(
        links=tuple(
            link
            for instance in instances
            for link in _links(cell, instance, _RxPlacement(cores, cell), _Media(vswitch, kinds))
        ),
        segments=tuple(segment for instance in instances for segment in _segments(cell, instance)),
        functions=tuple(
            _function(cell, i, node, kinds[node - 1]) for i in instances for node in range(1, cell.nf_nodes + 1)
        ),
        flows=tuple(_flow(cell, instance, direction) for instance in instances for direction in Direction),
        paths=tuple(_path(cell, instance, direction) for instance in instances for direction in Direction),
    )


class _RxPlacement:
    """Ports to data threads, round-robin per owner in the order of the service."""

    def __init__(self, cores: CoreMap, cell: Cell) -> None:
        self._cores = cores
        pipeline = cell.service_type.is_pipeline
        self._vswitch_ports_per_instance = 2 + 2 * (1 if pipeline else cell.nf_nodes)

    def vswitch(self, instance: int, position: int) -> int:
        """Data thread of the vSwitch's port at `position` (from 0) of an instance."""
        threads = len(self._cores.cpus(VSWITCH))
        return ((instance - 1) * self._vswitch_ports_per_instance + position) % threads

    def nf(self, name: str, side: int) -> int:
        """Data thread of an NF's side 1 or 2."""
        return (side - 1) % len(self._cores.cpus(name))

    def generator(self, port: int) -> int:
        """Data thread of the generator's port 1 or 2."""
        return (port - 1) % max(1, len(self._cores.cpus(GENERATOR)))


class _Media:
    """What links are made of: shared memory where both ends know it, else virtual ports of the kernel."""

    def __init__(self, vswitch: str, kinds: Sequence[NfKind]) -> None:
        self._vswitch = vswitch
        self._kinds = kinds

    def to_vswitch(self, node: int) -> Medium:
        """Of the links between the vSwitch and an NF."""
        if self._vswitch != "vpp":
            return Medium.VETH
        return _VPP_MEDIA.get(self._kinds[node - 1], Medium.VETH)

    def to_next(self, node: int) -> Medium:
        """Of the link between an NF and the one behind it."""
        both = {self._kinds[node - 1], self._kinds[node]}
        return Medium.MEMIF if both == {NfKind.VPP} else Medium.VETH


_VPP_MEDIA = {
    NfKind.VPP: Medium.MEMIF,
    NfKind.QEMU: Medium.VHOST_USER,
    NfKind.QEMU_VPP: Medium.VHOST_USER,
}


def _links(cell: Cell, instance: int, rx: _RxPlacement, media: _Media) -> list[Link]:
    last = cell.nf_nodes
    position = 0

    def vswitch_port(interface: str, mac: str) -> Port:
        nonlocal position
        port = Port(owner=VSWITCH, interface=interface, mac=mac, data_thread=rx.vswitch(instance, position))
        position += 1
        return port

    def edge(port: int) -> Link:
        return Link(
            instance=instance,
            a=Port(
                owner=GENERATOR,
                interface=edge_interface(GENERATOR, instance, port),
                mac=_generator_mac(instance, port),
                data_thread=rx.generator(port),
            ),
            b=vswitch_port(edge_interface(VSWITCH, instance, port), f"02:01:00:00:{instance:02x}:{port:02x}"),
        )

    def nf_port(node: int, side: int) -> Port:
        name = nf_name(instance, node)
        return Port(
            owner=name,
            interface=nf_interface(instance, node, side),
            mac=_nf_mac(cell, instance, node, side),
            data_thread=rx.nf(name, side),
        )

    def to_vswitch(node: int, side: int) -> Link:
        number = _nf_id(cell, instance, node)
        mac = f"02:02:{number >> 8:02x}:{number & 0xFF:02x}:00:{side:02x}"
        return Link(
            instance=instance,
            a=vswitch_port(vswitch_interface(instance, node, side), mac),
            b=nf_port(node, side),
            medium=media.to_vswitch(node),
        )

    links = [edge(1)]
    for node in range(1, last + 1):
        if node == 1 or not cell.service_type.is_pipeline:
            links.append(to_vswitch(node, 1))
        if node == last or not cell.service_type.is_pipeline:
            links.append(to_vswitch(node, 2))
        else:
            ends = {"a": nf_port(node, 2), "b": nf_port(node + 1, 1)}
            links.append(Link(instance=instance, **ends, medium=media.to_next(node)))
    return [*links, edge(2)]


def _segments(cell: Cell, instance: int) -> list[Segment]:
    """Pairs of neighbouring vSwitch ports along the service."""
    crossed = [1, cell.nf_nodes] if cell.service_type.is_pipeline else range(1, cell.nf_nodes + 1)
    ports = [edge_interface(VSWITCH, instance, 1)]
    if cell.service_type.is_pipeline:
        ports += [vswitch_interface(instance, 1, 1), vswitch_interface(instance, crossed[-1], 2)]
    else:
        ports += [vswitch_interface(instance, node, side) for node in crossed for side in (1, 2)]
    ports.append(edge_interface(VSWITCH, instance, 2))
    return [
        Segment(
            name=segment_name(instance, position),
            instance=instance,
            position=position,
            members=(ports[2 * position - 2], ports[2 * position - 1]),
        )
        for position in range(1, len(ports) // 2 + 1)
    ]


def _function(cell: Cell, instance: int, node: int, kind: NfKind) -> NfPlan:
    def towards(neighbour: int, side: int) -> NfInterface:
        """The interface at `side`, with the neighbour one node further that way."""
        hop = node - 1 if side == 1 else node
        own_end, far_end = (2, 1) if side == 1 else (1, 2)
        return NfInterface(
            name=nf_interface(instance, node, side),
            mac=_nf_mac(cell, instance, node, side),
            address=f"{_link_address(cell, instance, hop, own_end)}/30",
            route=NextHop(
                prefix=f"{10 if side == 1 else 20}.{instance}.0.0/16",
                address=_link_address(cell, instance, hop, far_end),
                mac=_mac_of(cell, instance, neighbour, 3 - side),
            ),
        )

    return NfPlan(
        name=nf_name(instance, node),
        id=_nf_id(cell, instance, node),
        instance=instance,
        node=node,
        size=cell.size_of(node),
        kind=kind,
        left=towards(node - 1, 1),
        right=towards(node + 1, 2),
    )


def _flow(cell: Cell, instance: int, direction: Direction) -> Flow:
    forward = direction is Direction.FORWARD
    tx_port, rx_port = (1, 2) if forward else (2, 1)
    source, destination = (10, 20) if forward else (20, 10)
    entry = (1, 1) if forward else (cell.nf_nodes, 2)
    return Flow(
        instance=instance,
        direction=direction,
        tx_interface=edge_interface(GENERATOR, instance, tx_port),
        rx_interface=edge_interface(GENERATOR, instance, rx_port),
        source_mac=_generator_mac(instance, tx_port),
        destination_mac=_nf_mac(cell, instance, *entry),
        source_ip=f"{source}.{instance}.0.1",
        sources=SOURCES_PER_FLOW,
        destination_ip=f"{destination}.{instance}.0.1",
    )


def _path(cell: Cell, instance: int, direction: Direction) -> Path:
    """Forward order of interfaces, reversed with rx and tx swapped for the other direction."""
    last = cell.nf_nodes
    row = [(GENERATOR, edge_interface(GENERATOR, instance, 1)), (VSWITCH, edge_interface(VSWITCH, instance, 1))]
    for node in range(1, last + 1):
        if node == 1 or not cell.service_type.is_pipeline:
            row.append((VSWITCH, vswitch_interface(instance, node, 1)))
        row += [(nf_name(instance, node), nf_interface(instance, node, side)) for side in (1, 2)]
        if node == last or not cell.service_type.is_pipeline:
            row.append((VSWITCH, vswitch_interface(instance, node, 2)))
    row += [(VSWITCH, edge_interface(VSWITCH, instance, 2)), (GENERATOR, edge_interface(GENERATOR, instance, 2))]
    if direction is Direction.REVERSE:
        row.reverse()
    hops = tuple(
        Hop(owner=owner, interface=interface, counter="rx" if index % 2 else "tx")
        for index, (owner, interface) in enumerate(row)
    )
    return Path(instance=instance, direction=direction, hops=hops)


def _nf_id(cell: Cell, instance: int, node: int) -> int:
    return (instance - 1) * cell.nf_nodes + node


def _generator_mac(instance: int, port: int) -> str:
    return f"02:00:00:00:{instance:02x}:{port:02x}"


def _nf_mac(cell: Cell, instance: int, node: int, side: int) -> str:
    number = _nf_id(cell, instance, node)
    return f"52:54:00:{number >> 8:02x}:{number & 0xFF:02x}:{side:02x}"


def _mac_of(cell: Cell, instance: int, node: int, side: int) -> str:
    """MAC of a node of the service, where node 0 is TG port 1 and node N+1 is TG port 2."""
    if node == 0:
        return _generator_mac(instance, 1)
    if node > cell.nf_nodes:
        return _generator_mac(instance, 2)
    return _nf_mac(cell, instance, node, side)


def _link_address(cell: Cell, instance: int, hop: int, end: int) -> str:
    """Address on the L3 link after `hop` NFs (0..N); end 1 is its left end, 2 its right end."""
    number = (instance - 1) * (cell.nf_nodes + 1) + hop
    return str(IPv4Address(_LINK_NETWORK + 4 * number + end))

"""Numbers, names and addresses of one cell: derived here, and put together in `wiring`.

Instance j sends forward from 10.j.0.1.. to 20.j.0.1 and back; NF to NF links use 100.64.0.0/10 (RFC 6598).
A NAT at node n sends on from (29 + n).j.0.0/16, with the last two bytes of the source. On a
testbed of two DUTs the NFs of the second continue the node numbers of the first, so that a service is one row of NFs
wherever they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from resources.libraries.python.model.request.cell import Cell, Tap
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.planning import names
from resources.libraries.python.planning.edges import Edges

_FIRST_TRANSLATED, _TRANSLATED_NETWORKS = 30, 64
"""First bytes of the networks that NFs translate source addresses to: 30 to 93, by node."""
_LINK_NETWORK = int(IPv4Address("100.64.0.0"))

Place = tuple[str, str]
"""An owner and one of its interfaces."""


@dataclass(frozen=True, slots=True)
class ServiceLayout:
    """Layout of a cell's service instances between the edges of a testbed."""

    cell: Cell
    kinds: Sequence[NfKind]
    """Kinds of the NFs of an instance on one DUT; by instance where those have different kinds."""
    edges: Edges

    @property
    def nodes(self) -> int:
        """NFs of an instance on all DUTs."""
        return self.edges.duts * self.cell.nf_nodes

    @property
    def instances(self) -> range:
        """All instances, counting from 1."""
        return self.cell.instances

    def nodes_on(self, dut: int) -> range:
        """Nodes of an instance on a DUT."""
        return range((dut - 1) * self.cell.nf_nodes + 1, dut * self.cell.nf_nodes + 1)

    def taps_on(self, dut: int) -> range:
        """Numbers of an instance's passive NFs on a DUT; those of a second DUT continue, as nodes do."""
        return range((dut - 1) * len(self.cell.taps) + 1, dut * len(self.cell.taps) + 1)

    @property
    def all_taps(self) -> range:
        """Numbers of an instance's passive NFs on all DUTs."""
        return range(1, self.edges.duts * len(self.cell.taps) + 1)

    def tap(self, number: int) -> Tap:
        """The passive NF of the cell that a number is of."""
        return self.cell.taps[(number - 1) % len(self.cell.taps)]

    def tap_segment(self, number: int) -> int:
        """Position of the L2 segment that a passive NF gets copies of, along the service."""
        dut, position = (number - 1) // len(self.cell.taps), self.tap(number).position
        per_dut = self.segments_on_dut
        return dut * per_dut + (position if position < per_dut else per_dut)

    @property
    def segments_on_dut(self) -> int:
        """L2 segments of an instance in the vSwitch of one DUT."""
        return len(self.crossings(1, 1)) // 2 + 1

    def in_cell(self, node: int) -> int:
        """The node of the cell that a node is: 1 again for the first one of a second DUT."""
        return (node - 1) % self.cell.nf_nodes + 1

    def kind(self, instance: int, node: int) -> NfKind:
        """Kind of a node of an instance."""
        return self.kinds[(instance if self.cell.instance_kinds else self.in_cell(node)) - 1]

    def size(self, instance: int, node: int) -> NfSize:
        """Size of a node of an instance."""
        return self.cell.size_of(self.in_cell(node), instance)

    def is_shared(self, node: int) -> bool:
        """Whether a node is one NF for all instances."""
        return self.in_cell(node) in self.cell.shared_nodes

    def name(self, instance: int, node: int) -> str:
        """Name of the NF at a node of an instance; the same for all instances where they share it."""
        return names.nf_name(self.cell.holder(instance, self.in_cell(node)), node)

    def number(self, instance: int, node: int) -> int:
        """Number of a node of an instance, counting from 1 over all instances."""
        return (instance - 1) * self.nodes + node

    def translates_to(self, instance: int, node: int) -> str | None:
        """The network that a node translates an instance's source addresses to; None where it leaves them."""
        if not _translates(self.kind(instance, node)):
            return None
        return f"{_FIRST_TRANSLATED + (node - 1) % _TRANSLATED_NETWORKS}.{instance}.0.0/16"

    def translated_before(self, instance: int, node: int) -> tuple[str, ...]:
        """Networks that nodes before a node translate an instance's source addresses to."""
        if not any(map(_translates, self.kinds)):
            return ()
        networks = (self.translates_to(instance, before) for before in range(1, node))
        return tuple(dict.fromkeys(network for network in networks if network is not None))

    def crossings(self, instance: int, dut: int) -> list[str]:
        """Interfaces of a DUT's vSwitch towards the NFs of an instance, in forward direction."""
        nodes = self.nodes_on(dut)
        pairs = [(node, side) for node in nodes for side in (1, 2)]
        if self.cell.service_type.is_pipeline:
            pairs = [(nodes[0], 1), (nodes[-1], 2)] if nodes else [(0, side) for side in self.cable_sides(dut)]
        return [names.vswitch_interface(instance, node, side) for node, side in pairs]

    def cable_sides(self, dut: int) -> tuple[int, int]:
        """Sides of the cable that a pipeline without NFs has in their place on a DUT: 1 and 2, then 3 and 4."""
        return 2 * dut - 1, 2 * dut

    def edge(self, owner: str, instance: int, number: int) -> Place:
        """The port at an edge: `number` 1 or 2 of the generator, 1 to 4 of the vSwitches along the service."""
        kind = names.GENERATOR if owner == names.GENERATOR else names.VSWITCH
        return owner, names.edge_interface(kind, self.edges.instance(instance), number)

    def line(self, instance: int) -> Iterator[Place]:
        """Every interface that a forward packet of an instance passes, in order, each once."""
        yield self.edge(names.GENERATOR, instance, 1)
        for dut in range(1, self.edges.duts + 1):
            vswitch = names.vswitch_name(dut)
            yield self.edge(vswitch, instance, 2 * dut - 1)
            crossings = self.crossings(instance, dut)
            if not self.nodes:
                yield from ((vswitch, crossing) for crossing in crossings)
            for node in self.nodes_on(dut):
                for side in (1, 2):
                    towards = names.vswitch_interface(instance, node, side)
                    here = [(vswitch, towards)] if towards in crossings else []
                    own = (self.name(instance, node), names.nf_interface(instance, node, side))
                    yield from [*here, own] if side == 1 else [own, *here]
            yield self.edge(vswitch, instance, 2 * dut)
        yield self.edge(names.GENERATOR, instance, 2)

    def generator_mac(self, instance: int, port: int) -> str:
        """MAC of a port of the generator: its NIC's own where the file has it, as no other may be let through."""
        cable, end = (0, 0) if port == 1 else (self.edges.duts, 1)
        nic = self.edges.nic(instance, cable, end)
        own = nic.mac_address if nic else None
        return own or f"02:00:00:00:{self.edges.instance(instance):02x}:{port:02x}"

    def edge_mac(self, instance: int, number: int) -> str:
        """MAC of a vSwitch's port at an edge; `number` 1 to 4."""
        nic = self.edges.nic(instance, number // 2, number % 2)
        own = nic.mac_address if nic else None
        return own or f"02:01:00:00:{self.edges.instance(instance):02x}:{number:02x}"

    def crossing_mac(self, instance: int, node: int, side: int) -> str:
        """MAC of the vSwitch's port towards an NF."""
        number = self.number(instance, node) if node else instance
        return f"02:02:{number >> 8:02x}:{number & 0xFF:02x}:00:{side:02x}"

    def tap_mac(self, instance: int, number: int, end: int) -> str:
        """MAC of a port of the link to a passive NF; end 1 is the vSwitch's, 2 its own."""
        count = (instance - 1) * self.edges.duts * len(self.cell.taps) + number
        return f"02:03:{count >> 8:02x}:{count & 0xFF:02x}:00:{end:02x}"

    def nf_mac(self, instance: int, node: int, side: int) -> str:
        """MAC of an NF's interface."""
        number = self.number(instance, node)
        return f"52:54:00:{number >> 8:02x}:{number & 0xFF:02x}:{side:02x}"

    def mac_of(self, instance: int, node: int, side: int) -> str:
        """MAC of a node of the service, where node 0 is TG port 1 and the node after the last is TG port 2."""
        if node == 0:
            return self.generator_mac(instance, 1)
        if node > self.nodes:
            return self.generator_mac(instance, 2)
        return self.nf_mac(instance, node, side)

    def link_address(self, instance: int, hop: int, end: int) -> str:
        """Address on the L3 link after `hop` NFs (from 0); end 1 is its left end, 2 its right end."""
        number = (instance - 1) * (self.nodes + 1) + hop
        return str(IPv4Address(_LINK_NETWORK + 4 * number + end))


def _translates(kind: NfKind) -> bool:
    """Whether NFs of a kind translate addresses, in a guest or not."""
    return kind.driver.translates

"""Plans for testbeds whose ports user space drives, and for different NFs side by side."""

from typing import Any

from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of
from tests.unit.drivers.sim.sim_bed import TOPOLOGY


def together(kinds: list[NfKind], discriminator: str = "link") -> Plan:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=len(kinds), nf_nodes=1, instance_kinds=tuple(kinds))
    topology = TOPOLOGY.model_copy(update={"discriminator": discriminator})
    return make_plan(topology, cell, topology.dut.layout)


def with_ports(topology: Topology, *names: str, **facts: Any) -> Topology:
    """The same with other facts about the ports of some nodes, or of all."""
    nodes = dict(topology.nodes)
    for name in names or nodes:
        ports = {port: each.model_copy(update=facts) for port, each in nodes[name].interfaces.items()}
        nodes[name] = nodes[name].model_copy(update={"interfaces": ports})
    return topology.model_copy(update={"nodes": nodes})


def polled(topology: Topology, *, node: str = "DUT1", **facts: Any) -> Topology:
    """The same with other facts about the ports of a node; by default user space drives them."""
    return with_ports(topology, node, **{"driver": "vfio-pci", **facts})


def planned(
    topology: Topology, kind: str = "CSC", *, rows: int = 1, columns: int = 1, size: str = "1c", vs_dtc: int = 1
) -> Plan:
    cell = cell_of(kind, rows, columns, nf_sizes=(NfSize(size),), vs_dtc=vs_dtc)
    return make_plan(topology, cell, {})

"""Plans of a machine with 64 CPUs."""

from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.nodes import Sizes
from resources.libraries.python.planning.placement.cores import allocate
from resources.libraries.python.planning.wiring import wire

MACHINE = layout((cpu, cpu, 0, 0) for cpu in range(64))


def planned(service_type: str, rows: int, columns: int) -> Plan:
    """Wired and placed, without a testbed."""
    cell = Cell(service_type=ServiceType(service_type), nf_chains=rows, nf_nodes=columns)
    cores: CoreMap = allocate(cell, MACHINE, 0, Sizes())
    wiring = wire(cell, cores, [NfKind("linux_router")] * cell.nf_nodes, "linux_bridge")
    return Plan(
        testbed="t",
        cell=cell,
        suite_id="s",
        tags=(),
        discriminator="link",
        cores=cores,
        links=wiring.links,
        segments=wiring.segments,
        functions=wiring.functions,
        flows=wiring.flows,
        paths=wiring.paths,
    )

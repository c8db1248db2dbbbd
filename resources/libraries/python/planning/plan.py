"""From a topology and a cell to a Plan."""

import hashlib

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.cell import Cell, NfKind, ServiceType
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning import names
from resources.libraries.python.planning.cores import allocate, refusal
from resources.libraries.python.planning.wiring import wire


def generator_cores(topology: Topology) -> int:
    """Cores of the DUT's machine that the generator takes; 0 when it has a machine of its own."""
    return topology.tg.generator.cores if topology.tg.shares_machine_with else 0


def threads_per_nf(cell: Cell, layout: CpuLayout, numa_node: int) -> int:
    """Data threads of the first NF of a service, as CSIT's `2dcr2t` counts them."""
    size = cell.size_of(1)
    per_core = len(layout.cores(numa_node)[0])
    return max(1, int(size.cores * per_core))


def kinds(topology: Topology, cell: Cell) -> tuple[NfKind, ...]:
    """What each NF of an instance is.

    Raises:
        PlanError: The testbed does not have it.
    """
    if reason := no_such_kind(topology, cell):
        raise PlanError(reason)
    row = (topology.dut.kind_of(cell.service_type, cell.kind_of(node)) for node in range(1, cell.nf_nodes + 1))
    return tuple(kind for kind in row if kind is not None)


def no_such_kind(topology: Topology, cell: Cell) -> str | None:
    """Say which kind of NF a testbed lacks for a cell; None when it has all."""
    name, dut = topology.metadata.name, topology.dut
    if cell.service_type is ServiceType.VSC and dut.vms is None:
        return f"testbed {name} has no driver for VMs"
    for node in range(1, cell.nf_nodes + 1):
        if dut.kind_of(cell.service_type, cell.kind_of(node)) is None:
            has = (dut.vms,) if cell.service_type is ServiceType.VSC else dut.containers
            lacks = f"testbed {name} has no NFs of kind {cell.kind_of(node)} for a {cell.service_type}"
            return f"{lacks}; it has {', '.join(filter(None, has))}"
    return None


def make_plan(topology: Topology, cell: Cell, layout: CpuLayout) -> Plan:
    """Derive everything.

    Args:
        topology: The testbed.
        cell: What is asked for.
        layout: The DUT's logical CPUs, from the topology or discovered.

    Raises:
        PlanError: The cell cannot be planned on this testbed.
    """
    dut = topology.dut
    sharing, cores = dut.core_sharing, generator_cores(topology)
    core_map = allocate(cell, layout, dut.numa_node, sharing, generator_cores=cores, oversubscribe=dut.oversubscribe)
    wiring = wire(cell, core_map, kinds(topology, cell), dut.vswitch)
    threads = threads_per_nf(cell, layout, dut.numa_node)
    suite = names.suite_id(topology, cell, threads)
    reason = refusal(cell, layout, dut.numa_node, sharing, cores)
    return Plan(
        testbed=topology.metadata.name,
        cell=cell,
        suite_id=suite,
        tags=names.tags(topology, cell, suite, threads),
        discriminator=topology.discriminator,
        cores=core_map,
        links=wiring.links,
        segments=wiring.segments,
        functions=wiring.functions,
        flows=wiring.flows,
        paths=wiring.paths,
        warnings=(f"oversubscribed: {reason}",) if core_map.oversubscribed else (),
    )


def digest(plan: Plan) -> str:
    """SHA-256 of the plan's canonical JSON: equal plans, equal digests."""
    return hashlib.sha256(plan.model_dump_json().encode()).hexdigest()

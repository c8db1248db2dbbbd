"""From a topology and a cell to a Plan."""

import hashlib

from resources.libraries.python.model.cell import Cell
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
    wiring = wire(cell, core_map)
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

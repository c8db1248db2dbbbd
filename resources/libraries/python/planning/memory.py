"""Memory of a cell: requirements of its vSwitch and NFs, compared with the NUMA node of the interfaces.

What a product takes is in its declaration, each constant with its source. They are upper estimates: a cell that fits
by them must not run out. A cell is planned on one NUMA node, its memory too: memory of another node costs every packet
a trip.
"""

from collections.abc import Iterable

from resources.libraries.python import driver_registry
from resources.libraries.python.model.findings import Limit, Reason
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryLayout, MemoryNeed, MemoryNode
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.queues import expected_ports

HOST_MB = 1024
"""The operating system, this suite and its generator. Measured: an idle Debian 12 uses 411 MB, the suite 85, the
generator 35. The rest is for what else a machine does."""
PROGRAM_MB = 64
"""A program in a network namespace, where its limits do not say what it may use."""


_NONE = Limits()


def in_pages(needs: MemoryNeed, there: MemoryNode | None) -> str:
    """Huge pages that are taken, by size and NUMA node: `540 of 2 MB on NUMA 0`; empty for none, or too few."""
    taken_mb = needs.hugepages_mb + needs.either_mb
    if not taken_mb:
        return ""
    small = f"{-(-taken_mb // 2)} of 2 MB"
    if there is None:
        return f"{small}, or {needs.pages_1gb} of 1 GB"
    if 2 * there.hugepages_2mb >= taken_mb:
        return f"{small} on NUMA {there.node}"
    return f"{needs.pages_1gb} of 1 GB on NUMA {there.node}" if needs.pages_1gb <= there.hugepages_1gb else ""


def need(topology: Topology, cell: Cell, layout: CpuLayout | None = None) -> MemoryNeed:
    """Memory that a cell takes, the host's own share not counted.

    `layout`: CPUs of the (first) DUT; by default those that the topology lists.
    """
    dut = topology.dut
    total = driver_registry.vswitches()[dut.vswitch].memory(dut, expected_ports(topology, cell, layout))
    for tap in cell.taps:
        total += _of_nf(topology, ServiceType.CSC, tap.kind, tap.limits).times(len(cell.instances))
    if len(cell.nf_kinds) <= 1 and not cell.limits and not cell.instance_kinds:
        # One kind for all: as fast as planning a thousand cells has to be.
        kind = dut.kind_of(cell.service_type, cell.kind_of(1))
        return total + _of_nf(topology, cell.service_type, kind).times(cell.nf_count)
    for instance in cell.different_instances:
        for node in range(1, cell.nf_nodes + 1):
            kind = dut.kind_of(cell.service_type, cell.kind_of(node, instance))
            times = 1 if cell.instance_kinds else cell.count_of(node)
            total += _of_nf(topology, cell.service_type, kind, cell.limits_of(node, instance)).times(times)
    return total


def _of_nf(topology: Topology, service_type: ServiceType, kind: NfKind | None, limits: Limits = _NONE) -> MemoryNeed:
    if kind is None:
        return MemoryNeed()  # the testbed has no such NF, which is a reason of its own
    memory = kind.driver.memory
    if memory is not None:
        return memory(topology.dut, kind, service_type, limits)
    return MemoryNeed(NAMESPACE_MB + (0 if kind.is_namespace else limits.memory_mib or PROGRAM_MB))


def least_guest_mb(dut: DutNode, kind: NfKind) -> int:
    """Memory that limits must leave to a guest of a kind: with less, what is in it does not start; 0 if not known."""
    least_mb = kind.driver.least_memory_mb
    return 0 if least_mb is None else least_mb(dut, kind)


def node_of(topology: Topology, memory: MemoryLayout | None) -> MemoryNode | None:
    """The memory of the node of the interfaces; None where nothing is known of it."""
    if memory is None:
        memory = topology.dut.memory if isinstance(topology.dut.memory, tuple) else ()
    return next((node for node in memory if node.node == topology.dut.numa_node), None)


def spare_mb(there: MemoryNode) -> int:
    """Ordinary memory that a cell may take: without the host's share, and at most what was free at discovery."""
    without_host = max(0, there.ordinary_mb - HOST_MB)
    return without_host if there.available_mb is None else min(without_host, there.available_mb)


def shortages(
    topology: Topology, cell: Cell, there: MemoryNode | None, layout: CpuLayout | None = None
) -> Iterable[Reason]:
    """Return which memory a cell lacks; nothing if the testbed's memory is unknown.

    `there`: Memory of the node of the interfaces; None where it is unknown.
    `layout`: CPUs of the (first) DUT; by default those that the topology lists.
    """
    if there is None:
        return
    needs = need(topology, cell, layout)
    usable_mb = needs.usable_mb(there)
    needs = needs.where(usable_mb)
    pages = by_size(needs.hugepages_mb, needs.pages_1gb, there)
    rows = (
        (Limit.MEMORY, "memory", needs.ordinary_mb, spare_mb(there), ""),
        (Limit.HUGEPAGES, "huge pages", needs.hugepages_mb, usable_mb, pages),
    )
    for limit, what, needed, has, sizes in rows:
        if needed > has:
            text = f"needs {needed} MB of {what} on NUMA {there.node}{sizes or f', {has} available'}"
            yield Reason(limit=limit, text=text, needs=needed, there=has)


def by_size(needed_mb: int, pages_1gb: int, there: MemoryNode) -> str:
    """Return the pages of each size that are needed and there; empty where there are none of 1 GB.

    Pages of 1 GB are not told by memory: each program begins in pages of its own.

    `pages_1gb`: Their number, if they are of 1 GB.
    """
    if not there.hugepages_1gb:
        return ""
    has = f"{there.hugepages_2mb} and {there.hugepages_1gb} available"
    return f": {-(-needed_mb // 2)} of 2 MB or {pages_1gb} of 1 GB, {has}"

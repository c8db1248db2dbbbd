"""Huge pages and memory, against what the smallest cell takes."""

from collections.abc import Collection, Iterable, Iterator

from resources.libraries.python import driver_registry
from resources.libraries.python.model.findings import CheckFinding, ok, problem, warning
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.attachment import attachment_of
from resources.libraries.python.model.testbed.memory import MemoryNeed, MemoryNode
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.memory import by_size, need
from resources.libraries.python.testbed.node.facts import Facts, MemoryNodeFacts


def check(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    """Findings about a node's memory."""
    place, memory = f"nodes.{name}", facts.machine.memory
    node = topology.nodes[name]
    rows = {row.node: row for row in memory.nodes}
    free = {number: row.free_hugepage_mb() for number, row in rows.items()}
    total = sum(pages.total * pages.size_kb for row in rows.values() for pages in row.hugepages) // 1024
    needed, wanted, why = huge_pages(topology, name, facts)
    here, sizes = free.get(node.numa_node, 0), ""
    if node.numa_node in rows and (smallest := _smallest(topology, name, facts)):
        most = max(smallest.values(), key=lambda each: (each.hugepages_mb, each.hugepages_mb + each.either_mb))
        of_node = _free(rows[node.numa_node])
        here = most.usable_mb(of_node)
        sizes = by_size(needed if needed > here else wanted, most.pages_1gb, of_node)
    free_mb = ", ".join(f"{each} MB free on NUMA {number}" for number, each in free.items())
    # Pages in use stay in use: as many have to be added.
    there = rows[node.numa_node].hugepages if node.numa_node in rows else ()
    pages = sum(each.total for each in there if each.size_kb == 2048) - (here - wanted) // 2
    path = f"/sys/devices/system/node/node{node.numa_node}/hugepages/hugepages-2048kB/nr_hugepages"
    fix = f"./csit prepare TOPOLOGY, or echo {pages} > {path}"
    if needed > here:
        text = f"{why} needs {needed} MB on NUMA {node.numa_node}{sizes or f', {here} MB are free there'}"
        yield problem(place, "huge pages", text, fix)
    elif wanted > here:
        text = f"{why} takes {wanted} MB on NUMA {node.numa_node}{sizes or f', {here} MB are free there'}"
        yield warning(place, "huge pages", f"{text}; it gets pages of 4 KB", fix)
    else:
        text = f"{free_mb or 'none'}, of {total} MB; {f'{wanted} MB needed' if wanted else 'none needed'}"
        yield ok(place, "huge pages", text)
    yield from _ordinary(topology, name, facts)


def _free(row: MemoryNodeFacts) -> MemoryNode:
    pages = {each.size_kb: each.free for each in row.hugepages}
    small, large = pages.get(2048, 0), pages.get(1024 * 1024, 0)
    total_mb = max(1, row.total_mb, 2 * small + 1024 * large)
    return MemoryNode(node=row.node, total_mb=total_mb, hugepages_2mb=small, hugepages_1gb=large)


def _ordinary(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    available = facts.machine.memory.available_mb
    if available is None:
        yield warning(f"nodes.{name}", "memory", "is not known", "mount /proc")
        return
    numa_node = topology.nodes[name].numa_node
    pages_mb = sum(row.free_hugepage_mb() for row in facts.machine.memory.nodes if row.node == numa_node)
    needs = [each.where(pages_mb).ordinary_mb for each in _smallest(topology, name, facts).values()]
    needed = max(needs, default=0)
    text = f"{available} of {facts.machine.memory.total_mb} MB are free"
    if needed > available:
        fix = "end what uses it: ps aux --sort -rss | head"
        yield problem(f"nodes.{name}", "memory", f"{text}, the smallest cell needs {needed} MB", fix)
    else:
        yield ok(f"nodes.{name}", "memory", text)


def huge_pages(topology: Topology, name: str, facts: Facts, cells: Collection[Cell] = ()) -> tuple[int, int, str]:
    """MB that are needed at least, MB that are taken where they are there, and for what.

    `cells`: What is measured; empty for the smallest cells.
    """
    node = topology.nodes[name]
    if isinstance(node, DutNode):
        found = _all(topology, name, facts, cells) if cells else _smallest(topology, name, facts)
        needs = {kind: (each.hugepages_mb, each.hugepages_mb + each.either_mb) for kind, each in found.items()}
        largest = max(needs, key=needs.__getitem__)
        return (*needs[largest], largest if cells else f"a {largest} cell of one NF")
    generator = driver_registry.generators()[node.generator.driver]
    if generator.huge_pages_mb is not None and uses_dpdk(topology, name):
        needed = generator.huge_pages_mb(node)
        return needed, needed, f"{generator.label} with DPDK"
    return 0, 0, ""


def _all(topology: Topology, name: str, facts: Facts, cells: Iterable[Cell]) -> dict[str, MemoryNeed]:
    cpus = facts.layout_of(topology.nodes[name])
    return {f"{each.service_type} {each.dimensions}": need(topology, each, cpus) for each in cells}


def uses_dpdk(topology: Topology, name: str) -> bool:
    """Whether DPDK drives ports of a node."""
    node = topology.nodes[name]
    return any(attachment_of(port, node).is_dpdk for port in node.interfaces.values())


def _smallest(topology: Topology, name: str, facts: Facts) -> dict[str, MemoryNeed]:
    """Memory that cells of one NF need, by service type; nothing of a generator's node."""
    node = topology.nodes[name]
    if not isinstance(node, DutNode):
        return {}
    cpus = facts.layout_of(node)
    types = [ServiceType.CSC, *([ServiceType.VSC] if node.vms else [])]
    cells = (Cell(service_type=kind, **Dimensions(1, 1).columns, nf_sizes=(NfSize.ONE,)) for kind in types)
    return {cell.service_type.value: need(topology, cell, cpus) for cell in cells}

"""Sentences about the cores of a plan: their kinds, and the last-level caches of service instances."""

from collections.abc import Iterator, Mapping

from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.cpu import KINDS, CpuLayout
from resources.libraries.python.planning.names import GENERATOR, nf_name


def core_notes(cell: Cell, cores: CoreMap, layouts: Mapping[str, CpuLayout]) -> tuple[str, ...]:
    """Return what a user wants to know of the cores of a cell where these are not all alike.

    `layouts`: Logical CPUs of nodes by name, the first DUT first.
    """
    first = next(iter(layouts.values()))
    mixed = mixed_kinds(cores, layouts)
    kinds = {first.kinds.get(cpu, 0) for cpu in _of_data(cores, None)} if first.kinds else set()
    alike = f"data threads are on {KINDS[min(*kinds, len(KINDS) - 1)]} cores" if kinds and not mixed else ""
    return (*mixed, *filter(None, (alike, _caches(cell, cores, first))))


def mixed_kinds(cores: CoreMap, layouts: Mapping[str, CpuLayout]) -> tuple[str, ...]:
    """Return which machines have data threads on cores of several kinds.

    `layouts`: As those of `core_notes`.
    """
    return tuple(_mixed(cores, layouts))


def _mixed(cores: CoreMap, layouts: Mapping[str, CpuLayout]) -> Iterator[str]:
    for number, (name, layout) in enumerate(layouts.items()):
        used = _of_data(cores, name if number else None)
        physical = {core for node in layout.numa_nodes for core in layout.cores(node) if used.intersection(core)}
        if words := layout.kinds_in_words(physical):
            at = f"{name}: " if number else ""
            yield f"{at}data threads are on {words}: no kind has the {len(physical)} cores that they need"


def _of_data(cores: CoreMap, machine: str | None) -> set[int]:
    """Logical CPUs of data threads of the vSwitch and of NFs."""
    threads = cores.on(machine)
    return {thread.cpu for thread in threads if thread.role is ThreadRole.DATA and thread.owner != GENERATOR}


def _caches(cell: Cell, cores: CoreMap, layout: CpuLayout) -> str:
    """Whether the data threads of each service instance share a last-level cache, of those that a NUMA node has."""
    there = {layout.last_caches.get(cpu) for core in layout.cores(cores.numa_node) for cpu in core}
    if len(there) < 2 or not cell.nf_nodes:
        return ""
    found: dict[str, set[int | None]] = {}
    for thread in cores.on(None):
        if thread.role is ThreadRole.DATA:
            found.setdefault(thread.owner, set()).add(layout.last_caches.get(thread.cpu))
    nodes, instances = range(1, cell.nf_nodes + 1), cell.instances
    of_each = (set().union(*(found[nf_name(cell.holder(each, node), node)] for node in nodes)) for each in instances)
    apart = [each for each, caches in zip(instances, of_each, strict=True) if len(caches) > 1]
    if not apart:
        return "the data threads of each service instance share a last-level cache"
    of_them = f"{len(apart)} of {len(instances)} service instances" if len(instances) > 1 else "the service instance"
    return f"the data threads of {of_them} are in several last-level caches"

"""Division of the last-level cache: ways of their own for NFs that ask for them, and the others for all else.

Intel's Cache Allocation Technology, and AMD's equivalent, take a mask of adjacent ways for each group of CPUs and each
cache. NFs get ways from one end, the first NF the outermost ones; ways that devices use too stay with all others. An NF
has ways in each cache that a CPU of its data threads has. Main threads keep the ways of all others: they forward
nothing.
"""

from collections.abc import Iterator, Mapping

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.plan import OTHERS, CachePart
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.kinds import Limits
from resources.libraries.python.model.testbed.cpu import CacheWays, CpuLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import nf_name, tap_name


def asks_for_ways(cell: Cell) -> bool:
    """Whether an NF of a cell is to have cache ways of its own."""
    return any(limits.cache_ways for limits in (*cell.limits, *(tap.limits for tap in cell.taps)))


def divide(topology: Topology, cell: Cell, cores: CoreMap, layouts: Mapping[str, CpuLayout]) -> tuple[CachePart, ...]:
    """Return the parts of NFs and of all others on every DUT; nothing where no NF asks for ways.

    Raises:
        PlanError: There are too few ways, or the cache of a machine cannot be divided.
    """
    if not asks_for_ways(cell):
        return ()
    for name in topology.duts:
        if layouts[name].cache is None:
            raise PlanError(
                f"NFs ask for cache ways of their own, and {name} divides no cache (./csit doctor says why)"
            )
    if cores.oversubscribed:
        raise PlanError("NFs that share CPUs cannot have cache ways of their own, and the cell runs on shared cores")
    found: list[CachePart] = []
    for number, name in enumerate(topology.duts, 1):
        machine = None if number == 1 else name
        wanted = {owner: ways for owner, ways in _wanted(cell, number) if ways}
        if shared := next((owner for owner in wanted if cores.takes_turns(owner)), None):
            raise PlanError(f"{shared} takes turns with another NF on a CPU: it cannot have cache ways of its own")
        if (cache := layouts[name].cache) is not None:
            found += _parts(wanted, {owner: cores.cpus(owner) for owner in wanted}, cache, name, machine)
    return tuple(found)


def _wanted(cell: Cell, dut: int) -> Iterator[tuple[str, int | None]]:
    """Names of NFs on a DUT with the ways that they ask for."""
    nodes, taps = (dut - 1) * cell.nf_nodes, (dut - 1) * len(cell.taps)
    for instance in cell.instances:
        for node in range(1, cell.nf_nodes + 1):
            yield nf_name(cell.holder(instance, node), nodes + node), cell.limits_of(node, instance).cache_ways
    for instance in cell.instances:
        for number, tap in enumerate(cell.taps, 1):
            limits: Limits = tap.limits
            yield tap_name(instance, taps + number), limits.cache_ways


def _parts(
    wanted: Mapping[str, int], cpus: Mapping[str, tuple[int, ...]], cache: CacheWays, name: str, machine: str | None
) -> Iterator[CachePart]:
    if least := next((owner for owner, ways in wanted.items() if ways < cache.least), None):
        raise PlanError(f"{least} asks for {wanted[least]} cache ways; a part has at least {cache.least} on {name}")
    if len(wanted) >= cache.groups:
        raise PlanError(f"{len(wanted)} NFs ask for cache ways; {name} has {cache.groups - 1} groups for them")
    if unknown := [cpu for owner in wanted for cpu in cpus[owner] if cpu not in cache.domains]:
        raise PlanError(f"the last-level cache of CPU {unknown[0]} on {name} is not known")
    domains = {owner: sorted({cache.domains[cpu] for cpu in cpus[owner]}) for owner in wanted}
    masks: dict[str, dict[int, int]] = {owner: {} for owner in wanted}
    others: dict[int, int] = {}
    for domain in sorted({each for own in domains.values() for each in own}):
        here = {owner: ways for owner, ways in wanted.items() if domain in domains[owner]}
        for owner, mask in _masks(here, cache, f"cache {domain} on {name}").items():
            masks[owner][domain] = mask
        others[domain] = cache.mask & ~sum(masks[owner][domain] for owner in here)
    for owner in wanted:
        yield CachePart(owner=owner, machine=machine, cpus=cpus[owner], masks=masks[owner])
    yield CachePart(owner=OTHERS, machine=machine, cpus=(), masks=others)


def _masks(wanted: Mapping[str, int], cache: CacheWays, where: str) -> dict[str, int]:
    """Masks of one cache, from its low end or else from its high one."""
    needs, left = sum(wanted.values()), max(cache.least, cache.reserved.bit_count())
    if needs + left > cache.ways:
        raise PlanError(
            f"needs {needs + left} ways of {where}, {cache.ways} available: {needs} for {len(wanted)} NFs, {left} for "
            "all others"
        )
    from_low = not cache.reserved & ((1 << needs) - 1)
    found, place = {}, 0
    for owner, ways in wanted.items():
        found[owner] = ((1 << ways) - 1) << (place if from_low else cache.ways - place - ways)
        place += ways
    if taken := cache.reserved & sum(found.values()):
        raise PlanError(f"ways {taken:#x} of {where} are shared with devices, in the middle of what NFs need")
    return found

"""Python, rights, disks, load, memory against what the smallest cell takes, clocks, meters, and leftovers of runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings import CheckFinding, ok, problem, warning
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.access import EnergyMeter, Powercap
from resources.libraries.python.model.testbed.attachment import attachment_of
from resources.libraries.python.model.testbed.memory import MemoryNeed, MemoryNode
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.memory import by_size, need
from resources.libraries.python.quantities import counted
from resources.libraries.python.search.energy import node_powers
from resources.libraries.python.testbed.node.facts import Facts, MemoryNodeFacts
from resources.libraries.python.testbed.roles.watching import Readings

OLDEST_PYTHON = (3, 11)
RUNTIMES = "/var/tmp"  # noqa: S108 - only its free space is looked at
NEEDED_MB = {"/tmp": 100, RUNTIMES: 20, "/run": 20, "/dev/shm": 64}  # noqa: S108
"""For cores of programs, what they write, records and sockets, shared memory."""
RUNTIME_MB = 120
"""The runtime of an agent takes 80 MB, and half as much again while it is unpacked."""
CLOCK_S = 1.0
"""Records of nodes are compared by time, to the second."""
STALE_DAYS = 30.0


def check(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    """Findings about a node's system."""
    place, machine = f"nodes.{name}", facts.machine
    yield ok(place, "system", f"{machine.distribution or 'unknown'}, kernel {machine.kernel}, up {_days(machine.up_s)}")
    yield _python(topology, name, facts)
    if machine.uid == 0:
        yield ok(place, "rights", "root")
    else:
        fix = "as root: echo 'USER ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/csit, or access.user: root"
        if topology.world is not World.LAB:
            fix = "run as root"
        yield problem(place, "rights", f"user {machine.uid}, and runs need root's rights", fix)
    yield from _disks(place, facts)
    yield _load(place, facts)
    if machine.memory.swap_used_mb:
        text = f"{machine.memory.swap_used_mb} of {machine.memory.swap_total_mb} MB of swap are in use"
        yield warning(place, "swap", f"{text}: memory may be missing in the middle of a trial", "swapoff -a")
    if machine.irqbalance and topology.world is World.LAB:
        yield warning(
            place,
            "interrupts",
            "irqbalance moves interrupts to planned CPUs",
            "./csit prepare TOPOLOGY, or systemctl disable --now irqbalance",
        )
    yield from _leftovers(place, facts)


def check_memory(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
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


def _days(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds / 86400:.1f} days"


def _python(topology: Topology, name: str, facts: Facts) -> CheckFinding:
    version = ".".join(map(str, facts.machine.python))
    if facts.machine.python >= OLDEST_PYTHON:
        return ok(f"nodes.{name}", "python", version)
    access = topology.nodes[name].access
    return problem(
        f"nodes.{name}.access.python",
        "python",
        f"{access.python if access else 'python3'} is {version}, an agent needs {'.'.join(map(str, OLDEST_PYTHON))}",
        "install a newer one and say where: access: {python: /usr/bin/python3.11}",
    )


def _disks(place: str, facts: Facts) -> Iterator[CheckFinding]:
    free = []
    for path, least_mb in NEEDED_MB.items():
        disk = facts.machine.disks.get(path)
        if disk is None:
            continue
        needed_mb = least_mb + (RUNTIME_MB if path == RUNTIMES and not facts.leftovers.runtimes else 0)
        if disk.read_only:
            yield problem(place, "disk", f"{path} is read-only", f"mount -o remount,rw {path}")
        elif disk.free_mb < needed_mb:
            text = f"{path} has {disk.free_mb} of {disk.total_mb} MB free, {needed_mb} MB are needed"
            yield problem(place, "disk", text, f"make space: du -xh {path} | sort -h | tail")
        elif disk.free_files is not None and disk.free_files < 1000:
            text = f"{path} has {disk.free_files} free inodes; an agent needs thousands"
            yield problem(place, "disk", text, f"remove files: du -x --inodes {path} | sort -n | tail")
        else:
            free.append(f"{path} {disk.free_mb} MB")
    if free:
        yield ok(place, "disk", f"free: {', '.join(free)}")


def _load(place: str, facts: Facts) -> CheckFinding:
    load = facts.machine.load
    if load is None:
        return warning(place, "load", "is not known", "mount /proc")
    # A run adds a thread or two by itself; one core that is busy with something else shows in figures.
    busy = load[0] - 1.0
    text = f"{load[0]:.1f} over the last minute, on {len(facts.machine.cpu.rows)} CPUs"
    if busy > 0.5 and not facts.leftovers.in_use:
        return warning(place, "load", f"{text}: something else runs there", "see what: top -b -n 1 | head -20")
    return ok(place, "load", text)


def _leftovers(place: str, facts: Facts) -> Iterator[CheckFinding]:
    left = facts.leftovers
    if left.problem:
        yield problem(place, "leftovers", left.problem, "look at it and remove it")
    if left.in_use:
        who = (
            f"pid {left.owner.pid} of {left.owner.user} since {left.owner.since}"
            if left.owner
            else "of an unknown owner"
        )
        yield warning(place, "in use", f"a run holds the machine: {who}", "wait for its end, or see ./csit status")
    elif lines := left.lines():
        shown = ", ".join(lines[:3]) + ", …" * (len(lines) > 3)
        text = f"{counted(len(lines), 'thing')} of a run that was killed: {shown}"
        yield warning(place, "leftovers", text, "./csit cleanup TOPOLOGY --yes, or begin a run, which removes them too")
    if left.prepared:
        text = f"{left.prepared.settings} settings by {left.prepared.by} since {left.prepared.since}"
        yield ok(place, "prepared", f"{text}; ./csit release puts them back, or ./csit cleanup after its end")
    old = [each for each in left.runtimes if each.unused_days > STALE_DAYS]
    if old:
        count = f"{counted(len(old), 'runtime')} of agents"
        text = f"{count} unused for {STALE_DAYS:.0f} days, {sum(each.mb for each in old)} MB"
        yield warning(place, "leftovers", text, "./csit cleanup TOPOLOGY --yes")


def check_clocks(facts: Mapping[str, Facts]) -> Iterator[CheckFinding]:
    """Findings about clocks: each node's against the controller's, and whether it is synchronised."""
    for name, each in facts.items():
        offset_s = each.clock_offset_s
        wrong_s = max(0.0, abs(offset_s) - each.clock_error_s)
        clock = each.machine.clock
        kept = {True: "synchronised", False: "not synchronised", None: "unknown whether it is synchronised"}
        text = f"{offset_s:+.3f} s from the controller's (±{each.clock_error_s:.3f} s), {kept[clock.synchronised]}"
        if wrong_s > CLOCK_S:
            fix = "start an NTP client on both: systemctl enable --now chrony"
            yield warning(f"nodes.{name}", "clock", f"{text}; records of nodes do not fit together", fix)
        elif clock.synchronised is False and len(facts) > 1:
            yield warning(f"nodes.{name}", "clock", text, "start an NTP client: systemctl enable --now chrony")
        else:
            yield ok(f"nodes.{name}", "clock", text)


_METER_FIX = "see docs/how-to/measure-energy.md"


def check_energy_meter(place: str, meter: EnergyMeter, found: Readings) -> Iterator[CheckFinding]:
    """Findings about what a meter has read."""
    for why in found.unmetered.values():
        if meter == Powercap():  # the default, which virtual machines do not have
            yield ok(place, "energy", f"no energy meter: {why}")
        else:
            yield warning(place, "energy", f"cannot read power from {meter.meter}: {why}", _METER_FIX)
    try:
        powers = node_powers(found.series)
    except Unsupported:  # a BMC whose interval is longer than the check
        last = sum(series.samples[-1][1] for series in found.series if series.counts)
        yield ok(place, "energy", f"{last:.0f} W by {meter.meter}")
        return
    for power in powers:
        domains = ", ".join(f"{domain} {watts:.1f} W" for domain, watts in power.domains.items())
        yield ok(place, "energy", f"{power.watts:.1f} ± {power.error_w:.2g} W by {power.meter}: {domains}")

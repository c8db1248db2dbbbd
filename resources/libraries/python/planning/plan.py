"""From a topology and a cell to a Plan."""

from collections.abc import Mapping, Sequence
from itertools import product

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.findings import sentence
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.request.kinds import NfKind, are_vms
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.cpu import KINDS, CpuLayout
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning import names
from resources.libraries.python.planning.address_bounds import SOURCES_PER_FLOW
from resources.libraries.python.planning.edges import check, edges_of
from resources.libraries.python.planning.media import vswitch_of
from resources.libraries.python.planning.memory import least_guest_mb
from resources.libraries.python.planning.names import GENERATOR, nf_name
from resources.libraries.python.planning.placement.cache_ways import asks_for_ways, divide
from resources.libraries.python.planning.placement.cores import Layouts, layouts_of, place, shortages
from resources.libraries.python.planning.placement.queues import RxQueues, edge_ports, port_warnings, unequal
from resources.libraries.python.planning.placement.sender_threads import counting_limit
from resources.libraries.python.planning.service import ServiceLayout
from resources.libraries.python.planning.wiring import IpVersion, Wiring, wire


def threads_per_nf(cell: Cell, layout: CpuLayout, numa_node: int) -> int:
    """Data threads of the first NF of a service, as CSIT's `2dcr2t` counts them."""
    size = cell.size_of(1)
    per_core = max(map(len, layout.cores(numa_node)))
    return max(1, int(size.cores * per_core))


def kinds(topology: Topology, cell: Cell) -> tuple[NfKind, ...]:
    """Return the kind of each NF of an instance, or of each instance's NF where these differ.

    Raises:
        PlanError: The testbed does not have it.
    """
    if reason := no_such_kind(topology, cell):
        raise PlanError(reason)
    row = (topology.dut.kind_of(cell.service_type, asked) for asked in cell.asked_kinds())
    return tuple(kind for kind in row if kind is not None)


def drivers_of(topology: Topology, cell: Cell, drivers: Mapping[str, str]) -> dict[str, str]:
    """Names of drivers by role, of all that a testbed offers only those kinds of NFs that a cell has.

    Figures of a firewall and of a router are therefore not mistaken for those of one system.
    """
    own = {"containers": ", ".join(_containers(topology, cell))} if "containers" in drivers else {}
    if asks_for_ways(cell):
        own["cache"] = f"{'+'.join(str(limits.cache_ways or 'all other') for limits in cell.limits)} ways"
    asked = (*cell.asked_kinds(), *(tap.kind for tap in cell.taps))
    guests = dict.fromkeys(kind for kind in asked if kind in topology.dut.guests)
    if "vms" in drivers and guests:
        own["vms"] = ", ".join(guests)
    return {**drivers, **own}


def _containers(topology: Topology, cell: Cell) -> tuple[NfKind, ...]:
    """Kinds of a cell's containers, each once; the testbed's default where a cell has none, or none that is there."""
    inline = () if cell.service_type is ServiceType.VSC else cell.asked_kinds()
    asked = (topology.dut.kind_of(ServiceType.CSC, kind) for kind in (*inline, *(tap.kind for tap in cell.taps)))
    return (
        tuple(dict.fromkeys(kind for kind in asked if kind is not None and not kind.is_vm))
        or topology.dut.containers[:1]
    )


def no_such_kind(topology: Topology, cell: Cell) -> str | None:
    """Return which kind of NF a testbed lacks for a cell, or cannot share; None when it has all."""
    name, dut = topology.metadata.name, topology.dut
    switch = driver_registry.vswitches()[dut.vswitch]
    if cell.service_type is ServiceType.VSC and dut.vms is None:
        return f"testbed {name} has no driver for VMs"
    if not cell.nf_nodes and cell.service_type.is_pipeline and not switch.patches_segments:
        return f"testbed {name} has a vSwitch that shares memory with NFs, so it cannot have a cable without an NF"
    for kind in cell.asked_kinds():
        if dut.kind_of(cell.service_type, kind) is None or _is_vsc(cell):
            has = dut.guests if cell.service_type is ServiceType.VSC else dut.offered
            lacks = f"testbed {name} has no NFs of kind {kind} for a {cell.service_type}"
            return f"{lacks}; it has {', '.join(has)}"
    if reason := _no_such_tap(topology, cell) or _too_small(topology, cell):
        return reason
    for node in cell.shared_nodes:
        kind = dut.kind_of(cell.service_type, cell.kind_of(node))
        if kind is not None and not kind.driver.shareable:
            can = ", ".join(name for name, driver in driver_registry.functions().items() if driver.shareable)
            return f"an NF of kind {kind} (node {node}) has two interfaces and cannot be shared by instances; {can} can"
    return None


def _too_small(topology: Topology, cell: Cell) -> str | None:
    """Return which NF's limit is below the memory of its virtual machine; None when none do."""
    places = product(cell.different_instances, range(1, cell.nf_nodes + 1)) if cell.limits else ()
    inline = ((cell.kind_of(node, row), cell.limits_of(node, row), f"node {node}") for row, node in places)
    passive = ((tap.kind, tap.limits, f"passive, at position {tap.position}") for tap in cell.taps)
    for kind, limits, where in (*inline, *passive):
        needed, given = least_guest_mb(topology.dut, kind) if kind is not None else 0, limits.memory_mib
        if given is not None and given < needed:
            return f"an NF of kind {kind} ({where}) is limited to {given} MiB of memory, its guest needs {needed}"
    return None


def _is_vsc(cell: Cell) -> bool:
    """Whether a cell is a chain of containers by its name only."""
    return cell.service_type is ServiceType.CSC and are_vms(cell.asked_kinds())


def _no_such_tap(topology: Topology, cell: Cell) -> str | None:
    """Return why a testbed cannot have a passive NF of a cell; None when it can have all."""
    name, dut = topology.metadata.name, topology.dut
    switches = driver_registry.vswitches()
    if cell.taps and not switches[dut.vswitch].copies:
        others = " or ".join(each.name for each in switches.values() if each.copies and each.factory is not None)
        label = switches[dut.vswitch].label
        return f"testbed {name}: {label} makes no copies for passive NFs here; use the vSwitch {others}"
    for tap in cell.taps:
        if tap.kind not in (has := (*dut.offered, *dut.guests)):
            has = tuple(kind for kind in has if kind.driver.passive)
            return f"testbed {name} has no passive NFs of kind {tap.kind}; it has {', '.join(has) or 'none'}"
        at_cable = tap.position in {1, cell.nf_nodes + 1}
        instances = len(cell.instances)
        if at_cable and instances > 1 and edges_of(topology).shared:
            return (
                f"a passive NF at position {tap.position} would get copies of all {instances} service instances, "
                "which share that cable (discriminator: mac)"
            )
    return None


def make_plan(
    topology: Topology,
    cell: Cell,
    layout: Layouts,
    *,
    sources: int = SOURCES_PER_FLOW,
    ip_version: IpVersion = 4,
    smt: bool | None = None,
) -> Plan:
    """Derive everything.

    `layout`: Logical CPUs of the (first) DUT, or of nodes by name, as they were discovered; those of nodes that
      are not named are taken from the topology.
    `smt`: Whether the DUTs have SMT on while this is deployed, or switched off; None for as they are.

    Raises:
        ConfigError: The CPUs of a node of a lab are neither given nor listed.
        PlanError: The cell cannot be planned on this testbed.
    """
    dut, layouts = topology.dut, _with_smt(topology, layouts_of(topology, layout), smt)
    check(topology, len(cell.instances))
    core_map = place(topology, cell, layouts)
    edges, of_kinds, vswitch = edges_of(topology), kinds(topology, cell), vswitch_of(dut)
    wiring = wire(cell, core_map, of_kinds, vswitch, edges, sources=sources, ip_version=ip_version)
    service = ServiceLayout(cell, of_kinds, edges)
    ports = edge_ports(service, RxQueues(service, core_map, vswitch), core_map, list(topology.duts), sources)
    threads = threads_per_nf(cell, next(iter(layouts.values())), dut.numa_node)
    suite = names.of_version(names.suite_id(topology, cell, threads), ip_version)
    short = shortages(topology, cell, layouts)
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
        taps=wiring.taps,
        flows=wiring.flows,
        paths=wiring.paths,
        load_ports=_load_ports(topology, wiring.flows),
        warnings=(
            *((f"oversubscribed: {sentence(short)}",) if core_map.oversubscribed else ()),
            *unequal(cell, core_map),
            *mixed_kinds(core_map, layouts),
            *port_warnings(topology, ports),
            *filter(None, (counting_limit(topology.tg),)),
        ),
        cache=divide(topology, cell, core_map, layouts),
        machines=_machines(topology, cell, wiring),
        smt_off=smt is False,
    )


def _load_ports(topology: Topology, flows: Sequence[Flow]) -> dict[Protocol, tuple[int, ...]]:
    declared = driver_registry.generators()[topology.tg.generator.driver].load_ports
    if declared is not None:
        return dict(declared(flows))
    profile = traffic_profile()
    return {Protocol.UDP: (profile.load.udp_port, profile.probes.port), Protocol.TCP: (profile.load.udp_port,)}


def _with_smt(topology: Topology, layouts: dict[str, CpuLayout], smt: bool | None) -> dict[str, CpuLayout]:
    """Logical CPUs with SMT on or off on the DUTs.

    Raises:
        PlanError: A DUT has no SMT, or it is off already.
    """
    if smt is None:
        return layouts
    if without := [name for name in topology.duts if not layouts[name].smt]:
        raise PlanError(
            f"{' and '.join(without)} {'have' if len(without) > 1 else 'has'} one thread on each core, so SMT on and "
            "off cannot be compared: enable SMT in the firmware, or echo on > /sys/devices/system/cpu/smt/control"
        )
    if smt:
        return layouts
    return {name: each.without_smt() if name in topology.duts else each for name, each in layouts.items()}


def _machines(topology: Topology, cell: Cell, wiring: Wiring) -> dict[str, str]:
    """The node of each owner of ports; none where all is on one machine."""
    if topology.world is not World.LAB:
        return {}
    duts = list(topology.duts)
    return {
        names.GENERATOR: topology.tg_name,
        **{names.vswitch_name(number): name for number, name in enumerate(duts, 1)},
        **{function.name: duts[(function.node - 1) // cell.nf_nodes] for function in wiring.functions},
        **{tap.name: duts[(tap.number - 1) // len(cell.taps)] for tap in wiring.taps},
    }


def core_notes(cell: Cell, cores: CoreMap, layouts: Mapping[str, CpuLayout]) -> tuple[str, ...]:
    """Return what a user wants to know of the cores of a cell where these are not all alike.

    `layouts`: Logical CPUs of nodes by name, the first DUT first.
    """
    first = next(iter(layouts.values()))
    mixed = mixed_kinds(cores, layouts)
    used = {first.kinds.get(cpu, 0) for cpu in _of_data(cores, None)} if first.kinds else set()
    alike = f"data threads are on {KINDS[min(*used, len(KINDS) - 1)]} cores" if used and not mixed else ""
    return (*mixed, *filter(None, (alike, _caches(cell, cores, first))))


def mixed_kinds(cores: CoreMap, layouts: Mapping[str, CpuLayout]) -> tuple[str, ...]:
    """Return which machines have data threads on cores of several kinds.

    `layouts`: As those of `core_notes`.
    """
    found = []
    for number, (name, layout) in enumerate(layouts.items()):
        used = _of_data(cores, name if number else None)
        physical = {core for node in layout.numa_nodes for core in layout.cores(node) if used.intersection(core)}
        if words := layout.kinds_in_words(physical):
            at = f"{name}: " if number else ""
            found.append(f"{at}data threads are on {words}: no kind has the {len(physical)} cores that they need")
    return tuple(found)


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

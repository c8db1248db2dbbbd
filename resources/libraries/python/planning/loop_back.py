"""Plan of a loop-back: ports of the generator are joined to each other, with no system under test between them.

Ports are those of cables from the generator's machine to itself, each of which carries a flow each way, or else veth
pairs: there every flow has a pair of ports, one that sends and one that receives. Where the generator has two CPUs that
send, each has every other flow, as it has a direction each of a service. Generators of sockets need both directions,
and those that poll their ports take them in pairs: two flows have a pair of ports then.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import Inconsistency
from resources.libraries.python.model.core_map import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Flow, Link, Nic, Plan, Port
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.attachment import nic_kind
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.nodes import Interface, TgNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.address_bounds import SOURCES_PER_FLOW
from resources.libraries.python.planning.edges import nic_of
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, edge_interface
from resources.libraries.python.planning.physical_ports import how_driven
from resources.libraries.python.planning.placement.cores import Layouts, layouts_of
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.quantities import counted

VETH = "veth"
"""Kind of the ports of a loop-back without NICs."""
LoopCable = tuple[Nic, Nic]
"""Both ends are at the traffic generator."""
MAX_FLOWS = 64


def loop_back_plan(topology: Topology, layout: Layouts, flows: int, cables: Sequence[LoopCable] = ()) -> Plan:
    """Derive the plan of a loop-back on the traffic generator's machine, over cables or veth pairs.

    Over veth pairs frames are received on a CPU that sends nothing where there is one; where there is none, the plan
    has a warning. Over cables, and by a generator that polls its ports and has threads on each of its CPUs, frames are
    received as in a test.

    `cables`: From `loop_cables`; none for veth pairs.

    Raises:
        PlanError: There are too many flows, or the generator cannot be looped back here.
    """
    if reason := no_loop_back(topology):
        raise PlanError(reason)
    driver = driver_registry.generators()[topology.tg.generator.driver]
    ways = 2 if cables else max(1, driver.loops_back)
    if cables and (not 1 <= flows <= 2 * len(cables) or flows % ways):
        count = f"{counted(len(cables), 'cable')} from {topology.tg_name} to itself"
        raise PlanError(f"{flows} flows; each cable has one each way, so {count}: an even number to {2 * len(cables)}")
    if not 1 <= flows <= MAX_FLOWS or flows % ways:
        even = f"{driver.label} sends both ways, so an even number from 2" if ways > 1 else "a loop-back has 1"
        raise PlanError(f"{flows} flows; {even} to {MAX_FLOWS}")
    path = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=0), layout)
    own = [thread for thread in path.cores.threads if thread.owner == GENERATOR and thread.role is ThreadRole.DATA]
    # A simulated generator has no CPUs.
    own = own or [Thread(owner=GENERATOR, role=ThreadRole.DATA, index=0, cpu=path.cores.physical[0][0])]
    senders = sorted(own, key=lambda thread: thread.index)
    machine, name = senders[0].machine, topology.tg.shares_machine_with or topology.tg_name
    layouts = layouts_of(topology, layout)
    there = layouts.get(name) or next(iter(layouts.values()))
    mains = [row for row in path.cores.threads if row.owner == GENERATOR and row.role is not ThreadRole.DATA]
    threads = [*mains, *senders]
    receivers: tuple[int, ...] = (0,)
    warnings: tuple[str, ...] = ()
    if cables or driver.ports is not None:
        receivers = tuple(range(len(senders)))
    elif (cpu := _receiving_cpu(path.cores, there, machine, senders)) is None:
        warnings = (
            f"frames are received on CPU {senders[0].cpu}, which also sends: {topology.tg_name} has no other CPU for "
            "the receive threads, so rates are lower than the generator's own",
        )
    else:
        receivers = (len(senders),)
        threads.append(Thread(owner=GENERATOR, role=ThreadRole.DATA, index=len(senders), cpu=cpu, machine=machine))
    duts = list(topology.duts)
    pairs = range(1, flows // ways + 1)
    links = [_link(number, receivers) for number in pairs]
    if cables:
        links = [_on_cable(link, path.ports(GENERATOR), cable) for link, cable in zip(links, cables, strict=False)]
    macs = {port.interface: port.mac for link in links for port in (link.a, link.b)}
    return path.model_copy(
        update={
            "suite_id": f"loop-back-{flows}f",
            "tags": ("LOOP_BACK",),
            "discriminator": "link",
            "cores": path.cores.model_copy(update={"threads": tuple(threads)}),
            "links": tuple(links),
            "segments": (),
            "functions": (),
            "flows": tuple(
                flow.model_copy(
                    update={"source_mac": macs[flow.tx_interface], "destination_mac": macs[flow.rx_interface]}
                )
                for flow in _flows(flows, ways, len(senders), many_sources=Protocol.IP in driver.protocols)
            ),
            "paths": (),
            "warnings": warnings,
            # The vSwitch is named, so that its node has nothing of the generator; none is started.
            "machines": {GENERATOR: topology.tg_name, VSWITCH: duts[0]} if path.machines else {},
        }
    )


def no_loop_back(topology: Topology) -> str | None:
    """Return why the generator of a testbed cannot be looped back; None where it can."""
    driver = driver_registry.generators()[topology.tg.generator.driver]
    if driver.is_simulated or driver.loops_back:
        return None
    can = ", ".join(name for name, each in driver_registry.generators().items() if each.loops_back)
    return f"{driver.label} cannot be looped back over a veth pair by this project; {can} can"


def _receiving_cpu(cores: CoreMap, layout: CpuLayout, machine: str | None, senders: list[Thread]) -> int | None:
    """Return a CPU of the machine for receive threads: preferably one that has data threads in a service."""
    taken = {thread.cpu for thread in senders}
    numa_node = next((each.numa_node for each in cores.elsewhere if each.machine == machine), cores.numa_node)
    whole = {cpu for core in layout.cores(numa_node) for cpu in core if taken.intersection(core)}
    data = [row.cpu for row in cores.threads if row.machine == machine and row.role is ThreadRole.DATA]
    others = [cpu for core in layout.cores(numa_node) for cpu in core]
    free = [cpu for cpu in (*data, *reversed(others)) if cpu not in taken]
    return next((cpu for cpu in free if cpu not in whole), next(iter(free), None))


def _mac(number: int, end: int) -> str:
    return f"02:00:00:00:{number:02x}:{end:02x}"


def _link(number: int, receivers: Sequence[int]) -> Link:
    """Link of a pair of ports, which are received by data threads with these indexes in turn."""
    ends = [
        Port(
            owner=GENERATOR,
            interface=edge_interface(GENERATOR, number, end),
            mac=_mac(number, end),
            data_thread=receivers[(2 * (number - 1) + end - 1) % len(receivers)],
        )
        for end in (1, 2)
    ]
    return Link(instance=number, a=ends[0], b=ends[1])


def _on_cable(link: Link, tested: Sequence[Port], cable: LoopCable) -> Link:
    """The same link on NICs, whose ports are received as the two ports of a path are in a test."""
    ends = [
        like.model_copy(
            update={
                "interface": port.interface,
                "mac": nic.mac_address or port.mac,
                "nic": nic,
                "vlan": None,
                "trunk": None,
            }
        )
        for port, like, nic in zip((link.a, link.b), tested, cable, strict=True)
    ]
    return Link(instance=link.instance, a=ends[0], b=ends[1], medium=Medium.CABLE)


def _flows(flows: int, ways: int, senders: int, *, many_sources: bool) -> Iterator[Flow]:
    """One flow of each pair, whose direction says which CPU sends it, or one each way."""
    sources = SOURCES_PER_FLOW if many_sources else 1
    if ways > 1:
        pairs = range(1, flows // ways + 1)
        yield from (_flow(number, direction, sources) for number in pairs for direction in Direction)
        return
    for number in range(1, flows + 1):
        other = senders > 1 and number % 2 == 0
        flow = _flow(number, Direction.FORWARD, sources)
        yield flow.model_copy(update={"direction": Direction.REVERSE}) if other else flow


def _flow(number: int, direction: Direction, sources: int) -> Flow:
    """Flow from the first port of a pair to the second one, or back."""
    near, far = (1, 2) if direction is Direction.FORWARD else (2, 1)
    return Flow(
        instance=number,
        direction=direction,
        tx_interface=edge_interface(GENERATOR, number, near),
        rx_interface=edge_interface(GENERATOR, number, far),
        source_mac=_mac(number, near),
        destination_mac=_mac(number, far),
        source_ip=f"{10 * near}.{number}.0.1",
        sources=sources,
        destination_ip=f"{10 * far}.{number}.0.1",
    )


def loop_cables(topology: Topology) -> tuple[LoopCable, ...]:
    """Return the cables from one port of the TG to another of the NIC that tests are measured on; none elsewhere."""
    return tuple((nic_of(topology, cable.a), nic_of(topology, cable.b)) for cable in topology.loops)


def port_kind(topology: Topology) -> str:
    """Return the kind of the ports of a loop-back: model, driver, speed of NICs and what drives them, or veth."""
    return next(iter(_measured(topology).values())) or VETH if topology.loops else VETH


def no_cable(topology: Topology) -> str | None:
    """Return why a lab's generator cannot be looped back over its NICs; None where it can."""
    if topology.loops:
        return None
    name, measured = topology.tg_name, _measured(topology)
    ports = ", ".join(measured)
    if not topology.unused_loop_ports:
        return f"no cable joins two of {name}'s ports ({ports}), and a loop through a DUT would measure it too"
    if unknown := [port for port, kind in measured.items() if kind is None]:
        why = "so it is not known whether a cable to itself is of the same NIC"
        return f"nodes.{name}.interfaces: model and driver of {', '.join(unknown)} are unknown, {why}"
    kinds = {kind: [port for port in measured if measured[port] == kind] for kind in measured.values()}
    if len(kinds) > 1:
        rows = "; ".join(f"{', '.join(ports)} ({kind})" for kind, ports in kinds.items())
        return f"{name}'s ports are of {len(kinds)} kinds, and a qualification is of one: {rows}"
    cables = "; ".join(_unused(topology))
    return f"{name}'s ports {ports} are {next(iter(kinds))}, and no cable to itself joins two of that kind: {cables}"


def _measured(topology: Topology) -> dict[str, str | None]:
    """Kinds of the TG's ports that carry services, by port in the order of the file."""
    ends = {end.port for way in topology.ways for cable in way for end in (cable.a, cable.b) if not end.at_dut}
    return {port: _kind(each, topology.tg) for port, each in topology.tg.interfaces.items() if port in ends}


def _unused(topology: Topology) -> Iterator[str]:
    """Cables over which the generator is not qualified: `port5 - port6 (ice 25 Gb/s by the kernel)`."""
    for (a, one), (b, other) in combinations(topology.unused_loop_ports.items(), 2):
        if one.link == other.link:
            kinds = dict.fromkeys(_kind(each, topology.tg) or "unknown" for each in (one, other))
            yield f"{a} - {b} ({' - '.join(kinds)})"


def _kind(interface: Interface, tg: TgNode) -> str | None:
    """Model, driver, speed of a port of the TG, and what drives it; None where neither model nor driver is known."""
    try:
        kind = nic_kind(interface, tg)
    except Inconsistency as error:
        return str(error)
    if kind is None:
        return None
    speed = f"{kind.rate_bps / 1e9:g} Gb/s" if kind.rate_bps is not None else None
    words = " ".join(word for word in (kind.model, kind.driver, speed) if word)
    return f"{words} by {how_driven(interface, tg)}"

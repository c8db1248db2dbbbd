"""The machine that this process runs on, and its share of plans: in the local world all of it, on a node what is there.

All drivers run on this machine. A testbed of several machines has one of these on each.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import cast

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.containers.engine_choice import missing as container_missing
from resources.libraries.python.drivers.context import NO_CONTAINERS, DriverContext
from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds
from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.cpu import discover, kept_awake
from resources.libraries.python.drivers.host.cpu.memory import discover_memory
from resources.libraries.python.drivers.host.cpu.smt import SmtOff
from resources.libraries.python.drivers.host.links import link_devices
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.nics.handover import HandedOver, VirtualFunctions, on_functions
from resources.libraries.python.drivers.host.nics.port_inventory import numa_node_of
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.host.ownership.preflight import missing as of_driver
from resources.libraries.python.drivers.probes.call_stacks import PerfSampler, why_unsampled
from resources.libraries.python.drivers.probes.hops.driver import KernelHopTimer
from resources.libraries.python.drivers.probes.sampler.costs import LinuxCostMeter
from resources.libraries.python.drivers.probes.sampler.features import LinuxFeatureSampler, group_of
from resources.libraries.python.drivers.probes.sampler.host import HostSampler, memory_of
from resources.libraries.python.drivers.probes.sampler.tasks import Tasks, tasks_on
from resources.libraries.python.drivers.probes.tracer.driver import KernelTracer
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.network import LoadNetwork
from resources.libraries.python.drivers.services.orchestrator import Load, LocalOrchestrator
from resources.libraries.python.drivers.services.orchestrator import missing as missing_for_services
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.core_map import Thread, ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import NfPlan, Plan, Port, TapPlan
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.model.service.workload import needed
from resources.libraries.python.model.testbed.attachment import attachment_of
from resources.libraries.python.model.testbed.memory import MemoryLayout
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.edges import has_vlan_devices
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, is_vswitch
from resources.libraries.python.planning.placement.cores import cpu_without_data
from resources.libraries.python.planning.placement.instance_cpus import usable_mb
from resources.libraries.python.testbed.agent.bundle import ServiceBundle, as_on_node, write
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.node.facts import MachineFacts, PortInventory, named_ports
from resources.libraries.python.testbed.node.scripts import machine, ports
from resources.libraries.python.testbed.roles.part import NetworkFunctions, TrafficGenerator, VSwitch
from resources.libraries.python.testbed.roles.service import SizedService, SplitService

_NO_REALTIME_LIMIT = ("kernel/sched_rt_runtime_us", "-1")
"""Data threads run in real time. By default the kernel stops such threads for 50 ms of every second in which they were
busy for more than 95 %: at 500 kpps that is 25,000 packets lost in a system that has capacity left."""

FOLDER = Path("/var/lib/csit-density/service")
"""Folder of the user's files on the node. Not below /run, from which programs cannot be started everywhere."""


class NodeService(SplitService):
    """Instances or a load, with the user's files.

    `part`: Its scripts are below `FOLDER`.
    """

    def __init__(self, part: SizedService, brought: ServiceBundle, machine: MachineLock) -> None:
        super().__init__(part, part)
        self._brought = brought
        self._machine = machine
        self._claimed = False

    def start(self) -> None:
        """Write the files, bring the part up.

        Raises:
            CsitError: Files cannot be written, or what the part raises.
        """
        self._machine.claim_folder(FOLDER)
        self._claimed = True
        write(self._brought, FOLDER)
        self._load.start()

    def stop(self) -> None:
        """Remove the part, then the files. Safe to call after a failure.

        Raises:
            CsitError: Something could not be removed.
        """
        try:
            self._load.stop()
        finally:
            if self._claimed:
                self._machine.remove_folder(FOLDER)
                self._claimed = False


class TestbedMachine:
    """This machine, as a node of a topology.

    `node`: The node that this machine is; None where all of the testbed is on this machine.

    Raises:
        ConfigError: The topology has no such node.
    """

    def __init__(self, topology: Topology, node: str | None = None) -> None:
        if node is not None and node not in topology.nodes:
            raise ConfigError(
                f"nodes: no '{node}' in testbed {topology.metadata.name}, only {', '.join(topology.nodes)}"
            )
        self._topology = topology
        self._node = node
        here = (topology.tg, topology.dut) if node is None else (topology.nodes[node],)
        self._tg = next((each for each in here if isinstance(each, TgNode)), None)
        self._dut = next((each for each in here if isinstance(each, DutNode)), None)
        self._default_node = next(iter(topology.duts))
        self.layout = discover() if here[-1].cpus == "discover" else here[-1].layout
        """The machine's logical CPUs: from the file, or discovered here."""
        memory = self._dut.memory if self._dut is not None else None
        self.memory: MemoryLayout | None = discover_memory() if memory == "discover" else memory
        """A DUT's memory: from the file, or discovered here; None where the file says nothing."""
        self._lock = MachineLock()
        self._held = ExitStack()
        self._looked: tuple[PreflightProblem, ...] | None = None
        """Problems of a check that `open` need not repeat: it tries kernel features and ways of sending."""

    def problems(self) -> tuple[PreflightProblem, ...]:
        """Return what this machine lacks."""
        found: list[PreflightProblem] = list(check())
        for node in (self._dut, self._tg):
            # A generator's way of sending is tried, which a machine that lacks something else cannot tell.
            if node is not None and not (found and node is self._tg):
                found += missing(node)
                found += link_devices.missing() if has_vlan_devices(self._topology, node) else ()
        self._looked = tuple(found)
        return self._looked

    def numa_nodes(self) -> dict[str, int | None]:
        """NUMA nodes of its physical ports, by their names in the topology; None where the kernel does not know."""
        node = self._dut if self._dut is not None else self._tg
        interfaces = node.interfaces if node is not None and self._node is not None else {}
        return {name: numa_node_of(each.pci_address, each.device) for name, each in interfaces.items()}

    def settings(self) -> dict[str, str]:
        """Facts by which equal machines differ: of the machine, and of its physical ports."""
        found = MachineFacts.model_validate(machine.answer({})).settings()
        node = self._dut if self._dut is not None else self._tg
        if node is None or self._node is None:
            return found
        there = PortInventory.model_validate(ports.answer({"ports": named_ports(node)})).ports
        for name, row in there.items():
            if row is not None:
                kept = not attachment_of(node.interfaces[name], node).unbinds
                found |= {f"{fact} of {name}": text for fact, text in row.settings(kept=kept).items()}
        return found

    def unsampled(self) -> PreflightProblem | None:
        """Return why call stacks cannot be sampled here; None where they can, or nothing is sampled."""
        return why_unsampled() if self._dut is not None else None

    def warnings(self) -> tuple[PreflightProblem, ...]:
        """Requirements of virtual machines only, NFs that are there on request, and services of several components."""
        found = list(missing_for_some(self._dut)) if self._dut is not None else []
        if self._node is None:
            found += missing_for_services()
        return tuple(found)

    def open(self) -> tuple[str, ...]:
        """Check the machine, take its lock, remove what a killed run left behind; say what was removed.

        Raises:
            Unsupported: The machine lacks something.
            CsitError: Another run has it.
        """
        problems, self._looked = self.problems() if self._looked is None else self._looked, None
        if problems:
            raise Unsupported("; ".join(map(str, problems)))
        self._held.enter_context(self._lock)
        removed = tuple(self._lock.remove_leftovers())
        self._lock.set_for_run(*_NO_REALTIME_LIMIT)
        self._held.enter_context(kept_awake())
        return removed

    def share(self, plan: Plan, asked: MeasurementRequest, capture: bytes | None = None) -> Parts:
        """Drivers for what this machine has of a cell.

        Raises:
            Unsupported: There is no driver for a part of it.
        """
        every = {port.owner for port in plan.ports()}
        plan = on_functions(plan, [owner for owner in every if self._is_here(plan, owner)])
        nodes = [node for node in (self._tg, self._dut) if node is not None]
        ports = (port for node in nodes for port in past_the_kernel(node, plan))
        polled = [port for port in ports if self._is_here(plan, port.owner)]
        leave = {port.interface for port in polled}
        fabric = Fabric(plan, self._lock, asked.frame.largest_bytes, node=self._node, leave=leave)
        nics = [(port.nic, port.mac) for port in polled if port.nic is not None]
        functions_of_nics = VirtualFunctions(nics, self._lock)
        handed_over = HandedOver([nic for nic, _ in nics], self._lock)
        owners = set(fabric.owners)
        vswitch = next(filter(is_vswitch, fabric.owners), VSWITCH)
        container = self._dut.container if self._dut is not None else NO_CONTAINERS
        site = DriverContext(plan, fabric, self._lock, asked.frame.largest_bytes, vswitch, container, capture)
        nfs = [function for function in plan.functions if function.name in owners]
        taps = [tap for tap in plan.taps if tap.name in owners]
        first = [SmtOff(self.layout, self._lock)] if plan.smt_off and self._dut is not None else []
        working = _Working(plan, fabric)
        # A path without NFs has none of them on every DUT.
        here = bool(nfs or taps) or not (plan.functions or plan.taps)
        no_switch, no_functions, no_generator = ABSENT
        serving = self._dut is not None and bool(owners - {GENERATOR})
        threads = list(self._threads(plan))
        aside = cpu_without_data(threads)
        forwarding = [each for each in threads if each.role is ThreadRole.DATA and each.owner != GENERATOR]
        return Parts(
            cables=(*first, fabric, *((functions_of_nics, handed_over) if polled else ())),
            switch=make_switch(self._dut, site) if self._dut is not None and vswitch in owners else no_switch,
            functions=make_functions(self._dut, site, nfs, taps) if self._dut is not None and here else no_functions,
            generator=make_generator(self._tg, site, asked.generator)
            if self._tg is not None and GENERATOR in owners
            else no_generator,
            sampler=HostSampler(
                {thread.cpu for thread in threads},
                lambda: self._data_threads(plan, fabric),
                tasks=working.threads,
                memory=working.memory_bytes,
                statistics=fabric.statistics,
            ),
            features=LinuxFeatureSampler(plan, fabric, aside) if serving else None,
            costs=LinuxCostMeter(plan, fabric) if nfs or taps else None,
            hops=KernelHopTimer(plan, fabric) if serving else None,
            tracer=KernelTracer(lambda: _threads_of_nfs(plan, fabric), self._lock, cpu=aside) if nfs or taps else None,
            stacks=PerfSampler(
                self._node or self._default_node,
                {thread.cpu for thread in forwarding},
                lambda: {owner: tasks.threads() for owner, tasks in tasks_on(plan, fabric).items()},
                self._lock,
                cpu=aside,
            )
            if serving
            else None,
        )

    def orchestrator(self, asked: Specifications) -> LocalOrchestrator:
        """Return the orchestrator of multi-component services on this machine.

        Raises:
            Unsupported: Instances cannot be limited here.
        """
        oversubscribe = self._dut is not None and self._dut.oversubscribe
        return LocalOrchestrator(asked, self._lock, self.layout, usable_mb(self.memory), oversubscribe=oversubscribe)

    def instances(self, brought: ServiceBundle, size: Size, cable: Port) -> NodeService:
        """The instances of a service in one size, loaded over a cable.

        Raises:
            PlanError: The machine is too small for them.
            Unsupported: Instances cannot be limited here, or programs of their scripts are missing.
        """
        part = self.orchestrator(as_on_node(brought, FOLDER)).instances(size, cable)
        return NodeService(part, brought, self._lock)

    def load(self, brought: ServiceBundle, size: Size, cable: Port) -> NodeService:
        """Return the load generator of a service over a cable.

        Raises:
            Unsupported: Programs of the generator script are missing, or there are no control groups.
        """
        asked, controllers = as_on_node(brought, FOLDER), cgroups.discover()
        scripts.check_programs("the workload", (*asked.workload.needs, *needed(asked.workload.options)))
        load = Load(asked, size, self._lock, controllers, network=LoadNetwork(cable, self._lock))
        return NodeService(load, brought, self._lock)

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        """Claimed things and data threads that are still there, although no cell is deployed."""
        running = data_threads.running(self._interfaces(plan)) if plan else []
        return (*self._lock.leftovers(), *(f"data thread of {name}" for name in running))

    def clean(self) -> tuple[str, ...]:
        """Kill and remove all that is claimed; say what was."""
        return tuple(self._lock.remove_claimed())

    def close(self) -> None:
        self._held.close()

    def _is_here(self, plan: Plan, owner: str) -> bool:
        return self._node is None or plan.machines.get(owner) == self._node

    def _interfaces(self, plan: Plan) -> list[str]:
        """Ports of this machine that are made for a cell. Threads of physical ones may outlive their use."""
        ports = (port for port in plan.ports() if port.nic is None)
        return [port.interface for port in ports if self._is_here(plan, port.owner)]

    def _threads(self, plan: Plan) -> Iterable[Thread]:
        rows = plan.cores.threads
        if self._node is None:
            return rows
        return [thread for thread in rows if (thread.machine or self._default_node) == self._node]

    def _data_threads(self, plan: Plan, fabric: Fabric) -> dict[str, tuple[int, ...]]:
        """Kernel threads that do all the work of their ports.

        Others only receive for a virtual machine or a program in user space, whose own threads do the rest: their time
        alone would make a busy owner look idle. What is known of those is the time of their planned CPUs.
        """
        elsewhere = {function.name for function in plan.functions if not function.kind.is_namespace}
        elsewhere.update(tap.name for tap in plan.taps)
        if self._dut is not None and not driver_registry.vswitches()[self._dut.vswitch].in_kernel:
            elsewhere.update(filter(is_vswitch, fabric.owners))
        behind = {port.receiver for name in elsewhere for port in plan.ports(name)}
        return {interface: row for interface, row in fabric.threads().items() if interface not in behind}


class _Working:
    """Threads and memory of NFs whose work the data threads of their ports do not do alone.

    Their processes are found once: that takes a pass over /proc.
    """

    def __init__(self, plan: Plan, fabric: Fabric) -> None:
        self._plan = plan
        self._fabric = fabric
        self._found: dict[str, Tasks] = {}
        self._groups: dict[str, ControlGroup | None] = {}
        """Empty where this machine has no controllers."""

    def threads(self) -> dict[str, tuple[int, ...]]:
        """Ids of their threads now, by owner."""
        beside = (function.name for function in self._plan.nfs if not function.kind.is_namespace)
        wanted = [name for name in beside if name in self._fabric.owners]
        if wanted and not (self._found and all(each.threads() for each in self._found.values())):
            found = tasks_on(self._plan, self._fabric)
            self._found = {name: found[name] for name in wanted if found[name].processes}
            with suppress(Unsupported):
                controllers = cgroups.discover()
                self._groups = {name: group_of(tasks, controllers) for name, tasks in self._found.items()}
        return {name: tasks.threads() for name, tasks in self._found.items()}

    def memory_bytes(self) -> dict[str, int]:
        """Memory that they have in use now, by owner; of those that `threads` has found."""
        used = {name: memory_of(tasks, self._groups.get(name)) for name, tasks in self._found.items()}
        return {name: each for name, each in used.items() if each is not None}


def _threads_of_nfs(plan: Plan, fabric: Fabric) -> dict[str, tuple[int, ...]]:
    """All threads of each NF, the kernel's that work for it included."""
    return {owner: tasks.threads() for owner, tasks in tasks_on(plan, fabric).items() if not is_vswitch(owner)}


def make_switch(node: DutNode, context: DriverContext) -> VSwitch:
    """The driver of a DUT's vSwitch.

    Raises:
        Unsupported: There is none.
    """
    factory = driver_registry.vswitches()[node.vswitch].factory
    if factory is None:
        raise Unsupported(f"machines have no driver for the vSwitch {node.vswitch}")
    return cast(VSwitch, driver_registry.load(factory)(node, context))


def make_generator(node: TgNode, context: DriverContext, name: str | None = None) -> TrafficGenerator:
    """The driver of a TG's generator, or of a peer in its place.

    Raises:
        Unsupported: There is none.
    """
    name = name or node.generator.driver
    node = node.model_copy(update={"generator": node.generator.model_copy(update={"driver": name})})
    factory = driver_registry.generators()[name].factory
    if factory is None:
        raise Unsupported(f"machines have no driver for the generator {name}")
    return cast(TrafficGenerator, driver_registry.load(factory)(node, context))


def make_functions(
    node: DutNode, context: DriverContext, row: Sequence[NfPlan], taps: Sequence[TapPlan] = ()
) -> NetworkFunctions:
    """The drivers of NFs, one for each kind, as one.

    `context`: The machine with its share of the plan.

    Raises:
        Unsupported: There is none for a kind.
    """
    groups: dict[str, list[NfPlan | TapPlan]] = {}
    factories: dict[str, str] = {}
    every: tuple[NfPlan | TapPlan, ...] = (*row, *taps)
    for nf in every:
        known, passive = nf.kind.driver, isinstance(nf, TapPlan)
        if known.factory is None or (passive and not known.passive):
            raise Unsupported(f"machines have no driver for {'passive ' * passive}NFs of kind {nf.kind}")
        name = known.host or known.name
        groups.setdefault(name, []).append(nf)
        factories[name] = known.factory
    return MixedKinds(
        [driver_registry.load(factories[name])(node, context, group) for name, group in groups.items()],
        {side.name: function.name for function in row for side in (function.left, function.right)},
        context.groups,
    )


def past_the_kernel(node: TgNode | DutNode, plan: Plan) -> tuple[Port, ...]:
    """Physical ports that a node's generator or vSwitch drives without the kernel's driver, as the plan says."""
    ports = [port for link in plan.links if link.medium is Medium.CABLE for port in (link.a, link.b)]
    mine = [port for port in ports if (port.owner == GENERATOR) == isinstance(node, TgNode)]
    return tuple(port for port in mine if port.nic is not None and port.nic.attachment.unbinds)


def missing(node: TgNode | DutNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's drivers that this machine lacks: of NFs the default and those not on request."""
    if isinstance(node, TgNode):
        yield from of_driver(driver_registry.generators()[node.generator.driver], node)
        return
    yield from of_driver(driver_registry.vswitches()[node.vswitch], node)
    yield from container_missing(node.container)
    for kind in node.containers:
        if kind == node.containers[0] or not kind.driver.on_request:
            yield from of_driver(kind.driver, node)


def missing_for_some(node: DutNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's virtual machines, or of other NFs on request, that this machine lacks."""
    if node.vms is not None:
        yield from of_driver(node.vms.driver, node)
    requested = [kind.driver for kind in node.offered[1:] if kind.driver.on_request]
    found = (each for driver in requested for each in of_driver(driver, node))
    yield from dict.fromkeys(found)

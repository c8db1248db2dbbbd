"""What a lab has: nodes, processors, interfaces, links. Read from topologies/*.yaml, never from a test."""

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from resources.libraries.python.model.access import Access
from resources.libraries.python.model.base import Frozen, Misfit
from resources.libraries.python.model.cabling import Socket, Way, ways
from resources.libraries.python.model.cell import NfKind, ServiceType
from resources.libraries.python.model.cpu import CpuLayout, layout
from resources.libraries.python.model.memory import MemoryLayout
from resources.libraries.python.model.ranges import expand
from resources.libraries.python.model.settings import Generator, Ovs, Sizes, Trex, Vm, Vpp


class World(StrEnum):
    """Where a measurement happens."""

    LOCAL = "local"
    SIM = "sim"
    LAB = "lab"


def _is_cpu_list(ranges: str) -> str:
    expand(ranges)
    return ranges


CpuList = Annotated[str, AfterValidator(_is_cpu_list)]
MacAddress = Annotated[str, Field(pattern=r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")]
PciAddress = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,62}$")]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


ContainerKind = Literal[NfKind.LINUX_ROUTER, NfKind.TESTPMD, NfKind.VPP, NfKind.SIM]
ContainerKinds = Annotated[tuple[ContainerKind, ...], BeforeValidator(_as_list), Field(min_length=1)]
VmKind = Literal[NfKind.QEMU, NfKind.QEMU_VPP, NfKind.SIM]
Interfaces = Annotated[dict[Name, "Interface"], Field(min_length=2, max_length=128)]
"""Of a node, in pairs: odd ones towards TG port 1, even ones towards TG port 2."""


class CpuGroup(Frozen):
    """Logical CPUs and their physical cores, paired in order: rows of `lscpu -p` in short form."""

    cpus: CpuList
    cores: CpuList
    socket: int = 0
    node: int = 0

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        cpus, cores = expand(self.cpus), expand(self.cores)
        if len(cpus) != len(cores):
            raise ValueError(f"{len(cpus)} CPUs ({self.cpus}) but {len(cores)} cores ({self.cores})")
        return self


def _layout(groups: Literal["discover"] | tuple[CpuGroup, ...]) -> CpuLayout:
    if groups == "discover":
        raise ValueError("the CPU list is to be discovered on the machine")
    return layout(
        (cpu, core, group.socket, group.node)
        for group in groups
        for cpu, core in zip(expand(group.cpus), expand(group.cores), strict=True)
    )


def _cpus_once(groups: Literal["discover"] | tuple[CpuGroup, ...]) -> None:
    if groups != "discover":
        repeated = [cpu for cpu, times in Counter(row.cpu for row in _layout(groups).cpus).items() if times > 1]
        if repeated:
            raise Misfit(("cpus",), f"CPU {repeated[0]} is listed more than once")


class Interface(Frozen):
    """A port of a node."""

    link: Name
    device: Annotated[str, Field(pattern=r"^[^\s/]{1,15}$")] | None = None
    """The kernel's name of the port; None where its PCI address says which one it is, or where it is virtual."""
    mac_address: MacAddress | None = None
    pci_address: PciAddress | None = None
    numa_node: int = 0
    model: str | None = None
    driver: str | None = None
    rate_bps: Annotated[int, Field(gt=0)] | None = None
    """Line rate in L1 bits per second, one direction; None where there is none (veth)."""


class TgNode(Frozen):
    """The node that sends and receives."""

    type: Literal["TG"]
    access: Access | None = None
    """How it is reached; of a lab only."""
    cpus: Literal["discover"] | Annotated[tuple[CpuGroup, ...], Field(min_length=1)] = "discover"
    """Where it is a machine of its own."""
    generator: Generator
    trex: Trex = Trex()
    shares_machine_with: Name | None = None
    """The DUT node on whose machine the generator runs: its cores are then planned too."""
    interfaces: Interfaces

    @property
    def layout(self) -> CpuLayout:
        """The CPU list of the file. Raises ValueError where it is to be discovered."""
        return _layout(self.cpus)

    @property
    def numa_node(self) -> int:
        """The NUMA node of the first interface: there the generator's threads are."""
        return next(iter(self.interfaces.values())).numa_node

    @model_validator(mode="after")
    def _cpus_fit(self) -> Self:
        _cpus_once(self.cpus)
        if self.access is None:
            self.check_numa()
        return self

    def check_numa(self) -> None:
        """Refuse ports on a NUMA node that CPUs do not have.

        Raises:
            Misfit: With the place in this node.
        """
        if self.cpus != "discover" and self.numa_node not in self.layout.numa_nodes:
            raise Misfit(("interfaces",), f"on NUMA node {self.numa_node}, but cpus has {list(self.layout.numa_nodes)}")


class DutNode(Frozen):
    """The node that runs the vSwitch and the NFs."""

    type: Literal["DUT"]
    access: Access | None = None
    """How it is reached; of a lab only."""
    cpus: Literal["discover"] | Annotated[tuple[CpuGroup, ...], Field(min_length=1)] = "discover"
    memory: Literal["discover"] | Annotated[MemoryLayout, Field(min_length=1)] | None = None
    """By NUMA node, huge pages included; None where it is not known, and then no cell is refused for it."""
    vswitch: Literal["linux_bridge", "ovs", "vpp", "sim"]
    ovs: Ovs = Ovs()
    vpp: Vpp = Vpp()
    containers: ContainerKinds
    """What an NF of a CSC or CSP can be; the first is the default."""
    vms: VmKind | None = None
    """What an NF of a VSC is; None where the testbed has no VMs."""
    vm: Vm = Vm()
    oversubscribe: bool = False
    """Run cells that do not fit anyway; their results say so."""
    core_sharing: Sizes = Sizes()
    interfaces: Interfaces

    @model_validator(mode="after")
    def _cpus_fit(self) -> Self:
        _cpus_once(self.cpus)
        return self

    @property
    def layout(self) -> CpuLayout:
        """The CPU list of the file. Raises ValueError where it is to be discovered."""
        return _layout(self.cpus)

    def kind_of(self, service_type: ServiceType, asked: NfKind | None) -> NfKind | None:
        """What an NF is here: as asked, or this testbed's default; None where the testbed does not have it."""
        if service_type is ServiceType.VSC:
            return self.vms if asked in (None, self.vms) else None
        return self.containers[0] if asked is None else asked if asked in self.containers else None

    @property
    def numa_node(self) -> int:
        """The NUMA node of the interfaces; validated to be one."""
        return next(iter(self.interfaces.values())).numa_node

    @model_validator(mode="after")
    def _numa_fits(self) -> Self:
        if self.access is None:  # in a lab only ports that are measured on have to fit, which the topology knows
            self.check_numa()
        return self

    def check_numa(self) -> None:
        """Refuse ports on several NUMA nodes, or on one that CPUs or memory do not have.

        Raises:
            Misfit: With the place in this node.
        """
        nodes = sorted({interface.numa_node for interface in self.interfaces.values()})
        if len(nodes) > 1:
            raise Misfit(("interfaces",), f"on NUMA nodes {nodes}; a cell is planned on one node")
        if self.cpus != "discover" and nodes[0] not in self.layout.numa_nodes:
            raise Misfit(("interfaces",), f"on NUMA node {nodes[0]}, but cpus has {list(self.layout.numa_nodes)}")
        if isinstance(self.memory, tuple):
            listed = [row.node for row in self.memory]
            if len(set(listed)) < len(listed):
                raise Misfit(("memory",), f"has a NUMA node more than once: {listed}")
            if nodes[0] not in listed:
                raise Misfit(("memory",), f"has NUMA nodes {listed}, but interfaces are on node {nodes[0]}")


class Metadata(Frozen):
    """About the file."""

    version: Literal[1]
    name: Name
    description: str = ""


class Topology(Frozen):
    """One testbed."""

    metadata: Metadata
    world: World
    discriminator: Literal["link", "vlan", "mac"] = "link"
    """What keeps service instances apart between TG and DUT: a link (or VF) each, a VLAN each, or MAC addresses."""
    nic: Annotated[str, Field(min_length=1)] | None = None
    """NIC model of the ports to measure on, where the nodes of a lab have several; None for that of the first cable."""
    simulation: dict[str, Any] | None = None
    """Parameters of the simulated system, for the world `sim` only."""
    nodes: dict[Name, Annotated[TgNode | DutNode, Field(discriminator="type")]]

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        kinds = Counter(node.type for node in self.nodes.values())
        if kinds["TG"] != 1:
            raise Misfit(("nodes",), f"{kinds['TG']} nodes of type TG; one is needed")
        most = 2 if self.world is World.LAB else 1
        if not 1 <= kinds["DUT"] <= most:
            needed = "one is needed" if most == 1 else "one or two are needed"
            raise Misfit(("nodes",), f"{kinds['DUT']} nodes of type DUT; {needed}")
        for name, node in self.nodes.items():
            if (self.world is World.LAB) != (node.access is not None):
                raise Misfit(("nodes", name), "access (host, user) belongs to the world lab, and is needed there")
        if (self.world is World.SIM) != (self.simulation is not None):
            raise Misfit(("simulation",), "belongs to the world sim, and is needed there")
        shared = self.tg.shares_machine_with
        if shared is not None and self.tg.generator.cores > 2:
            place = ("nodes", self.tg_name, "generator", "cores")
            raise Misfit(place, f"{self.tg.generator.cores} cores of the machine under test; at most 2")
        if shared is not None and not isinstance(self.nodes.get(shared), DutNode):
            raise Misfit(("nodes",), f"shares_machine_with names '{shared}', which is no DUT node")
        return self

    @model_validator(mode="after")
    def _links_have_two_ends(self) -> Self:
        ends: dict[str, list[tuple[str, str]]] = {}
        for node_name, node in self.nodes.items():
            for port_name, interface in node.interfaces.items():
                ends.setdefault(interface.link, []).append((node_name, port_name))
        for link, ports in ends.items():
            place = ("nodes", ports[-1][0], "interfaces", ports[-1][1], "link")
            names = ", ".join(".".join(port) for port in ports)
            if len(ports) != 2:
                raise Misfit(place, f"'{link}' has {len(ports)} end{'s'[len(ports) == 1 :]} ({names}); a link has 2")
            if ports[0][0] == ports[1][0]:
                raise Misfit(place, f"'{link}' joins two ports of one node ({names})")
        return self

    @model_validator(mode="after")
    def _lab_is_whole(self) -> Self:
        if self.world is not World.LAB:
            if self.nic is not None:
                raise Misfit(("nic",), "belongs to the world lab: other worlds have no NICs to choose from")
            return self
        if self.tg.shares_machine_with is not None:
            raise Misfit(("nodes", self.tg_name), "shares_machine_with: nodes of a lab are machines of their own")
        sims = {name: self._simulated_parts(node) for name, node in self.nodes.items()}
        for name, parts in sims.items():
            if parts:
                raise Misfit(("nodes", name), f"{parts[0]}: sim belongs to the world sim")
        first = self.dut
        for name, node in self.duts.items():
            for key in ("vswitch", "containers", "vms"):
                if getattr(node, key) != getattr(first, key):
                    raise Misfit(("nodes", name, key), "differs from the first DUT's: both run the same service")
        self._keep_used_ports()
        return self

    def _keep_used_ports(self) -> None:
        """Leave out ports of NICs that are not measured on, which may be on another NUMA node."""
        ways = self._ways()
        used = {(end.node, end.port) for way in ways for cable in way for end in (cable.a, cable.b)}
        for name, node in self.nodes.items():
            kept = {port: row for port, row in node.interfaces.items() if (name, port) in used}
            self.nodes[name] = node.model_copy(update={"interfaces": kept})
        for name, node in self.nodes.items():
            try:
                node.check_numa()
            except Misfit as error:
                raise Misfit(("nodes", name, *error.location), str(error)) from error

    @staticmethod
    def _simulated_parts(node: TgNode | DutNode) -> list[str]:
        if isinstance(node, TgNode):
            return ["generator.driver"] if node.generator.driver == "sim" else []
        parts = {"vswitch": node.vswitch == "sim", "containers": NfKind.SIM in node.containers}
        return [key for key, is_sim in {**parts, "vms": node.vms is NfKind.SIM}.items() if is_sim]

    def _ways(self) -> tuple[Way, ...]:
        sockets = [
            Socket(name, port, interface.link, interface.model, isinstance(node, DutNode))
            for name, node in self.nodes.items()
            for port, interface in node.interfaces.items()
        ]
        try:
            return ways(sockets, self.tg_name, list(self.duts), self.nic)
        except ValueError as error:
            raise Misfit(("nodes",), str(error)) from error

    @property
    def ways(self) -> tuple[Way, ...]:
        """Ways of packets over the cables of a lab, from the generator and back; none in other worlds.

        With `discriminator: link` every instance has one; else all share the first.
        """
        return self._ways() if self.world is World.LAB else ()

    @property
    def tg_name(self) -> str:
        """Name of the traffic generator's node."""
        return next(name for name, node in self.nodes.items() if isinstance(node, TgNode))

    @property
    def tg(self) -> TgNode:
        """The traffic generator's node."""
        return next(node for node in self.nodes.values() if isinstance(node, TgNode))

    @property
    def dut(self) -> DutNode:
        """The node of the system under test; the first one of a 3-node testbed."""
        return self.duts[next(iter(self.duts))]

    @property
    def duts(self) -> dict[str, DutNode]:
        """Nodes of the system under test by name, in the order of the file."""
        return {name: node for name, node in self.nodes.items() if isinstance(node, DutNode)}

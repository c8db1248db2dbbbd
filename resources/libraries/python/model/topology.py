"""What a lab has: nodes, processors, interfaces, links. Read from topologies/*.yaml, never from a test."""

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from resources.libraries.python.model.access import Access
from resources.libraries.python.model.base import Frozen, Misfit
from resources.libraries.python.model.cell import NfKind, ServiceType
from resources.libraries.python.model.cpu import CpuLayout, layout
from resources.libraries.python.model.memory import MemoryLayout
from resources.libraries.python.model.ranges import expand


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


class Generator(Frozen):
    """The traffic generator of a TG node."""

    driver: Literal["auto", "xdp", "ring", "trex", "sim"]
    """`auto` is the best of the built-in ones that the machine allows; a result says which one it was."""
    cores: Annotated[int, Field(ge=1, le=2)] = 1
    """Physical cores for sending, where the generator shares the machine with the system under test."""


class Trex(Frozen):
    """How TRex is run."""

    directory: str = "/opt/trex"
    """Where it is installed: the folder that has `t-rex-64`."""
    ports: Literal["auto", "dpdk", "af_packet"] = "auto"
    """How it takes its ports: DPDK drivers by PCI address, or AF_PACKET sockets on ports of the kernel (software mode);
    `auto` is DPDK where the topology has PCI addresses."""


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


class Sizes(Frozen):
    """How threads share cores (CSIT's nf_mtcr, nf_dtcr)."""

    system_cores: Annotated[int, Field(ge=0)] = 1
    nf_mains_per_core: Annotated[int, Field(ge=1, le=2)] = 2


class Vm(Frozen):
    """How virtual machines are made."""

    memory_mb: Annotated[int, Field(ge=64)] = 128
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    """`auto` takes KVM where an ordinary guest boots on it, else software emulation (TCG)."""
    boot_within_s: Annotated[float, Field(gt=0)] = 60.0


class Ovs(Frozen):
    """How Open vSwitch is made."""

    ports: Literal["auto", "af_xdp", "system", "dpdk"] = "auto"
    """How it takes packets from ports: AF_XDP sockets, AF_PACKET sockets, or DPDK's driver for ports of the kernel;
    `auto` is AF_XDP where it was built with that, else system. A result says which one it was."""


class Vpp(Frozen):
    """How VPP is run, as vSwitch and as NF."""

    prefix: str = "/usr"
    """Where it is installed: the folder that has `bin/vpp`."""
    engine: Literal["auto", "docker", "podman", "process"] = "auto"
    """What an NF runs in; `auto` is Docker or Podman where an engine answers, else a process in a network namespace."""
    image: str | None = None
    """Of the containers; None for one that is made of the node's own file system."""
    main_heap_mb: Annotated[int, Field(ge=64)] = 512
    buffers_per_numa: Annotated[int, Field(ge=1024)] = 16384
    poll_sleep_us: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    """How long a thread with nothing to do sleeps, in microseconds; `auto` is 0 on dedicated cores and 100 where a plan
    is oversubscribed. A result says which one it was."""


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
    def _cpus_once(self) -> Self:
        if self.cpus != "discover":
            repeated = [cpu for cpu, times in Counter(row.cpu for row in self.layout.cpus).items() if times > 1]
            if repeated:
                raise Misfit(("cpus",), f"CPU {repeated[0]} is listed more than once")
        return self

    @property
    def layout(self) -> CpuLayout:
        """The CPU list of the file. Raises ValueError where it is to be discovered."""
        if self.cpus == "discover":
            raise ValueError("the CPU list is to be discovered on the machine")
        return layout(
            (cpu, core, group.socket, group.node)
            for group in self.cpus
            for cpu, core in zip(expand(group.cpus), expand(group.cores), strict=True)
        )

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
    def _one_numa_node(self) -> Self:
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
        return self


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

"""Nodes of a testbed: processors, memory, interfaces, and what generates traffic or is under test there."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from resources.libraries.python import driver_registry
from resources.libraries.python.driver_registry import (
    functions,
    generators,
    known_engine,
    known_generator,
    known_vswitch,
    vswitches,
)
from resources.libraries.python.model.base import Frozen, Inconsistency, is_none, of_form
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.access import Access, EnergyMeter, Powercap
from resources.libraries.python.model.testbed.cpu import KINDS, CacheWays, CpuLayout, Kind, expand, layout
from resources.libraries.python.model.testbed.memory import MemoryLayout


class Generator(Frozen):
    """The traffic generator of a TG node."""

    driver: Annotated[str, AfterValidator(known_generator)]
    """`auto` is the best of the built-in ones that the machine allows; a result says which one it was."""
    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Physical cores for sending; at most 2 where the generator shares the machine with the system under test."""


class Sizes(Frozen):
    """Core sharing of threads (CSIT's nf_mtcr, nf_dtcr)."""

    system_cores: Annotated[int, Field(ge=0)] = 1
    nf_mains_per_core: Annotated[int, Field(ge=1, le=2)] = 2


class Container(Frozen):
    """Container settings of the NFs of a CSC or CSP."""

    engine: Annotated[str, AfterValidator(known_engine)] = "none"
    """`none` is a network namespace without a container; `auto` is the first engine that starts a container, else
    `none`. A result says which one it was."""
    image: Annotated[str, of_form(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}", "the name of an image")] | None = None
    """Image of the containers; None for the file system of the node, read-only, with its own programs."""


def _is_cpu_list(ranges: str) -> str:
    expand(ranges)
    return ranges


CpuList = Annotated[str, AfterValidator(_is_cpu_list)]
Name = Annotated[
    str, of_form(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", "a name of letters, digits and _.-, which begins with a letter")
]


def _normalized(value: object) -> object:
    return value.strip().lower().replace("-", ":") if isinstance(value, str) else value


MacAddress = Annotated[
    str,
    BeforeValidator(_normalized),
    of_form(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", 'a MAC address such as "02:00:5e:00:53:01"'),
]
PciAddress = Annotated[
    str,
    BeforeValidator(_normalized),
    of_form(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", 'a PCI address such as "0000:3b:00.0"'),
]
"""Domains behind a volume management device (VMD) have more than four digits, such as `10000:e1:00.0`."""


def _known_numa_node(value: object) -> object:
    """The kernel's -1 is a NUMA node that is not known."""
    return None if value == -1 else value


NumaNode = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_known_numa_node)]


UioDriver = Literal["vfio-pci", "igb_uio", "uio_pci_generic"]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _listed_under(key: str) -> AfterValidator:
    """Refuse kinds that a topology cannot list under a key of a DUT."""

    def check(kind: NfKind) -> NfKind:
        driver_registry.check_known(kind, [name for name, each in functions().items() if key in each.listed])
        return kind

    return AfterValidator(check)


def _is_on_request(kind: NfKind) -> bool:
    return kind.driver.on_request and kind.is_routed and "containers" in kind.driver.listed


ContainerKinds = Annotated[
    tuple[Annotated[NfKind, _listed_under("containers")], ...], BeforeValidator(_as_list), Field(min_length=1)
]
VmKind = Annotated[NfKind, _listed_under("vms")]
Interfaces = Annotated[dict[Name, "Interface"], Field(min_length=2, max_length=128)]
"""Of a node, in pairs: odd ones towards TG port 1, even ones towards TG port 2."""


class CpuGroup(Frozen):
    """Logical CPUs and their physical cores, paired in order: rows of `lscpu -p` in short form."""

    cpus: CpuList
    cores: CpuList
    socket: Annotated[int, Field(ge=0)] = 0
    node: Annotated[int, Field(ge=0)] = 0
    kind: Kind | None = Field(default=None, exclude_if=is_none)
    """Of the cores; None where all of the machine are of one kind."""
    cores_per_cache: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude_if=is_none)
    """Cores of a group with a last-level cache of its own (CCX), in the order of their numbers; None for one cache."""

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        cpus, cores = expand(self.cpus), expand(self.cores)
        if len(cpus) != len(cores):
            raise ValueError(f"{len(cpus)} CPUs ({self.cpus}) but {len(cores)} cores ({self.cores})")
        return self


def _layout(groups: Literal["discover"] | tuple[CpuGroup, ...]) -> CpuLayout:
    if groups == "discover":
        raise ValueError("the CPU list is to be discovered on the machine")
    rows, kinds, cached = [], dict[int, int](), defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    for group in groups:
        for cpu, core in zip(expand(group.cpus), expand(group.cores), strict=True):
            rows.append((cpu, core, group.socket, group.node))
            kinds[cpu] = KINDS.index(group.kind or KINDS[0])
            if group.cores_per_cache is not None:
                cached[group.socket, group.cores_per_cache].append((core, cpu))
    return layout(rows, kinds if len(set(kinds.values())) > 1 else {}, _caches(cached))


def _caches(cached: Mapping[tuple[int, int], Iterable[tuple[int, int]]]) -> dict[int, int]:
    """Number of the last-level cache by logical CPU.

    `cached`: Cores with their logical CPUs, by socket and number of cores of a cache.
    """
    found: dict[int, tuple[int, int, int]] = {}
    for (socket, together), pairs in cached.items():
        places = {core: place for place, core in enumerate(sorted({core for core, _ in pairs}))}
        found |= {cpu: (socket, together, places[core] // together) for core, cpu in pairs}
    numbers = {cache: number for number, cache in enumerate(sorted(set(found.values())))}
    return {cpu: numbers[cache] for cpu, cache in found.items()}


def _cpus_once(groups: Literal["discover"] | tuple[CpuGroup, ...]) -> None:
    if groups != "discover":
        repeated = [cpu for cpu, times in Counter(row.cpu for row in _layout(groups).cpus).items() if times > 1]
        if repeated:
            raise Inconsistency(("cpus",), f"CPU {repeated[0]} is listed more than once")
        for name in ("kind", "cores_per_cache"):
            if 0 < sum(getattr(group, name) is None for group in groups) < len(groups):
                raise Inconsistency(("cpus",), f"{name} is stated of some groups only; state it of all or of none")


class Interface(Frozen):
    """A port of a node."""

    link: Name
    device: Annotated[str, of_form(r"[^\s/]{1,15}", "a name of a network device (at most 15 characters)")] | None = None
    """The kernel's name of the port; None where its PCI address says which one it is, or where it is virtual."""
    mac_address: MacAddress | None = None
    pci_address: PciAddress | None = None
    numa_node: NumaNode = None
    """None where the file does not say; it is read from the node at the start of a run."""
    model: str | None = None
    driver: str | None = None
    """The kernel's driver of the port."""
    uio_driver: UioDriver | None = None
    """Driver to which the port is bound for a user-space program; None for that of the node, or vfio-pci."""
    nic_vfs: Literal[0, 1] = 0
    """Virtual functions (SR-IOV) that a run makes of the port; with 1 it uses that one in its place."""
    rate_bps: Annotated[int, Field(gt=0)] | None = None
    """Line rate in L1 bits per second, one direction; None where there is none (veth)."""
    rx_queues: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Receive queues that the port can have, such as `queues=` of a virtual one; None for what its model can."""


def _first_numa_node(groups: Literal["discover"] | tuple[CpuGroup, ...]) -> int:
    return 0 if groups == "discover" else min(group.node for group in groups)


def _numa_nodes(interfaces: Interfaces) -> tuple[int | None, ...]:
    return tuple(interface.numa_node for interface in interfaces.values())


Settings = TypeVar("Settings", bound=Frozen)


class _Node(Frozen):
    """Base of nodes, which have settings of drivers under keys of the drivers' own."""

    model_config = ConfigDict(extra="allow")
    ROLE: ClassVar[Literal["TG", "DUT"]]

    @model_validator(mode="before")
    @classmethod
    def _settings_fit(cls, data: object, info: ValidationInfo) -> object:
        """Validate keys that drivers declare, and refuse all other ones that are not fields."""
        if not isinstance(data, dict):
            return data
        rest = {key: value for key, value in data.items() if key not in cls.model_fields}
        if not rest:
            return data
        found = driver_registry.settings_of(cls.ROLE).model_validate(rest, context=info.context)
        return {**data, **{key: getattr(found, key) for key in rest}}

    def settings(self, model: type[Settings]) -> Settings:
        """Return settings of drivers, those of the topology or else the defaults."""
        found = (self.__pydantic_extra__ or {}).get(driver_registry.key_of(model))
        return found if isinstance(found, model) else model()

    @property
    def options(self) -> dict[str, str]:
        """Settings of drivers that are not the defaults, by path: `vpp.acl_rules`."""
        found = self.model_dump(mode="json", include=set(self.__pydantic_extra__ or ()), exclude_defaults=True)
        return {f"{key}.{name}": str(value) for key, each in found.items() for name, value in each.items()}


class TgNode(_Node):
    """The node that sends and receives."""

    ROLE = "TG"
    type: Literal["TG"]
    access: Access | None = None
    """How it is reached; of a lab only."""
    energy: EnergyMeter = Field(default=Powercap(), exclude_if=lambda meter: meter == Powercap())
    """Where its energy is read."""
    cpus: Literal["discover"] | Annotated[tuple[CpuGroup, ...], Field(min_length=1)] = "discover"
    """If it is a separate machine."""
    generator: Generator
    uio_driver: UioDriver | None = None
    """Driver of all its ports that do not say another one."""
    shares_machine_with: Name | None = None
    """The DUT node on whose machine the generator runs: its cores are then planned too."""
    interfaces: Interfaces

    @property
    def layout(self) -> CpuLayout:
        """The CPU list of the file. Raises ValueError where it is to be discovered."""
        return _layout(self.cpus)

    @property
    def numa_node(self) -> int:
        """The NUMA node of the first interface: there the generator's threads are.

        Where it is not known, an assumption: the first one of the machine.
        """
        known = _numa_nodes(self.interfaces)[0]
        return _first_numa_node(self.cpus) if known is None else known

    @property
    def simulated_parts(self) -> tuple[str, ...]:
        """Keys of the file whose value is of the world `sim`."""
        return ("generator.driver",) if generators()[self.generator.driver].is_simulated else ()

    @model_validator(mode="after")
    def _cpus_fit(self) -> Self:
        _cpus_once(self.cpus)
        if self.access is None:
            self.check_numa()
        return self

    def check_numa(self) -> None:
        """Refuse ports on a NUMA node that CPUs do not have.

        Raises:
            Inconsistency: With the place in this node.
        """
        known = _numa_nodes(self.interfaces)[0] is not None
        if known and self.cpus != "discover" and self.numa_node not in self.layout.numa_nodes:
            raise Inconsistency(
                ("interfaces",), f"on NUMA node {self.numa_node}, but cpus has {list(self.layout.numa_nodes)}"
            )


class DutNode(_Node):
    """The node that runs the vSwitch and the NFs."""

    ROLE = "DUT"
    type: Literal["DUT"]
    access: Access | None = None
    """How it is reached; of a lab only."""
    energy: EnergyMeter = Field(default=Powercap(), exclude_if=lambda meter: meter == Powercap())
    """Where its energy is read."""
    cpus: Literal["discover"] | Annotated[tuple[CpuGroup, ...], Field(min_length=1)] = "discover"
    cache: CacheWays | None = Field(default=None, exclude_if=is_none)
    """Last-level caches whose ways can be divided, one for each socket, where CPUs are listed. Of CPUs that are
    discovered they are discovered too."""
    memory: Literal["discover"] | Annotated[MemoryLayout, Field(min_length=1)] | None = None
    """By NUMA node, huge pages included; None where it is not known, and then no cell is refused for it."""
    vswitch: Annotated[str, AfterValidator(known_vswitch)]
    containers: ContainerKinds
    """Kinds of NF in a CSC or CSP; the first is the default."""
    containers_on_request: bool = False
    """Whether NFs can also be of any other kind that is declared `on_request` and routed by the kernel."""
    container: Container = Container()
    """Container settings of NFs."""
    vms: VmKind | None = None
    """Kind of NF in a VSC; None if the testbed has no VMs."""
    oversubscribe: bool = False
    """Run cells that do not fit anyway; their results say so."""
    core_sharing: Sizes = Sizes()
    uio_driver: UioDriver | None = None
    """Driver of all its ports that do not say another one."""
    interfaces: Interfaces

    @model_validator(mode="after")
    def _cpus_fit(self) -> Self:
        _cpus_once(self.cpus)
        return self

    @property
    def layout(self) -> CpuLayout:
        """The CPU list of the file. Raises ValueError where it is to be discovered."""
        found = _layout(self.cpus)
        if self.cache is None:
            return found
        domains = {row.cpu: row.socket for row in found.cpus}
        return found.model_copy(update={"cache": self.cache.model_copy(update={"domains": domains})})

    @property
    def simulated_parts(self) -> tuple[str, ...]:
        """Keys of the file whose value is of the world `sim`."""
        parts = {
            "vswitch": vswitches()[self.vswitch].is_simulated,
            "containers": any(kind.driver.is_simulated for kind in self.containers),
            "vms": self.vms is not None and self.vms.driver.is_simulated,
        }
        return tuple(key for key, simulated in parts.items() if simulated)

    @property
    def offered(self) -> tuple[NfKind, ...]:
        """Kinds of NF in a CSC or CSP; the first is the default."""
        every = (NfKind(name) for name in functions()) if self.containers_on_request else ()
        return (*self.containers, *(kind for kind in every if _is_on_request(kind) and kind not in self.containers))

    @property
    def guests(self) -> tuple[NfKind, ...]:
        """Kinds of NFs of a VSC; the first is the default. Linux guests run applications on request."""
        if self.vms is None:
            return ()
        return (self.vms, *(NfKind(each.name) for each in functions().values() if each.host == self.vms))

    def kind_of(self, service_type: ServiceType, asked: NfKind | None) -> NfKind | None:
        """Kind of an NF here: as requested, or this testbed's default; None if the testbed does not have it.

        Among containers of a snake there may be virtual machines, where they are asked for by name.
        """
        if service_type is ServiceType.VSC:
            return self.vms if asked is None else asked if asked in self.guests else None
        if service_type is ServiceType.CSC and asked is not None and asked.is_vm:
            return asked if asked in self.guests else None
        if asked is None:
            return self.containers[0]
        return asked if asked in self.containers or (self.containers_on_request and _is_on_request(asked)) else None

    @property
    def numa_node(self) -> int:
        """The NUMA node of the interfaces; validated to be one.

        Where it is not known, an assumption: the first one of the machine.
        """
        known = next((node for node in _numa_nodes(self.interfaces) if node is not None), None)
        return _first_numa_node(self.cpus) if known is None else known

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        for kind in (*self.offered, self.vms):
            if kind is not None and (contradiction := kind.driver.settings_problem(self)) is not None:
                raise contradiction
        return self

    @model_validator(mode="after")
    def _numa_fits(self) -> Self:
        if self.access is None:  # in a lab only ports that are measured on have to fit, which the topology knows
            self.check_numa()
        return self

    def check_numa(self) -> None:
        """Refuse ports on several NUMA nodes, or on one that CPUs or memory do not have.

        Raises:
            Inconsistency: With the place in this node.
        """
        nodes = sorted({node for node in _numa_nodes(self.interfaces) if node is not None}) or [self.numa_node]
        if len(nodes) > 1:
            raise Inconsistency(("interfaces",), f"on NUMA nodes {nodes}; a cell is planned on one node")
        if self.cpus != "discover" and nodes[0] not in self.layout.numa_nodes:
            raise Inconsistency(
                ("interfaces",), f"on NUMA node {nodes[0]}, but cpus has {list(self.layout.numa_nodes)}"
            )
        if isinstance(self.memory, tuple):
            listed = [row.node for row in self.memory]
            if len(set(listed)) < len(listed):
                raise Inconsistency(("memory",), f"has a NUMA node more than once: {listed}")
            if nodes[0] not in listed:
                raise Inconsistency(("memory",), f"has NUMA nodes {listed}, but interfaces are on node {nodes[0]}")

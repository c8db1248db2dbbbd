"""The Plan: everything derived from a topology and a cell, once. Drivers read it and add nothing."""

from typing import Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.attachment import Attachment


def _is_unlimited(limits: Limits) -> bool:
    """As `is_empty`."""
    return limits == Limits()


def _is_kernel(attachment: object) -> bool:
    """As `is_empty`."""
    return attachment is Attachment.KERNEL


class Nic(Frozen):
    """A physical port, as the topology has it."""

    port: str
    """Its name in the topology, such as `port1`."""
    device: str | None = None
    pci_address: str | None = None
    mac_address: str | None = None
    driver: str | None = None
    model: str | None = None
    numa_node: int | None = 0
    """None where it is not known."""
    rate_bps: int | None = None
    """Line rate in L1 bits per second, one direction."""
    attachment: Attachment = Field(default=Attachment.KERNEL, exclude_if=_is_kernel)
    """Driver of the port."""
    vfs: int = Field(default=0, exclude_if=is_empty)
    """Virtual functions that are made of it; one of them is then used in its place."""
    parent: str | None = Field(default=None, exclude_if=is_empty)
    """On its machine: the PCI address of the port, where `pci_address` is that of its virtual function."""
    uio_driver: str | None = Field(default=None, exclude_if=is_empty)
    """Driver to which it is bound if its attachment takes it from the kernel; None for vfio-pci."""
    rx_queues: int | None = Field(default=None, exclude_if=is_empty)
    """Receive queues that the port can have where a program polls it; None where it has one."""


class Port(Frozen):
    """One end of a link."""

    owner: str
    """`generator`, `vswitch` (`vswitch-2` on a second DUT) or the name of an NF, passive ones included."""
    interface: str
    """Unique on the whole testbed, at most 15 characters."""
    mac: str
    data_thread: int
    """Index of the owner's data thread that receives from this port, or from its first queue where it has several."""
    rx_queues: tuple[int, ...] = Field(default=(), exclude_if=is_empty)
    """Index of the owner's data thread for each receive queue; empty for one queue, on `data_thread`."""
    nic: Nic | None = None
    """NIC of a cable."""
    vlan: int | None = None
    """The VLAN whose frames of the cable this port has; None for all of them."""
    trunk: str | None = Field(default=None, exclude_if=is_empty)
    """Name in use of the physical port on which this port is a VLAN device of the kernel; None where it is no such
    device: it is the physical port itself, or a program in user space tags the frames."""

    @property
    def receiver(self) -> str:
        """The device whose receive thread handles this port's packets: VLAN devices on a trunk share that thread."""
        return self.trunk or self.interface

    @property
    def queues(self) -> tuple[int, ...]:
        """Index of the owner's data thread for each receive queue, never empty."""
        return self.rx_queues or (self.data_thread,)

    @property
    def queue_names(self) -> tuple[str, ...]:
        """Name of each receive queue: of the first, or only, one it is that of the interface."""
        return (self.interface, *(f"{self.interface} queue {number}" for number in range(1, len(self.queues))))


class Link(Frozen):
    """A point-to-point link: a virtual or a real cable between two ports."""

    instance: int
    """0 for a cable that all instances share."""
    a: Port
    b: Port
    medium: Medium = Medium.VETH


class Segment(Frozen):
    """One L2 segment inside a vSwitch.

    It joins exactly two ports of one instance; only where instances share a cable and MAC addresses keep them apart,
    the segment of the cable joins it with a port of each.
    """

    name: str
    instance: int
    """0 for one that all instances share."""
    position: int
    """Counts from 1 along the service, in forward direction."""
    members: tuple[str, ...]
    """Interface names of vSwitch ports, in forward direction; at least two."""
    copies: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Interface names of vSwitch ports that get a copy of every frame that a member receives, and send nothing."""


class NextHop(Frozen):
    """A static route and the static neighbour behind it."""

    prefix: str
    address: str
    mac: str
    also: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """More prefixes that are behind it: networks to which NFs before have translated source addresses. Answers to
    translated packets are sent there."""


class NfInterface(Frozen):
    """A data interface of an NF."""

    name: str
    mac: str
    address: str
    """IPv4 with prefix length."""
    route: NextHop
    """Next hop of packets that leave through this interface."""


class NfPlan(Frozen):
    """One network function, or what one instance has of a network function that all instances share."""

    name: str
    """`nf-{instance}-{node}`; `nf-0-{node}` for one that is shared. Then each instance has a row of that name, with the
    instance's own interfaces."""
    id: int
    """Counts from 1 over the nodes of all instances."""
    instance: int
    node: int
    size: NfSize
    kind: NfKind
    left: NfInterface
    """Towards TG port 1."""
    right: NfInterface
    """Towards TG port 2."""
    translates_to: str | None = Field(default=None, exclude_if=is_empty)
    """The network that an NF of kind linux_nat translates source addresses to on the way forward, one to one."""
    limits: Limits = Field(default=Limits(), exclude_if=_is_unlimited)
    program: UserProgram | None = Field(default=None, exclude_if=is_empty)
    """User's program; kind `process` only."""


class TapPlan(Frozen):
    """A passive NF: it gets copies on its one interface, and forwards nothing."""

    name: str
    """`tap-{instance}-{number}`."""
    instance: int
    number: int
    """Counts from 1 over the passive NFs of an instance; those of a second DUT continue."""
    segment: str
    """The L2 segment that it gets copies of."""
    kind: NfKind
    size: NfSize
    interface: str
    mac: str
    limits: Limits = Field(default=Limits(), exclude_if=_is_unlimited)
    program: UserProgram | None = Field(default=None, exclude_if=is_empty)
    """User's program; kind `process` only."""


class Flow(Frozen):
    """Traffic of one instance in one direction: `sources` consecutive source addresses to one destination."""

    instance: int
    direction: Direction
    tx_interface: str
    rx_interface: str
    source_mac: str
    destination_mac: str
    source_ip: str
    """The first source address."""
    sources: int
    destination_ip: str
    vlan: int | None = None
    """The tag of its frames on the generator's cables."""
    answers_to: str | None = Field(default=None, exclude_if=is_empty)
    """The address that answers to the other direction go to, where an NF translates that direction's sources; None
    where that is the destination."""


class Hop(Frozen):
    """A place on a flow's path where a counter can see it."""

    owner: str
    interface: str
    counter: Literal["rx", "tx"]
    shared: bool = Field(default=False, exclude_if=is_empty)
    """Several instances pass here: its counter is the sum over all of them, and says nothing about one."""


class Path(Frozen):
    """All hops of one flow in order, from the generator to the generator."""

    instance: int
    direction: Direction
    hops: tuple[Hop, ...]


OTHERS = "all others"
"""Owner of the cache ways that no NF has for itself."""


class CachePart(Frozen):
    """Ways of the last-level caches of a machine that one owner has for itself."""

    owner: str
    """An NF, or `OTHERS`."""
    machine: str | None = None
    """The node; None for the (first) DUT."""
    cpus: tuple[int, ...]
    """Logical CPUs that use them; none for `OTHERS`."""
    masks: dict[int, int]
    """Of ways, by id of the cache."""

    @property
    def is_of_others(self) -> bool:
        """Whether no NF has it."""
        return self.owner == OTHERS

    def __str__(self) -> str:
        ways = ", ".join(f"{mask.bit_count()} ({mask:#x}) of cache {domain}" for domain, mask in self.masks.items())
        return f"{ways}{f', for CPUs {self.cpu_list}' if self.cpus else ''}"

    @property
    def cpu_list(self) -> str:
        """Its CPUs in a text."""
        return ", ".join(map(str, self.cpus))


class Plan(Frozen):
    """All data of a deployment, derived by `planning` and read everywhere else."""

    testbed: str
    cell: Cell
    suite_id: str
    """CSIT's grammar: encapsulation, forwarding, chains, vSwitch interfaces, NFs and threads, application."""
    tags: tuple[str, ...]
    discriminator: Literal["link", "vlan", "mac"]
    """How service instances are distinguished between the generator and the vSwitch."""
    cores: CoreMap
    links: tuple[Link, ...]
    segments: tuple[Segment, ...]
    functions: tuple[NfPlan, ...]
    taps: tuple[TapPlan, ...] = Field(default=(), exclude_if=is_empty)
    flows: tuple[Flow, ...]
    paths: tuple[Path, ...]
    load_ports: dict[Protocol, tuple[int, ...]] = Field(default_factory=dict, exclude_if=is_empty)
    """Destination ports of the generator's packets; NFs whose sockets take these in listen there."""
    warnings: tuple[str, ...] = ()
    cache: tuple[CachePart, ...] = Field(default=(), exclude_if=is_empty)
    """Division of last-level caches; empty where no NF has ways of its own."""
    machines: dict[str, str] = Field(default_factory=dict)
    """The node that each owner of ports is on; empty where all are on one machine."""
    smt_off: bool = Field(default=False, exclude_if=is_empty)
    """Whether SMT is switched off on the machines of the DUTs while this is deployed."""

    def ports(self, owner: str | None = None) -> tuple[Port, ...]:
        """Ports of one owner; all ports without one."""
        return tuple(port for link in self.links for port in (link.a, link.b) if owner in (None, port.owner))

    @property
    def nfs(self) -> tuple[NfPlan, ...]:
        """Network functions, each once: of a shared one the first instance's row."""
        found: dict[str, NfPlan] = {}
        for function in self.functions:
            found.setdefault(function.name, function)
        return tuple(found.values())

    @property
    def all_nfs(self) -> tuple[NfPlan | TapPlan, ...]:
        """Network functions, each once, passive ones last."""
        return (*self.nfs, *self.taps)

    def function(self, name: str) -> NfPlan:
        """The NF of that name."""
        return next(function for function in self.functions if function.name == name)

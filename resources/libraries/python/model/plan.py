"""The Plan: everything derived from a topology and a cell, once. Drivers read it and add nothing."""

from enum import StrEnum
from typing import Literal

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Cell, NfKind, NfSize
from resources.libraries.python.model.trial import Direction


class ThreadRole(StrEnum):
    """What a planned thread does."""

    SYSTEM = "system"
    MAIN = "main"
    DATA = "data"


class Thread(Frozen):
    """One planned thread on one logical CPU."""

    owner: str
    """`system`, `generator`, `vswitch` or the name of an NF."""
    role: ThreadRole
    index: int
    """Counts from 0 within owner and role."""
    cpu: int
    """Logical CPU."""


class CoreMap(Frozen):
    """Which thread runs where, and whether that is an honest placement."""

    numa_node: int
    smt: bool
    physical: tuple[tuple[int, ...], ...]
    """Physical cores of the node that have threads, each as all its logical CPUs."""
    threads: tuple[Thread, ...]
    cores_needed: int
    """Physical cores that an honest placement takes, system and main cores included."""
    cores_there: int
    oversubscribed: bool
    """Data threads share cores with others because the machine is too small for the plan."""

    def cpus(self, owner: str, role: ThreadRole = ThreadRole.DATA) -> tuple[int, ...]:
        """Logical CPUs of an owner's threads, in order of index."""
        rows = [thread for thread in self.threads if (thread.owner, thread.role) == (owner, role)]
        return tuple(thread.cpu for thread in sorted(rows, key=lambda thread: thread.index))


class Port(Frozen):
    """One end of a link."""

    owner: str
    """`generator`, `vswitch` or the name of an NF."""
    interface: str
    """Unique on the whole testbed, at most 15 characters."""
    mac: str
    data_thread: int
    """Index of the owner's data thread that receives from this port (its RX queue)."""


class Link(Frozen):
    """A point-to-point link: a virtual cable between two ports."""

    instance: int
    a: Port
    b: Port


class Segment(Frozen):
    """One L2 segment inside the vSwitch, joining exactly two of its ports. Never shared by two instances."""

    name: str
    instance: int
    position: int
    """Counts from 1 along the service, in forward direction."""
    members: tuple[str, str]
    """Interface names of vSwitch ports, in forward direction."""


class NextHop(Frozen):
    """A static route and the static neighbour behind it."""

    prefix: str
    address: str
    mac: str


class NfInterface(Frozen):
    """A data interface of an NF."""

    name: str
    mac: str
    address: str
    """IPv4 with prefix length."""
    route: NextHop
    """Where packets that leave through this interface go."""


class NfPlan(Frozen):
    """One network function."""

    name: str
    """`nf-{instance}-{node}`."""
    id: int
    """Counts from 1 over all instances."""
    instance: int
    node: int
    size: NfSize
    kind: NfKind
    left: NfInterface
    """Towards TG port 1."""
    right: NfInterface
    """Towards TG port 2."""


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


class Hop(Frozen):
    """A place on a flow's path where a counter can see it."""

    owner: str
    interface: str
    counter: Literal["rx", "tx"]


class Path(Frozen):
    """All hops of one flow in order, from the generator to the generator."""

    instance: int
    direction: Direction
    hops: tuple[Hop, ...]


class Plan(Frozen):
    """All that a deployment needs to know. Derived by `planning`, read by everybody else."""

    testbed: str
    cell: Cell
    suite_id: str
    """CSIT's grammar: encapsulation, forwarding, chains, vSwitch interfaces, NFs and threads, application."""
    tags: tuple[str, ...]
    discriminator: Literal["link", "vlan", "mac"]
    """What keeps service instances apart between the generator and the vSwitch."""
    cores: CoreMap
    links: tuple[Link, ...]
    segments: tuple[Segment, ...]
    functions: tuple[NfPlan, ...]
    flows: tuple[Flow, ...]
    paths: tuple[Path, ...]
    warnings: tuple[str, ...] = ()

    def ports(self, owner: str) -> tuple[Port, ...]:
        """All ports of one owner."""
        return tuple(port for link in self.links for port in (link.a, link.b) if port.owner == owner)

    def function(self, name: str) -> NfPlan:
        """The NF of that name."""
        return next(function for function in self.functions if function.name == name)

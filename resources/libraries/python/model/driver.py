"""Declarations of drivers: what the package of a driver states about itself, once.

Planning reads here what it has to know of a product; the testbed finds the functions that make the driver and that look
for what it needs. Those are dotted names (`package.module:function`), because programs that only plan or report never
import a driver.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from resources.libraries.python.model.base import Frozen, Inconsistency
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.model.testbed.memory import MemoryNeed

Node: TypeAlias = Any
"""A `TgNode` or `DutNode`. Nodes are validated by what drivers declare, so that declarations cannot name these types;
the functions of a declaration do. The same holds for `NfKind`, which is a string here."""


class Form(StrEnum):
    """Form of an NF."""

    NAMESPACE = "namespace"
    """A network namespace in which the kernel itself forwards, in the data threads of its ports."""
    PROGRAM_BESIDE = "program beside"
    """A network namespace in which the kernel routes, and a program that packets are copied or directed to."""
    PROGRAM = "program"
    """A program that takes packets from its ports and forwards them itself."""
    VM = "vm"
    """A virtual machine."""


class Medium(StrEnum):
    """Medium of a link."""

    VETH = "veth"
    """A pair of virtual ports of the kernel."""
    MEMIF = "memif"
    """Shared memory between two user-space programs; end `a` is the master."""
    VHOST_USER = "vhost_user"
    """Shared memory between a user-space vSwitch (end `a`) and a virtual machine or a DPDK program."""
    CABLE = "cable"
    """Two physical ports of two machines; both ends have a `nic`."""


def _no_problem(_: object) -> None:
    return None


def _no_ports_problem(_: object, __: object) -> str | None:
    return None


def _nothing(_: object) -> int:
    return 0


def _always(_: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RequiredProgram:
    """A program that a driver runs."""

    name: str
    """As it is found in PATH."""
    package: str
    """The Debian package that has it."""
    label: str = ""
    """Name of the product in messages."""
    version: str | None = None
    """Regular expression that finds the version in what `--version` prints; None where nodes are not asked for it."""
    path: Callable[[Node], str] | None = None
    """Where it is on a node; None for a program in PATH."""
    option: str = ""
    """Key of the node that says where it is, such as `vpp.prefix`."""
    fix: str = ""
    """Fix if it is missing; empty for the installation of the package."""

    def on(self, node: Node) -> str:
        """Its path on a node, or its name."""
        return self.name if self.path is None else self.path(node)

    @property
    def remedy(self) -> str:
        """Fix if it is missing."""
        return self.fix or f"apt-get install {self.package}"


class InstalledProgram(Frozen):
    """A program as a node reports it."""

    there: bool
    version: str | None
    problem: str | None
    """Reason why it does not run."""


@dataclass(frozen=True, slots=True)
class KernelFeature:
    """A feature of the kernel that a driver needs."""

    label: str
    """For messages, such as `AF_XDP sockets`."""
    config: str
    """Option of the kernel's configuration that enables it, without `CONFIG_`."""
    module: str = ""
    """Kernel module that has it where it is not built in; empty where it cannot be a module."""
    when: Callable[[Any], bool] = _always
    """Whether a node's settings make the driver use it."""
    instead: str = ""
    """Behaviour of the driver without it; empty if it does not start."""


VETH = KernelFeature("veth pairs", "VETH", "veth")
BRIDGE = KernelFeature("bridges", "BRIDGE", "bridge")
TUN = KernelFeature("tun and tap devices", "TUN", "tun")
AF_XDP = KernelFeature("AF_XDP sockets", "XDP_SOCKETS")
PACKET = KernelFeature("AF_PACKET sockets", "PACKET", "af_packet")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCheck:
    """Something other than a program that the doctor looks for on a node before an agent runs there.

    Declared in `CHECKS` of a package.
    """

    script: str
    """Module that is sent to the node and whose function `answer` is called there. It imports the standard library
    only, as modules in `testbed/node/scripts` do, and its own name, without the package, is unique among them."""
    arguments: Callable[[Node], Mapping[str, Any] | None]
    """Arguments of that function for a node; None where the node does not need the check."""
    check: str
    """Function that yields a `CheckFinding` each; called with the node's place, the node, its answer."""
    lab_only: bool = False
    """Elsewhere the driver tries it."""

    @property
    def key(self) -> str:
        """Key of the answer among those of a node."""
        return self.script.rpartition(".")[2]


class Traffic(StrEnum):
    """Traffic of a test, as far as not all NFs take it."""

    PACKETS = "packets without a connection"
    """IPv4 packets of any protocol that belong to no socket, TCP segments among them."""
    UDP = "UDP datagrams"
    TCP = "TCP connections"
    IPV6 = "IPv6"
    CAPTURES = "the packets of a capture"


IPV4 = frozenset(Traffic) - {Traffic.IPV6}
"""What an IPv4 router takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNf:
    """Behaviour of an NF on the simulated testbed, see `drivers.sim.truth`; assumed where its package cites no source.

    Defaults are those of an average NF, which is as fast as VPP.
    """

    half_core_pps: float = 5.97e6
    """Packets per second of an NF of half a core."""
    sensitivity: float = 0.50
    """Share of the throughput that is lost at most beside other NFs, in [0, 1)."""
    half_pressure: float = 0.30
    """Pressure of neighbours at which half of that is lost, above 0."""
    pressure: float = 0.30
    """Pressure on each neighbour, in [0, 1)."""
    cpu_part: float = 0.15
    """The part of what it loses that goes away where CPU time is guaranteed, below 1."""
    memory_mib: float = 20.0
    """Working set."""


@dataclass(frozen=True, slots=True)
class PolledPorts:
    """Physical ports that a vSwitch polls in a cell, each with a queue to send from for every thread of the vSwitch."""

    rx_queues: tuple[int, ...] = ()
    """Receive queues of each port."""
    threads: int = 0
    """Data threads of the vSwitch."""


@dataclass(frozen=True, slots=True)
class PortOption:
    """The setting by which a topology says how a program takes physical ports."""

    options: type[Frozen]
    """Settings that have it, as `ports`."""
    sockets: str
    """Value of `ports` for sockets on ports of the kernel."""
    sockets_label: str
    """Description for messages."""
    kernel_itself: frozenset[str] = frozenset()
    """Values with which the kernel forwards and no sockets are used."""

    def asked(self, node: Node) -> str:
        """Return the setting of a node."""
        return str(getattr(node.settings(self.options), "ports"))  # noqa: B009 - not a key of all settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that a package makes on a machine and that outlives a run that was killed.

    Processes, network namespaces, control groups, folders, kernel settings and ports have entries of their own on the
    record of the machine's lock. All else is declared as `LEFTOVERS` of a package.
    """

    key: str
    """Key of the record, under which `MachineLock.claim` puts an entry before the thing is made."""
    label: str = ""
    """Description before an entry in messages."""
    entry: str | None = None
    """Model of an entry, by its dotted name; None for a string."""
    remove: str
    """Function that removes what entries stand for and is there still, and returns a sentence for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Declaration of any driver."""

    name: str
    """In topologies, records and reports."""
    label: str
    """Name of the product in messages."""
    factory: str | None = None
    """Class of the driver, or a function that makes it; None where only the simulated testbed has it."""
    missing: str | None = None
    """Function that yields what the present machine lacks, a `PreflightProblem` each; None for its `programs`."""
    options: Mapping[str, type[Frozen]] = field(default_factory=dict)
    """Settings that a topology can make, by the key of the node that has them; one class where drivers share a key. All
    have defaults."""
    programs: tuple[RequiredProgram, ...] = ()
    kernel: tuple[KernelFeature, ...] = ()
    open_files: Callable[[Any], int] = _nothing
    """File descriptors that one of its programs may have open at a time on a node, where these are many."""
    words: tuple[str, ...] = ()
    """Product words beside the label and the names of programs, which a test keeps in the drivers' packages."""

    @property
    def is_simulated(self) -> bool:
        """Whether only the simulated testbed has it."""
        return self.factory is None

    @property
    def product_words(self) -> frozenset[str]:
        """Words that name the product, and products whose programs it runs."""
        programs = (word for program in self.programs for word in (program.name, program.label) if word)
        return frozenset({self.label, *programs, *self.words})


@dataclass(frozen=True, slots=True, kw_only=True)
class VSwitchDriver(Driver):
    """A virtual switch. Its factory is called with a node and its context, `missing` with a node."""

    memory: Callable[[Node, PolledPorts], MemoryNeed]
    """Memory that it takes with the ports of a cell, an upper estimate."""
    ports_problem: Callable[[Node, PolledPorts], str | None] = _no_ports_problem
    """What a node's settings for it lack for the ports of a cell, beginning with the key; None where they suffice."""
    events: frozenset[PartEvent] = frozenset()
    """Events under load that it can be hit by."""
    reload_problem: Callable[[Node], str | None] = _no_problem
    """Reason why its configuration cannot be loaded anew on a node, although that is among its events; None where it
    can."""
    starts_on_main_cpu: bool = False
    """A restart takes time on the CPU of its main thread, to which it pins itself."""
    variant: Callable[[Node], str] | None = None
    """Its variant on a node that determines media, one of `media` or its name; None where that is its name."""
    media: Mapping[str, Mapping[str | Form, Medium]] = field(default_factory=dict)
    """Media of links to NFs that are not veth pairs, by variant and NF kind or form."""
    interface_words: Mapping[str, str] = field(default_factory=dict)
    """Word of suite ids for its interfaces towards NFs, by variant; where there is none the medium decides."""
    ports: PortOption | None = None
    """How it takes physical ports; None where the kernel drives them always."""
    tags_frames: bool = False
    """Adds and removes VLAN tags itself; the VLANs of others are devices of the kernel."""
    vlan_problem: Callable[[Node], str | None] = _no_problem
    """Reason why it cannot distinguish instances by VLANs; None where it can."""
    copies: bool = False
    """Copies frames to passive NFs."""
    patches_segments: bool = True
    """Joins two segments of a pipeline without NFs by a virtual cable."""
    learns_macs: bool = True
    """Learns MAC addresses; others are given stations by the plan."""
    in_kernel: bool = False
    """Forwards in the kernel threads that receive from its ports, and has no threads of its own."""
    keeps_packets: bool = False
    """Keeps packets of an overload until later ones push them out, so that a next trial would receive them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorDriver(Driver):
    """A traffic generator. Its factory is called with a node and its context, `missing` with a node."""

    protocols: tuple[Protocol, ...]
    """Protocols of packets that it can send, the default first."""
    departures: tuple[Departures, ...] = (Departures.CONSTANT,)
    """Distributions of the times between packets that it can send with."""
    load_ports: Callable[[Sequence[Any]], Mapping[Protocol, tuple[int, ...]]] | None = None
    """Destination ports by protocol of the packets of the flows of a plan; None for those of the traffic profile."""
    keeps_log: bool = False
    """Logs every second of a trial, so that a load is one long trial instead of many short ones."""
    ports: PortOption | None = None
    """How it takes physical ports; None where the kernel drives them always."""
    tags_frames: bool = False
    """Adds and removes VLAN tags itself; the VLANs of others are devices of the kernel."""
    vlan_problem: str | None = None
    """Reason why it cannot send to instances distinguished by VLANs; None where it can."""
    one_way: frozenset[Protocol] = frozenset()
    """Protocols whose payload it sends in one direction only; acknowledgements come back."""
    resends: frozenset[Protocol] = frozenset()
    """Protocols whose lost packets it sends again, in connections of its own: the counts of a trial show no loss."""
    numbers_packets: bool = False
    """Numbers and time-stamps every packet of a load where a trial asks for a timeline."""
    least_frame_bytes: int = 64
    """The shortest frame that it sends where a trial names no protocol."""
    ways: tuple[str, ...] = ()
    """Other drivers that `./csit qualify` compares it with, and of which it has runs take the fastest in its place."""
    loops_back: int = 0
    """Directions, 1 or 2, between two ports that are joined to each other, where it is qualified; 0: it cannot be."""
    opens_connections: bool = False
    """Gives each UDP packet another 5-tuple where a trial asks for that."""
    ipv6: bool = False
    """Sends IPv6, too."""
    captures: bool = False
    """Sends the packets of a capture."""
    api: str | None = None
    """Function that makes a `GeneratorApi` from a node: the controller of a lab drives the generator over the network,
    and has no access to its machine. None where an agent on the node of the generator drives it."""
    counts_by_port: bool = False
    """Counts packets of an instance by its port, so that instances cannot share one."""
    suite_word: str | None = None
    """Word for it in suite names, if several drivers belong to one product; None for its name."""
    huge_pages_mb: Callable[[Node], int] | None = None
    """Huge pages that it takes where DPDK drives its ports."""
    counted_pps: Callable[[Node], float | None] | None = None
    """About how many packets per second it can count on a node's ports, all directions together, where one core counts
    them all; None where others do."""


@dataclass(frozen=True, slots=True)
class GuestKind:
    """A kind of NF as an application in the guests of virtual machines."""

    name: str
    """Name of the kind, behind that of the virtual machines: `firewall` is `qemu_firewall` in those of `qemu`."""
    application: str
    """Function that says what a guest runs, called with the NF, the node and the number of vCPUs."""
    programs: tuple[RequiredProgram, ...] = ()
    """Programs of the node that a guest gets."""
    missing: str | None = None
    """Function that yields what those programs lack; None where it is enough that they are there."""
    memory_mb: Callable[[Node], int] = _nothing
    """Memory that it takes beside the guest's system."""
    least_memory_mb: Callable[[Node], int] = _nothing
    """The same where limits leave little: with less it does not start; 0 if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDriver(Driver):
    """Network functions of one kind; the name is that of the kind.

    The factory is called with a node, its context and the NFs of the kind, the passive ones among them; `missing` with
    a node and the kind. Virtual machines with all applications are one driver's.
    """

    word: str
    """Word in suite ids and tags."""
    form: Form
    """Form of the NF."""
    listed: tuple[str, ...] = ("containers",)
    """Keys of a DUT under which topologies list it."""
    memory: Callable[..., MemoryNeed] | None = None
    """Memory of one NF by node, kind, service type and limits, an upper estimate; None for that of a namespace, or of a
    program where the kind has one."""
    least_memory_mb: Callable[[Node, Any], int] | None = None
    """Memory that limits must leave to a guest: with less, what is in it does not start; 0 if not known."""
    settings_problem: Callable[[Node], Inconsistency | None] = _no_problem
    """What settings of a node that lists the kind contradict, with the place in the node; None where they agree."""
    medium_between: Medium = Medium.VETH
    """Medium of links between two of the kind in a pipeline."""
    events: frozenset[PartEvent] = frozenset()
    """Events under load that an NF can be hit by."""
    reload_problem: Callable[[Node], str | None] = _no_problem
    """Reason why its configuration cannot be loaded anew on a node, although that is among its events; None where it
    can."""
    starts_on_main_cpu: bool = False
    """A restart takes time on the CPU of its main thread, to which it pins itself."""
    on_request: bool = False
    """A topology can list the kind on machines that lack something for it: other kinds run all the same."""
    simple: bool = False
    """Forwards and does nothing else."""
    passive: bool = False
    """Is of use where packets do not go through it, because it looks at copies of them."""
    shareable: bool = False
    """One NF has interfaces for any number of service instances; others have two."""
    takes: frozenset[Traffic] = IPV4
    """Traffic that it does its work on; cells with other traffic are refused. Other packets pass it by."""
    translates: bool = False
    """Translates source addresses of what goes forward."""
    tracks_connections: bool = False
    """Keeps a table of connections that can be read and deleted (role `Stateful`)."""
    takes_program: bool = False
    """Runs a program that the test row or spec describes."""
    polls: bool | None = False
    """Its data threads run all the time, with or without packets; None where the driver's facts say whether they do."""
    joins_late: bool = False
    """Without a container, its program joins a control group only after it has taken its memory."""
    guest: GuestKind | None = None
    """How it runs in guests of virtual machines; None if it does not."""
    runs_guests: bool = False
    """Virtual machines that run the applications of all kinds that have a `guest`."""
    simulated: SimulatedNf = SimulatedNf()
    """Behaviour on the simulated testbed."""
    in_guest: str | None = None
    """Set by the registry: the application of the guests of such virtual machines."""
    host: str | None = None
    """Set by the registry: the kind of these virtual machines."""

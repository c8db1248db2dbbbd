"""Receive queues: how many a port has, which data thread polls each, and whether threads and CPUs have equal work.

A physical port that the vSwitch polls has one for each of its data threads, as far as the NIC goes; RSS spreads flows
over them. A link of shared memory has, in each direction, as many as the end with fewer data threads has of those: a
thread sends into one queue, so more would stay empty, and a queue needs a thread to poll it. A port of the kernel has
one. (`docs/adr/0028-receive-queues.md`)

RSS hashes addresses, and ports where a protocol has them. Packets of a flow differ in their source address only, so
a port has as many hashes as sources come to it. Few hashes on many queues are uneven by chance.

Queues go to data threads in turn. Six queues on four threads leave two of them with twice the work: the cell then shows
the limit of those two.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from resources.libraries.python import driver_registry
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.driver import PolledPorts
from resources.libraries.python.model.plan import Link
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.attachment import polled_queues
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.media import SHARED_MEMORY, between, to_vswitch
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, nf_name, vswitch_name
from resources.libraries.python.planning.placement.cores import sized_nfs
from resources.libraries.python.planning.service import ServiceLayout
from resources.libraries.python.quantities import counted

QUEUES_OF_AN_NF = 2
"""One for each of its two interfaces, where none has several; a shared one has two interfaces for each instance."""
_THREADS_OF_A_CORE = 2
"""Where the processors are not known."""
Queues = tuple[int, ...]
"""Index of the owner's data thread for each receive queue of a port."""
_Place = tuple[str, int, int]


class RxQueues:
    """The receive queues of a cell.

    Those of a vSwitch go to its data threads in turn, in the order of the service; ports of one NIC have one place.
    Those of an NF are dealt in blocks, first queues first, as DPDK's testpmd deals them to its cores; in turn where its
    two sides have different numbers.
    """

    def __init__(self, service: ServiceLayout, cores: CoreMap, vswitch: str) -> None:
        self._service = service
        self._edges = service.edges
        self._vswitch = vswitch
        self._threads = Counter(thread.owner for thread in cores.threads if thread.role is ThreadRole.DATA)
        self._first: dict[int, Mapping[_Place, int]] = {}

    def at_edge(self, instance: int, number: int) -> Queues:
        """Return the queues of the vSwitch's port at an edge, 1 to 4 along the service."""
        dut = (number + 1) // 2
        place = ("edge", 0 if self._edges.one_cable else instance, number)
        return self._in_turn(dut, place, self._edge_count(instance, number))

    def at_crossing(self, dut: int, instance: int, position: int) -> Queues:
        """Return the queues of the vSwitch's port towards an NF; `position` counts from 1 within instance and DUT."""
        return self._in_turn(dut, ("crossing", instance, position), self._crossing_count(dut, instance, position))

    def to_tap(self, dut: int, instance: int, number: int) -> Queues:
        """Of the vSwitch's port towards a passive NF. Nothing ever comes from there: no turn is taken."""
        return ((instance + number) % self._threads[vswitch_name(dut)],)

    def at_nf(self, instance: int, node: int, side: int) -> Queues:
        """Return the queues of an NF's side 1 or 2; a shared NF has two sides for each instance, with a queue each."""
        threads = self._threads[self._service.name(instance, node)]
        counts = self.nf_counts(instance, node)
        if max(counts) == 1:
            before = 2 * (instance - 1) if self._service.is_shared(node) else 0
            return ((before + side - 1) % threads,)
        if counts[0] != counts[1]:  # at an end of a pipeline
            first = counts[0] if side == 2 else 0
            return tuple((first + queue) % threads for queue in range(counts[side - 1]))
        return tuple(_block(2 * queue + side - 1, 2 * counts[0], threads) for queue in range(counts[0]))

    def at_generator(self, instance: int, port: int) -> Queues:
        """Return the queues of the generator's port 1 or 2."""
        alone = not self._edges.ways or self._edges.one_cable
        position = port - 1 if alone else 2 * (instance - 1) + port - 1
        return (position % max(1, self._threads[GENERATOR]),)

    def nf_counts(self, instance: int, node: int) -> tuple[int, int]:
        """Receive queues of an NF's two sides."""
        nodes = self._service.nodes_on((node - 1) // self._service.cell.nf_nodes + 1)
        towards = self._towards_vswitch(instance, node)
        if not self._service.cell.service_type.is_pipeline:
            return towards, towards
        left = towards if node == nodes[0] else self._between(instance, node - 1)
        right = towards if node == nodes[-1] else self._between(instance, node)
        return left, right

    @cached_property
    def vswitch_total(self) -> int:
        """Receive queues of the (first) vSwitch; those towards passive NFs, which receive nothing, are left out."""
        return sum(count for _, count in self._row(1))

    def _edge_count(self, instance: int, number: int) -> int:
        nic = self._edges.nic(instance, number // 2, number % 2)
        most = (nic.rx_queues if nic else None) or 1
        return min(most, self._threads[vswitch_name((number + 1) // 2)])

    def _crossing_count(self, dut: int, instance: int, position: int) -> int:
        nodes = self._service.nodes_on(dut)
        if not nodes:
            return 1  # a cable in the place of NFs
        pipeline = self._service.cell.service_type.is_pipeline
        node = (nodes[0], nodes[-1])[position - 1] if pipeline else nodes[(position - 1) // 2]
        return self._towards_vswitch(instance, node)

    def _towards_vswitch(self, instance: int, node: int) -> int:
        service = self._service
        vswitch = vswitch_name((node - 1) // service.cell.nf_nodes + 1)
        if to_vswitch(self._vswitch, service.kind(instance, node)) not in SHARED_MEMORY:
            return 1
        return self._fewest(vswitch, service.name(instance, node))

    def _between(self, instance: int, node: int) -> int:
        """Queues of each direction between an NF of a pipeline and the next one."""
        service = self._service
        if between(service.kind(instance, node), service.kind(instance, node + 1)) not in SHARED_MEMORY:
            return 1
        return self._fewest(service.name(instance, node), service.name(instance, node + 1))

    def _fewest(self, *owners: str) -> int:
        return max(1, min(self._threads[owner] for owner in owners))

    def _in_turn(self, dut: int, place: _Place, count: int) -> Queues:
        if dut not in self._first:
            first, total = {}, 0
            for each, queues in self._row(dut):
                first[each] = total
                total += queues
            self._first[dut] = first
        threads = self._threads[vswitch_name(dut)]
        return tuple((self._first[dut][place] + queue) % threads for queue in range(count))

    def _row(self, dut: int) -> list[tuple[_Place, int]]:
        """Ports of a vSwitch in the order in which they take turns, with the number of their queues."""
        left, right = 2 * dut - 1, 2 * dut
        crossings = range(1, len(self._service.crossings(1, dut)) + 1)

        def edge(instance: int, number: int) -> tuple[_Place, int]:
            return ("edge", instance, number), self._edge_count(instance, number)

        def inner(instance: int) -> list[tuple[_Place, int]]:
            return [(("crossing", instance, at), self._crossing_count(dut, instance, at)) for at in crossings]

        instances = self._service.instances
        if self._edges.one_cable:
            return [edge(0, left), edge(0, right), *(row for each in instances for row in inner(each))]
        return [row for each in instances for row in (edge(each, left), *inner(each), edge(each, right))]


def _block(index: int, total: int, threads: int) -> int:
    """The thread that one of some queues is dealt to: blocks of equal size, the last ones larger by one.

    DPDK's testpmd deals its streams to its cores so (`rss_fwd_config_setup` of `app/test-pmd/config.c`).
    """
    used = min(total, threads)
    size, larger = divmod(total, used)
    small = used - larger
    if index < small * size:
        return index // size
    return small + (index - small * size) // (size + 1)


_HASHES_PER_QUEUE = 8
"""With 8 random hashes per queue the fullest of 4 queues has 1.4 times its share, of 8 queues 1.5 times (medians)."""


@dataclass(frozen=True, slots=True)
class EdgePort:
    """A physical port of a vSwitch."""

    name: str
    """Node and port of the topology: `DUT1.port1`."""
    owner: str
    """The vSwitch."""
    queues: Queues
    cpus: tuple[int, ...]
    """CPUs of the data thread of each queue."""
    threads: int
    """Data threads of the owner."""
    most: int | None
    """Receive queues that the NIC has; None where the kernel drives it."""
    hashes: int
    """Address pairs of the packets that come here."""

    def __str__(self) -> str:
        rows = zip(self.queues, self.cpus, strict=True)
        placed = (f"queue {queue} on data thread {thread} (CPU {cpu})" for queue, (thread, cpu) in enumerate(rows))
        return f"{self.name} of {self.owner}: {', '.join(placed)}"

    def warnings(self) -> Iterator[str]:
        """Reasons why data threads do not get their share."""
        count = len(self.queues)
        if count < self.threads:
            why = "the kernel drives the port" if self.most is None else f"the NIC has no more than {self.most}"
            yield (
                f"{self.name}: {count} receive queue{'s'[: count > 1]} for {self.threads} data threads of "
                f"{self.owner}, because {why}: only {count} of them receive"
            )
        if self.hashes < count:
            yield (
                f"{self.name}: {self.hashes} address pair{'s'[: self.hashes > 1]} for {count} receive queues: RSS "
                f"hashes nothing else of these packets, so {count - self.hashes} or more queues get none"
            )
        elif count > 1 and self.hashes < _HASHES_PER_QUEUE * count:
            yield (
                f"{self.name}: {self.hashes} address pairs for {count} receive queues: too few for RSS to spread them "
                "evenly"
            )


def edge_ports(
    service: ServiceLayout, queues: RxQueues, cores: CoreMap, duts: Sequence[str], sources: int
) -> tuple[EdgePort, ...]:
    """The physical ports of all vSwitches, each NIC once; none where all is on one machine."""
    edges = service.edges
    found: dict[str, EdgePort] = {}
    for instance in service.instances:
        for number in range(1, 2 * edges.duts + 1):
            dut = (number + 1) // 2
            nic, owner = edges.nic(instance, number // 2, number % 2), vswitch_name(dut)
            if nic is None or (name := f"{duts[dut - 1]}.{nic.port}") in found:
                continue
            here, cpus = queues.at_edge(instance, number), cores.cpus(owner)
            found[name] = EdgePort(
                name=name,
                owner=owner,
                queues=here,
                cpus=tuple(cpus[thread] for thread in here),
                threads=len(cpus),
                most=nic.rx_queues,
                hashes=sources * (len(service.instances) if edges.one_cable else 1),
            )
    return tuple(found.values())


def ports_of(links: Iterable[Link], cores: CoreMap, owner: str) -> PolledPorts:
    """The ports of a vSwitch, each once: instances may share one."""
    ports = (port for link in links for port in (link.a, link.b) if port.owner == owner)
    queues = {port.nic.port: len(port.queues) for port in ports if port.nic is not None and port.nic.rx_queues}
    return PolledPorts(tuple(queues.values()), len(cores.cpus(owner)))


def expected_ports(topology: Topology, cell: Cell, layout: CpuLayout | None = None) -> PolledPorts:
    """The ports of the (first) vSwitch of a cell; where cores have unequal numbers of threads, with the most threads.

    `layout`: CPUs of the (first) DUT; by default those that the topology lists.
    """
    ways = topology.ways[: len(cell.instances) if topology.discriminator == "link" else 1]
    if not ways:
        return PolledPorts()
    dut = topology.dut
    known = dut.layout if layout is None and dut.cpus != "discover" else layout
    cores = known.cores(dut.numa_node) if known else ()
    threads = cell.vs_dtc * max(map(len, cores), default=_THREADS_OF_A_CORE)
    ends = (socket.port for way in ways for socket in (way[0].b, way[1].a))
    queues = (polled_queues(dut, dut.interfaces[port]) for port in ends)
    return PolledPorts(tuple(min(most, threads) for most in queues if most), threads)


def port_warnings(topology: Topology, ports: Sequence[EdgePort]) -> tuple[str, ...]:
    """Return why ports of vSwitches do not carry what they could: flows miss threads, or settings are too small."""
    found = [text for port in ports for text in port.warnings()]
    for number, (name, dut) in enumerate(topology.duts.items(), 1):
        own = [port for port in ports if port.owner == vswitch_name(number) and port.most]
        polled = PolledPorts(tuple(len(port.queues) for port in own), own[0].threads if own else 0)
        problem = driver_registry.vswitches()[dut.vswitch].ports_problem(dut, polled)
        found += [f"nodes.{name}.{problem}"] if problem else []
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Spread:
    """Receive queues on data threads."""

    queues: int
    threads: int

    @property
    def least(self) -> int:
        """Queues of the thread that has the fewest."""
        return self.queues // self.threads if self.threads else 0

    @property
    def most(self) -> int:
        """Queues of the thread that has the most."""
        return -(-self.queues // self.threads) if self.threads else 0

    @property
    def idle(self) -> int:
        """Threads that have none."""
        return max(0, self.threads - self.queues)

    @property
    def even(self) -> bool:
        """Whether all have the same."""
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of one cell on its core map."""

    vswitch: Spread
    nfs: tuple[tuple[str, Spread], ...]
    """By size of NF, each size once, in order of the service."""
    sibling_nfs: int
    """Physical cores on which data threads of different NFs are siblings."""
    sibling_data: int
    """Physical cores on which both siblings are data threads of any owner."""
    least_threads: int
    """Data threads on the logical CPU that has the fewest, of those that have any; the generator's not counted."""
    most_threads: int
    unequal: tuple[str, ...] = ()
    """NFs of one size with different parts of CPUs, from `unequal`."""
    turns: int = 0
    """Logical CPUs on which two NFs take turns, as their size asks."""

    @property
    def even(self) -> bool:
        """Whether every thread of a kind has the same work and a logical CPU to itself."""
        spreads = (self.vswitch, *(spread for _, spread in self.nfs))
        return all(spread.even for spread in spreads) and self.most_threads <= 1 and not self.unequal

    def uneven(self) -> tuple[str, ...]:
        """Imbalances, as text with numbers."""
        lines = []
        if not self.vswitch.even:
            lines.append(f"vSwitch: {_words(self.vswitch)}")
        lines += [f"NF-{size}: {_words(spread)}" for size, spread in self.nfs if not spread.even]
        if self.most_threads > 1:
            least = "" if self.least_threads == self.most_threads else f"{self.least_threads} to "
            lines.append(f"{least}{self.most_threads} data threads per logical CPU")
        return (*lines, *self.unequal)

    def siblings(self) -> tuple[str, ...]:
        """Data threads that share a physical core as siblings or in turns: intended, but each is slower."""
        lines = []
        if self.sibling_nfs:
            lines.append(f"data threads of different NFs are siblings on {_cores(self.sibling_nfs)}")
        own = self.sibling_data - self.sibling_nfs
        if own:
            lines.append(f"data threads of one owner are siblings on {_cores(own)}")
        if self.turns:
            lines.append(f"data threads of two NFs each take turns on {_cores(self.turns)} (1DT/S2PC)")
        return tuple(lines)


def vswitch_ports(cell: Cell, *, one_cable: bool = False) -> int:
    """Ports of the vSwitch that have a receive queue: the number of its queues where every port has one.

    Two edges for each instance, or for all of them where they share a cable, and two for each NF of a snake or for the
    ends of each pipeline. Those towards passive NFs receive nothing.
    """
    return cell.inner_ports + 2 * (1 if one_cable else len(cell.instances))


def balance(cell: Cell, cores: CoreMap, *, one_cable: bool = False, queues: RxQueues | None = None) -> Balance:
    """Analyze a core map: at the (first) DUT, as a second one has the same service.

    `one_cable`: Whether instances share the cables of the testbed.
    `queues`: The cell's receive queues; None where every port has one.
    """
    by_cpu: dict[int, list[str]] = {}
    threads: Counter[str] = Counter()
    for thread in cores.on(None):
        if thread.role is ThreadRole.DATA and thread.owner != GENERATOR:
            by_cpu.setdefault(thread.cpu, []).append(thread.owner)
            threads[thread.owner] += 1
    places = [(instance, 1) for instance in range(1, len(cell.instance_kinds) + 1)]
    spreads = {
        _title(cell, instance, node): Spread(
            _queues_of_nf(cell, instance, node, queues),
            threads[nf_name(cell.holder(instance, node), node)],
        )
        for instance, node in places or [(1, node) for node in range(1, cell.nf_nodes + 1)]
    }
    siblings = [[by_cpu[cpu] for cpu in core if cpu in by_cpu] for core in cores.physical]
    busy = [owners for owners in siblings if len(owners) > 1]
    # If threads share a logical CPU, sharing a core matters less and is not reported.
    apart = [] if cores.oversubscribed else busy
    load = [len(owners) - (cpu in cores.shared_cpus) for cpu, owners in by_cpu.items()]
    return Balance(
        vswitch=Spread(queues.vswitch_total if queues else vswitch_ports(cell, one_cable=one_cable), threads[VSWITCH]),
        nfs=tuple(spreads.items()),
        sibling_nfs=sum(len(set(chain.from_iterable(owners))) > 1 for owners in apart),
        sibling_data=len(apart),
        least_threads=min(load, default=0),
        most_threads=max(load, default=0),
        unequal=unequal(cell, cores),
        turns=len(cores.shared_cpus),
    )


def unequal(cell: Cell, cores: CoreMap) -> tuple[str, ...]:
    """Name the NFs of one size that have different parts of CPUs: a sentence per size.

    Their cores may have different numbers of threads, also those of two machines. Of an odd number of NFs that take
    turns the last one of a machine has a core to itself.
    """
    by_size: dict[str, dict[int, list[str]]] = {}
    alone = []
    for dut in range(1, len(cores.elsewhere) + 2):
        for name, size in sized_nfs(cell, dut):
            if threads := len(cores.cpus(name)):
                by_size.setdefault(size, {}).setdefault(threads, []).append(name)
            if size.is_shared and not cores.takes_turns(name):
                alone.append(f"{name} of {size} has a core to itself: no second NF takes turns with it")
    return (
        *alone,
        *(
            f"NFs of {size} have different numbers of data threads: "
            + ", ".join(f"{count} on {' '.join(named)}" for count, named in sorted(counts.items(), reverse=True))
            for size, counts in by_size.items()
            if len(counts) > 1
        ),
    )


def _queues_of_nf(cell: Cell, instance: int, node: int, queues: RxQueues | None) -> int:
    each = sum(queues.nf_counts(instance, node)) if queues else QUEUES_OF_AN_NF
    return each * (len(cell.instances) if node in cell.shared_nodes else 1)


def _title(cell: Cell, instance: int, node: int) -> str:
    """The size of an NF, and whether instances share it."""
    return f"{cell.size_of(node, instance)}{' shared' if node in cell.shared_nodes else ''}"


def _words(spread: Spread) -> str:
    idle = f", {counted(spread.idle, 'thread')} with none" if spread.idle else ""
    few = f"{spread.least} to {spread.most} per thread"
    return f"{spread.queues} receive queues on {spread.threads} data threads, {few}{idle}"


def _cores(count: int) -> str:
    return counted(count, "physical core")

"""Receive queues: how many a port has, and which data thread polls each.

A physical port that the vSwitch polls has one for each of its data threads, as far as the NIC goes; RSS spreads flows
over them. A link of shared memory has, in each direction, as many as the end with fewer data threads has of those: a
thread sends into one queue, so more would stay empty, and a queue needs a thread to poll it. A port of the kernel has
one. (`docs/adr/0028-receive-queues.md`)

RSS hashes addresses, and ports where a protocol has them. Packets of a flow differ in their source address only, so
a port has as many hashes as sources come to it. Few hashes on many queues are uneven by chance.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from resources.libraries.python import driver_registry
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.driver import PolledPorts
from resources.libraries.python.model.plan import Link
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.attachment import polled_queues
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.media import SHARED_MEMORY, between, to_vswitch
from resources.libraries.python.planning.names import GENERATOR, vswitch_name
from resources.libraries.python.planning.service import ServiceLayout

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


_THREADS_OF_A_CORE = 2
"""Where the processors are not known."""


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

"""The whole matrix: which cells fit, how many cores they use, why the others do not fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.request.cell import Cell, Frame
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryLayout, MemoryNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.address_bounds import MAX_INSTANCES, MAX_NFS, SOURCES_PER_FLOW
from resources.libraries.python.planning.edges import cannot_discriminate, edges_of, too_few_cables
from resources.libraries.python.planning.media import vswitch_of
from resources.libraries.python.planning.memory import node_of
from resources.libraries.python.planning.memory import shortages as memory_shortages
from resources.libraries.python.planning.placement.cache_ways import divide
from resources.libraries.python.planning.placement.core_notes import core_notes
from resources.libraries.python.planning.placement.machines import Layouts, layouts_of, place, shareable
from resources.libraries.python.planning.placement.machines import shortages as core_shortages
from resources.libraries.python.planning.placement.queue_balance import Balance, balance
from resources.libraries.python.planning.placement.queues import EdgePort, RxQueues, edge_ports, port_warnings
from resources.libraries.python.planning.plan import kinds, no_such_kind
from resources.libraries.python.planning.reasons import Limit, Reason, sentence
from resources.libraries.python.planning.service import ServiceLayout
from resources.libraries.python.planning.traffic import not_taken
from resources.libraries.python.planning.wiring import too_many
from resources.libraries.python.studies.density.model.selection import Selection


@dataclass(frozen=True, slots=True)
class Candidate:
    """One cell of the matrix."""

    cell: Cell
    reasons: tuple[Reason, ...]
    """Everything that keeps it from fitting; empty when every data thread has its own place."""
    cores: CoreMap | None
    """None when it cannot be run."""
    balance: Balance | None
    """Balance of queues and threads; None when it cannot be run."""
    ports: tuple[EdgePort, ...] = ()
    """Physical ports of the vSwitches of a lab, with their receive queues."""
    port_warnings: tuple[str, ...] = ()
    """Reasons why these do not carry what they could."""
    core_notes: tuple[str, ...] = ()
    """Kinds of cores and last-level caches, where the machine has several."""
    frames: tuple[Frame, ...] = ()
    """Frame sizes of the selection that can be sent through it."""
    not_taken: Mapping[Frame, str] = field(default_factory=dict)
    """Reasons why others cannot."""

    @property
    def fits(self) -> bool:
        """Whether all resources suffice."""
        return not self.reasons

    @property
    def oversubscribed(self) -> bool:
        """Does not fit, but the topology allows to run it on shared cores."""
        return self.cores is not None and self.cores.oversubscribed

    @property
    def reason(self) -> str | None:
        """All reasons why it does not fit, as one text."""
        return sentence(self.reasons)

    @property
    def runs(self) -> bool:
        """Whether a test of it can be run."""
        return self.cores is not None


def candidates(
    topology: Topology, layout: Layouts, selection: Selection, memory: MemoryLayout | None = None
) -> Iterator[Candidate]:
    """Look at every cell of a selection, in its order.

    `layout`: logical CPUs of the (first) DUT, or of nodes by name.
    `memory`: the DUT's memory where it was discovered; by default what the topology declares.
    """
    there, layouts = node_of(topology, memory), layouts_of(topology, layout)
    edges = edges_of(topology)
    may_share = shareable(topology, layouts)
    maps: dict[tuple[object, ...], CoreMap] = {}
    for cell in selection.cells():
        reasons = tuple(_reasons(topology, layouts, cell, there))
        if not _runs(reasons, may_share=may_share):
            yield Candidate(cell, reasons, None, None)
            continue
        # The service type decides about links, not about cores: three types share a map.
        key = (cell.dimensions, cell.nf_sizes, cell.vs_dtc, cell.shared_nodes, cell.taps)
        if key not in maps:
            maps[key] = place(topology, cell, layouts)
        cores = maps[key]
        try:
            divide(topology, cell, cores, layouts)
        except PlanError as error:
            yield Candidate(cell, (*reasons, Reason(limit=Limit.CACHE, text=str(error))), None, None)
            continue
        of = kinds(topology, cell)
        refused = {frame: reason for frame in selection.frames if (reason := not_taken(topology, of, frame))}
        if len(refused) == len(selection.frames):
            lacks = (Reason(limit=Limit.TRAFFIC, text=reason) for reason in dict.fromkeys(refused.values()))
            yield Candidate(cell, (*reasons, *lacks), None, None, not_taken=refused)
            continue
        service = ServiceLayout(cell, of, edges)
        queues = RxQueues(service, cores, vswitch_of(topology.dut))
        ports = edge_ports(service, queues, cores, list(topology.duts), SOURCES_PER_FLOW)
        even = balance(cell, cores, one_cable=edges.one_cable, queues=queues)
        notes = core_notes(cell, cores, layouts)
        frames = tuple(frame for frame in selection.frames if frame not in refused)
        yield Candidate(cell, reasons, cores, even, ports, port_warnings(topology, ports), notes, frames, refused)


def _runs(reasons: tuple[Reason, ...], *, may_share: bool) -> bool:
    """Threads can take turns on a core, where the topology allows it. What is missing otherwise cannot be shared."""
    return all(reason.limit is Limit.CORES and may_share for reason in reasons)


def _reasons(
    topology: Topology, layouts: Mapping[str, CpuLayout], cell: Cell, there: MemoryNode | None
) -> Iterator[Reason]:
    if lacks := no_such_kind(topology, cell):
        yield Reason(limit=Limit.KIND, text=lacks)
    if cannot := cannot_discriminate(topology):
        yield Reason(limit=Limit.DISCRIMINATOR, text=cannot)
    instances = len(cell.instances)
    if lack := too_few_cables(topology, instances):
        yield Reason(limit=Limit.LINKS, text=lack[0], needs=instances, there=lack[1])
    functions = len(topology.duts) * instances * cell.nf_nodes
    if too_many(cell, len(topology.duts)):
        text = f"needs addresses for {instances} instances and {functions} NFs, there are {MAX_INSTANCES} and {MAX_NFS}"
        yield Reason(limit=Limit.ADDRESSES, text=text)
    yield from core_shortages(topology, cell, layouts)
    yield from memory_shortages(topology, cell, there, next(iter(layouts.values())))


def core_usage(cell: Cell) -> float:
    """Physical cores used, as the slides of IETF 105 count them: vSwitch (1 main + data) and NFs, mains two to a core.

    A half is a core shared with something else. `2 + 1.5 S N` for vSwitch-1c NF-1c, `2 + S N` for NF-0.5c.
    """
    return 1 + cell.vs_dtc + sum(count * (size.cores + 0.5) for size, count in cell.sizes())

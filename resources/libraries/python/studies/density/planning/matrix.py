"""The matrix: which cells fit, how many cores they use, why the others do not fit, and the tests of those that run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.findings import Limit, Reason, sentence
from resources.libraries.python.model.request.cell import Cell, Frame, TestType
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryLayout, MemoryNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning import names
from resources.libraries.python.planning.address_bounds import MAX_INSTANCES, MAX_NFS, SOURCES_PER_FLOW
from resources.libraries.python.planning.edges import cannot_discriminate, edges_of, too_few_cables
from resources.libraries.python.planning.media import vswitch_of
from resources.libraries.python.planning.memory import node_of
from resources.libraries.python.planning.memory import shortages as memory_shortages
from resources.libraries.python.planning.placement.cache_ways import asks_for_ways, divide
from resources.libraries.python.planning.placement.cores import Layouts, layouts_of, place, shareable
from resources.libraries.python.planning.placement.cores import shortages as core_shortages
from resources.libraries.python.planning.placement.queues import (
    Balance,
    EdgePort,
    RxQueues,
    balance,
    edge_ports,
    port_warnings,
)
from resources.libraries.python.planning.plan import core_notes, kinds, no_such_kind, threads_per_nf
from resources.libraries.python.planning.service import ServiceLayout
from resources.libraries.python.planning.traffic import not_taken
from resources.libraries.python.planning.wiring import too_many
from resources.libraries.python.studies.density.model import RefusedCell
from resources.libraries.python.studies.density.planning.selection import Selection
from resources.libraries.python.studies.density.planning.tags import row_tags


@dataclass(frozen=True, slots=True)
class Candidate:
    """One cell of the matrix."""

    cell: Cell
    reasons: tuple[Reason, ...]
    """Everything that keeps it from fitting; empty when every data thread has its own place."""
    frames: tuple[Frame, ...] = ()
    """Frame sizes of the selection that can be sent through it; none when it cannot be run."""
    not_taken: Mapping[Frame, str] = field(default_factory=dict)
    """Reasons why others cannot."""
    cores: CoreMap | None = None
    """None when it cannot be run; so is what follows."""
    balance: Balance | None = None
    ports: tuple[EdgePort, ...] = ()
    """Physical ports of the vSwitches of a lab, with their receive queues."""
    port_warnings: tuple[str, ...] = ()
    """Reasons why these do not carry what they could."""
    core_notes: tuple[str, ...] = ()
    """Kinds of cores and last-level caches, where the machine has several."""

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
        return bool(self.frames)


def candidates(
    topology: Topology, layout: Layouts, selection: Selection, memory: MemoryLayout | None = None
) -> Iterator[Candidate]:
    """Look at every cell of a selection, in its order, and place the threads of those that can be run.

    `layout`: logical CPUs of the (first) DUT, or of nodes by name.
    `memory`: the DUT's memory where it was discovered; by default what the topology declares.
    """
    layouts, edges = layouts_of(topology, layout), edges_of(topology)
    maps: dict[tuple[object, ...], CoreMap] = {}
    for each in _checked(topology, layouts, selection, memory):
        if not each.runs:
            yield each
            continue
        cell = each.cell
        # The service type decides about links, not about cores: three types share a map.
        key = (cell.dimensions, cell.nf_sizes, cell.vs_dtc, cell.shared_nodes, cell.taps)
        if key not in maps:
            maps[key] = place(topology, cell, layouts)
        cores = maps[key]
        service = ServiceLayout(cell, kinds(topology, cell), edges)
        queues = RxQueues(service, cores, vswitch_of(topology.dut))
        ports = edge_ports(service, queues, cores, list(topology.duts), SOURCES_PER_FLOW)
        yield replace(
            each,
            cores=cores,
            balance=balance(cell, cores, one_cable=edges.one_cable, queues=queues),
            ports=ports,
            port_warnings=port_warnings(topology, ports),
            core_notes=core_notes(cell, cores, layouts),
        )


def _checked(
    topology: Topology, layouts: Mapping[str, CpuLayout], selection: Selection, memory: MemoryLayout | None
) -> Iterator[Candidate]:
    """Look at every cell of a selection; threads are placed only to see whether NFs can have cache ways."""
    there, may_share = node_of(topology, memory), shareable(topology, layouts)
    for cell in selection.cells():
        reasons = tuple(_reasons(topology, layouts, cell, there))
        if not _runs(reasons, may_share=may_share):
            yield Candidate(cell, reasons)
            continue
        if asks_for_ways(cell):
            try:
                divide(topology, cell, place(topology, cell, layouts), layouts)
            except PlanError as error:
                yield Candidate(cell, (*reasons, Reason(limit=Limit.CACHE, text=str(error))))
                continue
        of = kinds(topology, cell)
        refused = {frame: reason for frame in selection.frames if (reason := not_taken(topology, of, frame))}
        frames = tuple(frame for frame in selection.frames if frame not in refused)
        if not frames:
            lacks = (Reason(limit=Limit.TRAFFIC, text=reason) for reason in dict.fromkeys(refused.values()))
            reasons = (*reasons, *lacks)
        yield Candidate(cell, reasons, frames, refused)


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


@dataclass(frozen=True, slots=True)
class Row:
    """One test."""

    name: str
    tags: tuple[str, ...]
    cell: Cell
    frame: Frame

    @property
    def arguments(self) -> tuple[str | int, ...]:
        """Of the template keywords: type, chains, nodes, frame, NF size, vSwitch cores; NF kinds, cache ways."""
        cell, ways = self.cell, cache_ways_of(self.cell)
        kinds = ["+".join(cell.nf_kinds)] if cell.nf_kinds or ways else []
        size = (cell.service_type.value, *cell.dimensions)
        return (*size, self.frame.asked, cell.size_name, cell.vs_dtc, *kinds, *([ways] if ways else []))


def cache_ways_of(cell: Cell) -> int | None:
    """Cache ways of each NF of a cell of the matrix; None where they have none of their own."""
    return cell.limits[0].cache_ways if cell.limits else None


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A test that is left out because its cell does not fit."""

    refused: RefusedCell
    tags: tuple[str, ...]
    """That its test would have."""


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """Tests of a selection, and the cells that cannot be run."""

    rows: tuple[Row, ...]
    refused: tuple[RefusedRow, ...]


def make_rows(
    topology: Topology,
    layout: Layouts,
    selection: Selection,
    test_type: TestType,
    memory: MemoryLayout | None = None,
    *,
    soak: bool = False,
) -> PlannedRows:
    """Make the rows of one suite, small cells first.

    `layout`: Logical CPUs of the (first) DUT, or of nodes by name.
    `memory`: The DUT's memory where it was discovered.
    `soak`: Whether the search profile asks for one load over a long time.
    """
    layouts = layouts_of(topology, layout)
    looked_at = tuple(_checked(topology, layouts, selection, memory))
    first = next(iter(layouts.values()))
    return PlannedRows(
        rows=tuple(
            _row(topology, first, each.cell, frame, test_type, soak=soak)
            for frame in selection.frames
            for each in looked_at
            if frame in each.frames
        ),
        refused=tuple(
            RefusedRow(
                refused=RefusedCell(cell=each.cell, reason=each.not_taken.get(frame) or each.reason or ""),
                tags=_row(topology, first, each.cell, frame, test_type, soak=soak).tags,
            )
            for frame in selection.frames
            for each in looked_at
            if frame not in each.frames
        ),
    )


def cell_key(cell: Cell) -> str:
    """Name of a cell in the journal, the same for all frames and test types."""
    ways = f" {ways} cache ways" if (ways := cache_ways_of(cell)) else ""
    kinds = f" {'+'.join(cell.nf_kinds)}" if cell.nf_kinds else ""
    return f"{cell.service_type} {cell.locator} NF-{cell.size_name} vSwitch-{cell.vs_dtc}c{kinds}{ways}"


def journal_name(cell: Cell, frame: str, test_type: str) -> str:
    """Name of a test in the journal."""
    return f"{cell_key(cell)} {frame} {test_type}"


def _row(topology: Topology, layout: CpuLayout, cell: Cell, frame: Frame, test_type: TestType, *, soak: bool) -> Row:
    threads = threads_per_nf(cell, layout, topology.dut.numa_node)
    suite = names.suite_id(topology, cell, threads)
    return Row(
        name=names.test_name(suite, cell, frame, test_type),
        tags=row_tags(topology, cell, suite, layout, frame, test_type, soak=soak),
        cell=cell,
        frame=frame,
    )

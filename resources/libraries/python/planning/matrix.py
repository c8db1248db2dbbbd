"""The whole matrix: which cells fit, how many cores they use, why the others do not fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from resources.libraries.python.model.cell import Cell
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.memory import MemoryLayout, MemoryNode
from resources.libraries.python.model.plan import CoreMap
from resources.libraries.python.model.selection import Selection
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.balance import Balance, balance
from resources.libraries.python.planning.cores import allocate, demand, impossible
from resources.libraries.python.planning.memory import node_of, shortages
from resources.libraries.python.planning.plan import generator_cores, no_such_kind
from resources.libraries.python.planning.reasons import Limit, Reason, sentence
from resources.libraries.python.planning.wiring import MOST_INSTANCES, MOST_NFS


@dataclass(frozen=True, slots=True)
class Candidate:
    """One cell of the matrix."""

    cell: Cell
    reasons: tuple[Reason, ...]
    """Everything that keeps it from fitting; empty when every data thread has its own place."""
    cores: CoreMap | None
    """None when it cannot be run."""
    balance: Balance | None
    """Of queues and threads; None when it cannot be run."""

    @property
    def fits(self) -> bool:
        """Whether nothing runs out."""
        return not self.reasons

    @property
    def oversubscribed(self) -> bool:
        """Does not fit, but the topology allows to run it on shared cores."""
        return self.cores is not None and self.cores.oversubscribed

    @property
    def reason(self) -> str | None:
        """Why it does not fit, all reasons in one text."""
        return sentence(self.reasons)

    @property
    def runs(self) -> bool:
        """Whether a test of it can be run."""
        return self.cores is not None


def candidates(
    topology: Topology, layout: CpuLayout, selection: Selection, memory: MemoryLayout | None = None
) -> Iterator[Candidate]:
    """Look at every cell of a selection, in its order.

    Args:
        topology: The testbed.
        layout: The DUT's logical CPUs.
        selection: Which cells.
        memory: The DUT's memory where it was discovered; by default what the topology declares.
    """
    there = node_of(topology, memory)
    maps: dict[tuple[object, ...], CoreMap] = {}
    for cell in selection.cells():
        reasons = tuple(_reasons(topology, layout, cell, there))
        if not _runs(topology, layout, reasons):
            yield Candidate(cell, reasons, None, None)
            continue
        # The service type decides about links, not about cores: three types share a map.
        key = (cell.nf_chains, cell.nf_nodes, cell.nf_sizes, cell.vs_dtc)
        if key not in maps:
            maps[key] = _place(topology, layout, cell)
        yield Candidate(cell, reasons, maps[key], balance(cell, maps[key]))


def _runs(topology: Topology, layout: CpuLayout, reasons: tuple[Reason, ...]) -> bool:
    """Threads can take turns on a core, where the topology allows it. What is missing otherwise cannot be shared."""
    shareable = topology.dut.oversubscribe and bool(layout.cores(topology.dut.numa_node))
    return all(reason.limit is Limit.CORES and shareable for reason in reasons)


def _place(topology: Topology, layout: CpuLayout, cell: Cell) -> CoreMap:
    dut = topology.dut
    return allocate(
        cell,
        layout,
        dut.numa_node,
        dut.core_sharing,
        generator_cores=generator_cores(topology),
        oversubscribe=dut.oversubscribe,
    )


def _reasons(topology: Topology, layout: CpuLayout, cell: Cell, there: MemoryNode | None) -> Iterator[Reason]:
    dut = topology.dut
    if lacks := no_such_kind(topology, cell):
        yield Reason(limit=Limit.KIND, text=lacks)
    if cell.nf_chains > MOST_INSTANCES or cell.nf_count > MOST_NFS:
        text = (
            f"needs addresses for {cell.nf_chains} instances and {cell.nf_count} NFs, "
            f"there are {MOST_INSTANCES} and {MOST_NFS}"
        )
        yield Reason(limit=Limit.ADDRESSES, text=text)
    if half := impossible(cell, layout):
        yield Reason(limit=Limit.SMT, text=half)
    needs, has = demand(cell, dut.core_sharing, generator_cores(topology)).total, len(layout.cores(dut.numa_node))
    if needs > has:
        text = f"needs {needs} cores on NUMA {dut.numa_node}, {has} there"
        yield Reason(limit=Limit.CORES, text=text, needs=needs, there=has)
    yield from shortages(topology, cell, there)


def core_usage(cell: Cell) -> float:
    """Physical cores used, as the slides of IETF 105 count them: vSwitch (1 main + data) and NFs, mains two to a core.

    A half is a core shared with something else. `2 + 1.5 S N` for vSwitch-1c NF-1c, `2 + S N` for NF-0.5c.
    """
    sizes = [cell.size_of(node).cores for node in range(1, cell.nf_nodes + 1)]
    return 1 + cell.vs_dtc + cell.nf_chains * (sum(sizes) + 0.5 * cell.nf_nodes)


def core_usage_draft(cell: Cell) -> int:
    """Physical cores used by NFs alone, as the table of draft-mkonstan-nf-service-density-01 counts them.

    `ceil(1.5 S N)` for NF-1c: the vSwitch is left out, shared cores are rounded up.
    """
    return ceil(core_usage(cell) - 1 - cell.vs_dtc)

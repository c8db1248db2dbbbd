"""The whole matrix: which cells fit, how many cores they use, why the others do not fit."""

from collections.abc import Iterator
from contextlib import suppress
from math import ceil

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Cell
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.plan import CoreMap
from resources.libraries.python.model.selection import Selection
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.cores import allocate, refusal
from resources.libraries.python.planning.plan import generator_cores, no_such_kind
from resources.libraries.python.planning.wiring import MOST_INSTANCES, MOST_NFS


class Candidate(Frozen):
    """One cell of the matrix."""

    cell: Cell
    fits: bool
    """Every data thread has its own place."""
    oversubscribed: bool
    """Does not fit, but the topology allows to run it on shared cores."""
    reason: str | None
    """Why it does not fit."""
    cores: CoreMap | None
    """None when it cannot be run."""

    @property
    def runs(self) -> bool:
        """Whether a test of it can be run."""
        return self.cores is not None


def candidates(topology: Topology, layout: CpuLayout, selection: Selection) -> Iterator[Candidate]:
    """Look at every cell of a selection, in its order."""
    for cell in selection.cells():
        yield candidate(topology, layout, cell)


def candidate(topology: Topology, layout: CpuLayout, cell: Cell) -> Candidate:
    """Look at one cell."""
    dut, cores = topology.dut, generator_cores(topology)
    reason = unsupported(topology, cell)
    core_map: CoreMap | None = None
    if reason is None:
        reason = refusal(cell, layout, dut.numa_node, dut.core_sharing, cores)
        with suppress(PlanError):
            core_map = allocate(
                cell, layout, dut.numa_node, dut.core_sharing, generator_cores=cores, oversubscribe=dut.oversubscribe
            )
    return Candidate(
        cell=cell,
        fits=reason is None,
        oversubscribed=core_map is not None and core_map.oversubscribed,
        reason=reason,
        cores=core_map,
    )


def unsupported(topology: Topology, cell: Cell) -> str | None:
    """Say why a testbed cannot run a cell however many cores it has; None when it can."""
    if reason := no_such_kind(topology, cell):
        return reason
    if cell.nf_chains > MOST_INSTANCES or cell.nf_count > MOST_NFS:
        return (
            f"needs addresses for {cell.nf_chains} instances and {cell.nf_count} NFs, "
            f"there are {MOST_INSTANCES} and {MOST_NFS}"
        )
    return None


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

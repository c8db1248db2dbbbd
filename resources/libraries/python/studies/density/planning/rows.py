"""Rows of the Robot suites: one test per cell that can be run, with its name, tags and arguments."""

from dataclasses import dataclass

from resources.libraries.python.model.request.cell import Cell, Frame, TestType
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning import names
from resources.libraries.python.planning.placement.machines import Layouts, layouts_of
from resources.libraries.python.planning.plan import threads_per_nf
from resources.libraries.python.studies.density.model.record import RefusedCell
from resources.libraries.python.studies.density.model.selection import Selection
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates
from resources.libraries.python.studies.density.planning.tags import row_tags


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

    `layout`: logical CPUs of the (first) DUT, or of nodes by name.
    `memory`: the DUT's memory where it was discovered.
    `soak`: whether the search profile asks for one load over a long time.
    """
    looked_at = tuple(candidates(topology, layout, selection, memory))
    first = next(iter(layouts_of(topology, layout).values()))
    return PlannedRows(
        rows=tuple(
            _row(topology, first, each.cell, frame, test_type, soak=soak)
            for frame in selection.frames
            for each in looked_at
            if frame in each.frames
        ),
        refused=tuple(
            _refused(topology, first, each, frame, test_type, soak=soak)
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


def _refused(
    topology: Topology, layout: CpuLayout, candidate: Candidate, frame: Frame, test_type: TestType, *, soak: bool
) -> RefusedRow:
    cell = candidate.cell
    return RefusedRow(
        refused=RefusedCell(cell=cell, reason=candidate.not_taken.get(frame) or candidate.reason or ""),
        tags=_row(topology, layout, cell, frame, test_type, soak=soak).tags,
    )


def _row(topology: Topology, layout: CpuLayout, cell: Cell, frame: Frame, test_type: TestType, *, soak: bool) -> Row:
    threads = threads_per_nf(cell, layout, topology.dut.numa_node)
    suite = names.suite_id(topology, cell, threads)
    return Row(
        name=names.test_name(suite, cell, frame, test_type),
        tags=row_tags(topology, cell, suite, layout, frame, test_type, soak=soak),
        cell=cell,
        frame=frame,
    )

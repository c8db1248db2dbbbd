"""Cells whose call stacks were sampled on both sides of a comparison."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from csit_utils.analysis.flames import StackDifference, StackSide, differences
from csit_utils.dataset.rows import TestRow
from csit_utils.report.details.flames import FlameGraph, cost_table, difference_graph
from csit_utils.report.units import percent
from resources.libraries.python.model.measurements.stacks import Stacks
from resources.libraries.python.studies.density.model import DensityRecord

MAX_RUNS = 10
"""Runs of a side whose stacks are read, the newest ones: later ones would change little."""
Record = Callable[[str], DensityRecord]
"""Gives the record of a test by its anchor."""


@dataclass(frozen=True)
class CellStacks:
    """A cell on both sides."""

    name: str
    """`CSC 1x1 NF-1c vSwitch-1c 64B`."""
    a: StackSide
    b: StackSide
    simulated: bool
    remarks: tuple[str, ...] = ()
    per_packet: bool = False
    """Whether times per packet are compared in the place of shares: where both sides have the same load."""
    sides: tuple[str, str] = ("A", "B")
    """Names of the sides."""

    def differences(self) -> tuple[StackDifference, ...]:
        """Return all functions of both sides."""
        return differences(self.a, self.b, per_packet=self.per_packet)

    def graph(self, caption: str) -> FlameGraph | None:
        """Return the differential flame graph with the remarks; None where a side has nothing to show."""
        found = difference_graph(self.a, self.b, caption, simulated=self.simulated, per_packet=self.per_packet)
        if found is None:
            return None
        tables = (
            cost_table(side.runs[-1].costs, simulated=self.simulated, of=name)
            for name, side in zip(self.sides, (self.a, self.b), strict=True)
        )
        costs = tuple(each for each in tables if each is not None) if self.per_packet else ()
        return replace(found, notes=tuple(f"{remark[:1].upper()}{remark[1:]}." for remark in self.remarks), costs=costs)


def cells_with_stacks(a: Sequence[TestRow], b: Sequence[TestRow], record: Record) -> Iterator[CellStacks]:
    """Yield the cells with stacks on both sides, in the order of A.

    Simulated and measured stacks are never compared.

    `record`: gives their records; only those with stacks are read.
    """
    of_a, of_b = _by_cell(a), _by_cell(b)
    for cell in of_a:
        if cell in of_b:
            one, other = (StackSide(tuple(_stacks(rows, record))) for rows in (of_a[cell], of_b[cell]))
            if one.total and other.total:
                simulated, service, dimensions, nf_size, vs_dtc, frame = cell
                name = f"{service} {dimensions} NF-{nf_size} vSwitch-{vs_dtc}c {frame}"
                yield CellStacks(name, one, other, bool(simulated), tuple(remarks(one, other)))


def _by_cell(rows: Sequence[TestRow]) -> dict[tuple[object, ...], list[TestRow]]:
    found: dict[tuple[object, ...], list[TestRow]] = {}
    for row in sorted(rows, key=lambda row: row.started_at or ""):
        if row.call_stacks:
            cell = (row.simulated, row.service_type, row.dimensions, row.nf_size, row.vs_dtc, row.frame)
            found.setdefault(cell, []).append(row)
    return {cell: each[-MAX_RUNS:] for cell, each in found.items()}


def _stacks(rows: Sequence[TestRow], record: Record) -> Iterator[Stacks]:
    for row in rows:
        found = record(row.anchor).stacks
        if found is not None:
            yield found


def remarks(a: StackSide, b: StackSide) -> Iterator[str]:
    """Yield what else differs between two sides than the system, as clauses."""
    events = [sorted({node.event for run in side.runs for node in run.nodes}) for side in (a, b)]
    if events[0] != events[1]:
        yield f"sampled by {', '.join(events[0])} and by {', '.join(events[1])}"
    labels = [sorted({run.label for run in side.runs}) for side in (a, b)]
    if labels[0] != labels[1]:
        yield f"sampled at {', '.join(labels[0])} and at {', '.join(labels[1])}"
    if len(a.runs) == len(b.runs) == 1:
        yield "one run per side: what differs between two deployments of one system counts as a change"


MAX_GRAPHS = 12
"""Differential flame graphs of a page, each of some 50 kB."""


@dataclass(frozen=True)
class DifferenceGraphs:
    """Differential flame graphs of a page."""

    graphs: tuple[FlameGraph, ...]
    left_out: int
    """Those beyond `MAX_GRAPHS`."""


def difference_graphs(found: Iterable[tuple[str, CellStacks]]) -> DifferenceGraphs:
    """Return the graphs of cells with their captions, the first ones."""
    graphs: list[FlameGraph] = []
    left_out = 0
    for caption, cell in found:
        if len(graphs) >= MAX_GRAPHS:
            left_out += 1
            continue
        if (graph := cell.graph(caption)) is not None:
            graphs.append(graph)
    return DifferenceGraphs(tuple(graphs), left_out)


_MAX_NAMED = 3


def grown(cell: CellStacks) -> tuple[str, ...]:
    """Return the functions that have grown themselves most beyond the noise of sampling, a sentence each."""

    def own(row: StackDifference) -> tuple[float, float]:
        return (row.own_ns_a or 0.0, row.own_ns_b or 0.0) if cell.per_packet else (row.own_a, row.own_b)

    rows = [row for row in cell.differences() if row.function and row.significant and own(row)[1] > own(row)[0]]
    rows.sort(key=lambda row: own(row)[0] - own(row)[1])
    return tuple(f"{row.function} of {row.owner} takes {_amounts(row, cell.per_packet)}" for row in rows[:_MAX_NAMED])


def _amounts(row: StackDifference, per_packet: bool) -> str:
    if per_packet:
        return f"{row.ns_b:.0f} ns per packet, {row.ns_a:.0f} in the reference"
    return f"{percent(row.share_b)} of the CPU time, {percent(row.share_a)} before"

"""Cells whose call stacks were sampled on both sides of a comparison."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from csit_utils.analysis.flames import StackSide, differences
from csit_utils.dataset.items import Recorded
from csit_utils.dataset.rows import TestRow
from csit_utils.report.details.flames import FlameGraph, difference_graph
from csit_utils.report.units import percent
from resources.libraries.python.model.stacks import Stacks

MOST_RUNS = 10
"""Runs of a side whose stacks are read, the newest ones: later ones would change little."""
Record = Callable[[str], Recorded]
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


def cells_with_stacks(a: Sequence[TestRow], b: Sequence[TestRow], record: Record) -> Iterator[CellStacks]:
    """Yield the cells with stacks on both sides, in the order of A.

    Simulated and measured stacks are never compared.

    Args:
        a: Tests of the baseline.
        b: Tests to compare with it.
        record: Gives their records; only those with stacks are read.
    """
    of_a, of_b = _by_cell(a), _by_cell(b)
    for cell in of_a:
        if cell in of_b:
            one, other = (StackSide(tuple(_stacks(rows, record))) for rows in (of_a[cell], of_b[cell]))
            if one.total and other.total:
                yield CellStacks(_name(cell), one, other, bool(cell[0]), tuple(_remarks(one, other)))


def _by_cell(rows: Sequence[TestRow]) -> dict[tuple[object, ...], list[TestRow]]:
    found: dict[tuple[object, ...], list[TestRow]] = {}
    for row in sorted(rows, key=lambda row: row.started_at or ""):
        if row.call_stacks:
            cell = (row.simulated, row.service_type, row.dimensions, row.nf_size, row.vs_dtc, row.frame)
            found.setdefault(cell, []).append(row)
    return {cell: each[-MOST_RUNS:] for cell, each in found.items()}


def _name(cell: tuple[object, ...]) -> str:
    _, service, dimensions, nf_size, vs_dtc, frame = cell
    return f"{service} {dimensions} NF-{nf_size} vSwitch-{vs_dtc}c {frame}"


def _stacks(rows: Sequence[TestRow], record: Record) -> Iterator[Stacks]:
    for row in rows:
        found = record(row.anchor).result.stacks
        if found is not None:
            yield found


def _remarks(a: StackSide, b: StackSide) -> Iterator[str]:
    events = [sorted({node.event for run in side.runs for node in run.nodes}) for side in (a, b)]
    if events[0] != events[1]:
        yield f"sampled by {', '.join(events[0])} and by {', '.join(events[1])}"
    labels = [sorted({run.label for run in side.runs}) for side in (a, b)]
    if labels[0] != labels[1]:
        yield f"sampled at {', '.join(labels[0])} and at {', '.join(labels[1])}"
    if len(a.runs) == len(b.runs) == 1:
        yield "one run per side: what differs between two deployments of one system counts as a change"


MOST_GRAPHS = 12
"""Differential flame graphs of a page, each of some 50 kB."""


@dataclass(frozen=True)
class DifferenceGraphs:
    """Differential flame graphs of a page."""

    graphs: tuple[FlameGraph, ...]
    left_out: int
    """Those beyond `MOST_GRAPHS`."""


def difference_graphs(found: Iterable[tuple[str, CellStacks]]) -> DifferenceGraphs:
    """Return the graphs of cells with their captions, the first ones."""
    graphs: list[FlameGraph] = []
    left_out = 0
    for caption, cell in found:
        if len(graphs) >= MOST_GRAPHS:
            left_out += 1
            continue
        graph = difference_graph(cell.a, cell.b, caption, simulated=cell.simulated)
        if graph is not None:
            graphs.append(replace(graph, notes=(*graph.notes, *(f"{remark.capitalize()}." for remark in cell.remarks))))
    return DifferenceGraphs(tuple(graphs), left_out)


_MOST_NAMED = 3


def grown(cell: CellStacks) -> tuple[str, ...]:
    """Return the functions whose own share has grown most beyond the noise of sampling, a sentence each."""
    rows = [row for row in differences(cell.a, cell.b) if row.function and row.significant and row.own_b > row.own_a]
    rows.sort(key=lambda row: row.own_a - row.own_b)
    return tuple(
        f"{row.function} of {row.owner} takes {percent(row.share_b)} of the CPU time, {percent(row.share_a)} before"
        for row in rows[:_MOST_NAMED]
    )

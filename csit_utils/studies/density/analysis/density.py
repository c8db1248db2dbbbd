"""The density matrix: rows are service instances, columns are NFs per instance; which test each cell shows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import hypot
from statistics import fmean, stdev

from csit_utils.analysis.causes import QUARANTINED
from csit_utils.analysis.grouping import (
    Series,
    ThroughputBounds,
    asks_for,
    belongs,
    bounds,
    error_of,
    series_of,
    systems_by_source,
)
from csit_utils.dataset.items import Refusal
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import THROUGHPUTS, TestRow
from resources.libraries.python.studies.density.model import RefusedCell

Place = tuple[int, int]
"""Service instances, NFs per instance."""
_SHORT = {
    "no-traffic": "no traffic",
    "generator-bound": "TG",
    "vswitch-bound": "vSwitch",
    "nf-bound": "NF",
    "below-range": "below range",
    "affinity-lost": "moved",
    "host-noise": "host",
    "unqualified": "TG?",
    "oversubscribed": "shared",
}
"""Short forms of verdicts."""


def cell_name(row: TestRow) -> str:
    """Return service type and size; the name of a test without a place in a matrix."""
    return f"{row.service_type} {row.dimensions}" if row.service_type and row.dimensions else row.test_name


def verdict_of(row: TestRow, metric: Measure) -> tuple[str, ...]:
    """Return the verdict kinds of a figure, most important first; those of the whole test if the row has no others."""
    own: str | None = getattr(row, f"{metric.lower()}_verdict")
    return tuple((own or row.verdicts).split())


def verdict_of_runs(runs: Iterable[TestRow], metric: Measure) -> tuple[str, ...]:
    """Return the verdict kinds of a figure over several runs of a cell."""
    return tuple(dict.fromkeys(kind for row in runs for kind in verdict_of(row, metric)))


def short(kinds: Iterable[str]) -> str:
    """Return a verdict in a word or two; kinds with their own mark (oversubscribed) only if there are no others."""
    every = list(kinds)
    chosen = [kind for kind in every if kind != "oversubscribed"] or every
    return ", ".join(_SHORT.get(kind, kind) for kind in chosen[:2])


class CellState(StrEnum):
    """State of a cell of the matrix."""

    VALUE = "value"
    AT_LEAST = "at least"
    """The generator could offer no more."""
    BELOW = "below"
    """No load was low enough."""
    FAILED = "failed"
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"
    """It broke the system under test in every attempt, in this test or in another one."""
    DOES_NOT_FIT = "does not fit"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class MatrixCell:
    """One cell. Several runs are averaged; `spread_pps` is their standard deviation."""

    state: CellState
    value_pps: float | None = None
    """Mean of the lower bounds; for `BELOW` the load it is below of."""
    upper_pps: float | None = None
    spread_pps: float | None = None
    """Sample standard deviation of several runs."""
    noise_pps: float = 0.0
    """Standard error of a mean of trials (MRR); 0 for a search, which has bounds."""
    runs: tuple[TestRow, ...] = ()
    relative: float | None = None
    """Share of the throughput of the 1x1 cell."""
    oversubscribed: bool = False
    complete: bool = True
    reason: str = ""
    """Reason why there is no value."""


@dataclass(frozen=True)
class Matrix:
    """All cells of one series and metric."""

    series: Series
    metric: Measure
    chains: tuple[int, ...]
    nodes: tuple[int, ...]
    cells: dict[Place, MatrixCell]

    def values(self) -> list[float]:
        """All rates in the matrix."""
        return [cell.value_pps for cell in self.cells.values() if cell.value_pps is not None]


def refusals(rows: Iterable[TestRow], series: Series, refused: Iterable[Refusal]) -> dict[Place, RefusedCell]:
    """Cells that do not fit on the testbed of a series, as the files say that its tests come from."""
    sources = {row.source for row in rows if series_of(row) == series}
    mine = (series.service_type, series.nf_size, series.vs_dtc)
    return {
        cell.dimensions: one.refused
        for one in refused
        if one.source in sources
        and (cell := one.refused.cell)
        and (cell.service_type.value, cell.size_name, cell.vs_dtc) == mine
    }


def matrices(rows: Sequence[TestRow], series: Series, refused: Iterable[Refusal] = ()) -> list[Matrix]:
    """A matrix per metric for which the series has any figure. All have the same rows and columns.

    `refused`: cells for which there is no test because they do not fit.
    """
    sources = systems_by_source(rows)
    mine = [row for row in rows if belongs(row, series, sources.get(row.source))]
    placed, left_out, chains, nodes = _places(mine, series, refused)
    found = []
    for metric in THROUGHPUTS:
        cells = {(s, n): _cell(placed.get((s, n), []), metric, left_out.get((s, n))) for s in chains for n in nodes}
        if any(cell.value_pps is not None for cell in cells.values()):
            found.append(Matrix(series, metric, chains, nodes, _relate(cells)))
    return found


def _places(
    rows: Iterable[TestRow], series: Series, refused: Iterable[Refusal]
) -> tuple[dict[Place, list[TestRow]], dict[Place, RefusedCell], tuple[int, ...], tuple[int, ...]]:
    """Tests, and cells that do not fit, by place, and all their numbers of instances and of NFs."""
    placed: dict[Place, list[TestRow]] = {}
    for row in rows:
        if (at := row.dimensions) is not None:
            placed.setdefault(at, []).append(row)
    left_out = refusals(rows, series, refused)
    chains, nodes = (tuple(sorted({place[axis] for place in (*placed, *left_out)})) for axis in (0, 1))
    return placed, left_out, chains, nodes


def _cell(rows: list[TestRow], metric: Measure, refused: RefusedCell | None) -> MatrixCell:
    asked = [row for row in rows if asks_for(row, metric)]
    # A latency test finds a PDR on its way, with less evidence: it stands in where no test asked for PDR itself.
    measured = _found(asked, metric) or _found(rows, metric)
    if not measured and not rows and refused is not None:
        return MatrixCell(CellState.DOES_NOT_FIT, reason=refused.reason)
    if not measured:
        return empty_cell(asked)
    runs = tuple(row for row, _ in measured)
    marks = {
        "runs": runs,
        "oversubscribed": any(row.oversubscribed for row in runs),
        "complete": all(found.complete for _, found in measured),
    }
    lowers = [found.lower for _, found in measured if found.lower is not None]
    if len(lowers) < len(measured):
        # One run without a lower bound makes every mean a guess; what is sure is the load that was too much.
        tried = max(found.upper for _, found in measured if found.lower is None and found.upper is not None)
        return MatrixCell(CellState.BELOW, tried, **marks)  # type: ignore[arg-type]
    uppers = [found.upper for _, found in measured if found.upper is not None]
    return MatrixCell(
        CellState.VALUE if len(uppers) == len(measured) else CellState.AT_LEAST,
        fmean(lowers),
        fmean(uppers) if len(uppers) == len(measured) else None,
        stdev(lowers) if len(lowers) > 1 else None,
        _noise(runs, metric),
        **marks,  # type: ignore[arg-type]
    )


def _noise(runs: tuple[TestRow, ...], metric: Measure) -> float:
    """Standard error of the mean over all runs, from the scatter inside each of them."""
    errors = [error_of(row, metric) for row in runs]
    return hypot(*errors) / len(errors)


def _found(rows: list[TestRow], metric: Measure) -> list[tuple[TestRow, ThroughputBounds]]:
    return [(row, found) for row in rows if (found := bounds(row, metric)) is not None]


def empty_cell(rows: list[TestRow]) -> MatrixCell:
    """The reason for a hole: the last test that should have filled it."""
    if not rows:
        return MatrixCell(CellState.NOT_RUN, reason="no test of this cell in the files read")
    row = rows[-1]
    if row.unfit:
        state = CellState.DOES_NOT_FIT
    elif row.status != "PASS" and row.message.startswith(QUARANTINED):
        state = CellState.QUARANTINED
    elif row.status == "SKIP":
        state = CellState.SKIPPED
    else:
        state = CellState.FAILED
    return MatrixCell(state, runs=(row,), reason=row.message or row.evidence or "no reason was recorded")


def _relate(cells: dict[Place, MatrixCell]) -> dict[Place, MatrixCell]:
    base = cells.get((1, 1))
    if base is None or base.state is not CellState.VALUE or not base.value_pps:
        return cells
    return {
        place: replace(cell, relative=cell.value_pps / base.value_pps)
        if cell.state is CellState.VALUE and cell.value_pps is not None
        else cell
        for place, cell in cells.items()
    }


@dataclass(frozen=True)
class PlacedCell:
    """One cell."""

    row: TestRow | None
    """The newest test that has it; None where none has."""
    tests: int
    """Number of cells with it."""
    state: CellState
    """`VALUE` with a test; why there is none otherwise."""
    reason: str = ""


@dataclass(frozen=True)
class SeriesLayout:
    """All cells of a series."""

    series: Series
    chains: tuple[int, ...]
    nodes: tuple[int, ...]
    cells: dict[Place, PlacedCell]

    def found(self) -> Iterator[tuple[Place, TestRow]]:
        """Cells that have a test, row by row."""
        for place, cell in sorted(self.cells.items()):
            if cell.row is not None:
                yield place, cell.row

    def named(self) -> Iterator[tuple[TestRow, str, str]]:
        """Tests, with the names of their cells and of sizes and frame."""
        sizes = ", ".join(filter(None, (self.series.sizes, self.series.frame)))
        return ((row, f"{self.series.service_type} {place[0]}x{place[1]}", sizes) for place, row in self.found())


def layouts(
    rows: Sequence[TestRow],
    has: Callable[[TestRow], bool],
    refused: Iterable[Refusal] = (),
    missing: str = "",
    test_type: str = "",
) -> list[SeriesLayout]:
    """A layout for each series in which at least one test has what is asked for; measured systems first.

    `has`: whether a test has it.
    `refused`: cells for which there is no test because they do not fit.
    `missing`: said of cells whose tests passed and do not have it.
    `test_type`: tests of this type come before newer ones of other types.
    """
    refused = list(refused)
    by_series: dict[Series, list[TestRow]] = {}
    rest = []
    for row in rows:
        series = series_of(row)
        if series is None:
            rest.append(row)
        else:
            by_series.setdefault(series, []).append(row)
    sources = systems_by_source(rows)
    found = []
    for series, own in sorted(by_series.items()):
        if not any(map(has, own)):
            continue
        lost = [row for row in rest if belongs(row, series, sources.get(row.source))]
        tests, left_out, chains, nodes = _places([*own, *lost], series, refused)
        cells = {
            (s, n): _placed(tests.get((s, n), []), has, left_out.get((s, n)), missing, test_type)
            for s in chains
            for n in nodes
        }
        found.append(SeriesLayout(series, chains, nodes, cells))
    return found


def _placed(
    rows: list[TestRow], has: Callable[[TestRow], bool], refused: RefusedCell | None, missing: str, test_type: str
) -> PlacedCell:
    having = [row for row in rows if has(row)]
    if having:
        newest = max(having, key=lambda row: (row.test_type == test_type, row.started_at or ""))
        return PlacedCell(newest, len(having), CellState.VALUE)
    if not rows and refused is not None:
        return PlacedCell(None, 0, CellState.DOES_NOT_FIT, refused.reason)
    bad = [row for row in rows if row.status != "PASS"]
    if rows and not bad:
        return PlacedCell(None, 0, CellState.NOT_RUN, missing)
    empty = empty_cell(bad)
    return PlacedCell(None, 0, empty.state, empty.reason)

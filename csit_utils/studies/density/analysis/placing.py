"""Layout of tests in the density matrix: of each cell the newest with the requested data, or why there is none."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import Series, belongs, series_of, systems_by_source
from csit_utils.dataset.items import Refusal
from csit_utils.dataset.rows import TestRow
from csit_utils.studies.density.analysis.density import CellState, empty_cell, refusals
from resources.libraries.python.studies.density.model.refused import RefusedCell

Place = tuple[int, int]
"""Service instances, NFs per instance."""


@dataclass(frozen=True)
class Placed:
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
    cells: dict[Place, Placed]

    def found(self) -> Iterator[tuple[Place, TestRow]]:
        """Cells that have a test, row by row."""
        for place, cell in sorted(self.cells.items()):
            if cell.row is not None:
                yield place, cell.row


def layouts(
    rows: Sequence[TestRow],
    has: Callable[[TestRow], bool],
    refused: Iterable[Refusal] = (),
    missing: str = "",
    test_type: str = "",
) -> list[SeriesLayout]:
    """A layout for each series in which at least one test has what is asked for; measured systems first.

    Args:
        rows: All tests.
        has: Whether a test has it.
        refused: Cells for which there is no test because they do not fit.
        missing: Said of cells whose tests passed and do not have it.
        test_type: Tests of this type come before newer ones of other types.
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
        found.append(_layout(series, [*own, *lost], has, refused, missing, test_type))
    return found


def _layout(  # noqa: PLR0917 - as `layouts`
    series: Series,
    rows: Sequence[TestRow],
    has: Callable[[TestRow], bool],
    refused: list[Refusal],
    missing: str,
    test_type: str,
) -> SeriesLayout:
    tests: dict[Place, list[TestRow]] = {}
    for row in rows:
        if (at := row.dimensions) is not None:
            tests.setdefault(at, []).append(row)
    left_out = refusals(rows, series, refused)
    chains = tuple(sorted({place[0] for place in (*tests, *left_out)}))
    nodes = tuple(sorted({place[1] for place in (*tests, *left_out)}))
    cells = {
        (s, n): _placed(tests.get((s, n), []), has, left_out.get((s, n)), missing, test_type)
        for s in chains
        for n in nodes
    }
    return SeriesLayout(series, chains, nodes, cells)


def _placed(
    rows: list[TestRow], has: Callable[[TestRow], bool], refused: RefusedCell | None, missing: str, test_type: str
) -> Placed:
    having = [row for row in rows if has(row)]
    if having:
        newest = max(having, key=lambda row: (row.test_type == test_type, row.started_at or ""))
        return Placed(newest, len(having), CellState.VALUE)
    if not rows and refused is not None:
        return Placed(None, 0, CellState.DOES_NOT_FIT, refused.reason)
    bad = [row for row in rows if row.status != "PASS"]
    if rows and not bad:
        return Placed(None, 0, CellState.NOT_RUN, missing)
    empty = empty_cell(bad)
    return Placed(None, 0, empty.state, empty.reason)

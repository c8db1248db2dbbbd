"""Heat map of one density matrix."""

from collections.abc import Callable

from csit_utils.dataset.rows import TestRow
from csit_utils.report.cell_maps import CellMap, MapSquare
from csit_utils.studies.density.analysis.density import CellState, Place, PlacedCell, SeriesLayout

_CORNER = ("NFs per service instance", "instances")


def matrix_map(
    layout: SeriesLayout,
    name: str,
    missing: str,
    word: str,
    shown: Callable[[str, Place, TestRow, tuple[str, ...]], MapSquare],
) -> CellMap:
    """The map of one matrix.

    `missing`: text for cells whose tests passed without the quantity.
    `word`: the same in the cell itself.
    `shown`: a cell with a test that has it, from the cell's name and place, the test, and what the reader chose.
    """

    def square(line: int, column: int, choice: tuple[str, ...]) -> MapSquare:
        place = layout.chains[line], layout.nodes[column]
        where = f"{layout.series.service_type} {place[0]}x{place[1]}"
        cell = layout.cells[place]
        if cell.state is not CellState.VALUE or cell.row is None:
            return _empty(where, cell, missing, word)
        return shown(where, place, cell.row, choice)

    return CellMap(name, _CORNER, *_heads(layout), _hrefs(layout), square)


def _hrefs(layout: SeriesLayout) -> tuple[tuple[str | None, ...], ...]:
    """Links of all cells to the tests that they show."""
    return tuple(
        tuple(f"#{cell.row.anchor}" if (cell := layout.cells[s, n]).row else None for n in layout.nodes)
        for s in layout.chains
    )


def _heads(layout: SeriesLayout) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of columns and of lines."""
    return tuple(map(str, layout.nodes)), tuple(map(str, layout.chains))


def _empty(where: str, cell: PlacedCell, missing: str, word: str) -> MapSquare:
    """A cell without a test that has what is shown.

    `missing`: text for cells whose tests passed without it.
    `word`: the same in the cell itself.
    """
    passed = cell.state is CellState.NOT_RUN and cell.reason == missing
    return MapSquare(word if passed else cell.state, f"{where}: {cell.reason}", state=cell.state.replace(" ", "-"))

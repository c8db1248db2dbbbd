"""What maps of the density matrix have in common."""

from csit_utils.analysis.density import CellState
from csit_utils.analysis.placing import Layout, Placed
from csit_utils.report.cell_maps import Square

CORNER = ("NFs per service instance", "services")


def hrefs(layout: Layout) -> tuple[tuple[str | None, ...], ...]:
    """Links of all cells to the tests that they show."""
    return tuple(
        tuple(f"#{cell.row.anchor}" if (cell := layout.cells[s, n]).row else None for n in layout.nodes)
        for s in layout.chains
    )


def heads(layout: Layout) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of columns and of lines."""
    return tuple(map(str, layout.nodes)), tuple(map(str, layout.chains))


def empty(where: str, cell: Placed, missing: str, word: str) -> Square:
    """A cell without a test that has what is shown.

    Args:
        where: The cell's name.
        cell: The cell.
        missing: What is said of cells whose tests passed and do not have it.
        word: The same in the cell itself.
    """
    passed = cell.state is CellState.NOT_RUN and cell.reason == missing
    return Square(word if passed else cell.state, f"{where}: {cell.reason}", state=cell.state.replace(" ", "-"))

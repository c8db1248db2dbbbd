"""How throughput changes as services or NFs are added, as facts."""

from collections.abc import Iterable
from dataclasses import dataclass

from csit_utils.analysis.density import CellState, Matrix


@dataclass(frozen=True)
class Change:
    """From the smallest to the largest cell along one axis of a matrix."""

    matrix: Matrix
    axis: str
    """`services` or `NFs`."""
    start: tuple[int, int]
    end: tuple[int, int]
    start_pps: float
    end_pps: float
    resolved: bool
    """Whether the bounds of the two cells are apart: only then is it a change at all."""

    @property
    def ratio(self) -> float:
        """Relative change."""
        return self.end_pps / self.start_pps - 1


def changes(found: Iterable[Matrix]) -> list[Change]:
    """For each matrix: adding services to the shortest service, and adding NFs to the fewest services."""
    result = []
    for matrix in found:
        valued = [place for place, cell in matrix.cells.items() if cell.state is CellState.VALUE and cell.value_pps]
        if not valued:
            continue
        first_node = min(place[1] for place in valued)
        first_chain = min(place[0] for place in valued)
        by_services = [place for place in valued if place[1] == first_node]
        by_nodes = [place for place in valued if place[0] == first_chain]
        for axis, places in (("services", by_services), ("NFs", by_nodes)):
            if len(places) > 1:
                result.append(_change(matrix, axis, min(places), max(places)))
    return result


def _change(matrix: Matrix, axis: str, start: tuple[int, int], end: tuple[int, int]) -> Change:
    one, other = matrix.cells[start], matrix.cells[end]
    low, high = sorted((one, other), key=lambda cell: cell.value_pps or 0.0)
    apart = (low.upper_pps or low.value_pps or 0.0) < (high.value_pps or 0.0)
    return Change(matrix, axis, start, end, one.value_pps or 0.0, other.value_pps or 0.0, apart)

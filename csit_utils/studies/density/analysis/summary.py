"""Changes of throughput with the number of services or NFs."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot

from csit_utils.studies.density.analysis.density import CellState, Matrix


@dataclass(frozen=True)
class AxisChange:
    """From the smallest to the largest cell along one axis of a matrix."""

    matrix: Matrix
    axis: str
    """`services` or `NFs`."""
    start: tuple[int, int]
    end: tuple[int, int]
    start_pps: float
    end_pps: float
    resolved: bool
    """Whether the difference exceeds bounds and noise."""

    @property
    def ratio(self) -> float | None:
        """Relative change; None where one of the two is a limit."""
        return self.end_pps / self.start_pps - 1 if self.exact else None

    @property
    def exact(self) -> bool:
        """Whether both are figures and not limits."""
        return all(self.matrix.cells[at].state is CellState.VALUE for at in (self.start, self.end))


def changes(found: Iterable[Matrix]) -> list[AxisChange]:
    """For each matrix: adding services to the shortest service, and adding NFs to the fewest services."""
    result = []
    for matrix in found:
        valued = [place for place, cell in matrix.cells.items() if cell.value_pps]
        if not valued:
            continue
        first_node = min(place[1] for place in valued)
        first_chain = min(place[0] for place in valued)
        by_services = [place for place in valued if place[1] == first_node]
        by_nodes = [place for place in valued if place[0] == first_chain]
        for axis, places in (("services", by_services), ("NFs", by_nodes)):
            change = _change(matrix, axis, min(places), max(places)) if len(places) > 1 else None
            if change is not None:
                result.append(change)
    return result


def _change(matrix: Matrix, axis: str, start: tuple[int, int], end: tuple[int, int]) -> AxisChange | None:
    """The change, or None where limits leave open which of the two is more."""
    one, other = matrix.cells[start], matrix.cells[end]
    low, high = sorted((one, other), key=lambda cell: cell.value_pps or 0.0)
    if low.state is CellState.AT_LEAST or high.state is CellState.BELOW:
        return None
    reach = max(low.upper_pps or 0.0, low.value_pps or 0.0) + 2 * hypot(low.noise_pps, high.noise_pps)
    return AxisChange(
        matrix, axis, start, end, one.value_pps or 0.0, other.value_pps or 0.0, reach < (high.value_pps or 0.0)
    )

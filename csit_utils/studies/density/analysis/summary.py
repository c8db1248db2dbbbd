"""Summaries of a matrix: its extreme cells in a line, and throughput by the number of services or NFs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import hypot

from csit_utils.analysis.grouping import Series
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, NDR, ORR, PDR, SOAK
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, verdict_of_runs


@dataclass(frozen=True)
class AxisChange:
    """From the smallest to the largest cell along one axis of a matrix."""

    matrix: Matrix
    axis: str
    """`instances` or `NFs`."""
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
        for axis, places in (("instances", by_services), ("NFs", by_nodes)):
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


BEST_FIRST = (PDR, NDR, SOAK, MRR, ORR)
"""Metrics, the most informative one first."""
HAVE_FIGURES = (CellState.VALUE, CellState.AT_LEAST)
"""States of cells with a figure."""
_LIMITS = ("vswitch-bound", "nf-bound", "generator-bound")


@dataclass(frozen=True)
class Headline:
    """Of one series."""

    series: Series
    matrices: Mapping[Measure, Matrix]
    most: tuple[int, int] | None
    """The cell with the most NFs that has a figure, of several the one with the most services; None without one."""
    limits: tuple[tuple[str, int], ...]
    """Limits with their number of cells, the most frequent first."""
    states: tuple[tuple[CellState, int], ...]
    """Number of cells of the best metric by state."""

    def cell(self, metric: Measure, place: tuple[int, int] | None) -> MatrixCell | None:
        """A cell of a metric; None where there is none."""
        matrix = self.matrices.get(metric)
        return None if matrix is None or place is None else matrix.cells.get(place)

    @property
    def metric(self) -> Measure:
        """The most informative metric: PDR, else NDR, soak rate, MRR, ORR."""
        return next(metric for metric in BEST_FIRST if metric in self.matrices)


def headlines(found: Iterable[Matrix]) -> list[Headline]:
    """A headline for each series, in their order."""
    by_series: dict[Series, dict[Measure, Matrix]] = {}
    for matrix in found:
        by_series.setdefault(matrix.series, {})[matrix.metric] = matrix
    return [_headline(series, own) for series, own in by_series.items()]


def _headline(series: Series, own: Mapping[Measure, Matrix]) -> Headline:
    best = own[next(metric for metric in BEST_FIRST if metric in own)]
    valued = [place for place, cell in best.cells.items() if cell.state in HAVE_FIGURES]
    limits = Counter(
        kind for place in valued for kind in verdict_of_runs(best.cells[place].runs, best.metric) if kind in _LIMITS
    )
    states = Counter(cell.state for cell in best.cells.values())
    return Headline(
        series,
        own,
        max(valued, key=lambda place: (place[0] * place[1], place[0]), default=None),
        tuple(limits.most_common()),
        tuple((state, states[state]) for state in CellState if states[state]),
    )

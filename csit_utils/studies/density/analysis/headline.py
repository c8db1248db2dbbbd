"""Summary of a matrix in a line: the smallest and the largest measured cell, and what limits them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.verdicts import verdict_of_runs
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell

_BEST_FIRST = (Metric.PDR, Metric.NDR, Metric.SOAK, Metric.MRR, Metric.ORR)
_HAVE_FIGURES = (CellState.VALUE, CellState.AT_LEAST)
_LIMITS = ("vswitch-bound", "nf-bound", "generator-bound")


@dataclass(frozen=True)
class Headline:
    """Of one series."""

    series: Series
    matrices: Mapping[Metric, Matrix]
    alone: tuple[int, int] | None
    """The cell with the fewest services and NFs that has a figure; None where none has one."""
    most: tuple[int, int] | None
    """The cell with the most NFs that has one; of several the one with the most services."""
    limits: tuple[tuple[str, int], ...]
    """Limits with their number of cells, the most frequent first."""
    states: tuple[tuple[CellState, int], ...]
    """Number of cells of the best metric by state."""

    def cell(self, metric: Metric, place: tuple[int, int] | None) -> MatrixCell | None:
        """A cell of a metric; None where there is none."""
        matrix = self.matrices.get(metric)
        return None if matrix is None or place is None else matrix.cells.get(place)

    @property
    def metric(self) -> Metric:
        """The most informative metric: PDR, else NDR, soak rate, MRR, ORR."""
        return next(metric for metric in _BEST_FIRST if metric in self.matrices)

    @property
    def kept(self) -> float | None:
        """Throughput of `most` over that of `alone`; None if one of them is a limit."""
        one, many = self.cell(self.metric, self.alone), self.cell(self.metric, self.most)
        if one is None or many is None or one.state is not CellState.VALUE or many.state is not CellState.VALUE:
            return None
        return (many.value_pps or 0.0) / one.value_pps if one.value_pps else None


def headlines(found: Iterable[Matrix]) -> list[Headline]:
    """A headline for each series, in their order."""
    by_series: dict[Series, dict[Metric, Matrix]] = {}
    for matrix in found:
        by_series.setdefault(matrix.series, {})[matrix.metric] = matrix
    return [_headline(series, own) for series, own in by_series.items()]


def _headline(series: Series, own: Mapping[Metric, Matrix]) -> Headline:
    best = own[next(metric for metric in _BEST_FIRST if metric in own)]
    valued = [place for place, cell in best.cells.items() if cell.state in _HAVE_FIGURES]
    limits = Counter(
        kind for place in valued for kind in verdict_of_runs(best.cells[place].runs, best.metric) if kind in _LIMITS
    )
    states = Counter(cell.state for cell in best.cells.values())
    return Headline(
        series,
        own,
        min(valued, default=None),
        max(valued, key=lambda place: (place[0] * place[1], place[0]), default=None),
        tuple(limits.most_common()),
        tuple((state, states[state]) for state in CellState if states[state]),
    )

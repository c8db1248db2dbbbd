"""Speedup: throughput of the same cell with several sizes of the vSwitch or the NFs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import Metric
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell

VSWITCH, NF = "vSwitch cores", "cores of an NF"
_FIGURES = (CellState.VALUE, CellState.AT_LEAST)


@dataclass(frozen=True)
class SizePoint:
    """One size."""

    cores: float
    """Data cores of the vSwitch, or of one NF."""
    matrix: Matrix
    cell: MatrixCell

    @property
    def rate_pps(self) -> float:
        """Rate of all instances and both directions."""
        return self.cell.value_pps or 0.0


@dataclass(frozen=True)
class Speedup:
    """One cell with everything equal but one size; at least two points, the fewest cores first."""

    axis: str
    """`VSWITCH` or `NF`."""
    metric: Metric
    place: tuple[int, int]
    service_type: str
    other: str
    """The size that stays."""
    points: tuple[SizePoint, ...]

    def perfect_pps(self, cores: float) -> float:
        """Return the throughput of linear speedup from the first point on."""
        return self.points[0].rate_pps * cores / self.points[0].cores

    def factor(self, point: SizePoint) -> float:
        """Throughput as a multiple of that of the first point."""
        return point.rate_pps / self.points[0].rate_pps


def speedups(found: Iterable[Matrix]) -> list[Speedup]:
    """All cells that were measured with several sizes, from matrices that may be compared."""
    groups: dict[tuple[str, Metric, str, str], list[tuple[float, Matrix]]] = {}
    for matrix in found:
        series = matrix.series
        if series.vs_dtc is not None:
            key = (VSWITCH, matrix.metric, series.service_type, series.nf_name)
            groups.setdefault(key, []).append((float(series.vs_dtc), matrix))
        if (cores := _cores(series.nf_size)) is not None:
            key = (NF, matrix.metric, series.service_type, series.vswitch_name)
            groups.setdefault(key, []).append((cores, matrix))
    return [
        Speedup(axis, metric, place, service_type, other, points)
        for (axis, metric, service_type, other), sizes in groups.items()
        for place in sorted({place for _, matrix in sizes for place in matrix.cells})
        if len(points := _points(sizes, place)) > 1
    ]


def _points(sizes: Sequence[tuple[float, Matrix]], place: tuple[int, int]) -> tuple[SizePoint, ...]:
    points = [
        SizePoint(cores, matrix, cell)
        for cores, matrix in sizes
        if (cell := matrix.cells.get(place)) is not None and cell.state in _FIGURES and cell.value_pps
    ]
    return tuple(sorted(points, key=lambda point: point.cores))


def _cores(nf_size: str) -> float | None:
    """Data cores of an NF: 0.5 of `0.5c`; None for sizes that are no number, such as NFs of several sizes."""
    try:
        return float(nf_size.removesuffix("c"))
    except ValueError:
        return None

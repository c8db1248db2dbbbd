"""Cost of density: throughput per core, efficiency against one service of one NF, ratios of types, and speedup."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.dataset.measures import Measure
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell


@dataclass(frozen=True)
class Efficiency:
    """One cell of S services of N NFs, with throughput T; T1 is that of 1x1 in the same matrix."""

    place: tuple[int, int]
    cell: MatrixCell
    per_data_core_pps: float | None
    """T over the data cores asked for: vSwitch and NFs."""
    per_slide_core_pps: float | None
    """T over cores as the slides of IETF 105 count them: main threads too, an NF's as half a core."""
    per_real_core_pps: float | None
    """T over the physical cores that the plan takes: the system's too, halves rounded up; not the generator's."""
    of_one: float | None
    """T / T1."""
    hops: float | None
    """N T / T1: NF hops per second, as a multiple of what one NF does alone."""
    per_hop: float | None
    """T / (S T1): hops over NFs, the share of its lone rate that each NF still works at. 1 is perfect scaling."""


def efficiencies(matrix: Matrix) -> list[Efficiency]:
    """Return the efficiency of all cells with a figure; limits (at least, below) have no quotients."""
    base = matrix.cells.get((1, 1))
    alone = base.value_pps if base is not None and base.state is CellState.VALUE else None
    found = []
    for place, cell in sorted(matrix.cells.items()):
        if cell.state is not CellState.VALUE or not cell.value_pps:
            continue
        services, nfs = place
        row, rate = cell.runs[-1], cell.value_pps
        share = rate / alone if alone else None
        found.append(
            Efficiency(
                place,
                cell,
                _over(rate, row.data_cores),
                _over(rate, row.slide_cores),
                _over(rate, row.real_cores),
                of_one=share,
                hops=None if share is None else share * nfs,
                per_hop=None if share is None else share / services,
            )
        )
    return found


def _over(rate_pps: float, cores: float | None) -> float | None:
    return rate_pps / cores if cores else None


@dataclass(frozen=True)
class Ratio:
    """Throughput of service types in one cell with the same sizes."""

    metric: str
    sizes: str
    """Sizes of NFs and vSwitch."""
    place: tuple[int, int]
    rates_pps: dict[str, float]
    """By service type; those with a figure."""
    base: str
    """The reference type: CSC, or the first available one."""
    oversubscribed: bool

    def share(self, kind: str) -> float | None:
        """Throughput of a type over that of the base; None where it has no figure."""
        rate = self.rates_pps.get(kind)
        return None if rate is None else rate / self.rates_pps[self.base]


def ratios(found: Iterable[Matrix]) -> list[Ratio]:
    """Return cells with figures of at least two service types, from comparable matrices."""
    groups: dict[tuple[str, str], list[Matrix]] = {}
    for matrix in found:
        series = matrix.series
        groups.setdefault((matrix.metric, series.sizes), []).append(matrix)
    result = []
    for (metric, sizes), matrices in groups.items():
        for place in sorted({place for matrix in matrices for place in matrix.cells}):
            cells = {matrix.series.service_type: matrix.cells.get(place) for matrix in matrices}
            rates = {
                kind: cell.value_pps
                for kind, cell in cells.items()
                if cell is not None and cell.state is CellState.VALUE and cell.value_pps
            }
            if len(rates) < 2:
                continue
            base = "CSC" if "CSC" in rates else next(iter(rates))
            over = any(cell.oversubscribed for kind, cell in cells.items() if kind in rates and cell is not None)
            result.append(Ratio(metric, sizes, place, rates, base, over))
    return result


VSWITCH, NF = "vSwitch cores", "cores of an NF"
_FIGURES = (CellState.VALUE, CellState.AT_LEAST)


@dataclass(frozen=True)
class SizePoint:
    """One size."""

    cores: float
    """Data cores of the vSwitch, or of one NF."""
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
    metric: Measure
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
    groups: dict[tuple[str, Measure, str, str], list[tuple[float, Matrix]]] = {}
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
        SizePoint(cores, cell)
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

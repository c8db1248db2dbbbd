"""Cost of density: throughput per core, efficiency against one service of one NF, ratios of service types."""

from collections.abc import Iterable
from dataclasses import dataclass

from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell


@dataclass(frozen=True)
class Efficiency:
    """One cell of S services of N NFs, with throughput T; T1 is that of 1x1 in the same matrix."""

    matrix: Matrix
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
                matrix,
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
        groups.setdefault((matrix.metric.value, f"{series.nf_name}, {series.vswitch_name}"), []).append(matrix)
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

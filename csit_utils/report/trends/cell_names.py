"""Short names of cells, and anchors of their trends."""

from collections.abc import Callable, Iterable
from functools import cached_property

from csit_utils.analysis.cells import CellMetric
from csit_utils.analysis.grouping import Series
from csit_utils.report.links import cell_anchor

_PARTS: tuple[Callable[[Series], str], ...] = (
    lambda series: series.nf_name,
    lambda series: series.vswitch_name,
    lambda series: series.frame,
    lambda series: f"profile {series.profile}",
)


class CellNames:
    """Short names of cells: only what distinguishes them."""

    def __init__(self, cells: Iterable[CellMetric]) -> None:
        self._of_matrix = tuple(cell for cell in cells if cell.of_matrix)

    def short(self, cell: CellMetric) -> str:
        """Return `CSC 4x2`, with sizes and frame where the cells differ in them, without testbed and metric.

        For other studies: the service, its size, and the frame or the unit of the workload.
        """
        if not cell.of_matrix:
            return " ".join(filter(None, [cell.series.service_type, cell.series.nf_size, cell.series.frame]))
        words = [cell.series.service_type, str(cell.dimensions)]
        return " ".join([*words, *(part(cell.series) for part in self._telling)])

    @property
    def common(self) -> str:
        """Return what all cells of the matrix share, for a heading: `NF-1c, vSwitch-1c, 64B, profile csit`."""
        if not self._of_matrix:
            return ""
        shared = (part for part in _PARTS if part not in self._telling)
        return ", ".join(part(self._of_matrix[0].series) for part in shared)

    @staticmethod
    def address(cell: CellMetric) -> str:
        """Return the anchor of a cell's trend, the same in every report of the series."""
        return f"trend-{cell_anchor(cell.series, cell.metric, cell.dimensions)}"

    @cached_property
    def _telling(self) -> tuple[Callable[[Series], str], ...]:
        return tuple(part for part in _PARTS if len({part(cell.series) for cell in self._of_matrix}) > 1)

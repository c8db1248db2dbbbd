"""Addresses within the report, and short names of cells. Links are as within one page; the site resolves them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256

from csit_utils.analysis.cells import CellMetric
from csit_utils.analysis.grouping import Series, System
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import TestRow


def test_href(row: TestRow) -> str:
    """Return the link to the page of a test."""
    return f"#{row.anchor}"


def cell_anchor(series: Series, metric: Measure, place: tuple[int, int] | None = None) -> str:
    """Return the id of a cell of a heat map: `csc-4x2-ndr-64b-1c-vs1-sim-3f2a`, equal in all reports of the series.

    `place`: number of services, and NFs per service; None omits them.
    """
    words = (
        series.service_type,
        *([f"{place[0]}x{place[1]}"] if place else []),
        metric,
        series.frame.split(" ", 1)[0],
        series.nf_size,
        f"vs{series.vs_dtc}",
        series.system.testbed,
        _digest(series),
    )
    return re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower())


@lru_cache(maxsize=1024)
def _digest(series: Series) -> str:
    return sha256(repr(series).encode()).hexdigest()[:4]


def cell_href(series: Series, metric: Measure, place: tuple[int, int]) -> str:
    """Return the link to a cell of a heat map on the density page."""
    return f"#{cell_anchor(series, metric, place)}"


_PARTS: tuple[Callable[[Series], str], ...] = (
    lambda series: series.nf_name,
    lambda series: series.vswitch_name,
    lambda series: series.frame,
    lambda series: f"profile {series.profile}" if series.profile else "",
)


class CellNames:
    """Short names of cells: only what distinguishes those of a testbed."""

    def __init__(self, cells: Iterable[CellMetric]) -> None:
        self._series: dict[System, set[Series]] = defaultdict(set)
        for cell in cells:
            if cell.of_matrix:
                self._series[cell.series.system].add(cell.series)

    def short(self, cell: CellMetric) -> str:
        """Return `CSC 4x2`, with sizes and frame where cells of its testbed differ in them, without that and metric.

        For other studies: the service, its size, and the frame or the unit of the workload.
        """
        if not cell.of_matrix:
            return " ".join(filter(None, [cell.series.service_type, cell.series.nf_size, cell.series.frame]))
        words = [cell.series.service_type, str(cell.dimensions)]
        return " ".join([*words, *filter(None, (part(cell.series) for part in self._telling[cell.series.system]))])

    @property
    def common(self) -> str:
        """Return what all cells of a matrix share, for a heading: `NF-1c, vSwitch-1c, 64B, profile csit`.

        Where matrices of several testbeds share something else each, it says which.
        """
        shared = {
            system: ", ".join(filter(None, (part(next(iter(own))) for part in _PARTS if part not in telling)))
            for system, own in self._series.items()
            for telling in [self._telling[system]]
        }
        if len(set(shared.values())) < 2:
            return next(iter(shared.values()), "")
        return "; ".join(dict.fromkeys(f"{system.title}: {text}" for system, text in shared.items() if text))

    @staticmethod
    def address(cell: CellMetric) -> str:
        """Return the anchor of a cell's trend, the same in every report of the series."""
        return f"trend-{cell_anchor(cell.series, cell.metric, cell.dimensions)}"

    @cached_property
    def _telling(self) -> Mapping[System, Sequence[Callable[[Series], str]]]:
        return {
            system: [part for part in _PARTS if len({part(series) for series in own}) > 1]
            for system, own in self._series.items()
        }

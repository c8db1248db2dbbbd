"""Figures by cell: all values of a metric in a cell of a series over time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from statistics import median

from csit_utils.analysis.comparisons.comparability import resolution_pps
from csit_utils.analysis.grouping import Series, System, asks_for, bounds, error_of, series_of, system_of
from csit_utils.analysis.runs import UNDATED, instant
from csit_utils.dataset.goal_words import order_remark
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MEASURES, MeasuredRow, TestRow
from resources.libraries.python.model.request.cell import Dimensions


@dataclass(frozen=True, order=True)
class CellMetric:
    """A metric of a cell of a matrix, or a quantity of another study."""

    series: Series
    dimensions: Dimensions
    metric: Measure

    @property
    def name(self) -> str:
        """Name for a line of text: `sim-a (simulated) CSC 2x1 NF-1c vSwitch-1c 64B NDR`."""
        return f"{self.cell_name} {self.metric}"

    @property
    def cell_name(self) -> str:
        """The name without the metric."""
        return f"{self.series.system.name} {place_text(self.series, self.dimensions)}"

    @property
    def of_matrix(self) -> bool:
        """Whether it is a cell of the density matrix."""
        return self.metric in MEASURES


def place_text(series: Series, dimensions: Dimensions) -> str:
    """Return the name of a cell without its testbed: `CSC 2x1 NF-1c vSwitch-1c 64B`."""
    sizes = [f"NF-{series.nf_size}"] if series.nf_size else []
    switch = [f"vSwitch-{series.vs_dtc}c"] if series.vs_dtc else []
    return " ".join([series.service_type, str(dimensions), *sizes, *switch, series.frame])


@dataclass(frozen=True)
class CellFigure:
    """The value of a metric in one test."""

    row: TestRow
    value_pps: float
    """The lower bound of a search, or the mean of trials."""
    upper_pps: float | None
    """None: not bounded above by the offered load."""
    error_pps: float
    """Standard error of a mean of trials; 0.0 for a search, which has bounds."""
    lowest_pps: float | None = None
    """Lowest possible value; None for a search."""

    @property
    def width_pps(self) -> float | None:
        """Width of its range; None if it is not bounded above."""
        lowest = self.value_pps if self.lowest_pps is None else self.lowest_pps
        return None if self.upper_pps is None else self.upper_pps - lowest

    def out_of_order(self, metric: Measure) -> str:
        """Return the remark on a PDR below its NDR, of either; empty where there is none."""
        found = order_remark(partial(getattr, self.row))
        return found.text if found is not None and metric in found.numbers else ""

    @property
    def at(self) -> datetime:
        """Start time; year 1 if unknown."""
        return when(self.row)


def when(row: TestRow) -> datetime:
    """Return the start time of a test; year 1 if unknown or invalid, so that it sorts first."""
    return instant(row.started_at) or UNDATED


def figure(row: TestRow, metric: Measure) -> CellFigure | None:
    """Return the figure of a test; None if it failed, has none, or has only an upper bound."""
    found = bounds(row, metric)
    if found is None or found.lower is None:
        return None
    lowest = getattr(row, metric.lower_bound) if metric.lower_bound else None
    return CellFigure(row, found.lower, found.upper, error_of(row, metric), lowest)


def figures(rows: Iterable[TestRow]) -> dict[CellMetric, list[CellFigure]]:
    """Return all figures by cell, in the order of time.

    The PDR of a latency test, which has less evidence, counts only without a PDR test of the cell.
    """
    asked: dict[CellMetric, list[CellFigure]] = defaultdict(list)
    by_the_way: dict[CellMetric, list[CellFigure]] = defaultdict(list)
    for row in rows:
        series = series_of(row)
        if series is None or (dimensions := row.dimensions) is None:
            continue
        if isinstance(row, MeasuredRow):
            for each in row.measures:
                cell = CellMetric(series, dimensions, each.measure)
                asked[cell].append(CellFigure(row, each.value, each.highest, 0.0, each.lowest))
            continue
        for metric, value in zip(MEASURES, _values(row), strict=True):
            if value is not None and (found := figure(row, metric)) is not None:
                group = asked if asks_for(row, metric) else by_the_way
                group[CellMetric(series, dimensions, metric)].append(found)
    every = {**by_the_way, **asked}
    return {cell: sorted(every[cell], key=lambda each: each.at) for cell in sorted(every)}


_values = attrgetter(*MEASURES.values())
"""Values of all measures, of a row: most tests have few of them."""


def runs_of(rows: Iterable[TestRow]) -> Mapping[System, Mapping[str, datetime]]:
    """Return the start time of each run of each system."""
    found: dict[System, dict[str, datetime]] = defaultdict(dict)
    for row in rows:
        system = system_of(row)
        if system is not None and row.started_at:
            known = found[system]
            known[row.run] = min(known.get(row.run, when(row)), when(row))
    return found


def resolution(found: Sequence[CellFigure], metric: Measure) -> float:
    """Return by how much figures of a cell may differ without a change of the system, in pps.

    The largest of half of the width between the bounds of a search, the standard error of a mean of trials, and the
    rounding error.
    """
    spreads = [each.width_pps / 2 for each in found if each.width_pps is not None]
    errors = [each.error_pps for each in found]
    rounded = max((resolution_pps(each.row, metric) for each in found), default=0.0)
    return max(median(spreads) if spreads else 0.0, median(errors) if errors else 0.0, rounded)

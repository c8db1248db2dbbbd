"""Figures by cell: what was measured of one metric in one cell of one series, and in which runs it was not."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from csit_utils.analysis.alike import resolution_pps
from csit_utils.analysis.grouping import Metric, Series, System, bounds, error_pps, series_of, system_of
from csit_utils.analysis.measures import Measure, MeasuredRow
from csit_utils.dataset.rows import TestRow
from csit_utils.studies.density.analysis.density import asks_for


@dataclass(frozen=True, order=True)
class Cell:
    """A metric of a cell of a matrix, or a number of a characterization."""

    series: Series
    nf_chains: int
    nf_nodes: int
    metric: Metric | Measure

    @property
    def name(self) -> str:
        """For a line: `sim-a (simulated) CSC 2R1C NF-1c vSwitch-1c 64B NDR`."""
        series = self.series
        if isinstance(self.metric, Measure):
            return f"{series.system.name} {place_text(series, self.nf_chains, self.nf_nodes)} {self.metric}"
        return (
            f"{series.system.name} {series.service_type} {self.nf_chains}R{self.nf_nodes}C {series.nf_name} "
            f"{series.vswitch_name} {series.frame} {self.metric}"
        )


def place_text(series: Series, nf_chains: int, nf_nodes: int) -> str:
    """A cell of any testbed, with what is known of it: `CSC 2R1C NF-1c vSwitch-1c 64B`."""
    sizes = [f"NF-{series.nf_size}"] if series.nf_size else []
    switch = [f"vSwitch-{series.vs_dtc}c"] if series.vs_dtc else []
    return " ".join([series.service_type, f"{nf_chains}R{nf_nodes}C", *sizes, *switch, series.frame])


@dataclass(frozen=True)
class CellFigure:
    """What one test found."""

    row: TestRow
    value_pps: float
    """The lower bound of a search, or the mean of trials."""
    upper_pps: float | None
    """None: nothing above could be offered."""
    error_pps: float
    """Standard error of the mean of trials; 0.0 for a search, whose bounds tell."""
    lowest_pps: float | None = None
    """Where it may lie below the value; None for a search."""

    @property
    def width_pps(self) -> float | None:
        """Of where it may lie; None where nothing above could be offered."""
        lowest = self.value_pps if self.lowest_pps is None else self.lowest_pps
        return None if self.upper_pps is None else self.upper_pps - lowest

    @property
    def at(self) -> datetime:
        """When the test began; long ago where that is not told."""
        return when(self.row)


def when(row: TestRow) -> datetime:
    """When a test began; the year 1 where that is not told, so that it comes before all others."""
    found = datetime.fromisoformat(row.started_at) if row.started_at else datetime.min
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def figure(row: TestRow, metric: Metric) -> CellFigure | None:
    """A test's figure; None where it failed, has none, or knows only what it is below of."""
    found = bounds(row, metric)
    if found is None or found.lower is None:
        return None
    return CellFigure(row, found.lower, found.upper, error_pps(row, metric))


def figures(rows: Iterable[TestRow]) -> dict[Cell, list[CellFigure]]:
    """All figures by cell, in the order of time.

    A latency test finds a PDR on its way, with less evidence; it counts where no test asked for PDR itself.
    """
    asked: dict[Cell, list[CellFigure]] = defaultdict(list)
    by_the_way: dict[Cell, list[CellFigure]] = defaultdict(list)
    for row in rows:
        series = series_of(row)
        if series is None or row.nf_chains is None or row.nf_nodes is None:
            continue
        if isinstance(row, MeasuredRow):
            for each in row.measures:
                cell = Cell(series, row.nf_chains, row.nf_nodes, each.measure)
                asked[cell].append(CellFigure(row, each.value, each.highest, 0.0, each.lowest))
            continue
        for metric in Metric:
            if (found := figure(row, metric)) is not None:
                group = asked if asks_for(row, metric) else by_the_way
                group[Cell(series, row.nf_chains, row.nf_nodes, metric)].append(found)
    every = {**by_the_way, **asked}
    return {cell: sorted(every[cell], key=lambda each: each.at) for cell in sorted(every)}


def runs_of(rows: Iterable[TestRow]) -> Mapping[System, Mapping[str, datetime]]:
    """When each run of each system began."""
    found: dict[System, dict[str, datetime]] = defaultdict(dict)
    for row in rows:
        system = system_of(row)
        if system is not None and row.started_at:
            known = found[system]
            known[row.run] = min(known.get(row.run, when(row)), when(row))
    return found


def resolution(found: Sequence[CellFigure], metric: Metric | Measure) -> float:
    """What figures of a cell may differ by without any reason, in pps.

    Half of the width between the bounds of a search, the standard error of a mean of trials, or what they were rounded
    to: the largest of these.
    """
    spreads = [each.width_pps / 2 for each in found if each.width_pps is not None]
    errors = [each.error_pps for each in found]
    rounded = max((resolution_pps(each.row, metric) for each in found), default=0.0)
    return max(median(spreads) if spreads else 0.0, median(errors) if errors else 0.0, rounded)

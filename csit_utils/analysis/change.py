"""Results of a comparison by cell: both sides, change, confidence interval, outcome."""

from dataclasses import dataclass
from enum import StrEnum

from csit_utils.analysis.cells import CellFigure, CellMetric, place_text
from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.measures import Measure
from resources.libraries.python.model.cell import Dimensions

CONFIDENCE = 0.95
"""Confidence level of intervals."""
FALSE_CALLS = 0.05
"""False discovery rate: expected share of false ones among the reported changes."""


class Method(StrEnum):
    """Methods to judge a change."""

    RUNS = "runs"
    ONE_RUN = "one run against several"
    SPREAD = "spread over cells"
    BOUNDS = "bounds"


class Outcome(StrEnum):
    """Outcomes of the comparison of a cell."""

    REGRESSION = "regression"
    PROGRESSION = "progression"
    NO_CHANGE = "no change seen"
    CANNOT_TELL = "cannot tell"
    """One run per side, few cells, and overlapping bounds."""
    UNLIKE = "unlike"
    """The figures have different meanings."""


@dataclass(frozen=True)
class CellSide:
    """A cell's figures of one selection."""

    series: Series
    figures: tuple[CellFigure, ...]
    mean_pps: float
    stdev_pps: float | None
    """Standard deviation over runs; None for a single run."""
    low_pps: float
    """Lower bound of a single run; lowest figure of several runs."""
    high_pps: float
    """Upper bound of a single run, possibly infinite; highest figure of several runs."""
    resolution_pps: float

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.figures)


@dataclass(frozen=True)
class Change:
    """One cell on both sides."""

    service_type: str
    nf_size: str
    vs_dtc: int | None
    frame: str
    dimensions: Dimensions
    metric: Metric | Measure
    a: CellSide
    b: CellSide
    change: float
    """Relative change of the means from A to B; infinite if A is 0."""
    low: float
    """Bound of its confidence interval."""
    high: float
    method: Method
    probability: float | None
    """p-value: probability that runs of equal systems differ as much; None if it cannot be computed."""
    adjusted: float | None
    """p-value adjusted for the number of cells."""
    outcome: Outcome
    remarks: tuple[str, ...] = ()
    """Notes; for unlike figures the differences in meaning."""

    @property
    def name(self) -> str:
        """Name for a line of text."""
        return f"{place_text(self.a.series, self.dimensions)} {self.metric}"


@dataclass(frozen=True)
class Comparison:
    """All cells of two selections."""

    changes: tuple[Change, ...]
    """In the order of cells."""
    only_a: tuple[CellMetric, ...]
    """Cells with a figure only in A."""
    only_b: tuple[CellMetric, ...]

    def of(self, *outcomes: Outcome) -> tuple[Change, ...]:
        """Return the changes with one of these outcomes."""
        return tuple(change for change in self.changes if change.outcome in outcomes)

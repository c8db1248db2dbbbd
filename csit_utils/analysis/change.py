"""What a comparison says of a cell: both sides, the change, its confidence interval, and what it may be called."""

from dataclasses import dataclass
from enum import StrEnum

from csit_utils.analysis.cells import Cell, CellFigure, place_text
from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.measures import Measure

CONFIDENCE = 0.95
"""Of intervals."""
FALSE_CALLS = 0.05
"""Share of the cells called changed that may be so by chance, on average."""


class Method(StrEnum):
    """How a change was judged."""

    RUNS = "runs"
    ONE_RUN = "one run against several"
    SPREAD = "spread over cells"
    BOUNDS = "bounds"


class Outcome(StrEnum):
    """What can be said of a cell."""

    REGRESSION = "regression"
    PROGRESSION = "progression"
    NO_CHANGE = "no change seen"
    CANNOT_TELL = "cannot tell"
    """One run on both sides, few cells, and their bounds overlap."""
    UNLIKE = "unlike"
    """The figures mean different things."""


@dataclass(frozen=True)
class CellSide:
    """A cell's figures of one selection."""

    series: Series
    figures: tuple[CellFigure, ...]
    mean_pps: float
    stdev_pps: float | None
    """Of runs; None for a single one."""
    low_pps: float
    """Of a single run: its lower bound; of several the least figure."""
    high_pps: float
    """Of a single run: its upper bound, infinite where nothing above could be offered; else the greatest figure."""
    resolution_pps: float

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.figures)


@dataclass(frozen=True)
class Change:
    """One cell on both sides."""

    service_type: str
    nf_size: str
    vs_dtc: int | None
    frame: str
    nf_chains: int
    nf_nodes: int
    metric: Metric | Measure
    a: CellSide
    b: CellSide
    change: float
    """Of the means, from A to B, relative to A; infinite where A is 0."""
    low: float
    """Of its confidence interval."""
    high: float
    method: Method
    probability: float | None
    """That runs of equal systems differ as much; None where that cannot be known."""
    adjusted: float | None
    """The same, judged together with all other cells."""
    outcome: Outcome
    remarks: tuple[str, ...] = ()
    """What is to be known; of unlike figures why they are unlike."""

    @property
    def name(self) -> str:
        """For a line."""
        return f"{place_text(self.a.series, self.nf_chains, self.nf_nodes)} {self.metric}"


@dataclass(frozen=True)
class Comparison:
    """All cells of two selections."""

    changes: tuple[Change, ...]
    """In the order of cells."""
    only_a: tuple[Cell, ...]
    """Cells with a figure on that side only."""
    only_b: tuple[Cell, ...]

    def of(self, *outcomes: Outcome) -> tuple[Change, ...]:
        """Changes with one of these outcomes."""
        return tuple(change for change in self.changes if change.outcome in outcomes)

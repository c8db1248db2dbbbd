"""The trend of every cell over its runs: steps, two bands, drift, and what the last nights may mean.

A run without a figure (failed, skipped, not run) is a gap: it is counted, and is no zero.

Steps are looked for in all cells together: `alpha` is the chance of any false step in the whole, so each of `n` cells
gets `alpha / n` (Bonferroni). A step is confirmed by three nights at least, and by more the smaller it is against the
noise. That a departure of the last one or two nights is *suspected* is said of a cell by mistake with a probability of
`SUSPICION`, whatever the number of cells. The method is in `history`, `steps` and `twobands`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from csit_utils.analysis.cells import Cell, CellFigure, figures, resolution, runs_of
from csit_utils.analysis.grouping import System
from csit_utils.analysis.history import FEWEST, SUSPICION, Drift, levels, look
from csit_utils.analysis.steps import Step
from csit_utils.analysis.twobands import TwoBands
from csit_utils.dataset.rows import TestRow

__all__ = ["ALPHA", "FEWEST", "SUSPICION", "Drift", "State", "Trend", "changed", "trends"]

ALPHA = 0.01
"""Chance of any false step in all that is looked at together."""


class State(StrEnum):
    """What is to be said of a cell now."""

    STEADY = "steady"
    REGRESSION = "regression"
    """Its last confirmed step went down."""
    PROGRESSION = "progression"
    """Its last confirmed step went up."""
    TWO_BANDS = "two bands"
    DRIFT = "drift"
    TOO_FEW = "too few"


@dataclass(frozen=True)
class Trend:
    """A cell over its runs."""

    cell: Cell
    figures: tuple[CellFigure, ...]
    """In the order of time."""
    gaps: tuple[datetime, ...]
    """When runs of the system began in which the cell has no figure, between its first figure and the last run."""
    scale_pps: float
    """Of the noise."""
    steps: tuple[Step, ...] = ()
    bands: TwoBands | None = None
    drift: Drift | None = None
    suspected: float | None = None
    """Relative change of the last one or two nights, which nobody can confirm yet."""
    fresh: int = 0
    """How many nights these are."""
    outliers: tuple[int, ...] = ()
    """Indices of figures that noise does not explain, and that are no step."""

    @property
    def state(self) -> State:
        """In one word."""
        if self.bands is not None:
            return State.TWO_BANDS
        if self.drift is not None:
            return State.DRIFT
        if self.steps:
            return State.REGRESSION if self.steps[-1].after < self.steps[-1].before else State.PROGRESSION
        return State.TOO_FEW if len(self.figures) < FEWEST else State.STEADY

    @property
    def values(self) -> tuple[float, ...]:
        """Figures in pps."""
        return tuple(each.value_pps for each in self.figures)

    @property
    def levels(self) -> tuple[float, ...]:
        """Median of the part that each figure is in, in pps; one per figure."""
        return levels(self.values, self.steps)


def trends(rows: Sequence[TestRow], alpha: float = ALPHA) -> list[Trend]:
    """The trend of every cell, in the order of cells.

    Args:
        rows: All tests.
        alpha: Chance of any false step in all cells together.
    """
    found, runs = figures(rows), runs_of(rows)
    judged = sum(len(own) >= FEWEST for own in found.values())
    return [trend_of(cell, own, runs, alpha / max(1, judged)) for cell, own in found.items()]


def trend_of(
    cell: Cell, found: Sequence[CellFigure], runs: Mapping[System, Mapping[str, datetime]], alpha: float
) -> Trend:  # fmt: skip
    """The trend of one cell.

    Args:
        cell: Which.
        found: Its figures in the order of time.
        runs: When runs of its system began.
        alpha: Chance of a false step in this cell.
    """
    values, times = [each.value_pps for each in found], [each.at for each in found]
    seen = look(values, times, resolution(found, cell.metric), alpha)
    return Trend(
        cell,
        tuple(found),
        _gaps(found, runs.get(cell.series.system, {})),
        seen.scale,
        seen.steps,
        seen.bands,
        seen.drift,
        seen.suspected,
        seen.fresh,
        seen.outliers,
    )


def _gaps(found: Sequence[CellFigure], runs: Mapping[str, datetime]) -> tuple[datetime, ...]:
    have = {each.row.run for each in found}
    return tuple(sorted(at for run, at in runs.items() if run not in have and at >= found[0].at))


def changed(found: Iterable[Trend]) -> list[Trend]:
    """Trends with a confirmed step, the largest fall first."""
    return sorted((each for each in found if each.steps), key=lambda each: min(step.change for step in each.steps))

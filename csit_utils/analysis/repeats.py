"""Spread of repeated runs of a cell, and two bands.

Runs before and after a step of the trend are separate: figures at two levels have no common spread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, quantiles, stdev
from types import MappingProxyType

from csit_utils.analysis.cells import CellFigure, CellMetric, resolution
from csit_utils.analysis.trends.steps import Step
from csit_utils.analysis.trends.twobands import MIN_D, TwoBands, find_two_bands, unseen_two_bands
from resources.libraries.python.search.findings.unseen_bands import UnseenBands

_WHISKER = 1.5
"""Reach of whiskers in interquartile ranges (Tukey)."""
_NO_STEPS: Mapping[CellMetric, Sequence[Step]] = MappingProxyType({})


@dataclass(frozen=True)
class Box:
    """Box-plot statistics; quartiles are interpolated linearly, with both ends included."""

    count: int
    low: float
    """Lowest figure within 1.5 interquartile ranges below the first quartile."""
    first: float
    median: float
    third: float
    high: float


@dataclass(frozen=True)
class Repeats:
    """Runs of one cell at one level."""

    cell: CellMetric
    figures: tuple[CellFigure, ...]
    """In the order of time, at least two."""
    mean_pps: float
    stdev_pps: float
    box: Box
    bands: TwoBands | None
    unseen: UnseenBands | None
    """Chance that so many runs miss two bands; None where they show them."""
    level: int = 1
    """Number of the level, from 1 for the oldest."""
    levels: int = 1
    """Number of levels: one more than steps."""

    @property
    def variation(self) -> float:
        """Coefficient of variation: standard deviation over mean; 0.0 for a mean of 0."""
        return self.stdev_pps / self.mean_pps if self.mean_pps else 0.0

    @property
    def visible_gap(self) -> float:
        """Smallest distance of two bands that is seen beside such a variation, relative to the mean."""
        return MIN_D * self.variation

    @property
    def nights(self) -> tuple[str, str] | None:
        """First and last day such as `2026-11-01`; None if unknown."""
        days = [each.row.started_at[:10] for each in self.figures if each.row.started_at]
        return (days[0], days[-1]) if days else None


def box(values: Sequence[float]) -> Box:
    """Return the box-plot statistics of at least one figure."""
    ordered = sorted(values)
    first, middle, third = quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else [ordered[0]] * 3
    reach = _WHISKER * (third - first)
    inside = [value for value in ordered if first - reach <= value <= third + reach]
    return Box(len(ordered), inside[0], first, middle, third, inside[-1])


def repeats(
    figures: Mapping[CellMetric, Sequence[CellFigure]], steps: Mapping[CellMetric, Sequence[Step]] = _NO_STEPS
) -> list[Repeats]:
    """Return cells with repeated runs, largest variation first; one entry per level, which begin at steps.

    `figures`: by cell, in the order of time, see `cells.figures`.
    """
    found = []
    for cell, every in figures.items():
        ends = [0, *(step.index for step in steps.get(cell, ())), len(every)]
        for level, (begin, end) in enumerate(pairwise(ends), 1):
            own = every[begin:end]
            if len(own) > 1:
                found.append(_repeats(cell, own, level, len(ends) - 1))
    return sorted(found, key=lambda each: -each.variation)


def _repeats(cell: CellMetric, found: Sequence[CellFigure], level: int, levels: int) -> Repeats:
    values, least_pps = [each.value_pps for each in found], resolution(found, cell.metric)
    bands = find_two_bands(values, least_pps)
    return Repeats(
        cell,
        tuple(found),
        fmean(values),
        stdev(values),
        box(values),
        bands,
        None if bands else unseen_two_bands(values, least_pps),
        level,
        levels,
    )

"""Events in the trends of all cells: confirmed steps, suspected and probable changes, newest first.

A step has to be significant among all places of all cells. Where at least `NEIGHBOURS` series of a system have a
confirmed step in the same run and direction, the place is known, and each other series of the system is tested at that
place only: its change in that direction is *probable* if noise alone makes such a split with a probability of at most
`CHANCE`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from csit_utils.analysis.cells import CellFigure
from csit_utils.analysis.grouping import System
from csit_utils.analysis.trends.steps import MIN_RUNS, split_chance
from csit_utils.analysis.trends.trend import FEWEST, Trend
from csit_utils.dataset.ledger import AcknowledgedStep


@dataclass(frozen=True)
class CellEvent:
    """A change of one cell."""

    trend: Trend
    index: int
    """Index of the first changed figure."""
    level_before_pps: float
    level_after_pps: float
    suspected: bool = False
    """The change is only in the last one or two nights, which may be outliers."""
    acknowledged: AcknowledgedStep | None = None
    relation: str = ""
    """In words that it repeats or undoes an acknowledged step."""
    probable: int = 0
    """Number of series with a confirmed step in the same run, which make this change probable."""

    @property
    def doubt(self) -> str:
        """Why it is not confirmed: `suspected` or `probable`; empty for a step."""
        return "suspected" if self.suspected else "probable" if self.probable else ""

    @property
    def change(self) -> float:
        """Change relative to the level before."""
        return self.level_after_pps / self.level_before_pps - 1

    @property
    def up(self) -> bool:
        """Whether the figure rose."""
        return self.level_after_pps > self.level_before_pps

    @property
    def better(self) -> bool:
        """Whether that is a progression."""
        return self.trend.cell.metric.worsening(self.change) < 0

    @property
    def before(self) -> CellFigure:
        """Last figure of the old level."""
        return self.trend.figures[self.index - 1]

    @property
    def after(self) -> CellFigure:
        """First figure of the new level."""
        return self.trend.figures[self.index]


@dataclass(frozen=True)
class EventGroup:
    """Events of a system in one direction, first seen in the same run: probably with one cause."""

    events: tuple[CellEvent, ...]
    """Largest change first."""

    @property
    def system(self) -> System:
        """The system of the events."""
        return self.events[0].trend.cell.series.system

    @property
    def up(self) -> bool:
        """Whether the figures rose."""
        return self.events[0].up

    @property
    def better(self) -> bool:
        """Whether that is a progression."""
        return self.events[0].better

    @property
    def doubt(self) -> str:
        """Why no event is confirmed; empty for steps."""
        return self.events[0].doubt

    @property
    def acknowledged(self) -> AcknowledgedStep | None:
        """An acknowledgement, with the cause of all events."""
        return self.events[0].acknowledged

    @property
    def cells(self) -> int:
        """Number of cells of the density matrix with a change of any metric."""
        return len({(each.trend.cell.series, each.trend.cell.dimensions) for each in self.events})


def events(trends: Iterable[Trend]) -> list[CellEvent]:
    """Return all events, newest first, then largest change first. Cells in two bands and drifts have none."""
    return newest_first([event for trend in trends for event in _events(trend)])


def newest_first(found: Iterable[CellEvent]) -> list[CellEvent]:
    """Return events in the order of pages: the newest, then the largest change first."""
    return sorted(found, key=lambda each: (each.after.at, abs(each.change)), reverse=True)


def _events(trend: Trend) -> Iterator[CellEvent]:
    for step, known, relation in zip(trend.steps, trend.acknowledged, trend.relations, strict=True):
        if step.before:
            yield CellEvent(trend, step.index, step.before, step.after, acknowledged=known, relation=relation)
    if trend.suspected is not None:
        index = len(trend.figures) - trend.fresh
        level = trend.levels[index - 1]
        yield CellEvent(trend, index, level, level * (1 + trend.suspected), suspected=True)


def level_around(event: CellEvent) -> tuple[int, int]:
    """Return the index of the first figure of the level before an event, and the end of the level after it."""
    steps = [step.index for step in event.trend.steps]
    first = max((index for index in steps if index < event.index), default=0)
    return first, min((index for index in steps if index > event.index), default=len(event.trend.figures))


def grouped(found: Sequence[CellEvent]) -> list[EventGroup]:
    """Return events by the run in which they were first seen, and by acknowledged cause, in the order of `found`."""
    groups: dict[tuple[object, ...], list[CellEvent]] = {}
    for event in found:
        cause = (event.acknowledged.cause, event.acknowledged.link) if event.acknowledged else None
        key = (event.trend.cell.series.system, event.after.row.run, event.up, event.better, event.doubt, cause)
        groups.setdefault(key, []).append(event)
    return [EventGroup(tuple(sorted(own, key=lambda each: -abs(each.change)))) for own in groups.values()]


NEIGHBOURS = 3
"""Fewest confirmed steps in the same run."""
CHANCE = 0.01
"""Probability that noise alone makes a cell without a change probable, for each such run."""


def probable_events(trends: Sequence[Trend]) -> list[CellEvent]:
    """Return the probable steps of all trends."""
    together: dict[tuple[object, ...], list[CellEvent]] = {}
    for step in events(trends):
        if not step.suspected:
            key = step.trend.cell.series.system, step.after.row.run, step.better
            together.setdefault(key, []).append(step)
    return [
        event
        for (system, *_), steps in together.items()
        if len(steps) >= NEIGHBOURS
        for trend in trends
        if trend.cell.series.system == system and (event := _probable(trend, steps)) is not None
    ]


def _probable(trend: Trend, steps: Sequence[CellEvent]) -> CellEvent | None:
    """The change of a trend where others have steps; None if it has a step there, or too little evidence."""
    if trend.bands is not None or trend.drift is not None or len(trend.figures) < FEWEST:
        return None
    place = _place(trend, steps)
    bounds = [0, *(step.index for step in trend.steps), len(trend.figures)]
    for first, end in pairwise(bounds):
        before, after = trend.values[first:place], trend.values[place:end]
        if first < place < end and min(len(before), len(after)) >= MIN_RUNS and median(before):
            event = CellEvent(trend, place, median(before), median(after), probable=len(steps))
            if event.better is steps[0].better and event.change:
                chance = split_chance(before, after, trend.scale) / 2
                return replace(event, acknowledged=steps[0].acknowledged) if chance <= CHANCE else None
    return None


def _place(trend: Trend, steps: Iterable[CellEvent]) -> int:
    """Index of the first figure in the run of these steps, or after it; the number of figures without one."""
    last = max((step.after for step in steps), key=lambda each: each.at)
    runs = enumerate(trend.figures)
    return next(
        (index for index, each in runs if each.row.run == last.row.run or each.at > last.at), len(trend.figures)
    )

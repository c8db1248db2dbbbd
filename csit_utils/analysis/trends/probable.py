"""Probable steps: changes of cells together with others, without enough evidence of their own.

A step has to be significant among all places of all cells. Where at least `NEIGHBOURS` series of a system have a
confirmed step in the same run and direction, the place is known, and each other series of the system is tested at that
place only: its change in that direction is *probable* if noise alone makes such a split with a probability of at most
`CHANCE`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from csit_utils.analysis.trends.events import CellEvent, events
from csit_utils.analysis.trends.steps import MIN_RUNS, split_chance
from csit_utils.analysis.trends.trend import FEWEST, Trend

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
                chance = split_chance(before, after, trend.scale_pps) / 2
                return replace(event, acknowledged=steps[0].acknowledged) if chance <= CHANCE else None
    return None


def _place(trend: Trend, steps: Iterable[CellEvent]) -> int:
    """Index of the first figure in the run of these steps, or after it; the number of figures without one."""
    last = max((step.after for step in steps), key=lambda each: each.at)
    runs = enumerate(trend.figures)
    return next(
        (index for index, each in runs if each.row.run == last.row.run or each.at > last.at), len(trend.figures)
    )

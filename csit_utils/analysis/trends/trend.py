"""The trend of every cell over its runs: steps, two bands, drift, suspected changes.

A run without a figure (failed, skipped, not run) is counted as a gap, not as zero.

`alpha` is the probability of any false step over all cells, so each of `n` cells gets `alpha / n` (Bonferroni). A step
is confirmed by at least three nights, and by more if it is small against the noise. A change in the last one or two
nights is *suspected* wrongly with a probability of `SUSPICION` per cell. A series in two bands, which is tested first,
has no steps; if a line fits better than steps, it drifts. `steps` has the methods.

Later figures may move the place of a step, and people date an acknowledged one by its cause: a date means the nearest
step within `MAX_SHIFT` figures, in the same direction.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import pairwise
from statistics import median

import numpy as np

from csit_utils.analysis.cells import CellFigure, CellMetric, figures, resolution, runs_of
from csit_utils.analysis.grouping import System
from csit_utils.analysis.runs import runs_before
from csit_utils.analysis.trends.steps import MIN_RUNS, Step, TwoBands, find_steps, find_two_bands, noise, tail
from csit_utils.dataset.ledger import NONE, Acknowledged, AcknowledgedStep
from csit_utils.dataset.rows import TestRow

SUSPICION = 0.001
"""Probability that noise alone makes the last value of a series suspected."""
FEWEST = 10
"""Fewest values that permit to tell steps from noise."""
_OUTLIER = 0.001
"""Probability that noise alone makes a value an outlier."""
_MIN_SCALE = 1e-4
"""Noise relative to the level, for values that repeat exactly and have no resolution."""


@dataclass(frozen=True)
class Drift:
    """A slow change, which a line fits better than steps."""

    change: float
    """From the first to the last value along the line, relative to the first."""
    slope_per_day: float
    """Unit of the values per day."""


@dataclass(frozen=True)
class Findings:
    """Findings in a series."""

    scale: float
    """Standard deviation of the noise, in the unit of the values."""
    steps: tuple[Step, ...] = ()
    bands: TwoBands | None = None
    drift: Drift | None = None
    suspected: float | None = None
    """Relative change of the last one or two values, not confirmed yet."""
    fresh: int = 0
    """Number of these values."""
    outliers: tuple[int, ...] = ()
    """Indices of values explained neither by noise nor by a step."""


def look(values: Sequence[float], times: Sequence[datetime], resolution: float, alpha: float) -> Findings:
    """Return the findings in one series.

    `values`: in the order of time, at least one, without gaps.
    `resolution`: difference of values without a change of the system, in their unit.
    """
    scale = max(noise(values, resolution), _MIN_SCALE * abs(median(values))) or 1.0
    if len(values) < FEWEST:
        return Findings(scale)
    bands = find_two_bands(values, resolution)
    if bands is not None:
        return Findings(scale, bands=bands)
    steps = find_steps(values, scale, alpha)
    drift = _drift(values, times, steps) if steps else None
    if drift is not None:
        return Findings(scale, drift=drift)
    suspected, fresh = _suspected(values, steps, scale)
    known = len(values) - fresh
    outliers = tuple(
        index
        for index, (value, level) in enumerate(zip(values, levels(values, steps), strict=True))
        if index < known and tail(value - level, scale) <= _OUTLIER
    )
    return Findings(scale, steps, None, None, suspected, fresh, outliers)


def levels(values: Sequence[float], steps: Sequence[Step]) -> tuple[float, ...]:
    """Return for each value the median of its part between steps."""
    ends = [0, *(step.index for step in steps), len(values)]
    parts = [values[one:two] for one, two in pairwise(ends)]
    return tuple(level for part in parts if part for level in [median(part)] * len(part))


def _suspected(values: Sequence[float], steps: Sequence[Step], scale: float) -> tuple[float | None, int]:
    """Relative change of the last nights, and their number."""
    last = list(values[steps[-1].index if steps else 0 :])
    for new in (2, 1):
        level = median(last[:-new])
        away = [value - level for value in last[-new:]]
        one_side = all(each > 0 for each in away) or all(each < 0 for each in away)
        chance = 2 * (tail(min(away, key=abs), scale) / 2) ** new
        if len(last) >= MIN_RUNS + new and one_side and chance <= SUSPICION and level:
            return median(away) / abs(level), new
    return None, 0


def _drift(values: Sequence[float], times: Sequence[datetime], steps: Sequence[Step]) -> Drift | None:
    """The Theil-Sen line, if it fits better than steps."""
    days = np.array([(at - times[0]).total_seconds() / 86400 for at in times])
    figures_ = np.array(values)
    later = days[None, :] - days[:, None]
    rises = (figures_[None, :] - figures_[:, None])[later > 0] / later[later > 0]
    if not rises.size:
        return None
    slope = float(np.median(rises))
    begin = float(np.median(figures_ - slope * days))
    from_line = float(np.abs(figures_ - begin - slope * days).sum())
    starts = [0, *(step.index for step in steps), len(values)]
    parts = [figures_[one:two] for one, two in pairwise(starts)]
    from_steps = sum(float(np.abs(part - np.median(part)).sum()) for part in parts)
    if from_line > from_steps or not begin:
        return None
    return Drift(slope * float(days[-1]) / abs(begin), slope)


ALPHA = 0.01
"""Probability of any false step over all cells."""
MAX_SHIFT = MIN_RUNS
"""Figures between a date and the first one of a step at most."""
_SAME_LEVEL = 0.25
"""Difference of equal levels at most, relative to the height of the acknowledged step."""


def matched(
    steps: Sequence[Step], times: Sequence[datetime], known: Sequence[AcknowledgedStep]
) -> tuple[AcknowledgedStep | None, ...]:
    """Return the acknowledgement of each step, the nearest first; one belongs to one step at most.

    `times`: Of all figures of the cell, in order.
    """
    places = [bisect_left(times, each.since) for each in known]
    pairs = sorted(
        (shift, number, place)
        for number, step in enumerate(steps)
        for place, each in enumerate(known)
        if (shift := abs(step.index - places[place])) <= MAX_SHIFT
        and (step.after > step.before) == (each.after > each.before)
    )
    found: dict[int, int] = {}
    for _, number, place in pairs:
        if number not in found and place not in found.values():
            found[number] = place
    return tuple(known[found[number]] if number in found else None for number in range(len(steps)))


def step_near(steps: Sequence[Step], times: Sequence[datetime], day: date) -> Step | None:
    """Return the step nearest to a day (UTC); None if none is within `MAX_SHIFT` figures of it.

    The first figure after the day is as near as those of the day.
    """
    days = [at.astimezone(UTC).date() for at in times]
    first, after = bisect_left(days, day), bisect_right(days, day)
    shifts = [(max(first - step.index, step.index - after, 0), abs(step.index - first), step) for step in steps]
    shift, _, step = min(shifts, key=lambda each: each[:2], default=(MAX_SHIFT + 1, 0, None))
    return step if shift <= MAX_SHIFT else None


def relation(step: Step, earlier: Sequence[AcknowledgedStep]) -> str:
    """Return in words that a step is an earlier acknowledged one that came back, or undoes one; empty if neither."""

    def same(level: float, other: float, known: AcknowledgedStep) -> bool:
        return abs(level - other) <= _SAME_LEVEL * abs(known.after - known.before)

    for known in reversed(earlier):
        if same(step.before, known.before, known) and same(step.after, known.after, known):
            return f"the step of {known.day} ({known.cause}) came back"
    for known in reversed(earlier):
        opposite = (step.after > step.before) != (known.after > known.before)
        if opposite and same(step.after, known.before, known):
            return f"back to the level before the step of {known.day} ({known.cause})"
    return ""


class TrendState(StrEnum):
    """Present state of a cell."""

    STEADY = "steady"
    REGRESSION = "regression"
    """Its last unexplained step went down."""
    PROGRESSION = "progression"
    """Its last unexplained step went up."""
    ACKNOWLEDGED = "acknowledged"
    """It has steps, and none of them is unexplained."""
    TWO_BANDS = "two bands"
    DRIFT = "drift"
    TOO_FEW = "too few"


@dataclass(frozen=True, kw_only=True)
class Trend(Findings):
    """The history of a cell, with findings in pps."""

    cell: CellMetric
    figures: tuple[CellFigure, ...]
    """In the order of time."""
    gaps: tuple[datetime, ...]
    """Start times of runs without a figure, between the first figure and the last run."""
    acknowledged: tuple[AcknowledgedStep | None, ...] = ()
    """For each step its acknowledgement."""

    @property
    def unexplained(self) -> Step | None:
        """The last step that is neither acknowledged nor undone by a later one."""
        for step, known in zip(reversed(self.steps), reversed(self.acknowledged), strict=True):
            now = self.steps[-1].after
            if known is None and abs(now - step.after) <= abs(now - step.before):
                return step
        return None

    @property
    def relations(self) -> tuple[str, ...]:
        """For each step in words that it repeats or undoes an acknowledged one; empty if it does not."""
        return tuple(
            "" if known else relation(step, [each for each in self.acknowledged[:number] if each])
            for number, (step, known) in enumerate(zip(self.steps, self.acknowledged, strict=True))
        )

    @property
    def state(self) -> TrendState:
        """Present state."""
        if self.bands is not None:
            return TrendState.TWO_BANDS
        if self.drift is not None:
            return TrendState.DRIFT
        if (last := self.unexplained) is not None:
            worse = self.cell.metric.worsening(last.after - last.before) > 0
            return TrendState.REGRESSION if worse else TrendState.PROGRESSION
        if self.steps:
            return TrendState.ACKNOWLEDGED
        return TrendState.TOO_FEW if len(self.figures) < FEWEST else TrendState.STEADY

    @property
    def values(self) -> tuple[float, ...]:
        """Figures in pps."""
        return tuple(each.value_pps for each in self.figures)

    @property
    def levels(self) -> tuple[float, ...]:
        """For each figure the median of its part between steps, in pps."""
        return levels(self.values, self.steps)


def trends(rows: Sequence[TestRow], alpha: float = ALPHA, acknowledged: Acknowledged = NONE) -> list[Trend]:
    """Return the trend of every cell, in the order of cells.

    `alpha`: probability of any false step over all cells.
    """
    found, runs = figures(rows), runs_of(rows)
    judged = sum(len(own) >= FEWEST for own in found.values())
    return [trend_of(cell, own, runs, alpha / max(1, judged), acknowledged) for cell, own in found.items()]


def newly_called(
    found: Iterable[Trend],
    candidate: Sequence[TestRow],
    rows: Sequence[TestRow],
    alpha: float = ALPHA,
    acknowledged: Acknowledged = NONE,
) -> list[Trend]:
    """Return regressions that are confirmed by a candidate: without its figures, they are not called.

    `candidate`: tests of the newest run of its testbeds.
    `rows`: all tests, the candidate's among them.
    `alpha`: probability of any false step over all cells.
    """
    before = {each.cell: each for each in trends(runs_before(candidate, rows, len(rows)), alpha, acknowledged)}
    measured = figures(candidate)
    return [
        each
        for each in found
        if each.state is TrendState.REGRESSION
        and each.cell in measured
        and (
            (earlier := before.get(each.cell)) is None
            or earlier.state is not TrendState.REGRESSION
            or len(earlier.steps) < len(each.steps)
        )
    ]


def trend_of(
    cell: CellMetric,
    found: Sequence[CellFigure],
    runs: Mapping[System, Mapping[str, datetime]],
    alpha: float,
    acknowledged: Acknowledged = NONE,
) -> Trend:
    """Return the trend of one cell.

    `found`: its figures in the order of time.
    `runs`: start times of the runs of its system.
    `alpha`: probability of a false step in this cell.
    """
    values, times = [each.value_pps for each in found], [each.at for each in found]
    seen = look(values, times, resolution(found, cell.metric), alpha)
    return Trend(
        cell=cell,
        figures=tuple(found),
        gaps=_gaps(found, runs.get(cell.series.system, {})),
        acknowledged=matched(seen.steps, times, acknowledged.get(cell.name, ()) if acknowledged else ()),
        **vars(seen),
    )


def _gaps(found: Sequence[CellFigure], runs: Mapping[str, datetime]) -> tuple[datetime, ...]:
    have = {each.row.run for each in found}
    return tuple(sorted(at for run, at in runs.items() if run not in have and at >= found[0].at))

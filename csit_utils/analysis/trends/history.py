"""Findings in a series of values over time: steps, two bands, drift, outliers, suspected changes.

Two bands are tested first: a series in two bands has no steps. If a line fits better than steps, the series drifts. A
change in the last one or two values cannot be confirmed yet: it is suspected if its probability under noise alone is at
most `SUSPICION`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

import numpy as np

from csit_utils.analysis.trends.steps import MIN_RUNS, Step, find_steps, noise, tail
from csit_utils.analysis.trends.twobands import TwoBands, find_two_bands

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
    """Relative change of the last one or two values."""
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

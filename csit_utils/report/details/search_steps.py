"""Search steps: the load of every trial in order, as a small plot."""

import math
from dataclasses import dataclass

from csit_utils.report.units import percent, rate
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.studies.density.model import DensityRecord

_WIDTH, _HEIGHT, _MARGIN = 1100.0, 190.0, 12.0
_AXIS, _LABELS, _TEXT_HEIGHT = 80.0, 220.0, 15.0


@dataclass(frozen=True)
class Dot:
    """One trial."""

    x: float
    y: float
    kind: str
    """Loss: `none`, `some` within the loss ratio of `SearchPath.number`, `much` above it; or `limited` by the
    generator."""
    tip: str


@dataclass(frozen=True)
class LevelLine:
    """A result of the search as a horizontal line, or a tick of the vertical axis."""

    y: float
    text: str


@dataclass(frozen=True)
class SearchPath:
    """All search trials; the y axis is logarithmic."""

    width: float
    height: float
    dots: tuple[Dot, ...]
    levels: tuple[LevelLine, ...]
    ticks: tuple[LevelLine, ...]
    number: str
    """PDR or SOAK, whose loss ratio separates `some` from `much` loss."""


def search_path(result: DensityRecord) -> SearchPath | None:
    """Return the plot; None for fewer than three search trials with a load."""
    trials = [
        trial for trial in result.trials if trial.trial.purpose in ("search", "soak") and trial.trial.load_pps > 0
    ]
    if len(trials) < 3:
        return None
    loads = [math.log(trial.trial.load_pps) for trial in trials]
    low, high = min(loads), max(loads)

    def height(load: float) -> float:
        share = (load - low) / (high - low) if high > low else 0.5
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - share), 1)

    step = (_WIDTH - _AXIS - _LABELS - 2 * _MARGIN) / (len(trials) - 1)
    goal = next((found.goal for found in (result.pdr, result.soak) if found is not None), None)
    ratio = goal.loss_ratio if goal is not None else 0.0
    dots = tuple(
        Dot(
            round(_AXIS + _MARGIN + index * step, 1),
            height(load),
            _kind(trial, loss_ratio, ratio),
            f"search trial {index + 1}: {rate(trial.trial.load_pps)} for {trial.trial.duration_s:g} s\n"
            f"loss {percent(loss_ratio)}",
        )
        for index, (trial, load) in enumerate(zip(trials, loads, strict=True))
        for loss_ratio in (trial.loss_ratio,)
    )
    levels = tuple(
        LevelLine(height(math.log(found.lower_pps)), f"{found.goal.name} {rate(found.lower_pps)}")
        for found in (result.ndr, result.pdr, result.soak)
        if found is not None and found.lower_pps
    )
    name = goal.name if goal is not None else "PDR"
    ticks = tuple(LevelLine(height(load), rate(math.exp(load))) for load in _ticks(low, high))
    return SearchPath(_WIDTH, _HEIGHT, dots, _apart(levels), ticks, name)


def _ticks(low: float, high: float) -> list[float]:
    """Ends of a logarithmic axis, and 1, 2 and 5 times powers of ten between them, with room for their labels."""
    room = (high - low) * _TEXT_HEIGHT / (_HEIGHT - 2 * _MARGIN)
    powers = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    between = (math.log(factor * 10.0**power) for power in powers for factor in (1, 2, 5))
    return [*dict.fromkeys((low, high)), *(load for load in between if low + room < load < high - room)]


def _apart(levels: tuple[LevelLine, ...]) -> tuple[LevelLine, ...]:
    """Merge the labels of levels that would overlap."""
    if len(levels) == 2 and abs(levels[0].y - levels[1].y) < _TEXT_HEIGHT:
        return (LevelLine(levels[0].y, ""), LevelLine(levels[1].y, f"{levels[0].text}, {levels[1].text}"))
    return levels


def _kind(trial: TrialResult, loss_ratio: float | None, ratio: float) -> str:
    if trial.generator_limited or loss_ratio is None:
        return "limited"
    if loss_ratio == 0:
        return "none"
    return "some" if loss_ratio <= ratio else "much"

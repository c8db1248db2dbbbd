"""What a trend found of the planted events of a history, and what it found besides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from csit_utils.analysis.cells import CellFigure
from csit_utils.analysis.trend import State, Trend
from csit_utils.bench.nights.measuring import FIRST_NIGHT
from csit_utils.bench.nights.story import EventKind, PlantedEvent, Story
from resources.libraries.python.model.cell import Cell, ServiceType

_NEAR = 1
"""Nights by which a step may be dated wrongly."""


@dataclass(frozen=True)
class NightJudgement:
    """By metric of a cell: `sim-a (simulated) CSC 1R1C ... PDR`."""

    found: tuple[str, ...]
    """Planted steps that were found, in the right direction."""
    missed: tuple[str, ...]
    """Planted steps that were not."""
    false: tuple[str, ...]
    """Steps, bands and drifts that nobody planted."""
    bands: tuple[str, ...]
    """Planted bands that were found."""
    bands_missed: tuple[str, ...]
    suspected: tuple[str, ...]
    """Fresh falls that are suspected."""


def night_of(found: CellFigure) -> int:
    """The night of a figure, from 0."""
    return (found.at - FIRST_NIGHT) // timedelta(days=1)


def judge(told: Story, found: Iterable[Trend]) -> NightJudgement:
    """Hold trends against what was planted."""
    rows: dict[str, list[str]] = {name: [] for name in NightJudgement.__dataclass_fields__}
    for trend in found:
        planted = _planted(told, trend)
        name = trend.cell.name
        steps = [event for event in planted if event.kind is EventKind.STEP]
        for event in steps:
            rows["found" if any(_is(event, trend, step.index) for step in trend.steps) else "missed"].append(name)
        banded = any(event.kind is EventKind.TWO_BANDS for event in planted)
        if banded:
            rows["bands" if trend.state is State.TWO_BANDS else "bands_missed"].append(name)
        strange = [step for step in trend.steps if not any(_is(event, trend, step.index) for event in steps)]
        if strange or trend.drift is not None or (trend.bands is not None and not banded):
            rows["false"].append(f"{name}: {trend.state}")
        if trend.suspected is not None:
            fresh = any(event.kind is EventKind.FRESH for event in planted)
            rows["suspected" if fresh else "false"].append(name if fresh else f"{name}: suspected")
    return NightJudgement(**{name: tuple(own) for name, own in rows.items()})


def _planted(told: Story, trend: Trend) -> Sequence[PlantedEvent]:
    series = trend.cell.series
    cell = Cell(
        service_type=ServiceType(series.service_type),
        nf_chains=trend.cell.nf_chains,
        nf_nodes=trend.cell.nf_nodes,
    )
    return [event for event in told.events if event.meets(series.system.testbed, event.first, cell)]


def _is(event: PlantedEvent, trend: Trend, index: int) -> bool:
    """Whether a step at that figure is that event."""
    step = next(step for step in trend.steps if step.index == index)
    return abs(night_of(trend.figures[index]) - event.first) <= _NEAR and (step.change > 0) == (event.factor > 1)

"""Interference by packet size and rate: one line of a table for each frame size and load that was measured."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.studies.interference.analysis.matrix import (
    degradation,
    in_order,
    lowest,
    normalized,
    pairs,
    sensitivity,
)
from resources.libraries.python.studies.interference.model.record import Interference, Meeting, Normalized


@dataclass(frozen=True, slots=True)
class PairsPoint:
    """All pairs at one frame size and load, without a guarantee."""

    frame: str
    load_pps: float
    """Offered to each network function, one way."""
    degradation: float
    """Mean over all pairs."""
    most_sensitive: str
    lowest: float
    """Normalized throughput of the pair that suffers most."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The matrix at one frame size and load of a sweep."""

    frame: Frame
    asked_pps: float | None
    """None for more than the fastest carries alone."""
    load_pps: float
    """Offered to each network function, one way."""
    matrix: tuple[Normalized, ...]


def spots(found: Interference, *, guaranteed: bool = False) -> tuple[Spot, ...]:
    """The matrix at each point of a study that was measured, in the order of its lists."""
    by_point: dict[int, list[Meeting]] = defaultdict(list)
    for meeting in found.meetings:
        if meeting.guaranteed is (guaranteed and bool(meeting.against)):
            by_point[meeting.point].append(meeting)
    return tuple(
        Spot(frame, asked_pps, by_point[point][0].load_pps, matrix)
        for point, (frame, asked_pps) in enumerate(found.spec.points())
        if (matrix := in_order(found.spec, normalized(by_point.get(point, ()))))
    )


def by_frame_and_load(studies: Sequence[Interference]) -> tuple[PairsPoint, ...]:
    """A point for each frame size and load of studies of the same network functions, lowest load first.

    Frame sizes are in the order of the studies.
    """
    found: dict[str, dict[float, list[Meeting]]] = defaultdict(lambda: defaultdict(list))
    for study in studies:
        for meeting in study.meetings:
            if not meeting.guaranteed:
                found[meeting.frame][meeting.load_pps].append(meeting)
    return tuple(
        point
        for frame, loads in found.items()
        for load_pps in sorted(loads)
        if (point := _point(frame, load_pps, loads[load_pps])) is not None
    )


def _point(frame: str, load_pps: float, meetings: Sequence[Meeting]) -> PairsPoint | None:
    matrix = pairs(normalized(meetings))
    most = lowest(sensitivity(matrix))
    if most is None:
        return None
    means = [row.mean for row in matrix]
    return PairsPoint(frame, load_pps, degradation(fmean(means)), most, min(means))

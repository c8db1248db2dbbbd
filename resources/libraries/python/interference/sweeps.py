"""Interference by packet size and rate: one line of a table for each frame size and load that was measured."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from resources.libraries.python.interference.matrix import normalized
from resources.libraries.python.interference.measures import degradation, lowest, pairs, sensitivity
from resources.libraries.python.model.interference import Interference, Meeting


@dataclass(frozen=True, slots=True)
class Point:
    """All pairs at one frame size and load, without a guarantee."""

    frame: str
    load_pps: float
    """Offered to each network function, one way."""
    degradation: float
    """Mean over all pairs."""
    most_sensitive: str
    lowest: float
    """Normalized throughput of the pair that suffers most."""


def by_frame_and_load(studies: Sequence[Interference]) -> tuple[Point, ...]:
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


def _point(frame: str, load_pps: float, meetings: Sequence[Meeting]) -> Point | None:
    matrix = pairs(normalized(meetings))
    most = lowest(sensitivity(matrix))
    if most is None:
        return None
    means = [row.mean for row in matrix]
    return Point(frame, load_pps, degradation(fmean(means)), most, min(means))

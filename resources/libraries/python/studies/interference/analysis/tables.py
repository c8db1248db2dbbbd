"""The tables of a study of interference: meetings, the matrix, means over it, and lines by frame size and load."""

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
from resources.libraries.python.studies.interference.model.record import (
    Interference,
    InterferenceRecord,
    Meeting,
    Normalized,
)

Row = tuple[object, ...]
"""Fields of a line; the first line of a table has the names of its columns. What is unknown is None, an empty field."""

MEETINGS = (
    "turn", "repetition", "target", "against", "guaranteed", "frame", "load_pps", "throughput_pps", "loss_ratio",
    "response_us", "cpus", "memory_bytes", "cache_misses",
)  # fmt: skip
"""One line a measurement; rates are of one way, `against` is empty where the target was alone."""
MATRIX = ("target", "against", "guaranteed", "normalized", "stdev", "low", "high", "samples", "degradation")
"""One line for each target and group; `low` and `high` are the ends of the 95 % confidence interval."""
SWEEP = ("frame", "load_pps", *MATRIX)
"""One line for each target and group at each frame size and load of a sweep."""
MEANS = ("network_function", "type", "kind", "stand_in_for", "sensitivity", "aggressiveness")
"""Row mean and column mean of the matrix."""


def interference_tables(record: InterferenceRecord) -> tuple[tuple[str, list[Row]], ...]:
    """Name and rows of every table that a record has something for."""
    found = record.interference
    if found is None:
        return ()
    tables = (
        ("meetings", _meetings(found.meetings)),
        ("interference_matrix", _matrix(found)),
        ("interference_means", _means(found)),
        ("interference_sweep", _sweep(found)),
    )
    return tuple((name, rows) for name, rows in tables if len(rows) > 1)


def _meetings(meetings: Sequence[Meeting]) -> list[Row]:
    rows: list[Row] = [MEETINGS]
    rows += [
        (
            each.turn,
            each.repetition,
            each.target,
            "+".join(each.against),
            each.guaranteed,
            each.frame,
            each.load_pps,
            each.throughput_pps,
            each.loss_ratio,
            None if each.response_s is None else each.response_s * 1e6,
            each.cpu,
            each.memory_bytes,
            each.cache_misses,
        )
        for each in sorted(meetings, key=lambda each: each.turn)
    ]
    return rows


def _matrix(found: Interference) -> list[Row]:
    rows: list[Row] = [MATRIX]
    rows += [_line(row, guaranteed=False) for row in found.matrix]
    rows += [_line(row, guaranteed=True) for row in found.guaranteed]
    return rows


def _line(row: Normalized, *, guaranteed: bool) -> Row:
    against = "+".join(row.against)
    return (row.target, against, guaranteed, row.mean, row.stdev, row.low, row.high, row.samples, 1 - row.mean)


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


def _sweep(found: Interference) -> list[Row]:
    rows: list[Row] = [SWEEP]
    if len(found.spec.points()) > 1:
        rows += [
            (spot.frame.name, spot.load_pps, *_line(row, guaranteed=guaranteed))
            for guaranteed in (False, True)
            for spot in spots(found, guaranteed=guaranteed)
            for row in spot.matrix
        ]
    return rows


def _means(found: Interference) -> list[Row]:
    rows: list[Row] = [MEANS]
    rows += [
        (
            each.name,
            each.type,
            each.kind,
            each.stand_in_for,
            found.sensitivity.get(each.name),
            found.aggressiveness.get(each.name),
        )
        for each in found.spec.contenders
    ]
    return rows

"""Tables of a study of interference (measurements, matrix, means, lines by frame size and load), and its sentences."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.quantities import rate
from resources.libraries.python.studies.interference.analysis.matrix import (
    degradation,
    in_order,
    lowest,
    normalized,
    pairs,
    sensitivity,
)
from resources.libraries.python.studies.interference.model.record import (
    ColocationMeasurement,
    Interference,
    InterferenceRecord,
    Normalized,
)

Row = tuple[object, ...]
"""Fields of a line; the first line of a table has the names of its columns. What is unknown is None, an empty field."""

MEASUREMENTS = (
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
        ("interference_measurements", _measurements(found.measurements)),
        ("interference_matrix", _matrix(found)),
        ("interference_means", _means(found)),
        ("interference_sweep", _sweep(found)),
    )
    return tuple((name, rows) for name, rows in tables if len(rows) > 1)


def _measurements(measurements: Sequence[ColocationMeasurement]) -> list[Row]:
    rows: list[Row] = [MEASUREMENTS]
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
        for each in sorted(measurements, key=lambda each: each.turn)
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
class MatrixSlice:
    """The matrix at one frame size and load of a sweep."""

    frame: Frame
    asked_pps: float | None
    """None for more than the fastest carries alone."""
    load_pps: float
    """Offered to each network function, one way."""
    matrix: tuple[Normalized, ...]


def spots(found: Interference, *, guaranteed: bool = False) -> tuple[MatrixSlice, ...]:
    """The matrix at each point of a study that was measured, in the order of its lists."""
    by_point: dict[int, list[ColocationMeasurement]] = defaultdict(list)
    for measurement in found.measurements:
        if measurement.guaranteed is (guaranteed and bool(measurement.against)):
            by_point[measurement.point].append(measurement)
    return tuple(
        MatrixSlice(frame, asked_pps, by_point[point][0].load_pps, matrix)
        for point, (frame, asked_pps) in enumerate(found.spec.points())
        if (matrix := in_order(found.spec, normalized(by_point.get(point, ()))))
    )


def by_frame_and_load(studies: Sequence[Interference]) -> tuple[PairsPoint, ...]:
    """A point for each frame size and load of studies of the same network functions, lowest load first.

    Frame sizes are in the order of the studies.
    """
    found: dict[str, dict[float, list[ColocationMeasurement]]] = defaultdict(lambda: defaultdict(list))
    for study in studies:
        for measurement in study.measurements:
            if not measurement.guaranteed:
                found[measurement.frame][measurement.load_pps].append(measurement)
    return tuple(
        point
        for frame, loads in found.items()
        for load_pps in sorted(loads)
        if (point := _point(frame, load_pps, loads[load_pps])) is not None
    )


def _point(frame: str, load_pps: float, measurements: Sequence[ColocationMeasurement]) -> PairsPoint | None:
    matrix = pairs(normalized(measurements))
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


_NOTHING = 0.0005
"""Less does not show in a tenth of a percent."""


def matrix_in_words(found: Interference) -> tuple[str, ...]:
    """A line for each network function, then the most sensitive, the most aggressive, and the network's share."""
    return (*_rows(found.matrix), *summary_in_words(found), *sweep_in_words(found))


def sweep_in_words(found: Interference) -> tuple[str, ...]:
    """A line for each frame size and load of a sweep; none where there is only one."""
    if len(found.spec.points()) == 1:
        return ()
    return tuple(f"{spot.frame.name}, {rate(spot.load_pps)} each: {_lost(spot)}" for spot in spots(found))


def _lost(spot: MatrixSlice) -> str:
    rows = pairs(spot.matrix)
    lost = degradation(fmean(row.mean for row in rows)) if rows else 0.0
    if lost < _NOTHING:
        return "nothing is lost in pairs, on average"
    return f"{100 * lost:.1f} % lost in pairs on average, most sensitive is {lowest(sensitivity(rows))}"


def summary_in_words(found: Interference) -> tuple[str, ...]:
    """Most sensitive and most aggressive, means over all pairs; share of the network; what could not be measured."""
    lines = []
    if (name := lowest(found.sensitivity)) is not None:
        lines.append(
            f"most sensitive is {name}: it loses {_percent(found.sensitivity, name)} beside another"
            if found.sensitivity[name] < 1
            else "none loses anything beside another, on average"
        )
    if (name := lowest(found.aggressiveness)) is not None and found.aggressiveness[name] < 1:
        lines.append(f"most aggressive is {name}: others lose {_percent(found.aggressiveness, name)} beside it")
    if found.network_share is not None:
        more = [f"{100 * share:.0f} % with {size} NFs" for size, share in found.network_shares.items() if size > 2]
        beyond = f" ({', '.join(more)})" if more else ""
        lines.append(f"{100 * found.network_share:.0f} % of the degradation comes from network I/O{beyond}")
    return (*lines, *found.notes)


def advice_in_words(found: Interference) -> tuple[str, ...]:
    """Return the placement advice."""
    return tuple(advice.sentence for advice in found.advice)


def cell_in_words(row: Normalized) -> str:
    """`0.615 (0.598 to 0.633)`."""
    if row.low is None or row.high is None:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} ({row.low:.3f} to {row.high:.3f})"


def _rows(matrix: Sequence[Normalized]) -> Iterator[str]:
    for target in dict.fromkeys(row.target for row in matrix):
        beside = [f"{cell_in_words(row)} beside {' and '.join(row.against)}" for row in matrix if row.target == target]
        yield f"{target}: {', '.join(beside)}"


def _percent(means: Mapping[str, float], name: str) -> str:
    return f"{100 * degradation(means[name]):.1f} %"

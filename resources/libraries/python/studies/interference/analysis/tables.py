"""Tables of a study of interference: measurements, matrix, comparison with the baselines, means, points of a sweep."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resources.libraries.python.csv_tables import Row, Tables, filled, times
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.studies.interference.analysis.findings import Throughputs, findings_of, in_order
from resources.libraries.python.studies.interference.analysis.resources import QUANTITIES, comparisons
from resources.libraries.python.studies.interference.model import (
    ColocationMeasurement,
    Interference,
    InterferenceRecord,
    InterferenceSpec,
    Normalized,
    PairsFindings,
    RankedMean,
    Resource,
)

MEASUREMENTS = (
    "turn", "repetition", "target", "against", "guaranteed", "frame", "load_pps", "throughput_pps", "loss_ratio",
    "response_us", "cpus", "memory_bytes", "cache_misses", "guaranteed_resource",
)  # fmt: skip
"""One line a measurement; rates are of one way, `against` is empty where the target was alone."""
MATRIX = (
    "target", "against", "guaranteed", "normalized", "stdev", "low", "high", "samples", "degradation",
    "guaranteed_resource",
)  # fmt: skip
"""One line for each target and group; `low` and `high` are the ends of the 95 % confidence interval."""
SWEEP = ("frame", "load_pps", *MATRIX)
"""One line for each target and group at each frame size and load of a sweep."""
MEANS = (
    "network_function", "type", "kind", "stand_in_for",
    *(f"{what}{end}" for what in ("sensitivity", "aggressiveness")
      for end in ("", "_low", "_high", "_first_rank", "_last_rank")),
)  # fmt: skip
"""Mean degradation of a row and of a column of the matrix, with 95 % confidence interval and rank; rank 1 is worst."""


_COMPARED: dict[str, Callable[[ColocationMeasurement], float | None]] = {
    "throughput_pps": lambda each: each.throughput_pps,
    "response_us": lambda each: times(each.response_s, 1e6),
    "loss_ratio": lambda each: each.loss_ratio,
    **{name.lower().replace(" ", "_"): value for name, value in QUANTITIES.items()},
}
COMPARISON = (
    "target", "against", "guaranteed_resource",
    *(f"{name}_{where}" for name in _COMPARED for where in ("alone", "beside")),
)  # fmt: skip
"""One line for each target and group: means alone and beside others, as Table I of Zeng et al. has for throughput."""


def interference_tables(record: InterferenceRecord) -> Tables:
    """Name and rows of every table that a record has something for."""
    found = record.interference
    if found is None:
        return ()
    return filled(
        ("interference_measurements", _measurements(found.measurements)),
        ("interference_matrix", _matrix(found)),
        ("interference_comparison", _comparison(found)),
        ("interference_means", _means(found)),
        ("interference_sweep", _sweep(found)),
    )


def _measurements(measurements: Sequence[ColocationMeasurement]) -> list[Row]:
    rows = (
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
            times(each.response_s, 1e6),
            each.cpu,
            each.memory_bytes,
            each.cache_misses,
            each.guarantee,
        )
        for each in sorted(measurements, key=lambda each: each.turn)
    )
    return [MEASUREMENTS, *rows]


def _matrix(found: Interference) -> list[Row]:
    return [MATRIX, *(_line(row, guarantee) for guarantee, matrix in matrices(found) for row in matrix)]


def matrices(found: Interference) -> tuple[tuple[Resource | None, tuple[Normalized, ...]], ...]:
    """The matrix without a guarantee, and with each one; some are empty."""
    return ((None, found.matrix), (Resource.NETWORK, found.guaranteed), (Resource.CPU, found.guaranteed_cpu))


def _line(row: Normalized, guarantee: Resource | None) -> Row:
    against = "+".join(row.against)
    ends = (row.mean, row.stdev, row.low, row.high, row.samples, 1 - row.mean)
    return (row.target, against, guarantee is not None, *ends, guarantee)


def _comparison(found: Interference) -> list[Row]:
    rows: list[Row] = [COMPARISON]
    for guarantee, matrix in matrices(found):
        here = [
            each
            for each in found.measurements
            if not each.point and each.guarantee is (guarantee if each.against else None)
        ]
        compared = [comparisons(here, value) for value in _COMPARED.values()]
        for row in matrix:
            both = [each.get((row.target, row.against)) for each in compared]
            cells = [cell for each in both for cell in ((each.alone, each.beside) if each else (None, None))]
            rows.append((row.target, "+".join(row.against), guarantee, *cells))
    return rows


@dataclass(frozen=True, slots=True)
class MatrixSlice:
    """The matrix at one frame size and load."""

    frame: Frame
    asked_pps: float | None
    """None for more than the fastest carries alone."""
    load_pps: float
    """Offered to each network function, one way."""
    matrix: tuple[Normalized, ...]
    findings: PairsFindings | None
    """Of its pairs, without a guarantee; None where there is none."""


def spots(found: Interference, guarantee: Resource | None = None) -> tuple[MatrixSlice, ...]:
    """The matrix at each point of a study that was measured, in the order of its lists."""
    by_point: dict[int, list[ColocationMeasurement]] = defaultdict(list)
    for measurement in found.measurements:
        by_point[measurement.point].append(measurement)
    return tuple(
        each
        for point, (frame, asked_pps) in enumerate(found.spec.points())
        if point in by_point
        if (each := _slice(found.spec, frame, asked_pps, by_point[point], guarantee)).matrix
    )


def by_frame_and_load(studies: Sequence[Interference]) -> tuple[MatrixSlice, ...]:
    """All pairs at each frame size and load of studies of the same network functions, lowest load first.

    Frame sizes are in the order of the studies.
    """
    found: dict[Frame, dict[float, list[ColocationMeasurement]]] = defaultdict(lambda: defaultdict(list))
    for study in studies:
        frames = {frame.name: frame for frame, _ in study.spec.points()}
        for measurement in study.measurements:
            found[frames.get(measurement.frame, study.spec.frame)][measurement.load_pps].append(measurement)
    return tuple(
        each
        for frame, loads in found.items()
        for load_pps in sorted(loads)
        if (each := _slice(studies[0].spec, frame, load_pps, loads[load_pps])).findings is not None
    )


def _slice(
    spec: InterferenceSpec,
    frame: Frame,
    asked_pps: float | None,
    measurements: Sequence[ColocationMeasurement],
    guarantee: Resource | None = None,
) -> MatrixSlice:
    throughputs = Throughputs(measurements)
    return MatrixSlice(
        frame=frame,
        asked_pps=asked_pps,
        load_pps=measurements[0].load_pps,
        matrix=in_order(spec, throughputs.rows(guarantee)),
        findings=findings_of(throughputs, [each.name for each in spec.contenders]),
    )


def _sweep(found: Interference) -> list[Row]:
    rows: list[Row] = [SWEEP]
    if len(found.spec.points()) > 1:
        rows += [
            (spot.frame.name, spot.load_pps, *_line(row, guarantee))
            for guarantee in (None, *Resource)
            for spot in spots(found, guarantee)
            for row in spot.matrix
        ]
    return rows


def _means(found: Interference) -> list[Row]:
    known = found.findings
    sensitivity, aggressiveness = (
        {each.name: each for each in means}
        for means in ((known.sensitivity, known.aggressiveness) if known else ((), ()))
    )
    rows = (
        (
            each.name,
            each.type,
            each.kind,
            each.stand_in_for,
            *_lost(sensitivity.get(each.name)),
            *_lost(aggressiveness.get(each.name)),
        )
        for each in found.spec.contenders
    )
    return [MEANS, *rows]


def _lost(mean: RankedMean | None) -> Row:
    if mean is None:
        return (None,) * 5
    lost = mean.lost
    return (lost.value, lost.low, lost.high, *(mean.ranks or (None, None)))

"""The tables of a study of interference: meetings, the matrix, means over it. Files are others' affair."""

from collections.abc import Sequence

from resources.libraries.python.studies.interference.analysis.sweeps import spots
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

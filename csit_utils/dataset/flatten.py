"""Conversion of items of a dataset to flat rows, and of these to CSV files."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_type_hints

from csit_utils.dataset.items import Recorded, Status
from csit_utils.dataset.measures import Measure, MeasuredSubject
from csit_utils.dataset.rows import (
    LISTS,
    PUBLISHED,
    CostRow,
    FlowRow,
    HopRow,
    InstanceRow,
    LatencyRow,
    MeasuredRow,
    TestRow,
    ThreadRow,
    TrialRow,
)
from resources.libraries.python.csv_tables import harmless
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

RowT = TypeVar("RowT")
_Values = tuple[Any, ...]


def _fields(kind: "type[DataclassInstance]", first: str, last: str) -> Callable[[Any], _Values]:
    """Return what reads neighbouring columns of a table from the part of a record that has fields of these names."""
    names = [each.name for each in fields(kind)]
    return attrgetter(*names[names.index(first) : names.index(last) + 1])


_OF_LATENCY = _fields(LatencyRow, "instance", "histogram")
_OF_FLOW = _fields(FlowRow, "instance", "received")
_OF_TRIAL, _OF_END = _fields(TrialRow, "offered_pps", "loss_ratio"), _fields(TrialRow, "offered_duration_s", "note")
_OF_INSTANCE = _fields(InstanceRow, "instance", "loss_ratio")
_OF_HOP = attrgetter("instance", "direction", "owner", "cause", "last", "next", "lost")
_OF_THREAD = _fields(ThreadRow, "owner", "waiting")
_OF_COST = _fields(CostRow, "part", "error")


def _latency_rows(record: DensityRecord) -> Iterator[_Values]:
    verdict = " ".join(record.verdict.of("LATENCY"))
    for load in record.latency:
        for flow in load.flows:
            yield (load.label, load.load_pps, *_OF_LATENCY(flow), verdict)


def _trial_rows(record: DensityRecord) -> Iterator[_Values]:
    for number, done in enumerate(record.trials, 1):
        of, load = done.trial, (done.started_at, done.trial.load_pps, *_OF_TRIAL(done))
        yield (number, of.purpose, *load, of.duration_s, *_OF_END(done))


def _flow_rows(record: DensityRecord) -> Iterator[_Values]:
    for number, done in enumerate(record.trials, 1):
        of = done.trial
        for flow in done.flows:
            yield (number, of.purpose, of.load_pps, *_OF_FLOW(flow))


def _instance_rows(record: DensityRecord) -> Iterator[_Values]:
    for found in record.itemized:
        verdict, load = " ".join(record.verdict.of(found.number)), (found.number, found.load_pps, found.trials)
        for flow in found.flows:
            worst = flow.instance == found.worst_instance and found.worst_loss_ratio > 0
            yield (*load, *_OF_INSTANCE(flow), worst, found.fairness, verdict)


def _hop_rows(record: DensityRecord) -> Iterator[_Values]:
    if (found := record.located) is not None:
        for loss in found.hops:
            share = loss.lost / max(1, found.sent - found.received)
            yield (found.purpose, found.offered_pps, *_OF_HOP(loss), share)


def _thread_rows(record: DensityRecord) -> Iterator[_Values]:
    if (found := record.located) is not None and found.usage is not None:
        yield from map(_OF_THREAD, found.usage.threads)


def _cost_rows(record: DensityRecord) -> Iterator[_Values]:
    if (found := record.costs) is not None:
        for node in found.nodes:
            yield (found.load, found.load_pps, *_OF_COST(node))


class RecordTable(NamedTuple):
    """A table of the records of density tests beside that of tests."""

    name: str
    """That of its CSV file."""
    key: str
    """Key of the record that its rows are made of, with name and verdict of the test."""
    values: Callable[[DensityRecord], Iterator[_Values]]
    """Values of its rows behind anchor and name of the test."""


TABLES: Mapping[type, RecordTable] = {
    LatencyRow: RecordTable("latency", "latency", _latency_rows),
    TrialRow: RecordTable("trials", "trials", _trial_rows),
    FlowRow: RecordTable("flows", "trials", _flow_rows),
    InstanceRow: RecordTable("instances", "itemized", _instance_rows),
    HopRow: RecordTable("hops", "located", _hop_rows),
    ThreadRow: RecordTable("threads", "located", _thread_rows),
    CostRow: RecordTable("costs", "costs", _cost_rows),
}
"""By the type of their rows."""


def record_rows(kind: type[RowT], anchor: str, record: DensityRecord) -> Iterator[RowT]:
    """Yield the rows of one of `TABLES` of a test."""
    make: Callable[..., RowT] = kind
    return (make(anchor, record.test_name, *values) for values in TABLES[kind].values(record))


def measured_row(item: Recorded, subject: MeasuredSubject, measures: Iterable[Measure]) -> MeasuredRow:
    """Return a row of one subject of a record, without values where the test did not pass."""
    return replace(
        unmeasured_row(item),
        goals=subject.load,
        test_type=" ".join(measures),
        service_type=subject.service,
        **subject.dimensions.columns,
        nf_size=subject.size,
        vs_dtc=subject.vs_dtc,
        frame=subject.frame,
        measures=subject.values if item.status is Status.PASS and item.record.passed else (),
    )


def unmeasured_row(item: Recorded) -> MeasuredRow:
    """Return the row of a record without anything that is followed over time."""
    record = item.record
    return MeasuredRow(
        anchor=item.anchor,
        test_id=record.test_id,
        test_name=record.test_name,
        source=item.source,
        recorded=True,
        status=item.status.value,
        message=item.message,
        tags=" ".join(record.tags),
        run=item.source,
        label=item.label,
        started_at=record.started_at,
        finished_at=record.finished_at,
        world=record.world.value,
        simulated=record.simulated,
        testbed=record.testbed,
        drivers=", ".join(f"{role} {name}" for role, name in sorted(record.drivers.items())),
        version=record.version,
        revision=record.environment.revision,
        environment=record.environment.digest,
    )


FILES: Mapping[str, type[Any]] = {"tests": TestRow, **{table.name: kind for kind, table in TABLES.items()}}
"""Type of the rows of each CSV file, by its name."""


def columns_of(kind: "type[DataclassInstance]") -> tuple[str, ...]:
    """Return the columns of a file, without those that are lists and histograms."""
    return tuple(each.name for each in fields(kind) if each.name not in (*LISTS, "histogram"))


def frame_of(kind: "type[DataclassInstance]", rows: "Iterable[DataclassInstance]") -> "pd.DataFrame":
    """Return rows of a file as a table."""
    import pandas as pd  # noqa: PLC0415 - costs time of all that makes rows

    frame = pd.DataFrame((asdict(row) for row in rows), columns=columns_of(kind))
    hints = get_type_hints(kind)
    return frame.astype({name: _dtype(hints[name]) for name in frame.columns})


def _dtype(hint: object) -> str:
    """Nullable types: an unknown count stays unknown instead of turning its column into floats with NaN."""
    kinds = set(get_args(hint) or (hint,)) - {type(None)}
    return {str: "string", int: "Int64", float: "float64", bool: "boolean"}[kinds.pop()]


def write_csv(tests: Iterable[TestRow], others: Iterable[Any], directory: Path) -> tuple[Path, ...]:
    """Write `FILES`, with raw numbers.

    Histograms and published figures are left out.

    `others`: rows of `TABLES`.

    Returns:
        The files.

    Raises:
        CsitError: One cannot be written.
        ReadError: A record is damaged.
    """
    rows: dict[type, list[Any]] = {kind: [] for kind in TABLES}
    for row in others:
        rows[type(row)].append(row)
    rows[TestRow] = [row for row in tests if row.world != PUBLISHED]
    frames = {name: frame_of(kind, rows[kind]) for name, kind in FILES.items()}
    options: dict[str, Any] = {"index": False, "lineterminator": "\n"}
    for name, frame in frames.items():
        texts = frame.select_dtypes(exclude=["number", "bool"])
        safe: dict[str, Any] = {str(column): texts[column].map(harmless) for column in texts}
        write_whole(directory / f"{name}.csv", frame.assign(**safe).to_csv(None, **options))
    return tuple(directory / f"{name}.csv" for name in frames)

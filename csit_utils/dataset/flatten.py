"""Conversion of items of a dataset to flat rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from csit_utils.dataset.items import Dataset, Recorded, Status
from csit_utils.dataset.measures import Measure, MeasuredSubject
from csit_utils.dataset.rows import (
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
from csit_utils.dataset.testrows import recorded_row, unrecorded_row
from resources.libraries.python.studies.density.model.record import DensityRecord

RowT = TypeVar("RowT")


def rows_of_tests(dataset: Dataset) -> list[TestRow]:
    """One row per test, those without a record last."""
    foreign = (item.row for item in dataset.foreign)
    return [*map(recorded_row, dataset.of(DensityRecord)), *foreign, *map(unrecorded_row, dataset.unrecorded)]


def _latency_rows(anchor: str, record: DensityRecord) -> Iterator[LatencyRow]:
    verdict = " ".join(record.verdict.of("LATENCY"))
    for load in record.latency:
        for flow in load.flows:
            yield LatencyRow(
                anchor,
                record.test_name,
                load.label,
                load.load_pps,
                flow.instance,
                flow.direction,
                flow.sent,
                flow.received,
                flow.min_ns,
                flow.mean_ns,
                flow.p50_ns,
                flow.p90_ns,
                flow.p99_ns,
                flow.p999_ns,
                flow.max_ns,
                flow.histogram,
                verdict,
            )


def _trial_rows(anchor: str, record: DensityRecord) -> Iterator[TrialRow]:
    for number, done in enumerate(record.trials, 1):
        yield TrialRow(
            anchor,
            record.test_name,
            number,
            done.trial.purpose,
            done.started_at,
            done.trial.load_pps,
            done.offered_pps,
            done.forwarded_pps,
            done.sent,
            done.received,
            done.loss_ratio,
            done.trial.duration_s,
            done.offered_duration_s,
            done.total_duration_s,
            done.aborted,
            done.generator_limited,
            done.note,
        )


def _flow_rows(anchor: str, record: DensityRecord) -> Iterator[FlowRow]:
    for number, done in enumerate(record.trials, 1):
        for flow in done.flows:
            yield FlowRow(
                anchor,
                record.test_name,
                number,
                done.trial.purpose,
                done.trial.load_pps,
                flow.instance,
                flow.direction,
                flow.sent,
                flow.received,
            )


def _instance_rows(anchor: str, record: DensityRecord) -> Iterator[InstanceRow]:
    for found in record.itemized:
        verdict = " ".join(record.verdict.of(found.number))
        for flow in found.flows:
            yield InstanceRow(
                anchor,
                record.test_name,
                found.number,
                found.load_pps,
                found.trials,
                flow.instance,
                flow.direction,
                flow.sent,
                flow.received,
                flow.offered_pps,
                flow.forwarded_pps,
                flow.loss_ratio,
                flow.instance == found.worst_instance and found.worst_loss_ratio > 0,
                found.fairness,
                verdict,
            )


def _hop_rows(anchor: str, record: DensityRecord) -> Iterator[HopRow]:
    found = record.located
    for loss in found.hops if found else ():
        yield HopRow(
            anchor,
            record.test_name,
            found.purpose,
            found.offered_pps,
            loss.instance,
            loss.direction,
            loss.owner,
            loss.cause,
            loss.last,
            loss.next,
            loss.lost,
            loss.lost / max(1, found.sent - found.received),
        )


def _thread_rows(anchor: str, record: DensityRecord) -> Iterator[ThreadRow]:
    found = record.located
    for thread in found.usage.threads if found and found.usage else ():
        yield ThreadRow(
            anchor, record.test_name, thread.owner, thread.interface, thread.cpu, thread.running, thread.waiting
        )


def _cost_rows(anchor: str, record: DensityRecord) -> Iterator[CostRow]:
    found = record.costs
    for node in found.nodes if found else ():
        yield CostRow(
            anchor,
            record.test_name,
            found.load,
            found.load_pps,
            node.part,
            node.thread,
            node.node,
            node.packets,
            node.calls,
            node.cost,
            node.unit,
            node.error,
        )


class RecordTable(NamedTuple):
    """A table of the records of density tests beside that of tests."""

    name: str
    """That of its CSV file."""
    key: str
    """Key of the record that its rows are made of, with name and verdict of the test."""
    rows: Callable[[str, DensityRecord], Iterator[Any]]
    """Return the rows of a test, given its anchor and its record."""


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


def table_rows(dataset: Dataset, kind: type[RowT]) -> Iterator[RowT]:
    """Yield the rows of one of `TABLES`."""
    for imported in dataset.foreign:
        yield from (row for row in imported.latency if isinstance(row, kind))
    for item in dataset.of(DensityRecord):
        yield from TABLES[kind].rows(item.anchor, item.record)


def measured_row(item: Recorded, subject: MeasuredSubject, measures: Iterable[Measure]) -> MeasuredRow:
    """Return a row of one subject of a record, without values where the test did not pass."""
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
        goals=subject.load,
        test_type=" ".join(measures),
        service_type=subject.service,
        **subject.dimensions.columns,
        nf_size=subject.size,
        vs_dtc=subject.vs_dtc,
        frame=subject.frame,
        measures=subject.values if item.status is Status.PASS and record.passed else (),
    )

"""Conversion of items of a dataset to flat rows."""

from collections.abc import Iterable, Iterator

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


def rows_of_tests(dataset: Dataset) -> list[TestRow]:
    """One row per test, those without a record last."""
    foreign = (item.row for item in dataset.foreign)
    return [*map(recorded_row, dataset.of(DensityRecord)), *foreign, *map(unrecorded_row, dataset.unrecorded)]


def latency_rows(dataset: Dataset) -> Iterator[LatencyRow]:
    """One row per test, load, instance and direction."""
    yield from (row for item in dataset.foreign for row in item.latency)
    for item in dataset.of(DensityRecord):
        anchor, verdict = item.anchor, " ".join(item.record.verdict.of("LATENCY"))
        for load in item.record.latency:
            for flow in load.flows:
                yield LatencyRow(
                    anchor,
                    item.record.test_name,
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


def trial_rows(dataset: Dataset) -> Iterator[TrialRow]:
    """One row per test and trial."""
    for item in dataset.of(DensityRecord):
        anchor = item.anchor
        for number, done in enumerate(item.record.trials, 1):
            yield TrialRow(
                anchor,
                item.record.test_name,
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


def flow_rows(dataset: Dataset) -> Iterator[FlowRow]:
    """One row per test, trial, instance and direction."""
    for item in dataset.of(DensityRecord):
        for number, done in enumerate(item.record.trials, 1):
            for flow in done.flows:
                yield FlowRow(
                    item.anchor,
                    item.record.test_name,
                    number,
                    done.trial.purpose,
                    done.trial.load_pps,
                    flow.instance,
                    flow.direction,
                    flow.sent,
                    flow.received,
                )


def instance_rows(dataset: Dataset) -> Iterator[InstanceRow]:
    """One row per test, throughput figure, instance and direction."""
    for item in dataset.of(DensityRecord):
        anchor = item.anchor
        for found in item.record.itemized:
            verdict = " ".join(item.record.verdict.of(found.number))
            for flow in found.flows:
                yield InstanceRow(
                    anchor,
                    item.record.test_name,
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


def loss_rows(dataset: Dataset) -> Iterator[HopRow | ThreadRow]:
    """Yield all rows of located losses."""
    yield from hop_rows(dataset)
    yield from thread_rows(dataset)


def hop_rows(dataset: Dataset) -> Iterator[HopRow]:
    """One row per test, instance, direction and pair of hops between which packets were lost."""
    for item in dataset.of(DensityRecord):
        found = item.record.located
        if found is None:
            continue
        for loss in found.hops:
            yield HopRow(
                item.anchor,
                item.record.test_name,
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


def thread_rows(dataset: Dataset) -> Iterator[ThreadRow]:
    """One row per test and data thread."""
    for item in dataset.of(DensityRecord):
        found = item.record.located
        for thread in found.usage.threads if found and found.usage else ():
            yield ThreadRow(
                item.anchor,
                item.record.test_name,
                thread.owner,
                thread.interface,
                thread.cpu,
                thread.running,
                thread.waiting,
            )


def cost_rows(dataset: Dataset) -> Iterator[CostRow]:
    """One row per test, thread and node that has a cost."""
    for item in dataset.of(DensityRecord):
        found = item.record.costs
        if found is None:
            continue
        for node in found.nodes:
            yield CostRow(
                item.anchor,
                item.record.test_name,
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

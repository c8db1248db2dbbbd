"""Numbers of characterizations as figures of tests, so that they are compared and followed like those of the matrix.

Each number comes with what is known of where it really lies: a sweep knows its loads only, and a sizing its steps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import Measure
from csit_utils.dataset.items import Characterized, Status
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.testrows import frame_text
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.recording.packed import digest_of, revision_of
from resources.libraries.python.studies.interference.model.record import Interference
from resources.libraries.python.studies.sizing.model.spec import Sizing
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint

LOSS_FREE = 1e-4
"""Share of its packets that a load may lose and count as without loss: there is one try for each load."""


@dataclass(frozen=True)
class Measured:
    """A number of a characterization."""

    measure: Measure
    value: float
    """Packets per second, one way, all flows; of CAPACITY in the unit of the workload; of NORMALIZED a ratio."""
    lowest: float
    """It really lies between this and `highest`."""
    highest: float | None
    """None: nothing above could be, or was, offered."""


@dataclass(frozen=True)
class MeasuredRow(TestRow):
    """A characterization as a test: the service is its `service_type`, what was sent its `goals`."""

    measures: tuple[Measured, ...] = ()


def rows_of(items: Iterable[Characterized]) -> list[MeasuredRow]:
    """A row for each sweep and chain, for each size of a sizing, and for each company that a network function was in.

    Bursts and studies of chains have no such numbers.
    """
    return [row for item in items for row in _rows(item)]


def _rows(item: Characterized) -> Iterator[MeasuredRow]:
    record = item.record
    passed = item.status is Status.PASS and record.passed
    if record.sweep is not None and record.sweep.spec.rates is not None:
        yield _of_sweep(item, record.sweep, tuple(_numbers(record, record.sweep)) if passed else ())
    if record.sizing is not None:
        yield from _of_sizes(item, record.sizing, passed=passed)
    if record.interference is not None:
        yield from _of_companies(item, record.interference, passed=passed)


def _of_sweep(item: Characterized, sweep: Sweep, measures: tuple[Measured, ...]) -> MeasuredRow:
    spec, cell = sweep.spec, sweep.cell
    return _row(
        item,
        measures,
        test_type=" ".join((Measure.BREAK_POINT, Measure.WITHOUT_LOSS, Measure.SATURATED)),
        service_type=sweep.name,
        nf_chains=cell.nf_chains,
        nf_nodes=cell.nf_nodes,
        nf_size=cell.size_name,
        vs_dtc=cell.vs_dtc,
        frame=frame_text(spec.frame),
        goals=f"{spec.protocol}, {spec.flows} flow{'s' if spec.flows > 1 else ''}",
    )


def _of_sizes(item: Characterized, sizing: Sizing, *, passed: bool) -> Iterator[MeasuredRow]:
    for size in sizing.sizes:
        step = sizing.workload.increase
        found = size.capacity
        highest = None if found is None or size.at_top else found + step
        measures = () if found is None or not passed else (Measured(Measure.CAPACITY, found, found, highest),)
        yield _row(
            item,
            measures,
            test_type=Measure.CAPACITY.value,
            service_type=sizing.deployment.vnf_name,
            nf_chains=1,
            nf_nodes=len(size.size.components),
            nf_size=size.name,
            frame=sizing.workload.unit,
            goals=sizing.workload.generator,
        )


def _of_companies(item: Characterized, found: Interference, *, passed: bool) -> Iterator[MeasuredRow]:
    """What is beside a network function is part of the service's name: it decides what is compared with what."""
    for end, rows in (("", found.matrix), (", network I/O guaranteed", found.guaranteed)):
        for row in rows:
            low, high = (row.mean if each is None else each for each in (row.low, row.high))
            yield _row(
                item,
                (Measured(Measure.NORMALIZED, row.mean, low, high),) if passed else (),
                test_type=Measure.NORMALIZED.value,
                service_type=f"{row.target} beside {' and '.join(row.against)}{end}",
                nf_chains=1 + len(row.against),
                nf_nodes=1,
                nf_size=str(found.spec.size),
                frame=frame_text(found.spec.frame),
                goals="interference",
            )


def _row(item: Characterized, measures: tuple[Measured, ...], **fields: str | int | None) -> MeasuredRow:
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
        version=_version(record),
        revision=revision_of(record.environment),
        environment=digest_of(record.environment),
        measures=measures,
        **fields,  # type: ignore[arg-type]  # names of fields of a row
    )


def _version(record: Characterization) -> str:
    """Of what forwards: as its driver says it, else the kernel's."""
    if record.simulated:
        return "simulated"
    said = next((facts["vswitch"] for facts in record.facts.values() if "vswitch" in facts), None)
    return said or f"Linux {record.environment.kernel.split(' ', 1)[0]}"


def _numbers(record: Characterization, sweep: Sweep) -> Iterator[Measured]:
    points = sorted(sweep.points, key=lambda point: point.input_pps)
    found = record.profile.break_point if record.profile else None
    if found is not None:
        at = min(range(len(points)), key=lambda index: abs(points[index].input_bps / GIGA - found.rate))
        rate = points[at].input_pps
        yield Measured(Measure.BREAK_POINT, rate, points[at - 1].input_pps if at else 0.0, rate)
        yield _saturated(sweep, points[at])
    yield from _without_loss(points)


def _saturated(sweep: Sweep, point: SweepPoint) -> Measured:
    """What arrives at the load that saturates; between the worst and the best of its seconds."""
    seconds = [sample.output_pps for sample in sweep.samples if sample.rate_pps == point.rate_pps]
    return Measured(
        Measure.SATURATED,
        point.output_pps,
        min([point.output_pps, *seconds]),
        max([point.output_pps, *seconds]),
    )


def _without_loss(points: Sequence[SweepPoint]) -> Iterator[Measured]:
    """The highest load up to which nothing is lost; nothing where the lowest one loses."""
    lossy = next((index for index, point in enumerate(points) if (point.loss_ratio or 0.0) > LOSS_FREE), len(points))
    if lossy:
        rate = points[lossy - 1].input_pps
        yield Measured(Measure.WITHOUT_LOSS, rate, rate, points[lossy].input_pps if lossy < len(points) else None)

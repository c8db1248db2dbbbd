"""Numbers of sweeps that are compared and followed over time."""

from collections.abc import Iterator, Sequence

from csit_utils.analysis.measures import Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized, Status
from csit_utils.dataset.rows import frame_text
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint, SweepRecord

BREAK_POINT = Measure("break-point")
"""The load that saturates the CPUs."""
WITHOUT_LOSS = Measure("without-loss")
"""The highest load up to which nothing is lost."""
SATURATED = Measure("saturated")
"""The rate that is forwarded at the break-point."""
LOSS_FREE = 1e-4
"""Loss ratio up to which a load counts as without loss: there is one trial for each load."""


def measured(item: Characterized) -> Iterator[MeasuredRow]:
    """Return a row for a sweep or a chain; a failed one has no numbers, and bursts have no row."""
    record = item.record
    if record.sweep is not None and record.sweep.spec.rates is not None:
        passed = item.status is Status.PASS and record.passed
        yield _of_sweep(item, record.sweep, tuple(_numbers(record, record.sweep)) if passed else ())


def _of_sweep(item: Characterized, sweep: Sweep, measures: tuple[MeasuredValue, ...]) -> MeasuredRow:
    spec, cell = sweep.spec, sweep.cell
    return measured_row(
        item,
        measures,
        test_type=" ".join((BREAK_POINT, WITHOUT_LOSS, SATURATED)),
        service_type=sweep.name,
        **cell.dimensions.columns,
        nf_size=cell.size_name,
        vs_dtc=cell.vs_dtc,
        frame=frame_text(spec.frame),
        goals=f"{spec.protocol}, {spec.flows} flow{'s' if spec.flows > 1 else ''}",
    )


def _numbers(record: SweepRecord, sweep: Sweep) -> Iterator[MeasuredValue]:
    points = sorted(sweep.points, key=lambda point: point.input_pps)
    found = record.profile.break_point if record.profile else None
    if found is not None:
        at = min(range(len(points)), key=lambda index: abs(points[index].input_bps / GIGA - found.rate))
        rate = points[at].input_pps
        yield MeasuredValue(BREAK_POINT, rate, points[at - 1].input_pps if at else 0.0, rate)
        yield _saturated(sweep, points[at])
    yield from _without_loss(points)


def _saturated(sweep: Sweep, point: SweepPoint) -> MeasuredValue:
    """Throughput at the break-point; between the worst and the best of its seconds."""
    seconds = [sample.output_pps for sample in sweep.samples if sample.rate_pps == point.rate_pps]
    return MeasuredValue(
        SATURATED,
        point.output_pps,
        min([point.output_pps, *seconds]),
        max([point.output_pps, *seconds]),
    )


def _without_loss(points: Sequence[SweepPoint]) -> Iterator[MeasuredValue]:
    """The highest load up to which nothing is lost; nothing where the lowest one loses."""
    lossy = next((index for index, point in enumerate(points) if (point.loss_ratio or 0.0) > LOSS_FREE), len(points))
    if lossy:
        rate = points[lossy - 1].input_pps
        yield MeasuredValue(WITHOUT_LOSS, rate, rate, points[lossy].input_pps if lossy < len(points) else None)

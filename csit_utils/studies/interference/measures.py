"""Normalized throughput of co-located network functions, compared and followed over time."""

from collections.abc import Iterator

from csit_utils.analysis.measures import Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized, Status
from csit_utils.dataset.rows import frame_text
from resources.libraries.python.model.cell import Dimensions
from resources.libraries.python.studies.interference.model.record import Interference

NORMALIZED = Measure("normalized", "")
"""Throughput of a network function beside others over its throughput alone."""


def measured(item: Characterized) -> Iterator[MeasuredRow]:
    """Return a row for each set of co-located network functions that each of them was measured in."""
    if item.record.interference is not None:
        yield from _of_sets(item, item.record.interference, passed=item.status is Status.PASS and item.record.passed)


def _of_sets(item: Characterized, found: Interference, *, passed: bool) -> Iterator[MeasuredRow]:
    """The competitors are part of the service's name: they decide what is compared with what."""
    for end, rows in (("", found.matrix), (", network I/O guaranteed", found.guaranteed)):
        for row in rows:
            low, high = (row.mean if each is None else each for each in (row.low, row.high))
            yield measured_row(
                item,
                (MeasuredValue(NORMALIZED, row.mean, low, high),) if passed else (),
                test_type=NORMALIZED.value,
                service_type=f"{row.target} beside {' and '.join(row.against)}{end}",
                **Dimensions(1 + len(row.against), 1).columns,
                nf_size=str(found.spec.size),
                frame=frame_text(found.spec.frame),
                goals="interference",
            )

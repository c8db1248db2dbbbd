"""Capacities of sizings that are compared and followed over time."""

from collections.abc import Iterator

from csit_utils.analysis.measures import OF_WORKLOAD, Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized, Status
from resources.libraries.python.model.cell import Dimensions
from resources.libraries.python.studies.sizing.model.spec import Sizing

CAPACITY = Measure("capacity", OF_WORKLOAD)
"""Highest load that a deployment size carries."""


def measured(item: Characterized) -> Iterator[MeasuredRow]:
    """Return a row for each size; those of a failed test have no capacity."""
    if item.record.sizing is not None:
        yield from _of_sizes(item, item.record.sizing, passed=item.status is Status.PASS and item.record.passed)


def _of_sizes(item: Characterized, sizing: Sizing, *, passed: bool) -> Iterator[MeasuredRow]:
    for size in sizing.sizes:
        step = sizing.workload.increase
        found = size.capacity
        highest = None if found is None or size.at_top else found + step
        measures = () if found is None or not passed else (MeasuredValue(CAPACITY, found, found, highest),)
        yield measured_row(
            item,
            measures,
            test_type=CAPACITY.value,
            service_type=sizing.deployment.vnf_name,
            **Dimensions(1, len(size.size.components)).columns,
            nf_size=size.name,
            frame=sizing.workload.unit,
            goals=sizing.workload.generator,
        )

"""Quantities of studies as figures of tests, for comparisons and trends."""

from dataclasses import dataclass
from typing import Self

from csit_utils.dataset.items import Characterized, Status
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.record import Record

OF_WORKLOAD = "of the workload"
"""Unit of a measure in the unit of its workload, such as calls/s."""


class Measure(str):
    """Name of a quantity of a study. Rates are of one direction."""

    unit: str | None
    """None: packets per second; empty: a ratio; `OF_WORKLOAD`."""
    less_is_better: bool
    """Whether an increase is a regression, as of a time or a loss."""

    def __new__(cls, name: str, unit: str | None = None, *, less_is_better: bool = False) -> Self:
        """Create a name with a unit."""
        made = super().__new__(cls, name)
        made.unit, made.less_is_better = unit, less_is_better
        return made

    @property
    def value(self) -> str:
        """The name, as for a `Metric`."""
        return str(self)


def worsening(metric: str, change: float) -> float:
    """Return a change of a metric for the worse: the decrease, or the increase of what is better the less there is."""
    return change if isinstance(metric, Measure) and metric.less_is_better else -change


@dataclass(frozen=True)
class MeasuredValue:
    """A value of a measure."""

    measure: Measure
    value: float
    """In the unit of the measure."""
    lowest: float
    """Lower bound of the true value."""
    highest: float | None
    """Upper bound; None: not bounded by the offered load."""


@dataclass(frozen=True)
class MeasuredRow(TestRow):
    """A record of a study as a test: the service is its `service_type`, the load its `goals`."""

    measures: tuple[MeasuredValue, ...] = ()


def measured_row(item: Characterized, measures: tuple[MeasuredValue, ...], **fields: str | int | None) -> MeasuredRow:
    """Return a row with the fields that all studies share.

    Args:
        item: The record.
        measures: Its values, which a test that did not pass does not have.
        fields: Further fields of a `TestRow`.
    """
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
        revision=record.environment.revision,
        environment=record.environment.digest,
        measures=measures if item.status is Status.PASS and record.passed else (),
        **fields,  # type: ignore[arg-type]  # names of fields of a row
    )


def _version(record: Record) -> str:
    """Version of the system under test: that of the driver, else of the kernel."""
    if record.simulated:
        return "simulated"
    version = next((facts["vswitch"] for facts in record.facts.values() if "vswitch" in facts), None)
    return version or f"Linux {record.environment.kernel.split(' ', 1)[0]}"

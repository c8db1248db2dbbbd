"""Numbers of characterizations as figures of tests, so that they are compared and followed like those of the matrix."""

from dataclasses import dataclass
from typing import Self

from csit_utils.dataset.items import Characterized
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.packed import digest_of, revision_of

OF_WORKLOAD = "of the workload"
"""Unit of a measure whose figures are in the unit of their workload, such as calls/s."""


class Measure(str):
    """Name of a number of a characterization. Rates are one way."""

    unit: str | None
    """None: packets per second; empty: a ratio; `OF_WORKLOAD`."""

    def __new__(cls, name: str, unit: str | None = None) -> Self:
        """Name a number and its unit."""
        made = super().__new__(cls, name)
        made.unit = unit
        return made

    @property
    def value(self) -> str:
        """The name, as of a `Metric`."""
        return str(self)


@dataclass(frozen=True)
class Measured:
    """A number of a characterization."""

    measure: Measure
    value: float
    """In the unit of the measure."""
    lowest: float
    """The true value lies between this and `highest`."""
    highest: float | None
    """None: nothing above could be, or was, offered."""


@dataclass(frozen=True)
class MeasuredRow(TestRow):
    """A characterization as a test: the service is its `service_type`, what was sent its `goals`."""

    measures: tuple[Measured, ...] = ()


def measured_row(item: Characterized, measures: tuple[Measured, ...], **fields: str | int | None) -> MeasuredRow:
    """Return a row with what all characterizations have in common.

    Args:
        item: The characterization.
        measures: Its numbers.
        fields: Of a `TestRow`.
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
        revision=revision_of(record.environment),
        environment=digest_of(record.environment),
        measures=measures,
        **fields,  # type: ignore[arg-type]  # names of fields of a row
    )


def _version(record: Record) -> str:
    """Of what forwards: as its driver says it, else the kernel's."""
    if record.simulated:
        return "simulated"
    said = next((facts["vswitch"] for facts in record.facts.values() if "vswitch" in facts), None)
    return said or f"Linux {record.environment.kernel.split(' ', 1)[0]}"

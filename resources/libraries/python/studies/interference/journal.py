"""The journal of a study of interference: the loads that were found, and a line for each measurement.

A study that resumes keeps the loads that it began with, as its measurements are compared with each other.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from resources.libraries.python.model.base import ON_FIRST_USE, Frozen
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.interference.model.record import ColocationMeasurement, Contender


class LoadsFound(Frozen):
    """Each network function was deployed alone: which of them start, and what they carry."""

    line: Literal["load"] = "load"
    at: str
    """UTC, ISO 8601."""
    loads_pps: tuple[float, ...]
    """Offered to each, one way, at each frame size and load of the study."""
    network_pps: dict[str, float]
    """One-way capacity of the network by frame size, if a share is guaranteed and no port has a known rate."""
    contenders: tuple[Contender, ...]
    """Stand-ins in the place of those that do not start."""
    absent: tuple[str, ...]
    """Names of those that do not start and have no stand-in."""
    notes: tuple[str, ...]


class CompletedMeasurement(Frozen):
    """A measurement that is complete; what was deployed for it is removed."""

    line: Literal["measurement"] = "measurement"
    at: str
    plan: str
    """Digest of the plan by which it was deployed."""
    measurement: ColocationMeasurement
    facts: dict[str, dict[str, str]]
    """Facts of the parts of the deployment."""
    missing: dict[str, str]
    """Counts that are missing, with reasons."""
    notes: tuple[str, ...] = ()


class InterferenceJournal(StepJournal[LoadsFound | CompletedMeasurement]):
    """A journal of measurements; a context manager."""

    FILE = "interference.jsonl"
    KIND = "study of interference"
    ROWS = TypeAdapter(Annotated[LoadsFound | CompletedMeasurement, Field(discriminator="line")], config=ON_FIRST_USE)

    @property
    def load(self) -> LoadsFound | None:
        """The loads of the study; None where they were not found yet."""
        return next((row for row in self.rows if isinstance(row, LoadsFound)), None)

    @property
    def measurements(self) -> Mapping[int, CompletedMeasurement]:
        """Measured before, by place in the order of all measurements; none without a load."""
        found = self.rows if self.load is not None else []
        return {row.measurement.turn: row for row in found if isinstance(row, CompletedMeasurement)}

"""Role of what reads the energy meters of all nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from resources.libraries.python.model.energy import MeterSeries


@dataclass(frozen=True, slots=True)
class Readings:
    """What the meters of all nodes have said."""

    series: Sequence[MeterSeries]
    unmetered: Mapping[str, str] = field(default_factory=dict)
    """Why a node has no meter, by node."""


class EnergyMeters(Protocol):
    """Reads the meters of all nodes for some time."""

    def begin(self, duration_s: float) -> None:
        """Begin to read, for at most this long."""

    def now(self) -> float:
        """Seconds since the epoch by the clock of the samples."""

    def end(self) -> Readings:
        """Wait until the time is over, and return what was read. Safe to call after a failure."""

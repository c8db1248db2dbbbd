"""The journal of a sweep: what is sent, and a line for each load that was measured.

A sweep that was cut short goes on where it stopped, on a service that is deployed anew by the same plan.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.recording.headed_journal import HeadedJournal
from resources.libraries.python.studies.sweep.model.record import SweepSample, SweepSpec


class SweepBegun(Frozen):
    """What is sent: rates that nobody chose are found out once."""

    line: Literal["spec"] = "spec"
    at: str
    """UTC, ISO 8601."""
    spec: SweepSpec


class LoadMeasured(Frozen):
    """A load that is complete."""

    line: Literal["load"] = "load"
    at: str
    rate_pps: float
    begin_s: int
    """Number of its first sample: bursts have the same load again and again."""
    samples: tuple[SweepSample, ...]
    sender_pps: float | None
    note: str | None


class SweepJournal(HeadedJournal[SweepBegun | LoadMeasured]):
    """A journal of loads; a context manager. Its digest is that of what is asked, and of the plan."""

    FILE = "sweep.jsonl"
    KIND = "sweep"
    ROWS = TypeAdapter(Annotated[SweepBegun | LoadMeasured, Field(discriminator="line")])

    @property
    def begun(self) -> SweepBegun | None:
        """What an earlier run sent; None where it did not come so far."""
        return next((row for row in self.rows if isinstance(row, SweepBegun)), None)

    @property
    def loads(self) -> Mapping[tuple[float, int], LoadMeasured]:
        """Measured before, by rate and beginning; none without what was to be sent."""
        found = self.rows if self.begun is not None else []
        return {(row.rate_pps, row.begin_s): row for row in found if isinstance(row, LoadMeasured)}

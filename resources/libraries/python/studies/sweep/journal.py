"""The journal of a sweep: its traffic, and a line for each measured load.

A sweep that was cut short continues with its next load, on a new deployment of the same plan.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from resources.libraries.python.model.base import ON_FIRST_USE, Frozen
from resources.libraries.python.recording.draft import utc_now
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.sweep.load_steps import LoadStep, MeasuredLoad
from resources.libraries.python.studies.sweep.model.record import SweepSample, SweepSpec


class SweepBegun(Frozen):
    """Traffic of a sweep; rates that the user did not choose are determined once."""

    line: Literal["spec"] = "spec"
    at: str
    """UTC, ISO 8601."""
    spec: SweepSpec


class LoadMeasured(Frozen):
    """A complete load."""

    line: Literal["load"] = "load"
    at: str
    rate_pps: float
    begin_s: int
    """Number of its first sample: bursts have the same load again and again."""
    samples: tuple[SweepSample, ...]
    sender_pps: float | None
    note: str | None


class SweepJournal(StepJournal[SweepBegun | LoadMeasured]):
    """A journal of loads; a context manager. Its digest is that of what is asked, and of the plan."""

    FILE = "sweep.jsonl"
    KIND = "sweep"
    ROWS = TypeAdapter(Annotated[SweepBegun | LoadMeasured, Field(discriminator="line")], config=ON_FIRST_USE)

    @property
    def begun(self) -> SweepBegun | None:
        """Traffic of an earlier run; None if it was interrupted before."""
        return next((row for row in self.rows if isinstance(row, SweepBegun)), None)

    @property
    def loads(self) -> Mapping[tuple[float, int], LoadMeasured]:
        """Loads of earlier runs, by rate and beginning."""
        found = self.rows if self.begun is not None else []
        return {(row.rate_pps, row.begin_s): row for row in found if isinstance(row, LoadMeasured)}


class SweepMemory:
    """Loads of a sweep that are measured already.

    Args:
        journal: Open; None for a sweep that cannot be resumed.
    """

    def __init__(self, journal: SweepJournal | None = None) -> None:
        self._journal = journal
        self._known = {} if journal is None else dict(journal.loads)

    @property
    def remark(self) -> str | None:
        """Warning for the record; None of a sweep that was not resumed."""
        if self._journal is None or self._journal.begun is None or not self._known:
            return None
        return (
            f"{len(self._known)} loads were measured in an interrupted run from {self._journal.begun.at} on; "
            "the others after a new deployment"
        )

    def spec(self, find: Callable[[], SweepSpec]) -> SweepSpec:
        """Traffic: as before, or else determined now.

        Raises:
            RunStopped: The journal cannot be written.
        """
        if self._journal is not None and self._journal.begun is not None:
            return self._journal.begun.spec
        spec = find()
        if self._journal is not None:
            self._journal.keep(SweepBegun(at=utc_now(), spec=spec))
        return spec

    def before(self, load: LoadStep) -> MeasuredLoad | None:
        """Result of a load of an earlier run; None where it is to be measured."""
        kept = self._known.get((load.rate_pps, load.begin_s))
        return None if kept is None else MeasuredLoad(kept.samples, kept.sender_pps, kept.note)

    def keep(self, load: LoadStep, found: MeasuredLoad) -> None:
        """A load is complete.

        Raises:
            RunStopped: The journal cannot be written.
        """
        if self._journal is not None:
            self._journal.keep(
                LoadMeasured(
                    at=utc_now(),
                    rate_pps=load.rate_pps,
                    begin_s=load.begin_s,
                    samples=found.samples,
                    sender_pps=found.sender_pps,
                    note=found.note,
                )
            )

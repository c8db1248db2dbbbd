"""What a sweep has measured already: kept load by load, so that one that was cut short goes on where it stopped."""

from collections.abc import Callable

from resources.libraries.python.recording.draft import utc_now
from resources.libraries.python.studies.sweep.journal import LoadMeasured, SweepBegun, SweepJournal
from resources.libraries.python.studies.sweep.load_steps import Load, Measured
from resources.libraries.python.studies.sweep.model.record import SweepSpec


class SweepMemory:
    """A journal as a sweep uses it.

    Args:
        journal: Open; None for a sweep that cannot be resumed.
    """

    def __init__(self, journal: SweepJournal | None = None) -> None:
        self._journal = journal
        self._known = {} if journal is None else dict(journal.loads)

    @property
    def remark(self) -> str | None:
        """What a reader of the record should know; None of a sweep without a past."""
        if self._journal is None or self._journal.begun is None or not self._known:
            return None
        return (
            f"{len(self._known)} loads were measured in a run that was cut short, from {self._journal.begun.at} on; "
            "the others on a service that was deployed anew"
        )

    def spec(self, find: Callable[[], SweepSpec]) -> SweepSpec:
        """What is sent: as before, or else as it is found out now.

        Raises:
            RunStopped: The journal cannot be written.
        """
        if self._journal is not None and self._journal.begun is not None:
            return self._journal.begun.spec
        spec = find()
        if self._journal is not None:
            self._journal.keep(SweepBegun(at=utc_now(), spec=spec))
        return spec

    def before(self, load: Load) -> Measured | None:
        """What is known of a load; None where it is to be measured."""
        kept = self._known.get((load.rate_pps, load.begin_s))
        return None if kept is None else Measured(kept.samples, kept.sender_pps, kept.note)

    def keep(self, load: Load, found: Measured) -> None:
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

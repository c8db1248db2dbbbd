"""From pages of all CPUs to graphs of all owners, as a stream. Pure."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from resources.libraries.python.drivers.probes.tracer.events import WANTED, Followed
from resources.libraries.python.drivers.probes.tracer.formats import EventFormat
from resources.libraries.python.drivers.probes.tracer.graph import NONE, Rows, Transitions
from resources.libraries.python.drivers.probes.tracer.pages import Events, Heads, Words, decode, heads
from resources.libraries.python.drivers.probes.tracer.vertices import Vertices

Edge = tuple[str, str, int, float]
"""Vertex before, vertex after, how often, seconds between the two in all."""


class EventStream:
    """Parses pages as they arrive. Memory is that of the tables and of one batch, however long the trace is."""

    def __init__(self, formats: Iterable[EventFormat], followed: Sequence[Followed]) -> None:
        """Nothing was read.

        Args:
            formats: Of all events that are recorded.
            followed: Owners; no thread has two.
        """
        self._owner = [number for number, each in enumerate(followed) for _ in each.threads]
        self._followed = followed
        self._vertices = Vertices(formats, [thread for each in followed for thread in each.threads])
        self._transitions = Transitions(self._owner)
        self._last_ns: dict[int, int] = {}
        self._mixed = len({each.source for each in followed}) > 1

    def feed(
        self, batches: Sequence[tuple[int, Words]], until_ns: int | None = None, gaps: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Take pages.

        Args:
            batches: CPU and its next pages, one row of words for each page.
            until_ns: All events up to here have been read of every CPU; None: of every CPU there is no more.
            gaps: Spans of time, in nanoseconds from and to, in which nothing was recorded.
        """
        pages = [words for _, words in batches if len(words)]
        if not pages:
            self._transitions.feed(NONE, _or_latest(until_ns), gaps)
            return
        together = np.concatenate(pages)
        events = decode(together)
        missed = self._missed([(cpu, len(words)) for cpu, words in batches if len(words)], heads(together), events)
        rows = self._vertices.rows(together, events)
        if self._mixed:
            rows = rows[self._belong(rows)]
        self._transitions.feed(rows, _or_latest(until_ns), [*gaps, *missed])

    def last_ns(self, cpu: int) -> int:
        """Time of the last event that was read of a CPU; 0 before the first."""
        return self._last_ns.get(cpu, 0)

    def events(self) -> list[int]:
        """Events of each owner that are in its table."""
        counted: list[int] = self._transitions.events.tolist()
        return counted

    def edges(self) -> list[list[Edge]]:
        """The table of each owner."""
        names = self._vertices.names
        return [
            [(names[before], names[after], count, spent_s) for before, after, count, spent_s in pairs]
            for pairs in map(self._transitions.pairs, range(len(self._followed)))
        ]

    def _missed(self, cpus: Sequence[tuple[int, int]], head: Heads, events: Events) -> list[tuple[int, int]]:
        """Spans between the last event of a page and the first of the next, where the kernel lost some in between."""
        last = np.searchsorted(events.pages, np.arange(head.times_ns.size), "right") - 1
        ends = np.where(last >= 0, events.times_ns[np.maximum(last, 0)] if events.times_ns.size else 0, 0)
        spans, first = [], 0
        for cpu, count in cpus:
            for page in first + np.flatnonzero(head.missed[first : first + count]):
                before = int(ends[page - 1]) if page > first else self.last_ns(cpu)
                spans.append((before, int(head.times_ns[page])))
            first += count
            self._last_ns[cpu] = max(self.last_ns(cpu), int(ends[first - 1]))
        return spans

    def _belong(self, rows: Rows) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Which rows are of events that are followed for that kind of owner; others are there for other owners."""
        names = [name.partition(":")[0] for name in self._vertices.names]
        wanted = {source: _event_names(WANTED[source]) for source in WANTED}
        allowed = np.array([[name in wanted[each.source] for name in names] for each in self._followed])
        return np.asarray(allowed[np.array(self._owner)[rows.threads], rows.vertices])


def _event_names(events: Collection[str]) -> frozenset[str]:
    return frozenset(event.partition("/")[2] for event in events)


def _or_latest(until_ns: int | None) -> int:
    return np.iinfo(np.int64).max if until_ns is None else until_ns

"""State transitions, counted as a stream: which event followed which on a thread, how often, how much later. Pure.

What is kept is a table of pairs, the last event of each thread, and the events that are newer than what has been read
of every CPU. So memory does not grow with the length of a trace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_MAX_AT_FIRST = 64


@dataclass(frozen=True, slots=True)
class Rows:
    """Events of known threads, in any order; those of one thread and one time in the order in which they happened."""

    threads: Ints
    """Index of the thread, from 0."""
    times_ns: Ints
    vertices: Ints
    """Index of the event and its data, from 0."""

    def __getitem__(self, which: "npt.NDArray[np.bool_] | Ints") -> "Rows":
        return Rows(self.threads[which], self.times_ns[which], self.vertices[which])


NONE = Rows(*(np.zeros(0, np.int64) for _ in range(3)))


def together(parts: Sequence[Rows]) -> Rows:
    """All rows of some parts."""
    threads, times, vertices = zip(*((part.threads, part.times_ns, part.vertices) for part in parts), strict=True)
    return Rows(np.concatenate(threads), np.concatenate(times), np.concatenate(vertices))


def _parted(gaps: Sequence[tuple[int, int]], earlier_ns: Ints, later_ns: Ints) -> npt.NDArray[np.bool_]:
    """Whether a gap lies between two times, or they in it.

    Every gap that ended by the earlier time has begun before the later one. So there is one between them when more
    have begun than have ended.
    """
    begins, ends = np.sort(np.array(gaps, np.int64), axis=0).T
    return np.asarray(np.searchsorted(begins, later_ns, "left") > np.searchsorted(ends, earlier_ns, "right"))


class Transitions:
    """The tables of all owners.

    `owners`: Index of the owner of each thread, from 0.
    """

    def __init__(self, owners: Sequence[int]) -> None:
        self._owner = np.array(owners, np.int64)
        self._owners = max(owners, default=-1) + 1
        self._capacity = _MAX_AT_FIRST
        self._counts = np.zeros((self._owners, self._capacity, self._capacity), np.int64)
        self._ns = np.zeros((self._owners, self._capacity, self._capacity), np.float64)
        self._waiting = NONE
        self._last = NONE
        self._gaps: list[tuple[int, int]] = []
        """Spans, from and to in nanoseconds, in which events may have happened that were not recorded."""
        self.events = np.zeros(self._owners, np.int64)

    def feed(self, rows: Rows, until_ns: int, gaps: Iterable[tuple[int, int]] = ()) -> None:
        """Take more events.

        `rows`: From whichever CPUs, none older than the `until_ns` of the call before.
        `until_ns`: All events up to here are among these rows or earlier ones; newer ones wait.
        `gaps`: Spans with events that were lost or not recorded; pairs across one are not counted.
        """
        self._gaps.extend(gaps)
        waiting = together([self._waiting, rows]) if self._waiting.threads.size else rows
        ready = waiting.times_ns <= until_ns
        whole = bool(ready.all())  # nearly always; then nothing is copied
        self._waiting = NONE if whole else waiting[~ready]
        self._count(waiting if whole else waiting[ready])
        # Gaps that ended before all that comes can lie between none of it.
        before_ns = int(self._last.times_ns.min()) if self._last.times_ns.size else until_ns
        self._gaps = [gap for gap in self._gaps if gap[1] > before_ns]

    def _count(self, rows: Rows) -> None:
        if not rows.threads.size:
            return
        self.events += np.bincount(self._owner[rows.threads], minlength=self._owners)
        rows = together([self._last, rows])
        by_time = np.argsort(rows.times_ns, kind="stable")
        # Of 16 bits: numpy then counts instead of comparing.
        rows = rows[by_time[np.argsort(rows.threads.astype(np.uint16).take(by_time), kind="stable")]]
        ends = np.append(rows.threads[1:] != rows.threads[:-1], True)
        self._last = rows[ends]
        none = ends[:-1]
        if self._gaps:
            none |= _parted(self._gaps, rows.times_ns[:-1], rows.times_ns[1:])
        self._make_room(int(rows.vertices.max()) + 1)
        size, shape = self._counts.size, self._counts.shape
        cell = self._owner.take(rows.threads[:-1]) * self._capacity + rows.vertices[:-1]
        cell = cell * self._capacity + rows.vertices[1:]
        cell[none] = size  # one more cell, for what is no pair
        spent = np.diff(rows.times_ns).astype(np.float64)
        self._counts += np.bincount(cell, minlength=size + 1)[:size].reshape(shape)
        self._ns += np.bincount(cell, spent, minlength=size + 1)[:size].reshape(shape)

    def _make_room(self, vertices: int) -> None:
        if vertices <= self._capacity:
            return
        more = 2 * max(self._capacity, vertices) - self._capacity
        grow = ((0, 0), (0, more), (0, more))
        self._counts, self._ns = np.pad(self._counts, grow), np.pad(self._ns, grow)
        self._capacity += more

    def pairs(self, owner: int) -> list[tuple[int, int, int, float]]:
        """Edges of one owner: vertex before, vertex after, how often, seconds between the two in all."""
        before, after = np.nonzero(self._counts[owner])
        counts, seconds = self._counts[owner][before, after], self._ns[owner][before, after] / 1e9
        return list(zip(before.tolist(), after.tolist(), counts.tolist(), seconds.tolist(), strict=True))

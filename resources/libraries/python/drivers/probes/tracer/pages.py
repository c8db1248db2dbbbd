"""Pages of the kernel's ring buffer, decoded many at a time. Pure.

A page is what one read of `per_cpu/cpuN/trace_pipe_raw` gives: a header (time stamp, bytes in use, flags) and events,
each with a head of 5 bits for type or length and 27 bits of time since the event before (events/header_event and
events/header_page describe this; kernel/trace/ring_buffer.c defines it). Where an event begins is known only when the
one before was read. So pages are walked side by side: step k takes the k-th event of every page at once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

HEADER_WORDS = 4
_LONG, _PADDING, _EXTENSION, _ABSOLUTE = 0, 29, 30, 31
_DELTA_BITS = 27
_ABSOLUTE_BITS = 59
"""An absolute time stamp has so many; what is above stays as it was."""
_USED = (1 << 27) - 1
_MISSED = 1 << 31


@dataclass(frozen=True, slots=True)
class Events:
    """Events of some pages, page after page, each page in order of time."""

    times_ns: Ints
    words: Ints
    """Where the data of each begins: index of its first word of 32 bits among all pages."""
    pages: Ints


@dataclass(frozen=True, slots=True)
class Heads:
    """Headers of some pages."""

    times_ns: Ints
    """Time of the first event."""
    missed: npt.NDArray[np.bool_]
    """Whether events were lost between the page before of that CPU and this one."""
    used_words: Ints


def heads(pages: Words) -> Heads:
    """Read the headers.

    `pages`: One row for each page, of words of 32 bits.
    """
    times = pages[:, 0].astype(np.int64) | (pages[:, 1].astype(np.int64) << 32)
    commit = pages[:, 2].astype(np.int64)
    used = np.minimum((commit & _USED) >> 2, pages.shape[1] - HEADER_WORDS)
    return Heads(times, (commit & _MISSED) != 0, used)


def decode(pages: Words) -> Events:
    """Find all events and their times.

    `pages`: One row for each page, of words of 32 bits; fewer than 65,536.
    """
    flat = pages.reshape(-1)
    head = heads(pages)
    entries, page = _walk(flat, pages.shape, head.used_words)
    times = _times(flat, entries, page, head.times_ns)
    kind = flat.take(entries) & 31
    events = Events(times, entries + 1 + (kind == _LONG), page)
    data = kind < _PADDING
    return events if data.all() else Events(*(column[data] for column in (events.times_ns, events.words, events.pages)))


def _walk(flat: Words, shape: tuple[int, int], used: Ints) -> tuple[Ints, Ints]:
    """Where the head of every entry is, and on which page, page after page; entries are events, padding and times."""
    count, width = shape
    page = np.arange(count, dtype=np.uint16)
    position = np.arange(count, dtype=np.int64) * width + HEADER_WORDS
    end = position + used
    walked: list[tuple[Ints, Any]] = []
    while True:
        alive = position < end
        if not alive.all():
            page, position, end = page[alive], position[alive], end[alive]
        if not position.size:
            break
        walked.append((position, page))
        head = flat.take(position, mode="clip")
        kind = head & 31
        words = kind + np.int64(1)
        odd = kind - np.uint32(1) >= _PADDING - 1
        if odd.any():
            where = np.flatnonzero(odd)
            words[where] = _odd_words(flat, position[where], kind[where], head[where], end[where])
        position = position + words
    if not walked:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    positions, page_of = (np.concatenate(column) for column in zip(*walked, strict=True))
    order = np.argsort(page_of, kind="stable")  # of 16 bits: numpy then counts instead of comparing
    return positions[order], page_of[order].astype(np.int64)


def _odd_words(flat: Words, position: Ints, kind: Ints | Words, head: Words, end: Ints) -> Ints:
    """Lengths of entries that do not have theirs in the head, in words."""
    counted = 1 + (flat.take(position + 1, mode="clip").astype(np.int64) + 3 >> 2)
    nothing_more = (kind == _PADDING) & (head >> 5 == 0)
    return np.where(nothing_more, end - position, np.where(kind >= _EXTENSION, 2, counted))


def _times(flat: Words, entries: Ints, page: Ints, first: Ints) -> Ints:
    """Times of all entries: that of the page and all that was added since."""
    if not entries.size:
        return entries
    head = flat.take(entries)
    kind = head & 31
    added = (head >> 5).astype(np.int64)
    far = np.flatnonzero(kind >= _EXTENSION)
    added[far] += flat.take(entries[far] + 1, mode="clip").astype(np.int64) << _DELTA_BITS
    absolute = far[kind[far] == _ABSOLUTE]
    stamps = added[absolute]
    added[absolute] = 0
    total = np.cumsum(added)
    begin = np.searchsorted(page, np.arange(first.size))
    inside = np.minimum(begin, entries.size - 1)
    times = total + (first - total[inside] + added[inside])[page]
    for entry, stamp in zip(absolute.tolist(), stamps.tolist(), strict=True):
        until = int(np.searchsorted(page, page[entry], "right"))
        high = int(times[entry]) >> _ABSOLUTE_BITS << _ABSOLUTE_BITS
        times[entry:until] += high + stamp - times[entry]
    return times

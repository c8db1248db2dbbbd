"""The reader: a low-priority process that reads recorded events in short windows and builds graphs of them.

`python -m resources.libraries.python.drivers.probes.tracer.reader`. Input: a specification as a line of JSON, a line
that begins recording, and a line that ends it. Output: `ready`, `begun`, and then the graphs.

Network events occur several times per packet. Recording them all the time, or even checking at each event whether to
record, takes a fifth of the capacity of a busy chain. So they are disabled between windows, when the kernel skips them.
A window lies at a random place within its period, so that it does not always see the same phase of periodic work. See
docs/adr/0025.
"""

import os
import random
import resource
import select
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from resources.libraries.python.dialogue import JsonPipe
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on
from resources.libraries.python.drivers.host.links.namespace_syscalls import keep_freed_memory
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.probes.tracer.events import WANTED, Specification, TracedOwner, frequent
from resources.libraries.python.drivers.probes.tracer.graph import NONE, Rows, Transitions
from resources.libraries.python.drivers.probes.tracer.pages import Events, Heads, Words, decode, heads
from resources.libraries.python.drivers.probes.tracer.tracefs import EventFormat, TraceInstance
from resources.libraries.python.drivers.probes.tracer.vertices import Vertices
from resources.libraries.python.errors import CsitError
from resources.libraries.python.parent_death import die_with_parent

BATCH_PAGES = 512
"""At a time, of all CPUs: enough to decode side by side, little enough for what is made of them to fit a cache."""


SPAN = struct.Struct("=qq")
"""A span in which all was recorded, on the clock of `time.monotonic_ns`: from and to. They come in order."""
_SAFE = b"!"
"""Comes first: from now on the process ends when its parent does, also if it was stopped."""
_STEP_S = 0.1
"""Windows longer than this are reported piece by piece, so that recorded events can be read meanwhile."""
_PRIORITY = 2
"""Above the data threads, which have 1: a window that ends late costs more than planned."""
_FIRST_WITHIN_S = 2.0
"""The first window is within the shortest run of a study, which would often have none in a longer period."""


class Windows:
    """A process of its own that opens and closes windows, because its moments must not wait for a reader's."""

    def __init__(self, instance: TraceInstance, events: Sequence[str], window_s: float, period_s: float) -> None:
        """Start, and wait until it would end with us; the first window is within the first period and two seconds.

        `window_s`: length of a window in seconds; as long as the period or longer: record all the time.

        Raises:
            CsitError: It has ended.
        """
        self.spans, spans = os.pipe()
        stop, self._stop = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                os.close(self.spans)
                os.close(self._stop)
                _ReadPacer(instance, events, spans, stop).run(window_s, period_s)
                status = 0
            finally:
                os._exit(status)
        os.close(spans)
        os.close(stop)
        if not os.read(self.spans, len(_SAFE)):
            raise CsitError("the trace process exited")

    def stop(self) -> None:
        """Close the window that may be open, and end. Its last span can be read afterwards."""
        os.close(self._stop)
        os.waitpid(self._pid, 0)

    def read(self) -> list[tuple[int, int]]:
        """Spans since the last call; waits for one. Empty when there will be no more."""
        data = os.read(self.spans, 256 * SPAN.size)  # a pipe keeps writes of this size whole
        return [SPAN.unpack_from(data, offset) for offset in range(0, len(data), SPAN.size)]


class _ReadPacer:
    """What that process does."""

    def __init__(self, instance: TraceInstance, events: Sequence[str], spans: int, stop: int) -> None:
        self._instance = instance
        self._events = frequent(events)
        self._seldom = [event for event in events if event not in self._events]
        self._spans = spans
        self._stop = stop
        die_with_parent()
        os.write(spans, _SAFE)
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))

    def run(self, window_s: float, period_s: float) -> None:
        chance = random.SystemRandom()
        self._instance.enable(self._seldom, True)
        begin, within_s = time.monotonic(), min(period_s, _FIRST_WITHIN_S)
        while not self._stopped_by(begin + chance.uniform(0.0, max(0.0, within_s - window_s))):
            if self._window(None if window_s >= period_s else window_s):
                return
            begin, within_s = max(begin + period_s, time.monotonic()), period_s

    def _window(self, length_s: float | None) -> bool:
        """Record; return whether that was stopped."""
        self._instance.enable(self._events, True)
        self._instance.write("tracing_on", "1")
        begin_ns = reported_ns = time.monotonic_ns()
        end_s = float("inf") if length_s is None else begin_ns / 1e9 + length_s
        stopped = False
        while not stopped and (now_s := time.monotonic()) < end_s:
            stopped = self._stopped_by(min(end_s, now_s + _STEP_S))
            if now_s + _STEP_S < end_s:
                reported_ns = self._report_span(reported_ns)
        self._report_span(reported_ns)
        self._instance.write("tracing_on", "0")
        self._instance.enable(self._events, False)
        return stopped

    def _report_span(self, begin_ns: int) -> int:
        end_ns = time.monotonic_ns()
        os.write(self._spans, SPAN.pack(begin_ns, end_ns))
        return end_ns

    def _stopped_by(self, moment_s: float) -> bool:
        """Sleep until a moment; return True at once when stopped."""
        return bool(select.select([self._stop], [], [], max(0.0, moment_s - time.monotonic()))[0])


def specification(plain: dict[str, Any]) -> Specification:
    """Return a specification from its record."""
    followed = tuple(TracedOwner(**{**row, "threads": tuple(row["threads"])}) for row in plain["followed"])
    return Specification(**{**plain, "events": tuple(plain["events"]), "followed": followed})


class Buffers:
    """The raw buffers of all CPUs."""

    def __init__(self, paths: Sequence[Path], page_bytes: int) -> None:
        self._descriptors = [os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for path in paths]
        self._memory = np.zeros((BATCH_PAGES, page_bytes // 4), np.uint32)
        self._first = 0

    def read(self) -> tuple[list[tuple[int, Words]], list[int]]:
        """Return pages that are there, at most a batch, valid until the next call; and CPUs of which there may be more.

        Each call begins with another CPU, so that none has to wait for a busy one.
        """
        cpus = len(self._descriptors)
        order = [(self._first + number) % cpus for number in range(cpus)]
        self._first = (self._first + 1) % cpus
        batches, more, used = [], [], 0
        for cpu in order:
            begin = used
            with suppress(BlockingIOError):
                while used < BATCH_PAGES and self._page(cpu, used):
                    used += 1
            batches.append((cpu, self._memory[begin:used]))
            if used == BATCH_PAGES:
                more.append(cpu)
        return batches, more

    def _page(self, cpu: int, place: int) -> bool:
        return os.readv(self._descriptors[cpu], [memoryview(self._memory[place]).cast("B")]) > 0

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


Edge = tuple[str, str, int, float]
"""Vertex before, vertex after, how often, seconds between the two in all."""
_LATEST_NS = int(np.iinfo(np.int64).max)


class EventStream:
    """Parses pages as they arrive. Memory is that of the tables and of one batch, however long the trace is.

    `formats`: Of all events that are recorded.
    `followed`: Owners; no thread has two.
    """

    def __init__(self, formats: Iterable[EventFormat], followed: Sequence[TracedOwner]) -> None:
        self._owner = [number for number, each in enumerate(followed) for _ in each.threads]
        self._followed = followed
        self._vertices = Vertices(formats, [thread for each in followed for thread in each.threads])
        self._transitions = Transitions(self._owner)
        self._last_ns: dict[int, int] = {}
        self._mixed = len({each.source for each in followed}) > 1

    def feed(
        self, batches: Sequence[tuple[int, Words]], until_ns: int = _LATEST_NS, gaps: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Take pages.

        `batches`: CPU and its next pages, one row of words for each page.
        `until_ns`: All events up to here have been read of every CPU; by default all that there are.
        `gaps`: Spans of time, in nanoseconds from and to, in which nothing was recorded.
        """
        pages = [words for _, words in batches if len(words)]
        if not pages:
            self._transitions.feed(NONE, until_ns, gaps)
            return
        together = np.concatenate(pages)
        events = decode(together)
        missed = self._missed([(cpu, len(words)) for cpu, words in batches if len(words)], heads(together), events)
        rows = self._vertices.rows(together, events)
        if self._mixed:
            rows = rows[self._belong(rows)]
        self._transitions.feed(rows, until_ns, [*gaps, *missed])

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
        wanted = {source: frozenset(event.partition("/")[2] for event in WANTED[source]) for source in WANTED}
        allowed = np.array([[name in wanted[each.source] for name in names] for each in self._followed])
        return np.asarray(allowed[np.array(self._owner)[rows.threads], rows.vertices])


class TraceReading:
    """Turns pages and windows into graphs."""

    def __init__(self, stream: EventStream, pages: Buffers) -> None:
        self._stream = stream
        self._pages = pages
        self._until_ns = 0
        self.traced_ns = 0
        """In which all was recorded."""

    def spans(self, spans: Sequence[tuple[int, int]]) -> None:
        """Read all that was recorded in some spans and before."""
        gaps = []
        for begin_ns, end_ns in spans:
            if begin_ns > self._until_ns:
                gaps.append((self._until_ns, begin_ns))
            self._until_ns = end_ns
            self.traced_ns += end_ns - begin_ns
        more: list[int] = [-1]
        while more:
            batches, more = self._pages.read()
            complete_ns = min((self._stream.last_ns(cpu) for cpu in more), default=self._until_ns)
            self._stream.feed(batches, min(complete_ns, self._until_ns), gaps)
            gaps = []


def main() -> None:
    """Serve one driver."""
    die_with_parent()
    keep_freed_memory()
    driver = JsonPipe()
    try:
        if (request := driver.hear()) is None:
            return
        with tracefs.opened() as root:
            _serve(specification(request), root, driver)
    except (CsitError, OSError) as error:
        driver.fail(CsitError(f"events of the kernel cannot be read: {error}"))


def _serve(spec: Specification, root: Path, driver: JsonPipe) -> None:
    instance = tracefs.TraceInstance(root, spec.instance)
    stream = EventStream(tracefs.formats(root, spec.events), spec.followed)
    buffers = Buffers(instance.buffers(), instance.page_bytes())
    reading = TraceReading(stream, buffers)
    driver.say({"ready": True})
    if driver.hear() is None:
        return
    # Idle priority is not enough: where data threads in real time leave nothing, the kernel gives all ordinary threads
    # of a CPU together up to 50 ms of each second, and takes them from those.
    stay_on(spec.cpu)
    before_s = _cpu_s()
    windows = Windows(instance, spec.events, spec.window_s, spec.period_s)
    driver.say({"begun": True})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while windows.spans in (ready := select.select([windows.spans, driver.source], [], [])[0]):
        if driver.source in ready:
            break
        if not (spans := windows.read()):
            raise CsitError("the trace process exited")
        reading.spans(spans)
    windows.stop()
    while spans := windows.read():
        reading.spans(spans)
    _, lost = instance.counts()
    buffers.close()
    driver.say(
        {
            "traced_s": reading.traced_ns / 1e9,
            "cpu_s": _cpu_s() - before_s,
            "lost": lost,
            "events": stream.events(),
            "edges": stream.edges(),
        }
    )


def _cpu_s() -> float:
    """Processor time of this process, and of those that it waited for, in seconds."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


if __name__ == "__main__":
    main()

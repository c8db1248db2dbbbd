"""The reader: a low-priority process that reads recorded events and builds graphs of them.

`python -m resources.libraries.python.drivers.probes.tracer.reader`. In comes a specification as a line of JSON, out
goes `ready`; in comes any line, recording begins, out goes `begun`; in comes another, it ends, and out go the graphs.
"""

import os
import resource
import select
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from resources.libraries.python.dialogue import JsonPipe
from resources.libraries.python.drivers.generators.builtin.kernel import die_with_parent
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on
from resources.libraries.python.drivers.host.links.namespace_syscalls import keep_freed_memory
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.probes.tracer.pages import Words
from resources.libraries.python.drivers.probes.tracer.stream import EventStream, Followed
from resources.libraries.python.drivers.probes.tracer.windows import Windows
from resources.libraries.python.errors import CsitError

BATCH_PAGES = 512
"""At a time, of all CPUs: enough to decode side by side, little enough for what is made of them to fit a cache."""


@dataclass(frozen=True, slots=True)
class Specification:
    """What a reader is for."""

    instance: str
    events: tuple[str, ...]
    followed: tuple[Followed, ...]
    window_s: float
    period_s: float
    cpu: int | None = None
    """Where all of it happens, if that is possible."""


def specification(plain: dict[str, Any]) -> Specification:
    """Return a specification from its record."""
    followed = tuple(Followed(**{**row, "threads": tuple(row["threads"])}) for row in plain["followed"])
    return Specification(**{**plain, "events": tuple(plain["events"]), "followed": followed})


class PageSource(Protocol):
    """Source of pages."""

    def read(self) -> tuple[list[tuple[int, Words]], list[int]]:
        """Pages that are there, at most a batch, valid until the next call; and CPUs of which there may be more."""


class Buffers:
    """The raw buffers of all CPUs; fulfils `PageSource`."""

    def __init__(self, paths: Sequence[Path], page_bytes: int) -> None:
        self._descriptors = [os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for path in paths]
        self._memory = np.zeros((BATCH_PAGES, page_bytes // 4), np.uint32)
        self._first = 0

    def read(self) -> tuple[list[tuple[int, Words]], list[int]]:
        """As `PageSource` says. Each call begins with another CPU, so that none has to wait for a busy one."""
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
        """Leave them."""
        for descriptor in self._descriptors:
            os.close(descriptor)


class TraceReading:
    """Turns pages and windows into graphs."""

    def __init__(self, stream: EventStream, pages: PageSource) -> None:
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

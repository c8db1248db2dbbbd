"""When the kernel records: in short windows, so that following every packet costs the packets next to nothing.

Events of the network happen several times to each packet. Recording them all the time, or only asking at each whether
to record, takes a fifth of the capacity of a busy chain; so between windows those events are off altogether, when the
kernel jumps over them. A window lies anywhere within its period, by chance: what the system does regularly is then not
always seen in the same moment. See docs/adr/0025.
"""

import os
import random
import select
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

from resources.libraries.python.drivers.generators.builtin.kernel import die_with_parent
from resources.libraries.python.drivers.probes.tracer.events import frequent
from resources.libraries.python.drivers.probes.tracer.tracefs import TraceInstance
from resources.libraries.python.errors import CsitError

SPAN = struct.Struct("=qq")
"""A span in which all was recorded, on the clock of `time.monotonic_ns`: from and to. They come in order."""
_SAFE = b"!"
"""Comes first: from now on the process ends when its parent does, also if it was stopped."""
_STEP_S = 0.1
"""Windows longer than this are reported piece by piece, so that recorded events can be read meanwhile."""
_PRIORITY = 2
"""Above the data threads, which have 1: a window that ends late costs more than planned."""


class Windows:
    """A process of its own that opens and closes windows, because its moments must not wait for a reader's."""

    def __init__(self, instance: TraceInstance, events: Sequence[str], window_s: float, period_s: float) -> None:
        """Start, and wait until it would end with us; the first window opens within the first period.

        Args:
            instance: Made, with nothing enabled.
            events: To record in a window.
            window_s: Length of a window in seconds; as long as the period or longer: record all the time.
            period_s: Seconds that have one window.

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
                _Pacer(instance, events, spans, stop).run(window_s, period_s)
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


class _Pacer:
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
        begin = time.monotonic()
        while not self._stopped_by(begin + chance.uniform(0.0, max(0.0, period_s - window_s))):
            if self._window(None if window_s >= period_s else window_s):
                return
            begin = max(begin + period_s, time.monotonic())

    def _window(self, length_s: float | None) -> bool:
        """Record; return whether that was stopped."""
        self._instance.enable(self._events, True)
        self._instance.write("tracing_on", "1")
        begin_ns = told_ns = time.monotonic_ns()
        end_s = float("inf") if length_s is None else begin_ns / 1e9 + length_s
        stopped = False
        while not stopped and (now_s := time.monotonic()) < end_s:
            stopped = self._stopped_by(min(end_s, now_s + _STEP_S))
            if now_s + _STEP_S < end_s:
                told_ns = self._tell(told_ns)
        self._tell(told_ns)
        self._instance.write("tracing_on", "0")
        self._instance.enable(self._events, False)
        return stopped

    def _tell(self, begin_ns: int) -> int:
        end_ns = time.monotonic_ns()
        os.write(self._spans, SPAN.pack(begin_ns, end_ns))
        return end_ns

    def _stopped_by(self, moment_s: float) -> bool:
        """Sleep until a moment; return True at once when stopped."""
        return bool(select.select([self._stop], [], [], max(0.0, moment_s - time.monotonic()))[0])

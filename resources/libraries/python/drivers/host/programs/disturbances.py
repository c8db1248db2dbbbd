"""Events at a given time while traffic runs: kill, restart, pause, add, reload, move."""

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread

from resources.libraries.python.drivers.host.cpu.thread_scheduling import go_first
from resources.libraries.python.errors import CsitError, NotReady, Unsupported
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence, PartEvent
from resources.libraries.python.testbed.roles.part import ForwardingPart

_libc = ctypes.CDLL(None)
_log = logging.getLogger(__name__)
_WITHIN_S = 40.0
"""For an event, on top of the time before it; less than callers in another process wait."""
_SHORT = (PartEvent.KILL, PartEvent.RESTART, PartEvent.PAUSE)
"""Events that begin with some system calls, and start no program then."""
MOVED = "data threads pinned to another CPU"
"""In words, of every driver."""
_PRIORITY = 3
"""Above data threads and the generator: an event, or the end of a pause, would come late."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of an event."""

    what: str
    """In words."""
    begin: Callable[[], object]
    end: Callable[[], object] | None = None
    """Steps afterwards: at once after a kill, at the end of a pause."""
    before: Callable[[], object] | None = None
    """Steps before it: one that is to be added is taken away."""
    after: Callable[[], object] | None = None
    """Checks what was done, when the traffic has ended."""


class Disturbed(ForwardingPart):
    """A part whose members can be hit by events, each of which consists of steps."""

    _event: "_Timer | None" = None

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        """Return what an event consists of; None where the target is not here.

        Raises:
            Unsupported: It cannot happen to this target.
        """
        del target, event
        return None

    def disturb(self, coming: Disturbance) -> None:
        self.disturbed()
        found = (self.steps(target, coming.event) for target in coming.targets)
        if steps := [each for each in found if each is not None]:
            for each in steps:
                if each.before:
                    each.before()
            self._event = _Timer(coming, steps)

    def disturbed(self) -> tuple[EventOccurrence, ...]:
        event, self._event = self._event, None
        return () if event is None else (event.result(),)

    def call_off(self) -> None:
        """Withdraw an event that has not begun, and wait for one that has: the first step of `Part.stop`.

        Else a program would be started again after it was removed.
        """
        event, self._event = self._event, None
        if event is not None:
            event.call_off()


class _Timer:
    """One event in a thread of its own: it begins at all targets before it ends at any."""

    def __init__(self, coming: Disturbance, steps: Sequence[Steps]) -> None:
        self._coming, self._steps = coming, steps
        self._target = ", ".join(coming.targets)
        self._what = "; ".join(dict.fromkeys(each.what for each in steps))
        self._due = time.monotonic() + coming.after_s
        self._happened: EventOccurrence | None = None
        self._error: Exception | None = None
        self._called_off = Event()
        self._thread = Thread(target=self._run, name=f"{coming.event} {self._target}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            go_first(_PRIORITY)
            if self._called_off.wait(max(0.0, self._due - time.monotonic())):
                return
            if self._coming.event not in _SHORT:
                _go_as_all()
            began_ns = time.time_ns()
            for each in self._steps:
                each.begin()
            if self._coming.event is PartEvent.PAUSE:
                self._called_off.wait(self._coming.hold_s)
            else:
                _go_as_all()
            for each in self._steps:
                if each.end:
                    each.end()
            self._happened = EventOccurrence(began_ns=began_ns, ended_ns=time.time_ns(), what=self._what)
        except Exception as error:  # a boundary: the thread that asks for the result raises it
            self._error = error

    def call_off(self) -> None:
        """Let it not begin, or end soon."""
        self._called_off.set()
        self._thread.join(_WITHIN_S)
        if self._thread.is_alive():
            _log.warning("%s of %s does not end", self._coming.event, self._target)

    def result(self) -> EventOccurrence:
        """Wait for the event.

        Raises:
            CsitError: It failed, or does not end.
        """
        within_s = max(0.0, self._due - time.monotonic()) + self._coming.hold_s + _WITHIN_S
        what = f"{self._coming.event} of {self._target}"
        self._thread.join(within_s)
        if self._error is not None:
            raise CsitError(f"{what} failed: {self._error}") from self._error
        if self._happened is None:
            raise NotReady(what, within_s, self._what)
        for each in self._steps:
            if each.after:
                each.after()
        return self._happened


def _go_as_all() -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def process_steps(
    event: PartEvent, name: str, pids: Callable[[], Collection[int]], restart: Callable[[], object] | None = None
) -> Steps:
    """Events of a part that consists of processes: killed, killed and started again, stopped and continued, or added.

    One that is to be added is killed before the traffic begins.

    `pids`: Its processes, when it happens.
    `restart`: Starts it again after it was killed; None where that is not possible.

    Raises:
        Unsupported: The event is not possible for processes.
    """
    if event is PartEvent.KILL:
        return Steps("SIGKILL", partial(_signal, pids, signal.SIGKILL))
    if event is PartEvent.RESTART and restart is not None:
        return Steps("SIGKILL, then started again", partial(_signal, pids, signal.SIGKILL), restart)
    if event is PartEvent.ADD and restart is not None:
        return Steps("started", restart, before=partial(_signal, pids, signal.SIGKILL))
    if event is PartEvent.PAUSE:
        return Steps("SIGSTOP, SIGCONT", partial(_stop, pids), partial(_signal, pids, signal.SIGCONT))
    raise refused(event, name)


def refused(event: PartEvent, name: str) -> Unsupported:
    """Return the error of an event that is not possible with a driver."""
    return Unsupported(f"{event} is not possible for {name} with its driver")


def _signal(pids: Callable[[], Collection[int]], number: signal.Signals) -> None:
    for pid in pids():
        with suppress(ProcessLookupError):  # it has exited
            os.kill(pid, number)


def _stop(pids: Callable[[], Collection[int]]) -> None:
    """Signal every thread: the first one that runs stops its process.

    The signal of a process goes to its main thread, which does not run while the generator takes its CPU.
    """
    for pid in pids():
        with suppress(ProcessLookupError, FileNotFoundError):  # it has exited
            for task in Path(f"/proc/{pid}/task").iterdir():
                _libc.tgkill(pid, int(task.name), signal.SIGSTOP)

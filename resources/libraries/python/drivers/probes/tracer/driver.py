"""Follows the threads of NFs through events of the kernel, each NF a graph of what followed what."""

import logging
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path

from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.host.cpu.observer_affinity import took, where
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.probes.tracer.events import (
    EventChoice,
    Source,
    Specification,
    TracedOwner,
    choose,
    frequent,
)
from resources.libraries.python.drivers.probes.tracer.registration import TRACES
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.features import Edge, StateGraph

_log = logging.getLogger(__name__)
_VCPU = "anon_inode:kvm-vcpu:"
"""Beginning of the name of an open file that is a vCPU."""
_READER = "resources.libraries.python.drivers.probes.tracer.reader"
_ALL_BUFFERS_KIB = 64 << 10
_MAX_BUFFER_KIB = 8 << 10
_READY_S, _GRAPHS_S = 20.0, 60.0
_WINDOW_ENDS_S = 5.0
WINDOW_S, PERIOD_S = 0.02, 2.5
"""Recorded are 20 ms of every 2.5 seconds. Events take a quarter of the throughput while they are recorded, and opening
and closing a window occupies a CPU for 2 to 3 ms: together 0.4 % of it. See docs/adr/0025 and
`csit bench --only watching_cost`."""


class KernelTracer:
    """Fulfils `roles.watching.Tracer` on this machine.

    `owners`: Gives thread ids by NF, asked at each start: `napi/` threads of its ports, threads of its processes,
      vCPUs and vhost threads.
    `machine`: Keeps the tracing instance and the reader on record, so that the next run removes what a killed one
      left.
    `window_s`: How long is recorded in each period, in seconds; as long as that or longer: all the time.
    `cpu`: Where windows are opened and closed, and pages read: one without data threads. None: windows wherever
      they can be closed first, pages wherever a CPU is idle.
    """

    def __init__(
        self,
        owners: Callable[[], Mapping[str, Collection[int]]],
        machine: Claims,
        *,
        window_s: float = WINDOW_S,
        period_s: float = PERIOD_S,
        cpu: int | None = None,
    ) -> None:
        self.cpu_s = 0.0
        """Processor time from `start` to `stop`, in seconds; after `stop`."""
        self._cpu = cpu
        self._owners = owners
        self._machine = machine
        self._window_s, self._period_s = window_s, period_s
        self._name = f"csit-density-{os.getpid()}"
        self._held = ExitStack()
        self._worker: WorkerProcess | None = None
        self._instance: tracefs.TraceInstance | None = None
        self._events: tuple[str, ...] = ()
        self._began_s = 0.0
        self._followed: tuple[TracedOwner, ...] = ()
        self._facts: dict[str, str] = {}

    def start(self) -> None:
        """Begin to trace. Where that cannot be done nothing happens, and `facts` says why in a sentence.

        Raises:
            CsitError: The reader does not start.
        """
        try:
            with ExitStack() as held:
                self._worker = self._begin(held)
                self._held = held.pop_all()
        except Unsupported as error:
            _log.info("no graphs of state transitions: %s", error)
            self._facts = {"events": f"nothing is traced: {error}"}

    def _begin(self, held: ExitStack) -> WorkerProcess:
        root = held.enter_context(tracefs.opened())
        self._events = self._choose(tracefs.events(root))
        self._machine.claim(TRACES, self._name)
        held.callback(self._machine.release, TRACES, [self._name])
        instance = self._instance = tracefs.TraceInstance(root, self._name)
        held.callback(instance.remove)
        each_kib = max(512, min(_MAX_BUFFER_KIB, _ALL_BUFFERS_KIB // (os.cpu_count() or 1)))
        instance.make(each_kib, [thread for each in self._followed for thread in each.threads])
        worker = WorkerProcess(_READER)
        held.callback(worker.close)
        self._machine.claim_process(worker.pid)
        held.callback(self._machine.release_process, worker.pid)
        spec = Specification(self._name, self._events, self._followed, self._window_s, self._period_s, self._cpu)
        worker.send(asdict(spec))
        worker.answer("the reader of kernel events", _READY_S)
        self._began_s = time.monotonic()
        worker.send({"do": "begin"})
        worker.answer("the process that opens windows of the tracer", _READY_S)
        return worker

    def pause(self) -> None:
        """Stop the processes that trace, between two windows: until `resume` nothing is recorded and nothing is read.

        Raises:
            NotReady: They do not get to the end of a window.
        """
        if self._worker is not None:
            wait_until("end of a window of the tracer", self._still_open, _WINDOW_ENDS_S + self._window_s)

    def _still_open(self) -> str:
        assert self._worker is not None  # noqa: S101 - asked for above
        assert self._instance is not None  # noqa: S101 - made before it
        os.killpg(self._worker.pid, signal.SIGSTOP)
        if not self._instance.enabled(frequent(self._events)):
            return ""
        os.killpg(self._worker.pid, signal.SIGCONT)
        return "events are still recorded"

    def resume(self) -> None:
        """Go on. Nothing where nothing was paused."""
        if self._worker is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._worker.pid, signal.SIGCONT)

    def _choose(self, there: Collection[str]) -> tuple[str, ...]:
        owners = {owner: tuple(sorted(threads)) for owner, threads in self._owners().items() if threads}
        sources = {owner: _source(threads) for owner, threads in owners.items()}
        if not sources:
            raise Unsupported("no NF has a thread on this machine that could be followed")
        choices: dict[Source, EventChoice] = {source: choose(source, there) for source in sorted(set(sources.values()))}
        sentence = "; ".join(choice.sentence for choice in choices.values())
        self._followed = tuple(
            TracedOwner(owner, source, owners[owner]) for owner, source in sources.items() if choices[source].events
        )
        if not self._followed:
            raise Unsupported(sentence)
        ratio = min(1.0, self._window_s / self._period_s)
        self._facts = {
            "events": f"traced are {sentence}",
            "window": f"{ratio:.0%} of the time, {self._window_s * 1e3:g} ms of every {self._period_s * 1e3:g} ms",
        }
        return tuple(dict.fromkeys(event for choice in choices.values() for event in choice.events))

    def stop(self) -> tuple[StateGraph, ...]:
        """End; return a graph for each NF that has events. Safe to call after a failure.

        Raises:
            CsitError: The reader has died, or something cannot be removed.
        """
        self.resume()
        worker, self._worker = self._worker, None
        with self._held:
            if worker is None:
                return ()
            # No measurement is running any more, so it need not wait for an idle CPU.
            with suppress(ProcessLookupError):
                os.sched_setscheduler(worker.pid, os.SCHED_OTHER, os.sched_param(0))
            worker.send({"do": "end"})
            lasted_s = time.monotonic() - self._began_s
            found = worker.answer("graphs of kernel events", _GRAPHS_S)
        self.cpu_s = found["cpu_s"]
        self._facts["tracing"] = f"{took(self.cpu_s, lasted_s)}, {where(self._cpu)}"
        if found["lost"]:
            self._facts["lost"] = f"{found['lost']} events, for which the kernel's buffer had no room"
        return tuple(
            StateGraph(
                owner=each.owner,
                source=each.source,
                traced_s=found["traced_s"],
                events=events,
                lost=found["lost"],
                edges=tuple(
                    Edge(before=before, after=after, count=count, seconds=seconds)
                    for before, after, count, seconds in edges
                ),
            )
            for each, events, edges in zip(self._followed, found["events"], found["edges"], strict=True)
            if events
        )

    def facts(self) -> Mapping[str, str]:
        return dict(self._facts)


def _source(threads: Iterable[int]) -> Source:
    """Return what is followed of threads: of those that run a virtual machine under KVM, which has its vCPUs open."""
    for folder in (Path(f"/proc/{thread}/fd") for thread in threads):
        with suppress(OSError):  # it has ended
            for each in folder.iterdir():
                with suppress(OSError):
                    if each.readlink().name.startswith(_VCPU):
                        return "kvm"
    return "kernel"

"""Follows the threads of NFs through events of the kernel, each NF a graph of what followed what."""

import logging
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress

from resources.libraries.python.drivers.generator.builtin.process import WorkerProcess
from resources.libraries.python.drivers.host.claims import Claims
from resources.libraries.python.drivers.tracer import tracefs
from resources.libraries.python.drivers.tracer.events import Choice, Source, choose
from resources.libraries.python.drivers.tracer.reader import Specification
from resources.libraries.python.drivers.tracer.stream import Followed
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.behaviour import Edge, StateGraph

_log = logging.getLogger(__name__)
_READER = "resources.libraries.python.drivers.tracer.reader"
_ALL_BUFFERS_KIB = 64 << 10
_MOST_BUFFER_KIB = 8 << 10
_READY_S, _GRAPHS_S = 20.0, 60.0
WINDOW_S, PERIOD_S = 0.01, 0.5
"""Recorded are 10 ms of every half second: 2 %, so that what is recorded costs less than 1 % of the throughput."""


class KernelTracer:
    """Fulfils `roles.watching.Tracer` on this machine."""

    def __init__(
        self,
        owners: Callable[[], Mapping[str, Collection[int]]],
        machine: Claims,
        *,
        guests: Collection[str] = (),
        window_s: float = WINDOW_S,
        period_s: float = PERIOD_S,
    ) -> None:
        """Prepare; nothing is touched before `start`.

        Args:
            owners: Gives thread ids by NF, asked at each start: `napi/` threads of its ports, threads of its processes,
                vCPUs and vhost threads.
            machine: Keeps the tracing instance and the reader on record, so that the next run removes what a killed
                one left.
            guests: Those of the owners that are virtual machines under KVM.
            window_s: How long is recorded in each period, in seconds; as long as that or longer: all the time.
            period_s: Of a period, in seconds.
        """
        self._owners = owners
        self._guests = frozenset(guests)
        self._machine = machine
        self._window_s, self._period_s = window_s, period_s
        self._name = f"csit-density-{os.getpid()}"
        self._held = ExitStack()
        self._worker: WorkerProcess | None = None
        self._followed: tuple[Followed, ...] = ()
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
            _log.warning("no graphs of state transitions: %s", error)
            self._facts = {"events": f"nothing is traced: {error}"}

    def _begin(self, held: ExitStack) -> WorkerProcess:
        root = held.enter_context(tracefs.opened())
        events = self._choose(tracefs.events(root))
        self._machine.claim_trace(self._name)
        held.callback(self._machine.release_trace, self._name)
        instance = tracefs.Instance(root, self._name)
        held.callback(instance.remove)
        instance.make(_buffer_kib(os.cpu_count() or 1), [thread for each in self._followed for thread in each.threads])
        worker = WorkerProcess(_READER)
        held.callback(worker.close)
        self._machine.claim_process(worker.pid)
        held.callback(self._machine.release_process, worker.pid)
        spec = Specification(self._name, events, self._followed, self._window_s, self._period_s)
        worker.tell(spec.plain())
        worker.answer("the reader of kernel events", _READY_S)
        worker.tell({"do": "begin"})
        return worker

    def _choose(self, there: Collection[str]) -> tuple[str, ...]:
        """Events for the kinds of NFs that there are."""
        owners = {owner: tuple(sorted(threads)) for owner, threads in self._owners().items() if threads}
        sources = {owner: _source(owner in self._guests) for owner in owners}
        if not sources:
            raise Unsupported("no NF has a thread on this machine that could be followed")
        choices: dict[Source, Choice] = {source: choose(source, there) for source in sorted(set(sources.values()))}
        sentence = "; ".join(choice.sentence for choice in choices.values())
        self._followed = tuple(
            Followed(owner, source, owners[owner]) for owner, source in sources.items() if choices[source].events
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
        worker, self._worker = self._worker, None
        with self._held:
            if worker is None:
                return ()
            # Nobody else is measured any more, so that it need not wait for a CPU that is idle.
            with suppress(ProcessLookupError):
                os.sched_setscheduler(worker.pid, os.SCHED_OTHER, os.sched_param(0))
            worker.tell({"do": "end"})
            found = worker.answer("graphs of kernel events", _GRAPHS_S)
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
        """Which events are traced, and why no others. After `start`."""
        return dict(self._facts)


def _source(is_guest: bool) -> Source:
    return "kvm" if is_guest else "kernel"


def _buffer_kib(cpus: int) -> int:
    """Of each CPU."""
    return max(512, min(_MOST_BUFFER_KIB, _ALL_BUFFERS_KIB // cpus))

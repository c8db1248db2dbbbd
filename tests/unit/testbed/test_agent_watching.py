"""An agent's life: what it watches, its streams, and the deadline of last resort."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError, NotReady
from resources.libraries.python.model.measurements.counters import Cost
from resources.libraries.python.model.measurements.features import Edge, FeatureSeries, HopDelay, StateGraph
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.studies.chains.chain_trial import watching
from resources.libraries.python.studies.chains.planning import LEAD_S
from resources.libraries.python.testbed.agent import __main__ as process
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.__main__ import Conversation, Interrupted
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.deployment.health import within
from resources.libraries.python.testbed.deployment.parts import Parts
from tests.builders import raising
from tests.unit.testbed.agent_service_runs import TOPOLOGY, WORK, NotingMachine, ask, ask_role, service_on

SERIES = FeatureSeries(owner="nf-1-1", feature="cpu_percent", values=(1.5, None, 3.0))
GRAPH = StateGraph(
    owner="nf-1-1", source="kernel", traced_s=0.5, events=2, lost=0,
    edges=(Edge(before="a:b", after="c", count=2, seconds=0.1),),
)  # fmt: skip


DELAY = HopDelay(owner="nf-1-1", direction=Direction.REVERSE, mean_s=5e-4, median_s=4e-4, packets=60)
COSTS_SEEN = {"nf-1-1": Cost(cpu_s=0.5, memory_bytes=1 << 20), "nf-2-1": Cost(cache_misses=7)}


def watcher(seen: Any, note: Callable[[str], None] = lambda _: None, fails: str = "") -> Any:
    """It says what it has seen."""

    def step(what: str) -> Any:
        note(what)
        if what == fails:
            raise CsitError("there is no reader" if what == "start" else "the reader has died")
        return seen if what == "stop" else None

    start, stop = partial(step, "start"), partial(step, "stop")
    return SimpleNamespace(cpu_s=0.25, start=start, stop=stop, facts=lambda: {"events": "all"})


SEEN: dict[calls.RemoteRole[Any], Any] = {
    calls.FEATURES: (SERIES,), calls.TRACER: (GRAPH,), calls.COSTS: COSTS_SEEN, calls.HOPS: (DELAY,),
}  # fmt: skip


class WatchedMachine(NotingMachine):
    """A machine whose NFs can be watched."""

    fails = ""
    """Step of the watcher of features that fails."""

    def share(self, plan: object, asked: object, capture: bytes | None = None) -> Parts:
        def watching(role: str, seen: object) -> Any:
            return watcher(seen, lambda text: self.note(f"{text} {role}"), self.fails * (role == "features"))

        watchers = {str(remote.role): watching(str(remote.role), seen) for remote, seen in SEEN.items()}
        return replace(super().share(plan, asked, capture), **watchers)


def prepared(machine: NotingMachine) -> AgentService:
    service = service_on(machine)
    ask(service, calls.OPEN, calls.NodeRequest(TOPOLOGY, "DUT1"))
    watched = {each.role for each in SEEN} if isinstance(machine, WatchedMachine) else set()
    assert ask(service, calls.PREPARE, WORK) == {calls.Role.CABLES, calls.Role.SWITCH} | watched
    return service


def test_series_graphs_costs_and_delays_pass_the_wire_unchanged_from_nodes_with_watchers() -> None:
    service = prepared(WatchedMachine())
    for probe, seen in SEEN.items():
        ask_role(service, probe, "start")
        assert ask_role(service, probe, "stop") == seen
    assert ask_role(service, calls.TRACER, "cpu_s") == 0.25
    assert ask_role(service, calls.TRACER, "facts") == {"events": "all"}
    service = prepared(NotingMachine())
    with pytest.raises(CsitError, match="this node has no tracer"):
        ask_role(service, calls.TRACER, "start")


def test_parts_are_not_watched_while_they_are_removed_also_where_that_fails() -> None:
    machine = WatchedMachine()
    service = prepared(machine)
    ask_role(service, calls.SWITCH, "start")
    ask_role(service, calls.FEATURES, "start")
    service.close()
    assert machine.notes.index("stop features") < machine.notes.index("stop switch")
    machine = WatchedMachine()
    machine.fails = "stop"
    service = prepared(machine)
    ask_role(service, calls.SWITCH, "start")
    with pytest.raises(CsitError, match="the reader has died"):
        ask_role(service, calls.SWITCH, "stop")
    assert "stop switch" in machine.notes


def parts_with(features: object, tracer: object) -> Any:
    return SimpleNamespace(features=features, tracer=tracer)


@pytest.mark.parametrize(
    ("fails", "said"),
    [("start", "nothing was traced: there is no reader"), ("stop", "trace lost: the reader has died")],
)
def test_where_the_tracer_fails_features_of_the_chains_own_nfs_are_kept(fails: str, said: str) -> None:
    unknown = SERIES.model_copy(update={"feature": "rss", "values": (7.0, None, None)})
    others = (SERIES.model_copy(update={"owner": "nf-9-9"}), unknown)
    parts = parts_with(watcher((SERIES, *others)), watcher((GRAPH,), fails=fails))
    with watching(parts, {"nf-1-1": "nat"}, 2) as watched:
        pass
    assert watched.notes == [said]
    assert [(cost.step, cost.cpu_s) for cost in watched.costs] == [("sample features", 0.25)]
    assert watched.series == (FeatureSeries(owner="nat", feature="cpu_percent", values=SERIES.values[LEAD_S:]),)


@pytest.mark.parametrize("fails", ["start", "stop"])
def test_the_kernel_traces_no_more_when_features_fail(fails: str) -> None:
    notes: list[str] = []
    parts = parts_with(watcher((), fails=fails), watcher((), notes.append))
    with pytest.raises(CsitError, match="reader"), watching(parts, {}, 1):
        pass
    assert notes == ["start", "stop"]


NEVER_S = 60.0


@pytest.fixture
def sink() -> Iterator[int]:
    """Where an agent may write."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a descriptor
        yield nothing.fileno()


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[signal.Signals]:
    """Signals to the main thread, none of which arrives; and the process goes on after an end that takes long."""
    sent: list[signal.Signals] = []
    monkeypatch.setattr(signal, "pthread_kill", lambda _, number: sent.append(number))
    monkeypatch.setattr(process, "_end_in_time", lambda: None)
    return sent


def said(source: int, *records: dict[str, Any]) -> None:
    """Write as a controller does, and end."""
    os.write(source, b"".join(json.dumps(record).encode() + b"\n" for record in records))
    os.close(source)


def test_a_call_that_goes_on_is_interrupted_until_it_ends(sink: int, signals: list[signal.Signals]) -> None:
    source, controller = os.pipe()
    conversation = Conversation(source, sink, silence_s=0.02)
    conversation._present = 1
    said(controller, {"cancel": 1})
    conversation._read()
    os.close(source)
    beat = threading.Thread(target=conversation._beat)
    beat.start()
    try:
        wait_until("signals", lambda: "" if len(signals) >= 5 else f"{len(signals)} of 5", NEVER_S)
    finally:
        conversation._present = None
        beat.join(NEVER_S)
    assert not beat.is_alive()


def test_a_signal_that_comes_late_does_not_interrupt_the_next_call(sink: int) -> None:
    conversation = Conversation(0, sink, 20.0)
    conversation._cancelled.add(1)
    conversation._present = 2
    conversation._ring()
    conversation._present = 1
    with pytest.raises(Interrupted):
        conversation._ring()


def test_a_call_that_begins_when_the_controller_is_gone_does_nothing(sink: int, signals: list[signal.Signals]) -> None:
    conversation = Conversation(0, sink, 20.0)
    did: list[object] = []
    conversation._end("signal SIGTERM")
    conversation._answer({"id": 1, "call": "switch.start"}, lambda *asked: did.append(asked))
    assert (did, conversation._present, signals) == ([], None, [signal.SIGUSR1])


def test_what_waits_in_the_pipe_is_heard_before_silence_counts(
    sink: int, signals: list[signal.Signals], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that stood still for longer than that has not lost its controller."""
    source, controller = os.pipe()
    said(controller, {"beat": True})
    looks_s = iter([0.0, 100.0, 100.0, 200.0, 200.0])
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=looks_s.__next__))
    conversation = Conversation(source, sink, 20.0)
    conversation._read()
    os.close(source)
    assert conversation._gone == "the connection to the controller has ended"
    assert signals == [signal.SIGUSR1]


_RINGS_S = 3.0
"""Long enough for a busy machine to get from there to the deadline within."""


class Timeout(Exception):
    """Of the timer around a deadline."""


@pytest.mark.slow
def test_a_timer_around_it_rings_in_its_time() -> None:
    before = signal.signal(signal.SIGALRM, raising(Timeout()))
    signal.setitimer(signal.ITIMER_REAL, _RINGS_S)
    try:
        with pytest.raises(NotReady), within("the trial", 0.1):
            threading.Event().wait(30)
        with pytest.raises(Timeout), within("the trial", 20.0):
            threading.Event().wait(30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("ringing_s", [300.0, 0.0])
def test_an_alarm_while_it_begins_or_ends_leaves_a_timer_around_it_alone(
    monkeypatch: pytest.MonkeyPatch, ringing_s: float
) -> None:
    set_timer = signal.setitimer

    def ringing(which: int, seconds: float, again_s: float = 0.0) -> tuple[float, float]:
        found = set_timer(which, seconds, again_s)
        if seconds == ringing_s:
            signal.raise_signal(signal.SIGALRM)
        return found

    before, ring = signal.getsignal(signal.SIGALRM), raising(Timeout())
    signal.signal(signal.SIGALRM, ring)
    set_timer(signal.ITIMER_REAL, 600.0, 7.0)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(signal, "setitimer", ringing)
            with pytest.raises(NotReady), within("the trial", 300.0):
                pass
        assert signal.getsignal(signal.SIGALRM) is ring
        left_s, again_s = signal.getitimer(signal.ITIMER_REAL)
        assert 300.0 < left_s <= 600.0 and again_s == 7.0
    finally:
        set_timer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_wait_that_does_not_return_is_interrupted_but_in_another_thread() -> None:
    with pytest.raises(NotReady, match=r"the trial not ready after 0\.1 s"), within("the trial", 0.1):
        threading.Event().wait(300)
    said: list[str] = []

    def work() -> None:
        with within("the trial", 0.01):
            time.sleep(0.05)
            said.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == ["done"]

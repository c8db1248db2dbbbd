"""What interrupts the main thread of an agent, and what does not."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.testbed.agent import process
from resources.libraries.python.testbed.agent.process import Conversation, Interrupted

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

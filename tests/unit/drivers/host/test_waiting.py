"""Waits of drivers that have no deadline of their own."""

import queue
import signal
import threading

import pytest

from resources.libraries.python.drivers.host.programs.waiting import next_item, wait_for_event


class _Handled(Exception):
    """Raised by the handler of a signal."""


def _handle(*_: object) -> None:
    raise _Handled


@pytest.mark.parametrize("make", [queue.Queue, queue.SimpleQueue])
def test_a_signal_that_does_not_wake_the_thread_is_handled(
    make: "type[queue.Queue[int]] | type[queue.SimpleQueue[int]]",
) -> None:
    """One that the kernel gives to another thread wakes the main thread no more than one that came too early."""
    items, before = make(), signal.signal(signal.SIGUSR1, _handle)
    other = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    too_late = threading.Timer(30, lambda: items.put(1))
    try:
        too_late.start()
        with pytest.raises(_Handled):
            other.start()
            next_item(items)
        assert items.empty(), "no item woke it"
    finally:
        too_late.cancel()
        signal.signal(signal.SIGUSR1, before)
    items.put(7)
    assert next_item(items) == 7


def test_a_signal_is_handled_while_an_event_is_waited_for() -> None:
    event, before = threading.Event(), signal.signal(signal.SIGUSR1, _handle)
    other = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    too_late = threading.Timer(30, event.set)
    try:
        too_late.start()
        with pytest.raises(_Handled):
            other.start()
            wait_for_event(event, 600.0)
        assert not event.is_set(), "it did not wake it"
    finally:
        too_late.cancel()
        signal.signal(signal.SIGUSR1, before)
    assert not wait_for_event(event, 0.01)
    event.set()
    assert wait_for_event(event, 0.0)

"""The deadline of last resort interrupts a wait, and leaves other people's timers alone."""

import signal
import threading
import time

import pytest

from resources.libraries.python.errors import NotReady
from resources.libraries.python.testbed.deployment.health import within

_RINGS_S = 3.0
"""Long enough for a busy machine to get from there to the deadline within."""


def test_a_wait_that_does_not_return_is_interrupted() -> None:
    begin = time.monotonic()
    with pytest.raises(NotReady, match=r"the trial not ready after 0\.1 s"), within("the trial", 0.1):
        threading.Event().wait(600)
    assert time.monotonic() - begin < 300


def test_what_ends_in_time_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with within("the trial", 5):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("own_s", [0.1, 20.0])
def test_a_timer_around_it_rings_in_its_time(own_s: float) -> None:
    class Timeout(Exception):
        pass

    def ring(*_: object) -> None:
        raise Timeout

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, _RINGS_S)
    try:
        with pytest.raises(NotReady if own_s < _RINGS_S else Timeout), within("the trial", own_s):
            threading.Event().wait(30)
        if own_s < _RINGS_S:
            with pytest.raises(Timeout):
                threading.Event().wait(30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("ringing_s", [300.0, 0.0])
def test_an_alarm_while_it_begins_or_ends_leaves_a_timer_around_it_alone(
    monkeypatch: pytest.MonkeyPatch, ringing_s: float
) -> None:
    def ring(*_: object) -> None:
        pytest.fail("rings in 600 s")

    set_timer = signal.setitimer

    def ringing(which: int, seconds: float, again_s: float = 0.0) -> tuple[float, float]:
        found = set_timer(which, seconds, again_s)
        if seconds == ringing_s:
            signal.raise_signal(signal.SIGALRM)
        return found

    before = signal.signal(signal.SIGALRM, ring)
    set_timer(signal.ITIMER_REAL, 600.0, 7.0)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(signal, "setitimer", ringing)
            with pytest.raises(NotReady), within("the trial", 300.0):
                pass
        assert signal.getsignal(signal.SIGALRM) is ring
        left_s, again_s = signal.getitimer(signal.ITIMER_REAL)
        assert 300.0 < left_s <= 600.0
        assert again_s == 7.0
    finally:
        set_timer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_another_thread_has_no_deadline_and_no_error() -> None:
    said: list[str] = []

    def work() -> None:
        with within("the trial", 0.01):
            time.sleep(0.05)
            said.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == ["done"]

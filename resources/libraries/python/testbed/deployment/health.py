"""The health gate: whether the system under test was intact until the end of a test and left nothing behind.

Its checks have deadlines of last resort, which return control to the run whatever a driver waits for.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import (
    ConfigError,
    ConnectionFailed,
    CsitError,
    NoTraffic,
    NotReady,
    PlanError,
    RunStopped,
    Unsupported,
)
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.testbed.deployment.parts import Testbed

_CLEAN_S = 180.0
_GONE_S = 30.0
_LINE = 600
_ANSWERS = (ConfigError, PlanError, Unsupported, NoTraffic, RunStopped)
"""Errors that would come again or say something about the cell: they are results."""


_AGAIN_S = 5.0
"""What is interrupted may wait again while it cleans up, so the alarm rings on."""


@contextmanager
def within(what: str, seconds: float) -> Iterator[None]:
    """Interrupt what takes longer.

    Every driver has deadlines of its own and says better what it waited for; this one is for a wait without a
    deadline. It is kept by the real-time timer of the process, hence only in the main thread; a timer that is running
    already (a timeout of Robot) rings in its time, unless that comes to pass inside.

    `what`: For messages: `the trial`.

    Raises:
        NotReady: The time is over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise NotReady(what, seconds, "it did not return")

    begin = time.monotonic()
    left_s, again_s = signal.getitimer(signal.ITIMER_REAL)
    if 0.0 < left_s < seconds:  # an outer deadline ends first
        yield
        return
    before = signal.getsignal(signal.SIGALRM)
    try:  # the alarm may ring after each line from here on, and in the middle of cleaning up
        try:
            signal.signal(signal.SIGALRM, ring)
            signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left_s - (time.monotonic() - begin)), again_s)


def is_breakage(error: BaseException | None) -> bool:
    """Whether an error of a phase comes from a broken system rather than from a result or a defect of this program.

    A part that died, a deployment that failed, a generator that does not answer.
    """
    return isinstance(error, OSError) or (isinstance(error, CsitError) and not isinstance(error, _ANSWERS))


def reason_of(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LINE else f"{text[: _LINE // 2]} ... {text[-_LINE // 2 :]}"


def clean_up(world: Testbed, plan: Plan | None) -> tuple[str, ...]:
    """After a cell was removed: find what is left of it, remove that by force, and look again.

    Returns:
        What was left.

    Raises:
        RunStopped: It cannot be removed, so no other cell can be deployed.
    """
    try:
        try:
            return _cleaned(world, plan)
        except ConnectionFailed:  # a node was lost meanwhile: it is waited for
            return _cleaned(world, plan)
    except (CsitError, OSError) as error:
        raise RunStopped(f"the machine cannot be cleaned: {error}; look at it, then resume the run") from error


def _cleaned(world: Testbed, plan: Plan | None) -> tuple[str, ...]:
    world.recover()  # has a deadline of its own, longer than a machine needs to boot
    with within("cleaning the machine", _CLEAN_S):
        left = world.leftovers(plan)
        if left:
            world.clean()
            wait_until("a clean machine", lambda: ", ".join(world.leftovers(plan)), _GONE_S, pause_s=0.05)
    return left

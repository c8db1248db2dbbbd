"""What must hold for every input: an exit status, a short message, and bounded time and memory."""

import contextlib
import resource
import signal
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from resources.libraries.python.defects import DEFECT
from resources.libraries.python.errors import LONGEST_MESSAGE, CsitError
from tests.simulated.in_process import Ended, csit

MAX_CPU_SECONDS = 2.0
MAX_MEMORY_KB = 300_000
ATTEMPTS = 3
Result = TypeVar("Result")


def run(target: str, *arguments: str) -> Ended:
    """Run a command of the command line in this process, and check it.

    Raises:
        AssertionError: It ended with a defect, took too much time or memory, or its message is too long or has control
            characters.
    """
    ended = bounded(target, lambda: csit(*arguments), ATTEMPTS)
    assert DEFECT not in ended.stderr, f"{arguments}: {ended.stderr}"
    check_message(ended.stderr, arguments)
    assert ended.status in range(5), f"{arguments}: exit status {ended.status}"
    return ended


def refused(target: str, call: Callable[[], object], *given: str, attempts: int = 1) -> str:
    """Call a function that may raise this project's errors; return the message, empty where there was none.

    Raises:
        AssertionError: As for `run`.
    """

    def caught() -> str:
        try:
            call()
        except CsitError as error:
            return str(error)
        return ""

    message = bounded(target, caught, attempts)
    assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} characters: {message[:300]}"
    check_message(message, given)
    return message


def bounded(target: str, call: Callable[[], Result], attempts: int = 1) -> Result:
    """Call a function within the bounds of CPU time and memory.

    On a shared core the same work takes up to twice the CPU time, so that a call which can be repeated is.
    """
    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(attempts):
        began_s = time.process_time()
        with _deadline(target):
            result = call()
        if (took_s := time.process_time() - began_s) <= MAX_CPU_SECONDS:
            break
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb
    assert took_s <= MAX_CPU_SECONDS, f"{target}: {took_s:.1f} s of CPU time"
    assert grown_kb <= MAX_MEMORY_KB, f"{target}: {grown_kb / 1000:.0f} MB"
    return result


@contextlib.contextmanager
def _deadline(target: str) -> Iterator[None]:
    """End a call that hangs: a signal after twice the CPU time that it may take."""

    def end(*_: object) -> None:
        raise AssertionError(f"{target}: more than {2 * MAX_CPU_SECONDS} s of CPU time")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, 2 * MAX_CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check_message(message: str, arguments: tuple[str, ...]) -> None:
    """Check the lines of an error message, without the paths that were given; shorter words may be in any text."""
    for given in sorted((word for word in arguments if len(word) > len("Error: ")), key=len, reverse=True):
        message = message.replace(given, "")
    assert "Traceback" not in message, message
    for line in message.splitlines():
        assert len(line) <= LONGEST_MESSAGE, f"a message of {len(line)} characters: {line[:300]}"
        assert line.isprintable() or not line.strip(), f"control characters in {line!r}"

"""`python -m resources.libraries.python.testbed.agent`: an agent on standard input and output.

Lines in, lines out, and an orderly end whatever happens to the controller. The main thread does what is asked, one call
after the other: what it starts may be tied to the thread that started it. A second thread reads. It interrupts the main
thread when a call is cancelled, when the input ends (the connection was cut, the controller has ended), and when
nothing was heard for too long (a partition ends nothing). Then everything is removed and the process ends.
"""

import argparse
import io
import logging
import os
import platform
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from resources.libraries.python import version
from resources.libraries.python.dialogue import JsonLines, line_of, plain, shown
from resources.libraries.python.drivers.host.programs.waiting import next_item
from resources.libraries.python.errors import CsitError
from resources.libraries.python.recording.environment import boot_id, fingerprint
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.service import AgentService

_log = logging.getLogger(__name__)
_END_S = 120.0
"""How long removing may take. Then the process ends as it is, and the next agent removes the rest."""
_GLANCE_S = 0.5
_PIECE = 1 << 20


class Interrupted(BaseException):
    """Ends a call in its middle. No `Exception`, so that no step boundary takes it for a failure of its own."""


class Conversation:
    """Dialogue on two pipes.

    `silence_s`: After how much silence the controller counts as gone.
    """

    def __init__(self, source: int, sink: int, silence_s: float) -> None:
        self._source = source
        self._sink = sink
        self._silence_s = silence_s
        self._writing = threading.Lock()
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._present: object = None
        """The id of the call that the main thread may be interrupted in."""
        self._cancelled: set[object] = set()
        """Ids of cancelled calls; one that has not begun yet is skipped."""
        self._gone = ""
        self._main = threading.get_ident()

    def serve(self, answer: Callable[[str, object], object]) -> str:
        """Answer until the controller is gone; say why it is."""
        os.set_blocking(self._sink, False)
        signal.signal(signal.SIGUSR1, self._ring)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda received, _: self._end(f"signal {signal.Signals(received).name}"))
        for thread in (self._read, self._beat):
            threading.Thread(target=thread, daemon=True).start()
        while (request := next_item(self._requests)) is not None and not self._gone:
            if request["id"] not in self._cancelled:
                self._answer(request, answer)
        return self._gone

    def _answer(self, request: dict[str, Any], answer: Callable[[str, object], object]) -> None:
        reply: dict[str, object] = {"id": request["id"]}
        try:
            try:
                self._present = request["id"]
                if self._is_unwanted():  # since before there was anything to interrupt
                    raise Interrupted
                reply["value"] = answer(request["call"], request.get("value"))
            finally:
                self._present = None
        except Interrupted:
            _log.info("the call '%s' was interrupted", request["call"])
            reply["error"] = plain(CsitError(f"the call '{request['call']}' was interrupted"))
        except Exception as error:  # the boundary of a process: an error is an answer
            _log.debug("the call '%s' failed", request["call"], exc_info=True)
            reply["error"] = plain(error)
        self._say(reply)

    def _say(self, record: dict[str, object]) -> None:
        """Write with a time limit: during a network partition the pipe is not read."""
        line = line_of(record)
        with self._writing:
            while line and not self._gone:
                select.select([], [self._sink], [], _GLANCE_S)
                try:
                    line = line[os.write(self._sink, line) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    self._end(f"the connection is closed: {error.strerror}")

    def _beat(self) -> None:
        """Say that this end lives; interrupt once more what goes on although it was interrupted.

        A signal that arrives after Python looked for one, and before the main thread waits, does not wake it.
        """
        while not self._gone or self._present is not None:
            self._say({"beat": True})
            time.sleep(calls.beat_s(self._silence_s))
            if self._is_unwanted():
                signal.pthread_kill(self._main, signal.SIGUSR1)

    def _read(self) -> None:
        lines = JsonLines()
        heard = time.monotonic()
        while not self._gone:
            left_s = heard + self._silence_s - time.monotonic()
            # Looked at in any case: this thread may have waited for a CPU meanwhile.
            if select.select([self._source], [], [], max(0.0, left_s))[0]:
                piece = os.read(self._source, _PIECE)
                heard = time.monotonic()
                if not piece:
                    self._end("the connection to the controller has ended")
                try:
                    for record in lines.feed(piece):
                        self._heard(record)
                except CsitError as error:
                    self._end(f"invalid input from the controller: {error}")
                except Exception as error:  # thread boundary: an agent that does not listen must not stay
                    self._end(f"reading from the controller failed: {error!r}")
            elif left_s <= 0:
                self._end(f"nothing heard from the controller for {self._silence_s:.0f} s")

    def _heard(self, record: dict[str, Any]) -> None:
        match record:
            case {"id": int(), "call": str()}:
                self._requests.put(record)
            case {"cancel": int(number)}:
                self._cancelled.add(number)
                if self._present == number:
                    signal.pthread_kill(self._main, signal.SIGUSR1)
            case {"beat": _}:
                pass
            case _:
                raise CsitError(f"neither call nor cancellation: {shown(record)}")

    def _end(self, why: str) -> None:
        """Let the main thread come to its end."""
        if not self._gone:
            self._gone = why
            _end_in_time()
        self._requests.put(None)
        signal.pthread_kill(self._main, signal.SIGUSR1)

    def _is_unwanted(self) -> bool:
        """Whether the present call, if there is one, is to be interrupted."""
        return self._present is not None and (bool(self._gone) or self._present in self._cancelled)

    def _ring(self, *_: object) -> None:
        # Between two calls there is nothing to interrupt: the queue skips it. A late signal finds another call.
        if self._is_unwanted():
            self._present = None
            raise Interrupted


def take_streams() -> tuple[int, int]:
    """Keep standard input and output for the conversation: nothing else of this process may read or write there.

    Returns:
        Descriptors to read from and to write to.
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what a driver prints is seen at once, not at the end
    return source, sink


def _end_in_time() -> None:
    def end() -> None:
        _log.error("the end takes more than %.0f s; the next agent removes the rest", _END_S)
        os._exit(3)

    timer = threading.Timer(_END_S, end)
    timer.daemon = True
    timer.start()


def log_to_stderr() -> None:
    """Log to standard error, whose tail the controller keeps; messages are lost without harm when that is gone."""
    logging.raiseExceptions = False
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def main() -> int:
    """Serve one controller; return the exit status."""
    source, sink = take_streams()
    parser = argparse.ArgumentParser(prog="agent")
    parser.add_argument("--controller", help="who calls; only shown, where processes are listed")
    parser.add_argument("--silence-s", type=float, required=True)
    options = parser.parse_args()
    log_to_stderr()
    greeting = calls.Greeting(
        protocol=calls.PROTOCOL,
        project=version.digest(version.sources().items()),
        python=platform.python_version(),
        hostname=platform.node(),
        pid=os.getpid(),
        boot_id=boot_id(),
    )
    service = AgentService(fingerprint, greeting)
    why = Conversation(source, sink, options.silence_s).serve(service.answer)
    _log.info("%s; removing what is there", why)
    service.close()  # an error ends the process with its traceback and status 1; the next agent removes what is left
    return 0


if __name__ == "__main__":
    sys.exit(main())

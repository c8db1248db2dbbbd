"""The controller's end of the connection to an agent."""

import itertools
import logging
import queue
import threading
import time
from typing import Any, Generic, TypeVar

from resources.libraries.python.dialogue import JsonLines, error_of, line_of, shown
from resources.libraries.python.drivers.host.programs.waiting import wait_for_event
from resources.libraries.python.errors import ConnectionFailed, CsitError, NotReady, ending_of_shell
from resources.libraries.python.redaction import visible
from resources.libraries.python.testbed.agent.calls import Call, beat_s
from resources.libraries.python.testbed.connection.command import TRACEBACK
from resources.libraries.python.testbed.connection.program import RemoteProgram

_log = logging.getLogger(__name__)
_GLANCE_S = 1.0
_STATUS_S = 10.0
"""How long the status of an agent may take that has closed its output: it is still ending, or its node is busy."""
_LARGEST_NUMBER = 2**64
A = TypeVar("A")
R = TypeVar("R")


class Pending(Generic[R]):
    """A call whose answer is on its way."""

    def __init__(self, link: "AgentLink", call: Call[Any, R], number: int, within_s: float) -> None:
        self._link = link
        self._call = call
        self._number = number
        self._within_s = within_s
        self._answered = threading.Event()
        self._reply: dict[str, Any] | None = None

    def result(self) -> R:
        """Wait for the answer.

        Raises:
            ConnectionFailed: The agent or the way to it is gone.
            NotReady: It does not answer.
            CsitError: What the agent's driver raised, with the node's name in front; or the answer is invalid.
        """
        try:
            in_time = wait_for_event(self._answered, self._within_s)
        except BaseException:  # a deadline of the caller, or Ctrl-C: the answer is not needed any more
            self._link.cancel(self._number)
            raise
        if not in_time:
            self._link.cancel(self._number)
            raise NotReady(f"{self._link.name}: the call '{self._call.name}'", self._within_s, self._link.last_words())
        if self._reply is None:
            raise self._link.loss()
        if "error" in self._reply:
            raise error_of(self._reply["error"], self._link.name)
        value = self._reply.get("value")
        try:
            return self._call.gives.validate_python(_sound(value))
        except (ValueError, RecursionError) as error:
            raise CsitError(f"{self._link.name}: invalid answer to '{self._call.name}': {shown(value)}") from error

    def settle(self, reply: dict[str, Any] | None) -> None:
        """Deliver the answer; None: it will never come."""
        self._reply = reply
        self._answered.set()


def _sound(value: object) -> object:
    """Return a value of an answer whose texts may be shown on a terminal and on pages.

    Raises:
        ValueError: It has a number that is not finite, or larger than any counter.
    """
    match value:
        case str():
            return visible(value)
        case int() | float() if not abs(value) <= _LARGEST_NUMBER:
            raise ValueError(value)
        case list():
            return [_sound(each) for each in value]
        case dict():
            return {visible(key): _sound(each) for key, each in value.items()}
    return value


class AgentLink:
    """One agent. Calls are done in the order in which they are made.

    Two threads of its own read and write, so that an alarm in the middle of a call breaks no line, and so that both
    sides hear of each other every few seconds.
    """

    def __init__(self, name: str, channel: RemoteProgram, silence_s: float) -> None:
        """Start the threads that read and write.

        `silence_s`: After how much silence the agent counts as gone.
        """
        self.name = name
        self.lost = ""
        """Why there is no agent any more, as a sentence; empty while there is one."""
        self._trace = ""
        """Traceback of an agent that ended with one."""
        self._channel = channel
        self._silence_s = silence_s
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Pending[Any]] = {}
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._heard = time.monotonic()
        self._closing = False
        self._threads = [threading.Thread(target=work, daemon=True, name=name) for work in (self._read, self._write)]
        for thread in self._threads:
            thread.start()

    def begin(self, call: Call[A, R], asked: A, more_s: float = 0.0) -> Pending[R]:
        """Send a call; its answer is waited for later.

        `more_s`: How much longer than usual the answer may take.

        Raises:
            ConnectionFailed: The agent is gone.
        """
        number = next(self._numbers)
        # A node that may be silent for that long is slow: it may take as long for an answer.
        within_s = max(call.within_s, self._silence_s) + more_s
        pending = self._waiting[number] = Pending(self, call, number, within_s)
        self._send({"id": number, "call": call.name, "value": call.asks.dump_python(asked, mode="json")})
        if self.lost:  # checked after the entry was made: the thread that notices a loss settles all entries
            self._waiting.pop(number, None)
            raise self.loss()
        return pending

    def call(self, call: Call[A, R], asked: A, more_s: float = 0.0) -> R:
        """Ask and wait for the answer; raises as `begin` and `Pending.result`."""
        return self.begin(call, asked, more_s).result()

    def loss(self) -> ConnectionFailed:
        """Error about an agent that is gone; the traceback that it ended with is a note."""
        error = ConnectionFailed(self.lost or f"{self.name}: the agent is gone")
        if self._trace:
            error.add_note(f"{self.name}: {self._trace}")
        return error

    def cancel(self, number: int) -> None:
        """Drop a call that is not waited for any more, and have the agent interrupt it."""
        self._waiting.pop(number, None)
        self._send({"cancel": number})

    def last_words(self) -> str:
        """Return what is known of an agent that does not answer."""
        silent_s = time.monotonic() - self._heard
        output = self._last_output()
        return f"last heard of {silent_s:.0f} s ago; its last output: {output or 'nothing'}"

    def close(self) -> None:
        """Close the connection; the agent then removes everything and exits. Safe to call more than once."""
        self._closing = True
        self._outgoing.put(None)
        self._channel.close()
        for thread in self._threads:
            thread.join(2 * _GLANCE_S)
        self._lose("agent connection closed")

    def _send(self, record: dict[str, object]) -> None:
        self._outgoing.put(line_of(record))

    def _write(self) -> None:
        try:
            while not self.lost:
                try:
                    line = self._outgoing.get(timeout=beat_s(self._silence_s))
                except queue.Empty:
                    line = line_of({"beat": True})
                if line is None:
                    return
                self._channel.send(line)
        except (CsitError, OSError) as error:
            self._lose(str(error))
        except Exception as error:  # thread boundary: callers would wait in vain
            _log.debug("writing to %s failed", self.name, exc_info=True)
            self._lose(f"writing to the agent failed: {error!r}")

    def _read(self) -> None:
        lines = JsonLines()
        try:
            while not self.lost:
                try:
                    piece = self._channel.receive(_GLANCE_S)
                except NotReady:
                    if time.monotonic() - self._heard > self._silence_s:
                        self._lose(f"nothing heard from the agent for {self._silence_s:.0f} s")
                    continue
                if not piece:
                    return self._lose(self._ended())
                self._heard = time.monotonic()
                for record in lines.feed(piece):
                    self._hear(record)
        except (CsitError, OSError) as error:
            self._lose(str(error))
        except Exception as error:  # thread boundary: callers would wait in vain
            _log.debug("reading from %s failed", self.name, exc_info=True)
            self._lose(f"reading from the agent failed: {error!r}")

    def _hear(self, record: dict[str, Any]) -> None:
        match record:
            case {"id": int(number), "value": _} | {"id": int(number), "error": _}:
                pending = self._waiting.pop(number, None)
                if pending is not None:
                    pending.settle(record)
            case {"beat": _}:
                pass
            case _:
                raise CsitError(f"neither answer nor heartbeat from the agent: {shown(record)}")

    def _ended(self) -> str:
        if self._closing:
            return "agent connection closed"
        deadline = time.monotonic() + _STATUS_S
        while (status := self._channel.status()) is None and time.monotonic() < deadline and not self._closing:
            time.sleep(0.02)  # it comes after the end of the output
        how = "the connection was cut" if status is None else f"the agent {ending_of_shell(status)}"
        output = self._last_output()
        return f"{how}; it said last: {output}" if output else how

    def _last_output(self) -> str:
        """The end of the agent's log on one line; of a traceback the error, and all of it is kept."""
        tail = self._channel.stderr_tail()
        _, begin, trace = tail.rpartition(TRACEBACK)
        if begin:
            self._trace = f"{begin}{trace}"
            lines = trace.strip().splitlines()
            tail = lines[-1] if lines else ""
        return " ".join(tail.split())[-400:]

    def _lose(self, why: str) -> None:
        if not self.lost:
            text = why if why.startswith(f"{self.name}:") else f"{self.name}: {why}"
            self.lost = text
            if not self._closing:
                _log.warning(text)
        for number in list(self._waiting):
            if (pending := self._waiting.pop(number, None)) is not None:
                pending.settle(None)

"""The driver's end of the client: start it, ask it with a deadline, end it."""

import logging
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from resources.libraries.python.dialogue import JsonLines, line_of
from resources.libraries.python.drivers.generators.trex import client_process
from resources.libraries.python.drivers.generators.trex.wire import Record, read
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import end_group, end_of
from resources.libraries.python.drivers.host.programs.program_output import tail_of
from resources.libraries.python.errors import CsitError, NotReady
from resources.libraries.python.model.base import Frozen

_LOG = logging.getLogger(__name__)
_TAIL_BYTES = 1500
_END_S = 2.0
"""How long a client may take that was asked to end."""
_LOOK_S = 0.2
_PIECE = 1 << 20
Result = TypeVar("Result")


class Client:
    """One running client. What the library prints goes to a log, of which errors show the end."""

    def __init__(self, python: str, log: Path, machine: MachineLock | None, why: Callable[[], str]) -> None:
        """Prepare.

        `machine`: owns the process; None: no owner.
        `why`: says what is wrong with the server, empty where nothing is: then that is why there is no answer.
        """
        # Isolated: neither the environment nor this folder decides what it imports.
        self._argv = (python, "-I", "-u", client_process.__file__)
        self._log = log
        self._machine = machine
        self._why = why
        self._lines = JsonLines()
        self._said: list[dict[str, Any]] = []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, cpu: int | None = None) -> None:
        """Start it on a CPU, in the network namespace of the calling thread, which must end afterwards.

        Raises:
            CsitError: It cannot be started.
        """
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    # An interrupt of the terminal goes to the run, which then stops the client.
                    process_group=0,
                )
        except OSError as error:
            raise CsitError(f"TRex's client cannot be started: {self._argv[0]}: {error.strerror}") from error
        if self._machine is not None:
            self._machine.claim_process(self._process.pid)

    def ask(self, order: Frozen, record: type[Record], what: str, within_s: float) -> Record:
        """Give an order and wait for its answer.

        Raises:
            CsitError: The client or the server has ended, says what is wrong, or answers something else.
            NotReady: There is no answer in time.
        """
        process = self._running
        if reason := self._why():
            raise CsitError(f"TRex: {reason}")
        assert process.stdin is not None  # noqa: S101 - asked for above
        try:
            process.stdin.write(line_of(order.model_dump(mode="json")))
        except BrokenPipeError as error:
            raise self._ended() from error
        answer = self._answer(what, within_s)
        if "error" in answer:
            raise CsitError(f"TRex: {self._why() or answer['error']}")
        return read(record, answer)

    def _answer(self, what: str, within_s: float) -> dict[str, Any]:
        process = self._running
        assert process.stdout is not None  # noqa: S101 - asked for above
        deadline = time.monotonic() + within_s
        while not self._said:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NotReady(f"TRex: {what}", within_s, f"nothing from client {process.pid}; its log: {self._tail()}")
            if not select.select([process.stdout], [], [], min(left_s, _LOOK_S))[0]:
                # The library would go on asking a server that is gone for many seconds.
                if reason := self._why():
                    raise CsitError(f"TRex: {reason}")
                continue
            piece = os.read(process.stdout.fileno(), _PIECE)
            if not piece:
                raise self._ended()
            self._said += self._lines.feed(piece)
        return self._said.pop(0)

    def problem(self, *, closed: bool = False) -> str:
        """Why it does not run; empty while it does.

        Args:
            closed: Whether it has closed its input or output; `stop` ends a client that goes on running.
        """
        if self._process is None:
            return "TRex's client is not started"
        how = end_of(self._process, closed=closed)
        return f"TRex's client {how}; it said last: {self._tail()}" if how else ""

    def _ended(self) -> CsitError:
        problem = self.problem(closed=True)
        return CsitError(self._why() or problem)

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise CsitError("TRex's client is not started")
        return self._process

    def _tail(self) -> str:
        lines = tail_of(self._log, _TAIL_BYTES).splitlines()
        return " | ".join(line.strip() for line in lines[-4:] if line.strip()) or "nothing"

    def stop(self) -> None:
        """End it: by itself with its input, after 2 s by force. Safe to call at any time and more than once."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if not end_group(process, _END_S):
            _LOG.warning("TRex's client %d did not end within %.0f s and was killed", process.pid, _END_S)
        if self._machine is not None:
            self._machine.release_process(process.pid)

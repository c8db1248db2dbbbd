"""The driver's end of a worker: start it, talk to it with a deadline, end it."""

import logging
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from resources.libraries.python.dialogue import JsonLines, error_of, line_of
from resources.libraries.python.drivers.host.ownership.processes import end_group, end_of, exit_status, is_stopped
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.paths import PROJECT

_LOG = logging.getLogger(__name__)
_MODULE = "resources.libraries.python.drivers.generators.builtin.worker"
_TAIL_BYTES = 2000
_END_S = 2.0
"""How long a worker may take that was asked to end."""
_LOOK_S = 1.0
"""A worker that is stopped at two looks in a row is not waited for any longer."""


class WorkerProcess:
    """One running worker.

    The kernel kills it when the thread that made this object ends, so that it never outlives a killed driver: start
    it from a thread that stays.
    """

    def __init__(self, module: str = _MODULE) -> None:
        """Start it.

        `module`: What it runs, such as the generator's worker: any module that speaks `dialogue`.
        """
        self._argv = (sys.executable, "-m", module)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            # numpy's threads would not be on the planned core, and are of no use here
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
            # out of the terminal's group: an interrupt goes to the driver, which then stops the worker. And a
            # session of its own: the kernel shares a CPU among sessions first
            start_new_session=True,
        )
        self._lines = JsonLines()
        self._heard: deque[dict[str, Any]] = deque()
        _LOG.debug("worker %d started: %s", self._process.pid, module)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it runs no more."""
        return exit_status(self._process) is not None

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped by a signal (not exited)."""
        return is_stopped(self.pid)

    @property
    def output(self) -> int:
        """The descriptor of what it says."""
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        return self._process.stdout.fileno()

    @property
    def has_spoken(self) -> bool:
        """Whether a record of it is waiting here."""
        return bool(self._heard)

    def send(self, record: Mapping[str, object]) -> None:
        """Send a record.

        Raises:
            CommandFailed: the worker has ended.
            CsitError: It has closed its input, and does not end.
        """
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        try:
            left = memoryview(line_of(record))
            while left:
                left = left[self._process.stdin.write(left) :]
        except BrokenPipeError as error:
            raise self._ended() from error

    def answer(self, what: str, within_s: float) -> dict[str, Any]:
        """Return the next record.

        Raises:
            CommandFailed: The worker has exited.
            NotReady: No answer came in time, the worker is stopped, or it waited for something in vain.
            CsitError: The worker reports an error, its answer is no record, or it has closed its output and does not
                end.
        """
        deadline = time.monotonic() + within_s
        while not self.has_spoken:
            first_to_speak([self], what, deadline - time.monotonic())
            part = os.read(self.output, 1 << 20)
            if not part:
                raise self._ended()
            try:
                self._heard.extend(self._lines.feed(part))
            except CsitError as error:
                raise CsitError(f"invalid answer of worker {self.pid} to {what}: {error}") from error
        record = self._heard.popleft()
        if "error" in record:
            raise error_of(record["error"])
        return record

    def last_words(self) -> str:
        """The end of what it has written to its standard error."""
        size = os.fstat(self._stderr.fileno()).st_size
        tail = os.pread(self._stderr.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        return tail.decode(errors="replace").strip() or "nothing"

    def _ended(self) -> CsitError:
        """The error to raise of a worker that has closed its input or output, which `close` ends."""
        how, status = end_of(self._process, closed=True), self._process.returncode
        if status is None:
            return CsitError(f"{' '.join(self._argv)} {how}: {self.last_words()}")
        return CommandFailed(self._argv, status, self.last_words())

    def close(self) -> None:
        """End the worker. It ends by itself when its input does; after 2 s it is killed."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            if not end_group(self._process, _END_S):
                _LOG.warning("worker %d did not end within %.0f s and was killed", self.pid, _END_S)
        finally:
            self._stderr.close()


def first_to_speak(workers: Sequence[WorkerProcess], what: str, within_s: float) -> WorkerProcess:
    """The first of some workers that says something or ends.

    Raises:
        NotReady: none does in time, or one is stopped.
    """
    if spoken := [worker for worker in workers if worker.has_spoken]:
        return spoken[0]
    by_descriptor = {worker.output: worker for worker in workers}
    begin, stopped = time.monotonic(), set[int]()
    while True:
        left_s = max(0.0, begin + within_s - time.monotonic())
        ready, _, _ = select.select(list(by_descriptor), [], [], min(_LOOK_S, left_s))
        if ready:
            return by_descriptor[ready[0]]
        before, stopped = stopped, {worker.pid for worker in workers if worker.is_stopped}
        if still := before & stopped:
            raise NotReady(what, time.monotonic() - begin, f"worker {min(still)} is stopped")
        if left_s <= _LOOK_S:
            silent = workers[0]
            seen = f"nothing from worker {silent.pid}; its stderr: {silent.last_words()}"
            raise NotReady(what, max(0.0, within_s), seen)

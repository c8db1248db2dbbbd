"""The connection to this machine: the same semantics as over SSH, by pipes."""

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from resources.libraries.python.errors import ConnectionFailed
from resources.libraries.python.testbed.connection.command import Streams
from resources.libraries.python.testbed.connection.machine import Become, Connection

_BLOCK_BYTES = 262144
_LOOK_S = 0.2
_EXIT_S = 10.0
"""How long a killed program may take to end on a busy machine."""


class LocalConnection(Connection):
    """A connection to the machine this runs on."""

    WITHOUT_SUDO = "run as root"

    def __init__(self, name: str = "this machine", become: Become = "auto") -> None:
        super().__init__(name, become)
        self._closed = False

    def _start(self, command: Sequence[str]) -> Streams:
        if self._closed:
            raise ConnectionFailed(f"the connection to {self._name} has been closed")
        try:
            return _Pipes(command)
        except OSError as error:
            raise ConnectionFailed(f"{command[0]} cannot be started on {self._name}: {error.strerror}") from error

    def close(self) -> None:
        """End the programs that were opened."""
        super().close()
        self._closed = True


@contextmanager
def or_here(connection: Connection | None, python: str) -> Iterator[tuple[Connection, str]]:
    """Yield a connection and the Python behind it; without one, those of this machine."""
    if connection is not None:
        yield connection, python
        return
    with closing(LocalConnection()) as here:
        yield here, sys.executable


class _Pipes:
    """Fulfils `command.Streams` by a process of this machine."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, start_new_session=True,
        )  # fmt: skip
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None  # noqa: S101 (asked for above)
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        os.set_blocking(stdin.fileno(), False)
        self._released = False

    def write(self, data: bytes, within_s: float) -> int:
        if self._stdin.closed:
            raise BrokenPipeError("its input has been closed")
        try:
            _, writable, _ = select.select([], [self._stdin], [], within_s)
            if not writable:
                raise TimeoutError
            return os.write(self._stdin.fileno(), data)
        except ValueError as error:  # another thread has closed it meanwhile
            raise OSError(errno.EBADF, "closed") from error

    def end_input(self) -> None:
        with suppress(OSError):
            self._stdin.close()

    def read(self, within_s: float) -> bytes:
        try:
            readable, _, _ = select.select([self._stdout], [], [], within_s)
            if not readable:
                raise TimeoutError
            return os.read(self._stdout.fileno(), _BLOCK_BYTES)
        except ValueError as error:  # another thread has closed it meanwhile
            raise OSError(errno.EBADF, "closed") from error

    def read_errors(self) -> bytes:
        block = b""
        while not self._released:  # a process that left the group may keep it open forever
            readable, _, _ = select.select([self._stderr], [], [], _LOOK_S)
            if readable:
                block = os.read(self._stderr.fileno(), _BLOCK_BYTES)
                break
        if not block:
            self._stderr.close()  # here, because only this thread uses it
        return block

    def status(self, within_s: float) -> int | None:
        try:
            status = self._process.wait(within_s) if within_s > 0 else self._process.poll()
        except subprocess.TimeoutExpired:
            return None
        return 128 - status if status is not None and status < 0 else status

    def broken(self) -> str:
        return ""

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        if self._process.poll() is None:  # what it has started to outlive it may not have left the group yet
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for stream in (self._stdin, self._stdout):
            with suppress(OSError):
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_S)

"""A running program on a machine: its announcement, its output, its end."""

import threading
import time
from collections.abc import Callable, Sequence

from resources.libraries.python.errors import CommandFailed, ConnectionFailed, NotReady, ending_of_shell
from resources.libraries.python.redaction import redacted, visible
from resources.libraries.python.testbed.connection import command
from resources.libraries.python.testbed.connection.command import Streams

TAIL_BYTES = 65536
_KEPT_BYTES = TAIL_BYTES + 4096
"""A secret that begins before what is shown, such as a key, is not longer than the rest."""
_BLOCK_BYTES = 262144
_ANNOUNCEMENT_BYTES = 4096
"""The line that announces the start is shorter."""
_SEND_S = 60.0
"""How long a program may take no byte of what it is sent."""
_ENDING_S = 2.0
"""How long a program may take to end after its input has."""

_LAST_WORDS_S = 0.5


class RemoteProgram:
    """A program that was started over a connection, to be talked with through its standard input and output."""

    def __init__(
        self,
        argv: Sequence[str],
        streams: Streams,
        token: str,
        machine: str,
        kill: Callable[[int], None],
    ) -> None:
        """Take over a program that has been started by `words.words`."""
        self.argv = tuple(argv)
        self._streams = streams
        self._token = token.encode()
        self._machine = machine
        self._kill = kill
        self._errors = bytearray()
        self._group: int | None = None
        self._reported = threading.Event()
        self._silent = False
        """Whether its output has ended."""
        self._closed = False
        self._reader = threading.Thread(target=self._read_errors, name=f"stderr of {argv[0]}", daemon=True)
        self._reader.start()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    # -- its start ----------------------------------------------------------------------------------------------------

    def await_start(self, within_s: float) -> None:
        """Wait until it is known to run.

        Raises:
            CommandFailed: There is no such program, or it may not be run.
            ConnectionFailed: The way to it is gone; whether it was started is not known.
            NotReady: Nothing is known in time.
        """
        if not self._reported.wait(within_s):
            raise NotReady(f"{self.argv[0]} on {self._machine}", within_s, self.stderr_tail() or "nothing on stderr")
        if self._group is None:
            status = self._streams.status(_ENDING_S)
            if status is None:
                why = self._streams.broken() or "the session ended"
                raise ConnectionFailed(f"{self._machine}: {why}; whether {self.argv[0]} was started is not known")
            raise CommandFailed(self.argv, status, self.stderr_tail() or "there is no such program")

    def _read_errors(self) -> None:
        rest = b""
        try:
            while block := self._streams.read_errors():
                rest = self._before_the_start(rest + block) if not self._reported.is_set() else self._keep_errors(block)
        finally:
            self._keep_errors(rest)
            self._reported.set()

    def _before_the_start(self, text: bytes) -> bytes:
        """Look for the announcement, a line of its own, which a login script or sudo may precede; return the rest."""
        *lines, rest = text.split(b"\n")
        for position, line in enumerate(lines):
            if self._is_announcement(line):
                self._keep_errors(b"\n".join([*lines[position + 1 :], rest]))
                self._reported.set()
                return b""
            self._keep_errors(line + b"\n")
        return rest if len(rest) < _ANNOUNCEMENT_BYTES else self._keep_errors(rest)

    def _is_announcement(self, line: bytes) -> bool:
        if not line.startswith(self._token):
            return False
        try:
            self._group = command.started(line.decode(), self._token.decode())
        except ValueError:  # something else that begins so
            return False
        return True

    def _keep_errors(self, block: bytes) -> bytes:
        self._errors += block
        if len(self._errors) > 2 * _KEPT_BYTES:
            del self._errors[:-_KEPT_BYTES]
        return b""

    # -- talking ------------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write all of it to the program's standard input.

        Raises:
            ConnectionFailed: The program or the way to it is gone.
        """
        rest = memoryview(data)
        while rest:
            try:
                taken = self._streams.write(bytes(rest[:_BLOCK_BYTES]), _SEND_S)
            except TimeoutError as error:
                raise ConnectionFailed(
                    f"{self.argv[0]} on {self._machine} has taken none of {len(rest)} bytes for {_SEND_S:.0f} s"
                ) from error
            except OSError as error:
                raise ConnectionFailed(self._gone()) from error
            rest = rest[taken:]

    def end_input(self) -> None:
        self._streams.end_input()

    def receive(self, within_s: float) -> bytes:
        """Some bytes of its standard output; empty when that has ended.

        Raises:
            NotReady: Nothing came in time.
            ConnectionFailed: The way to the program is gone.
        """
        if self._closed:
            raise ConnectionFailed(self._gone())
        try:
            block = self._streams.read(within_s)
        except TimeoutError as error:
            raise NotReady(
                f"output of {self.argv[0]} on {self._machine}", within_s, self.stderr_tail() or "nothing on stderr"
            ) from error
        except OSError as error:
            raise ConnectionFailed(self._gone()) from error
        if not block and self._streams.broken():
            raise ConnectionFailed(self._gone())
        self._silent = not block
        return block

    def stderr_tail(self) -> str:
        """The end of what it wrote to its standard error until now, without secrets and control characters."""
        kept = bytes(self._errors[-_KEPT_BYTES:])
        # Cut before it is escaped, which can make it six times as long, but not within a secret.
        return visible(redacted(kept.decode(errors="replace"))[-TAIL_BYTES:])

    def status(self) -> int | None:
        """Its exit status; None while it runs, or when it cannot be known any more."""
        return self._streams.status(0)

    # -- its end ------------------------------------------------------------------------------------------------------

    def finish(self, deadline: float) -> int:
        """Wait for its end, after its output has ended.

        `deadline`: Of the monotonic clock, in seconds.

        Raises:
            TimeoutError: It has not ended.
            ConnectionFailed: Its exit status is unknown.
        """
        self._reader.join(max(0.0, deadline - time.monotonic()))
        status = self._streams.status(max(0.0, deadline - time.monotonic()))
        if status is None and (why := self._streams.broken()):
            raise ConnectionFailed(f"{self._machine}: {why} while {self.argv[0]} ran; what it did is not known")
        if status is None or self._reader.is_alive():
            raise TimeoutError
        return status

    def end(self) -> None:
        """End it at once, with its children."""
        over = self._silent and not self._reader.is_alive() and self._streams.status(0) is not None
        if self._group is not None and not over and not self._streams.broken():
            self._kill(self._group)
        self._closed = True
        self._streams.release()
        self._reader.join(_ENDING_S)

    def close(self) -> None:
        """Close its standard input, wait a little for its end, then end it. Safe to call more than once."""
        if self._closed:
            return
        self._streams.end_input()
        deadline = time.monotonic() + _ENDING_S
        # It may have output left, and would block forever if that were not read.
        while (left := deadline - time.monotonic()) > 0:
            try:
                if not self._streams.read(left):
                    self._silent = True
                    break
            except OSError:
                break
        self._reader.join(max(0.0, deadline - time.monotonic()))
        self._streams.status(max(0.0, deadline - time.monotonic()))
        self.end()

    def _gone(self) -> str:
        if self._closed:
            return f"{self.argv[0]} on {self._machine} has been closed"
        if why := self._streams.broken():
            return f"{self._machine}: {why} while {self.argv[0]} ran"
        status = self._streams.status(_ENDING_S)
        how = "no longer reads" if status is None else f"has {ending_of_shell(status)}"
        self._reader.join(_LAST_WORDS_S if status is not None else 0)
        stderr = self.stderr_tail().strip() or "nothing on stderr"
        return f"{self.argv[0]} on {self._machine} {how}: {stderr}"

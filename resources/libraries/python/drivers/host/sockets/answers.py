"""Answers of programs on sockets: one may send without end, or a byte now and then."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import CsitError, NotReady

MAX_REPLY_BYTES = 16 << 20
"""Far more than any of the questions here is answered with."""
_PIECE_BYTES = 1 << 16
_TAIL_BYTES = 80


def receive(
    link: socket.socket,
    what: str,
    complete: Callable[[bytes], bool],
    within_s: float,
    *,
    begun: bytes = b"",
    show: Callable[[str], str] = str,
) -> bytes:
    """Read until what was received is complete.

    `begun`: Its beginning, which was received before.
    `show`: Masks what an error must not quote.

    Raises:
        NotReady: It is not complete in time.
        CsitError: The other end has closed the connection, or sent more than `MAX_REPLY_BYTES`.
        OSError: The connection is broken.
    """
    got, deadline = begun, time.monotonic() + within_s
    while not complete(got):
        piece = None
        if (left_s := deadline - time.monotonic()) > 0:
            link.settimeout(left_s)
            with suppress(TimeoutError):
                piece = link.recv(_PIECE_BYTES)
        if piece is None:
            seen = repr(show(got[-_TAIL_BYTES:].decode(errors="replace"))) if got else "nothing"
            raise NotReady(what, within_s, seen)
        if not piece:
            raise CsitError(f"{what}: the connection was closed before its end")
        got += piece
        if len(got) > MAX_REPLY_BYTES:
            raise CsitError(f"{what}: more than {MAX_REPLY_BYTES >> 20} MB")
    return got


class SocketDialogue:
    """A connection to a Unix socket that is asked in lines, made when it is first needed and again after a failure.

    `within_s`: Deadline for each answer, and for the connection.
    """

    def __init__(self, path: Path, within_s: float) -> None:
        self._path, self._within_s = path, within_s
        self._socket: socket.socket | None = None

    def _begin(self, connection: socket.socket) -> None:
        """Say what comes before all questions."""

    def _exchange(self, line: bytes, what: str, complete: Callable[[bytes], bool]) -> bytes:
        """Send a line and return the answer.

        Raises:
            NotReady: It is not complete in time.
            CsitError: The other end closed the connection, or sent too much.
            OSError: There is no other end, or the connection is broken.
        """
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
                self._socket.settimeout(self._within_s)
                self._socket.connect(str(self._path))
                self._begin(self._socket)
            self._socket.sendall(line + b"\n")
            return self._read(self._socket, what, complete)
        except (CsitError, OSError):
            self.close()  # what comes late would be taken for the next answer
            raise

    def _read(self, connection: socket.socket, what: str, complete: Callable[[bytes], bool]) -> bytes:
        return receive(connection, what, complete, self._within_s)

    def close(self) -> None:
        """Close the connection. Safe to call at any time."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

"""Answers of programs on sockets: one may send without end, or a byte now and then."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress

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

"""A time limit of a whole connection, however slowly its peer sends."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def shut_down_after(connection: socket.socket, limit_s: float) -> Iterator[None]:
    """Shut a connection down when the limit is over: what reads or writes there meets its end.

    Timeouts of sockets are of one call each, so a peer that sends a byte now and then never meets one. Works for TLS
    too, also if `connection` is wrapped later.
    """
    own = connection.dup()

    def shut_down() -> None:
        with suppress(OSError):  # the peer was faster
            own.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        own.close()

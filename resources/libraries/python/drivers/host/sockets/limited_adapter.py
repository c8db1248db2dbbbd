"""Connections of requests with a time limit each, however slowly their peers answer."""

import importlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any


def limited_adapter(limits: ExitStack, longest_s: float) -> Any:  # noqa: ANN401 - of a package without types
    """Return a class of adapters for a session of requests: all connections made from now on have a time limit.

    `limits`: Has the limit of the present connection; closing it ends the limit.
    `longest_s`: Maximum duration of a connection.
    """
    adapters, pools = importlib.import_module("requests.adapters"), importlib.import_module("urllib3.connectionpool")

    def limited(pool: Any) -> Any:  # noqa: ANN401 - as in urllib3
        class LimitedConnection(pool.ConnectionCls):  # type: ignore[misc]
            def _new_conn(self) -> socket.socket:
                made: socket.socket = super()._new_conn()
                limits.close()  # of the last connection: requests come one after the other
                limits.enter_context(_shut_down_after(made, longest_s))
                return made

        return type(pool.__name__, (pool,), {"ConnectionCls": LimitedConnection})

    class LimitedAdapter(adapters.HTTPAdapter):  # type: ignore[misc,name-defined]
        def init_poolmanager(self, *args: object, **kwargs: object) -> None:
            """Make connections with a time limit."""
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = {
                "http": limited(pools.HTTPConnectionPool),
                "https": limited(pools.HTTPSConnectionPool),
            }

    return LimitedAdapter


@contextmanager
def _shut_down_after(connection: socket.socket, limit_s: float) -> Iterator[None]:
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

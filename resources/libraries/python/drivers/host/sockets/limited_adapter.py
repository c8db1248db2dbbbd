"""Connections of requests with a time limit each, however slowly their peers answer."""

import importlib
import socket
from contextlib import ExitStack
from typing import Any

from resources.libraries.python.drivers.host.sockets.time_limit import shut_down_after


def limited_adapter(limits: ExitStack, longest_s: float) -> Any:  # noqa: ANN401 - of a package without types
    """Return a class of adapters for a session of requests: all connections made from now on have a time limit.

    Args:
        limits: Has the limit of the present connection; closing it ends the limit.
        longest_s: Maximum duration of a connection.
    """
    adapters, pools = importlib.import_module("requests.adapters"), importlib.import_module("urllib3.connectionpool")

    def limited(pool: Any) -> Any:  # noqa: ANN401 - as in urllib3
        class LimitedConnection(pool.ConnectionCls):  # type: ignore[misc]
            def _new_conn(self) -> socket.socket:
                made: socket.socket = super()._new_conn()
                limits.close()  # of the last connection: requests come one after the other
                limits.enter_context(shut_down_after(made, longest_s))
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

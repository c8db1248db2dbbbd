"""One connection per node, for as long as a run lasts."""

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from resources.libraries.python.model.access import Access
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.ssh import SshConnection
from resources.libraries.python.testbed.roles.connection import Connection


class Connections:
    """The connections to the nodes of a testbed; a context manager. Threads may share it."""

    def __init__(self, accesses: Mapping[str, Access | None]) -> None:
        """Prepare; a node is connected to when something is first done there.

        Args:
            accesses: How each node is reached, by its name; None for this machine.
        """
        self._accesses = dict(accesses)
        self._made: dict[str, Connection] = {}
        self._making = threading.Lock()

    def __enter__(self) -> Self:
        """Nothing happens yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all of them."""
        self.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes, in order."""
        return tuple(self._accesses)

    def of(self, node: str) -> Connection:
        """The connection to a node, always the same one.

        Raises:
            KeyError: There is no such node.
        """
        with self._making:
            if node not in self._made:
                access = self._accesses[node]
                self._made[node] = LocalConnection(node) if access is None else SshConnection(node, access)
            return self._made[node]

    def close(self) -> None:
        """Close all of them. Safe to call more than once."""
        with self._making:
            for connection in self._made.values():
                connection.close()

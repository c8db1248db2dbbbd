"""Network functions that keep a table of connections."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from resources.libraries.python.model.connections import ConnectionTable, Deletion
from resources.libraries.python.testbed.roles.patience import patience


@runtime_checkable
class Stateful(Protocol):
    """Network functions of which some keep a table of connections; results are by name of the network function."""

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        """Return the state of all tables; without network functions that keep none. Cheap: called after every trial.

        Raises:
            CsitError: A table cannot be read.
        """

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        """Let entries of UDP, and of closed TCP connections, expire after some time; return the tables.

        Args:
            timeout_s: Time without a packet after which an entry expires.

        Raises:
            CsitError: A timeout cannot be set.
        """

    @patience(120.0)
    def delete_connections(self) -> Mapping[str, Deletion]:
        """Delete all entries of all tables at the same time.

        Raises:
            CsitError: Entries cannot be deleted.
        """
